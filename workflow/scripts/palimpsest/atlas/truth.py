"""The truth of the atlas: what exact retraining says of every training string of a run.

Each distinct training string was removed once, in a training that is otherwise the same (the regime
`Removals`): with equal initial weights, and with the other strings in their places. The same once
more with other initial weights and another order is the ceiling: how well a retraining agrees with
another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest import traces
from palimpsest.atlas import kinds
from palimpsest.atlas.distances import edit_distances
from palimpsest.datasets.choices import placebos_of, removed_strings
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.making import makes, reads
from palimpsest.memorisation.measures import Start, contextual
from palimpsest.memorisation.runs import epoch_of, paired, run_name
from palimpsest.regimes import WHOLE_AGAIN, half_of, string_left_out
from palimpsest.traces import Trace

RUN = ["model", "language", "size", "seed"]
REMEDY = "it is of another dataset or recipe: delete it and rerun"


@dataclass(frozen=True)
class Retrained:
    """The losses of the training strings of one dataset, with and without removals.

    All are nats per token, by one set of initial weights and one order of the strings. `loss`
    float[epochs, strings] is that of the training on all strings, and `without` float[epochs,
    strings] that of each string in the training without it. At the end of training, `removals`
    float[removed, strings] are the losses without each of the strings, `halves` float[halves,
    strings] those on random halves, and `placebo_without` float[strings] those of the strings'
    placebos in the training without the string. `placebo` float[epochs, strings] are those of the
    placebos in the training on all strings. NaN where a string has no placebo.
    """

    epochs: np.ndarray
    loss: np.ndarray
    without: np.ndarray
    removals: np.ndarray
    halves: np.ndarray
    placebo: np.ndarray
    placebo_without: np.ndarray

    @property
    def influence(self) -> np.ndarray:
        """float[removed, strings]: the loss without a string minus the loss on all strings."""
        return self.removals - self.loss[-1]

    def start(self, rule: Start) -> np.ndarray:
        """float[strings]: index of the epoch at which contextual memorisation starts, or NaN."""
        return contextual(self.loss, self.without, rule).start


def rows_of_run(table: pd.DataFrame, run: Mapping) -> pd.DataFrame:
    """The rows of a table that are of one run; `run` has the values of its columns, by name."""
    return table[(table[list(run)] == pd.Series(run)).all(axis=1)]


@reads(
    traces=[traces.read], datasets=[STRINGS], removals=[traces.read_all], again=[traces.read_all]
)
@makes(kinds.TRUTH, kinds.INFLUENCE, kinds.HALF_RUNS, kinds.CURVES)
def truth_tables(
    traces: Sequence[Trace],
    datasets: Sequence[pd.DataFrame],
    removals: Iterable[list[Trace]],
    again: Iterable[list[Trace]],
    start: Start,
) -> dict[str, pd.DataFrame]:
    """Self-influence, starts, influence and losses of every training string by retraining, twice.

    Parameters
    ----------
    traces : one per seed: the run on all strings
    datasets : tables `strings`, in the order of the traces
    removals : for every seed, the runs of the regime `removals`
    again : for every seed, those of `removals-again`; the first is the run on all strings
    start : "after_last_miss" or "first_crossing"

    Raises `UserError` if the runs do not fit together.
    """
    # Placebos were chosen by losses per token of the dataset, and not of the model.
    parts = [
        tables_of_run(trace, dataset, *others, start)
        for (trace, _), dataset, *others in zip(
            paired(traces, datasets), datasets, removals, again, strict=True
        )
    ]
    return {name: pd.concat([of[name] for of in parts], ignore_index=True) for name in parts[0]}


def tables_of_run(
    trace: Trace, dataset: pd.DataFrame, removals: list[Trace], again: list[Trace], start: Start
) -> dict[str, pd.DataFrame]:
    """The tables of one run."""
    whole, *others = again
    if whole.run["variant"] != WHOLE_AGAIN:
        raise UserError(f"{run_name(whole.run)}: is not the training on all strings; {REMEDY}")
    strings = removed_in(trace, dataset, removals)
    _check_halves(removals, others)
    exact = retrained(trace, dataset, strings, removals)
    once_more = retrained(whole, dataset, strings, others)
    about = {name: trace.run[name] for name in RUN}
    ids = strings["string_id"].to_numpy(dtype=object)
    n = len(ids)
    truth = pd.DataFrame(
        {
            **{name: strings[name].to_numpy() for name in ("string_id", "count", "log_prob")},
            "self_influence": np.diag(exact.influence),
            "self_influence_again": np.diag(once_more.influence),
            "placebo_influence": exact.placebo_without - exact.placebo[-1],
            "start": epoch_of(exact.start(start), exact.epochs),
            "start_again": epoch_of(once_more.start(start), exact.epochs),
        }
    )
    influence = pd.DataFrame(
        {
            "removed": np.repeat(ids, n),
            "string_id": np.tile(ids, n),
            "influence": exact.influence.ravel(),
            "influence_again": once_more.influence.ravel(),
            "edit_distance": edit_distances(strings["text"]).ravel(),
        }
    )
    halves = pd.concat(
        [
            half_rows(dataset, removals, exact, once_more, ids),
            unseen_rows(dataset, removals, others, ids),
        ],
        ignore_index=True,
    )
    curves = curve_rows(exact, ids)
    found = {"retrained": truth, "influence": influence, "halves": halves, "curves": curves}
    return {name: table.assign(**about) for name, table in found.items()}


def removed_in(trace: Trace, dataset: pd.DataFrame, removals: Sequence[Trace]) -> pd.DataFrame:
    """The training strings that have a training without them, in the dataset's order."""
    names = {string_left_out(run.run["variant"]) for run in removals if not is_half(run)}
    train = dataset[dataset["count"] > 0]
    if strangers := names - set(train["string_id"]):
        raise UserError(
            f"{run_name(trace.run)}: a training without {min(strangers)}, which is no training "
            f"string; {REMEDY}"
        )
    found = train[train["string_id"].isin(names)]
    if len(found) < 2:
        raise UserError(f"{run_name(trace.run)}: {len(found)} removals, and 2 are needed; {REMEDY}")
    return found.reset_index(drop=True)


