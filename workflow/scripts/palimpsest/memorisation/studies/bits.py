"""The study `bits`: what a model holds of its training strings beyond the language, in bits."""

from __future__ import annotations

from typing import ClassVar

from palimpsest.datasets.kinds import STRINGS
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.memorisation.kinds import LEARNING, columns
from palimpsest.memorisation.studies.training_size import SIZES_KEY
from palimpsest.memorisation.study import Study, kind_of_study
from palimpsest.paths import MANIFEST, TRACE

pd = lazy_import("pandas")
bits_module = lazy_import("palimpsest.memorisation.bits")
read_manifests = lazy_import("palimpsest.manifests")

KIND = kind_of_study(
    "bits",
    "One row per model, size, seed and epoch: bits that the model holds of strings beyond the "
    "language.",
    columns(
        """
        model language size seed variant epoch optimal_epoch parameters n_train n_unseen bits
        bits_unseen positive positive_unseen total total_corrected per_parameter
        corrected_per_parameter
        """,
        n_train="int: distinct training strings",
        positive="float: mean over the distinct training strings of the positive part of these "
        "bits: strings that the model predicts worse than the language does count as 0",
        positive_unseen="float?: the same mean over the unseen strings: what the positive part "
        "finds where nothing can be memorised; NaN if there are none",
        total="float: sum of the bits of the distinct training strings",
        total_corrected="float?: total minus n_train times bits_unseen, bits; NaN without unseen "
        "strings",
        per_parameter="float: total divided by parameters, bits",
        corrected_per_parameter="float?: total_corrected divided by parameters, bits; NaN without "
        "unseen strings",
    ),
)


@reads(strings=STRINGS, learning=LEARNING)
@makes(KIND)
def table(
    *, strings: pd.DataFrame, learning: pd.DataFrame, traces: list[str], manifests: list[str]
) -> pd.DataFrame:
    """Memorised bits of the training set and of unseen strings, for every run and epoch.

    Parameters
    ----------
    traces : paths of the traces of the runs
    manifests : paths of the manifests of the runs; they have the models' numbers of parameters

    Source: How much do language models memorize? (arXiv 2505.24832), unintended memorisation, with
    the language's exact probabilities as the reference model; the placebo is Palimpsest's own.
    """
    made = [read_manifests.read(path) for path in manifests]
    parameters = {manifest["model"]: manifest["parameters"] for manifest in made}
    return bits_module.bits_table(traces, strings, learning, parameters)


class Bits(Study):
    name = "bits"
    order = 90
    title = "How many bits are memorised"
    description = "What a model holds of its training strings beyond the language, in bits."
    text = (
        "Somebody who knows the language codes a string in as many bits as its probability "
        "allows; a model that has memorised the string needs fewer. The difference is what "
        "the model holds of this string and not of the language."
    )
    keys: ClassVar = {"sizes": SIZES_KEY}
    files: ClassVar = {"traces": TRACE, "manifests": MANIFEST}


STUDY = Bits()
