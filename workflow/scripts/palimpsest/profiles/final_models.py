"""What the trained model of a stream answers beyond its trace: greedy decoding, and influences."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from palimpsest import tables
from palimpsest.datasets.kinds import STRINGS
from palimpsest.jobs.bench import Bench, TrainedWeights
from palimpsest.jobs.query import query
from palimpsest.models.trained import n_last_right
from palimpsest.profiles import influence
from palimpsest.profiles.kinds import CONTINUATIONS, INFLUENCE, INFLUENCES, REMOVAL
from palimpsest.profiles.streams import PANEL, VALIDATION

# Of each way to leave a macro-batch out: the columns of its influence and of what is left unsolved
COLUMNS = {INFLUENCE: ("influence", "residual"), REMOVAL: ("removal", "removal_residual")}


@query("profiles", "questions", CONTINUATIONS, INFLUENCES)
def answers(bench: Bench, weights: TrainedWeights, numbers: np.ndarray) -> list[pd.DataFrame]:
    strings = tables.read(bench.run.dataset, STRINGS)
    trained = weights.of_run(0)
    return [
        continuations(bench, trained, strings).assign(**bench.keys)[CONTINUATIONS.names],
        influences(bench, trained, strings).assign(**bench.keys)[INFLUENCES.names],
    ]


def continuations(
    bench: Bench, trained: dict[str, torch.Tensor], strings: pd.DataFrame
) -> pd.DataFrame:
    """How many last tokens of every measured string greedy decoding gives."""
    rows = np.flatnonzero(strings["split"].isin([PANEL, VALIDATION]))
    models = bench.holder.open([trained])
    found = np.zeros(len(strings), dtype=int)

    def keep(some: np.ndarray, logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> None:
        found[some] = n_last_right(logits_MBTV, targets_MBT)[0].cpu().numpy()

    bench.measure(models, rows, keep)
    return pd.DataFrame(
        {
            "string_id": bench.material.string_ids[rows],
            "n_tokens": bench.material.encoded.n_tokens[rows],
            "n_last_right": found[rows],
        }
    )


def influences(
    bench: Bench, trained: dict[str, torch.Tensor], strings: pd.DataFrame
) -> pd.DataFrame:
    """The influence of every macro-batch on its measured strings, and on validation strings.

    The influence is computed with other strings in the place of the macro-batch, and with none.
    Half of the validation strings, drawn at random, stand for the strings that take the place of
    the macro-batch. The others are measured.
    """
    cohorts = strings["cohort"].astype("Float64").to_numpy(dtype=float, na_value=np.nan)
    numbers = np.unique(cohorts[~np.isnan(cohorts)])
    chance = np.random.default_rng(bench.keys["seed"])
    validation = chance.permutation(np.flatnonzero(strings["split"] == VALIDATION))
    replacements, unseen = np.array_split(validation, 2)
    is_panel, encoded = (strings["split"] == PANEL).to_numpy(), bench.material.encoded
    parts = []
    for some in bench.parts(numbers):
        models = bench.holder.open([trained] * len(some))
        removed = [np.flatnonzero(cohorts == number) for number in some]
        measured = [np.concatenate([rows[is_panel[rows]], unseen]) for rows in removed]
        before = influence.losses(models, encoded, measured)
        found = {}
        for way, others in ((INFLUENCE, replacements), (REMOVAL, None)):
            moved = influence.without(models, encoded, removed, others, bench.material.multiset)
            start_MP = influence.flat_weights(models)
            influence.set_weights(models, moved.weights)
            found[way] = influence.losses(models, encoded, measured), moved.residual
            influence.set_weights(models, start_MP)
        for place, number in enumerate(some):
            part = {"without": int(number), "string_id": bench.material.string_ids[measured[place]]}
            for way, names in COLUMNS.items():
                after, residual = found[way]
                part |= {names[0]: after[place] - before[place], names[1]: residual[place]}
            parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)