def _check_halves(removals: Iterable[Trace], again: Iterable[Trace]) -> None:
    """Raise `UserError` unless both have the same halves, in the same order."""
    one, other = (
        [run.run["variant"] for run in runs if is_half(run)] for runs in (removals, again)
    )
    if one != other:
        raise UserError(f"{len(one)} halves, and {len(other)} others once more: train both alike")


def is_half(run: Trace) -> bool:
    return half_of(run.run["variant"]) is not None


def retrained(
    whole: Trace, dataset: pd.DataFrame, strings: pd.DataFrame, runs: Iterable[Trace]
) -> Retrained:
    """The losses of `strings` in a training on all strings and in the runs with removals."""
    ids = strings["string_id"]
    without = {string_left_out(run.run["variant"]): run for run in runs if not is_half(run)}
    if missing := [name for name in ids if name not in without]:
        raise UserError(f"{run_name(whole.run)}: no training without {missing[0]}; {REMEDY}")
    for run in runs:
        alike = all(run.run[key] == whole.run[key] for key in RUN)
        if not alike or not np.array_equal(run.epochs, whole.epochs):
            raise UserError(
                f"{run_name(run.run)}: is of other runs or epochs than {run_name(whole.run)}; "
                f"{REMEDY}"
            )
    chosen = [without[name] for name in ids]
    placebos = placebos_of(dataset, ids)

    def of_placebo(run: Trace, name: str | None) -> np.ndarray:
        unknown = np.full(len(run.epochs), np.nan)
        return unknown if name is None else run.loss[:, run.column_of([name])[0]]

    columns = [run.column_of(ids) for run in chosen]
    own = [run.loss[:, of[n]] for n, (run, of) in enumerate(zip(chosen, columns, strict=True))]
    halves = [run.loss[-1, run.column_of(ids)] for run in runs if is_half(run)]
    return Retrained(
        epochs=whole.epochs,
        loss=whole.loss[:, whole.column_of(ids)],
        without=np.stack(own, axis=1),
        removals=np.stack([run.loss[-1, of] for run, of in zip(chosen, columns, strict=True)]),
        halves=np.stack(halves) if halves else np.empty((0, len(ids))),
        placebo=np.stack([of_placebo(whole, name) for name in placebos], axis=1),
        placebo_without=np.array(
            [of_placebo(run, name)[-1] for run, name in zip(chosen, placebos, strict=True)]
        ),
    )


def curve_rows(exact: Retrained, ids: np.ndarray) -> pd.DataFrame:
    """The rows of the table `curves`, without the columns of the run."""
    return pd.DataFrame(
        {
            "string_id": np.tile(ids, len(exact.epochs)),
            "epoch": np.repeat(exact.epochs, len(ids)),
            "loss": exact.loss.ravel(),
            "loss_without": exact.without.ravel(),
            "placebo_loss": exact.placebo.ravel(),
        }
    )


def unseen_rows(
    dataset: pd.DataFrame, removals: Iterable[Trace], again: Iterable[Trace], ids: np.ndarray
) -> pd.DataFrame:
    """Rows of the table `halves` of the placebos of some strings, which no half has."""
    names = sorted({name for name in placebos_of(dataset, ids) if name is not None})
    rows = [
        pd.DataFrame(
            {
                "half": half_of(run.run["variant"]),
                "string_id": names,
                "kept": False,
                "loss": run.loss[-1, run.column_of(names)],
                "loss_again": other.loss[-1, other.column_of(names)],
            }
        )
        for run, other in zip(filter(is_half, removals), filter(is_half, again), strict=True)
    ]
    return pd.concat(rows) if rows else pd.DataFrame()


def half_rows(
    dataset: pd.DataFrame,
    removals: Iterable[Trace],
    exact: Retrained,
    again: Retrained,
    ids: np.ndarray,
) -> pd.DataFrame:
    """The rows of the table `halves`, without the columns of the run."""
    names = [run.run["variant"] for run in removals if is_half(run)]
    kept = [~np.isin(ids, removed_strings(dataset, name)) for name in names]
    return pd.DataFrame(
        {
            "half": np.repeat([half_of(name) for name in names], len(ids)).astype(int),
            "string_id": np.tile(ids, len(names)),
            "kept": np.array(kept, dtype=bool).ravel(),
            "loss": exact.halves.ravel(),
            "loss_again": again.halves.ravel(),
        }
    )
