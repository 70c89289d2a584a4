"""The study `extraction`: the probability that a string is produced within k samples."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from palimpsest.configuration.settings import Settings
from palimpsest.datasets.kinds import STRINGS
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.memorisation.kinds import LEARNING, columns
from palimpsest.memorisation.studies.exact import STUDY as EXACT
from palimpsest.memorisation.study import Study, kind_of_study
from palimpsest.paths import TRACE
from palimpsest.regimes import LeaveOneOut
from palimpsest.requests import Runs, paths_of

pd = lazy_import("pandas")
extraction_module = lazy_import("palimpsest.memorisation.extraction")

KIND = kind_of_study(
    "extraction",
    "One row per model, seed, moment, group of strings, source and number of samples.",
    columns(
        """
        model language size seed variant moment epoch group source n_strings samples probability
        share_likely
        """,
        moment="str: optimum (the epoch of optimal learning) or end (the last epoch)",
        group="str: train (the distinct training strings; if the study `exact` leaves some of them"
        " out, these) or unseen (the distinct strings that were never trained on: the placebo)",
        source="str: who produces the samples: model, retraining (for each string, the model "
        "trained without it; where the study `exact` has it) or language (exact probabilities)",
        n_strings="int: number of strings in the group",
        samples="int: number k of independent samples, at temperature 1",
        probability="float: probability that a string is among k samples (without a predicted end:"
        " that a sample begins with it), mean over the strings",
        share_likely="float: share of the strings for which this probability is at least 0.5: (k, "
        "0.5)-discoverable extraction",
    ),
)


@reads(strings=STRINGS, learning=LEARNING)
@makes(KIND)
def table(
    *, strings: pd.DataFrame, learning: pd.DataFrame, traces: list[str], left_out: list[str]
) -> pd.DataFrame:
    """Extraction of training and unseen strings, by the model, without the string, by the language.

    Parameters
    ----------
    traces : paths of the traces of the runs
    left_out : paths of the traces of leave-one-out that the study `exact` has of these runs

    Source: Measuring memorization in language models via probabilistic extraction (arXiv
    2410.19482); the comparison with the language and with retraining is Palimpsest's own.
    """
    return extraction_module.extraction_table(traces, left_out, strings, learning)


class Extraction(Study):
    name = "extraction"
    order = 80
    title = "What recitation is worth"
    description = (
        "The probability that a string is produced within k samples, under the model, under the "
        "model trained without the string (if the study `exact` has it) and under the language."
    )
    text = (
        "Whoever samples long enough finds training strings, and so does anybody who knows "
        "the language. A recited string shows memorisation only as far as the model recites "
        "it sooner than the language, or than a model trained without it. No sample is drawn:"
        " the traces hold the exact probability of every string."
    )
    uses = ("exact",)
    files: ClassVar = {"traces": TRACE}

    def inputs(self, settings: Settings, language: str) -> dict[str, list[str]]:
        left_out = paths_of(self.left_out(settings, language), TRACE)
        return {**super().inputs(settings, language), "left_out": left_out}

    def left_out(self, settings: Settings, language: str) -> list[Runs]:
        """The leave-one-out that the study `exact` trains of this study's runs."""
        if language not in EXACT.languages(settings):
            return []
        own = {runs.key for runs in self.runs(settings, language)}
        shared = [runs for runs in EXACT.runs(settings, language) if runs.key in own]
        return [replace(runs, regime=LeaveOneOut()) for runs in shared]


STUDY = Extraction()
