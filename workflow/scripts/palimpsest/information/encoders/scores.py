"""Tables of encoders: accuracies, gaps and compression, with the measures of their neurons.

Source: the paper on information measures of neurons, appendices C and D.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from palimpsest.information.activation_files import read_arrays
from palimpsest.information.encoders.compression import compression
from palimpsest.information.encoders.gaps import gaps, gaps_by_chance
from palimpsest.information.encoders.study import group_name, model_in_group
from palimpsest.information.kinds import (
    ACCURACY,
    COMPRESSIONS,
    ENCODER_ANSWERS,
    ENCODER_NUMBERS,
    ENCODER_RUNS,
    ENCODER_SCORES,
    ENCODERS,
    GAPS,
    GIVEN_LAYERS,
    MEASURED,
)
from palimpsest.making import makes, reads
from palimpsest.models.sites import RESIDUAL

MOST_PROBED = 1000  # texts whose labels are compressed: more take longer, and tell the same
WITH_GROUPS = ("compression_group", *GAPS, *(f"{gap}_permuted" for gap in GAPS))


@reads(answers=[ENCODER_ANSWERS], runs=ENCODER_RUNS)
@makes(ENCODER_SCORES)
def scores_table(
    answers: Sequence[pd.DataFrame],
    runs: pd.DataFrame,
    cls: Sequence[str],
    mean: Sequence[str],
    interventions: Mapping[str, Mapping[str, float]],
) -> pd.DataFrame:
    """The table `encoder_scores` of a study.

    Parameters
    ----------
    answers, runs, cls, mean : of every run, in the same order; the last two are paths of
        activations
    interventions : the share of each variant, by the intervention that it is compared in
    """
    parts = []
    for own, run, *paths in zip(answers, runs.to_dict("records"), cls, mean, strict=True):
        about = {**run, **accuracies(own), **of_groups(own)}
        layers = pd.DataFrame(
            [
                {"position": position, "layer": layer, "place": RESIDUAL, **numbers}
                for position, path in zip(("cls", "mean"), paths, strict=True)
                for layer, numbers in enumerate(of_layers(path, own))
            ]
        )
        parts += [
            layers.assign(**about, intervention=intervention, share=shares[run["variant"]])
            for intervention, shares in interventions.items()
            if run["variant"] in shares
        ]
    found = pd.concat(parts, ignore_index=True)
    # Without groups, columns hold None, whose type is no number's.
    return found.astype(dict.fromkeys(WITH_GROUPS, float))[ENCODER_SCORES.names]


def accuracies(answers: pd.DataFrame) -> dict[str, float]:
    """The number of texts, and the share of right labels by the word that is inserted."""
    columns = {
        "accuracy": "given",
        "accuracy_agrees": "given_agrees",
        "accuracy_disagrees": "given_disagrees",
        "accuracy_without": "given_without",
    }
    shares = {name: (answers[own] == answers["label"]).mean() for name, own in columns.items()}
    return {"n_answers": len(answers), **shares}


def of_groups(answers: pd.DataFrame) -> dict[str, float]:
    """The gaps between groups, and those by chance; NaN without two groups."""
    if answers["group"].nunique() < 2:
        return dict.fromkeys((*GAPS, *(f"{gap}_permuted" for gap in GAPS)), np.nan)
    columns = [answers[name].to_numpy(dtype=str) for name in ("label", "given_without", "group")]
    by_chance = {f"{name}_permuted": own for name, own in gaps_by_chance(*columns).items()}
    return {**gaps(*columns), **by_chance}


def of_layers(path: str, answers: pd.DataFrame) -> Iterator[dict[str, float]]:
    """The compression of labels, words and groups at each layer of a file of activations.

    It is that of the first `MOST_PROBED` texts, which are in a random order.
    """
    chance, answers = np.random.default_rng(0), answers[:MOST_PROBED]
    targets = {
        "compression_label": answers["label"].to_numpy(dtype=str),
        "compression_word": answers["shown"].to_numpy(dtype=str),
        "compression_permuted": chance.permutation(answers["label"].to_numpy(dtype=str)),
    }
    if answers["group"].nunique() > 1:
        targets["compression_group"] = answers["group"].to_numpy(dtype=str)
    for values in read_arrays(path).values():
        some = values[:MOST_PROBED]
        found = {name: compression(some, labels) for name, labels in targets.items()}
        yield {name: found.get(name, np.nan) for name in COMPRESSIONS}


def given_scores(scores: pd.DataFrame, group: str) -> dict[str, dict]:
    """What is known of the models of a group besides activations: `accuracy` and `scores` of each.

    Those of the layers are means over the layers. Numbers that no model has are left out.
    """
    names = [
        group_name(*row)
        for row in zip(scores["language"], scores["intervention"], scores["position"], strict=True)
    ]
    own = scores[np.array(names, dtype=object) == group]
    means = own.groupby(["variant", "seed"])[[*ENCODER_NUMBERS]].mean().dropna(axis=1, how="all")
    return {
        model_in_group(*run): {
            ACCURACY: row.pop(ACCURACY),
            "scores": row,
        }
        for run, row in zip(means.index, means.to_dict("records"), strict=True)
    }


@reads(scores=ENCODER_SCORES, layers=GIVEN_LAYERS)
@makes(ENCODERS)
def encoders_table(scores: pd.DataFrame, layers: pd.DataFrame) -> pd.DataFrame:
    """The table `encoders` of a study: its scores, and the measures of the layers of all groups."""
    keys = ["models", "run", "layer"]
    study, intervention, position, variant, seed = (
        scores[name] for name in ("language", "intervention", "position", "variant", "seed")
    )
    groups = [group_name(*row) for row in zip(study, intervention, position, strict=True)]
    runs = [model_in_group(*row) for row in zip(variant, seed, strict=True)]
    measured = layers.rename(columns={"language": "models", "model": "run"})
    found = scores.assign(models=groups, run=runs).merge(
        measured[[*keys, *MEASURED.split()]], on=keys, validate="one_to_one"
    )
    return found[ENCODERS.names]
