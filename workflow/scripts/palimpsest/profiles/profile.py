"""Tables of memorisation profiles, from streams or from a panel.

Source: Causal Estimation of Memorisation Profiles, sections 3, 4 and 7.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from palimpsest.errors import Notice
from palimpsest.making import makes, reads
from palimpsest.profiles import estimators, kinds
from palimpsest.profiles.measured import OUTCOMES, STREAMS, Stream
from palimpsest.profiles.panel import NEVER, Panel, read_panel
from palimpsest.profiles.panel_columns import LOSS, OUTCOME, outcome_column
from palimpsest.statistics import rounding_error, terms_of
from palimpsest.tables import user_files
from palimpsest.traces import Trace

POOLED = {
    kinds.PROFILE.name: kinds.POOLED_PROFILE.name,
    kinds.PERSISTENCE.name: kinds.POOLED_PERSISTENCE.name,
}
ESTIMATORS: dict[str, Callable[[Panel], pd.DataFrame]] = {
    kinds.DIFFERENCE_IN_DIFFERENCES: estimators.difference_in_differences,
    kinds.DIFFERENCE: estimators.difference,
}


@reads(**STREAMS)
@makes(kinds.PROFILE, kinds.PERSISTENCE, kinds.POOLED_PROFILE, kinds.POOLED_PERSISTENCE)
def of_streams(
    traces: Sequence[Trace],
    datasets: Sequence[pd.DataFrame],
    manifests: Sequence[Mapping],
    panel: int,
) -> dict[str, pd.DataFrame]:
    """The estimates of the streams of one model, of each seed and pooled.

    Parameters
    ----------
    traces, datasets, manifests : of every stream, in the same order
    panel : strings in a cohort, and so in one of placebos
    """
    files = zip(traces, datasets, manifests, strict=True)
    streams = [Stream.of(*of_stream) for of_stream in files]
    return {**tables_of_seeds(streams, panel), **pooled_tables(streams, panel)}


def tables_of_seeds(streams: Iterable[Stream], size: int) -> dict[str, pd.DataFrame]:
    """The tables `profile` and `persistence`: the estimates of each stream.

    Placebos are in cohorts of `size` strings.
    """
    return _tables(
        (stream, {**stream.keys, "outcome": outcome, "string_role": strings}, panel)
        for stream in streams
        for outcome in OUTCOMES
        for strings, panel in stream.panels(outcome, size).items()
    )


def pooled_tables(streams: Sequence[Stream], size: int) -> dict[str, pd.DataFrame]:
    """The tables `pooled_profile` and `pooled_persistence`: estimates from all streams together.

    The streams have one model and different seeds.
    """
    first = streams[0]
    keys = {name: value for name, value in first.keys.items() if name != "seed"}
    keys["n_seeds"] = len(streams)
    made = _tables(
        (first, {**keys, "outcome": outcome, "string_role": strings}, pooled(panels))
        for outcome in OUTCOMES
        for strings, panels in _by_strings(each.panels(outcome, size) for each in streams).items()
    )
    return {POOLED[name]: table for name, table in made.items()}


def pooled(panels: Sequence[Panel]) -> Panel:
    """One panel of the units of several runs, whose estimates are means over the runs.

    The mean of the untreated units of the same run and time is subtracted from every outcome: all
    units of a run have it in common. Raises `ValueError` if the runs do not have equally many units
    of every cohort: a mean over units would then not be a mean over runs.
    """
    sizes = [Counter(panel.cohorts.tolist()) for panel in panels]
    if any(own != sizes[0] for own in sizes):
        raise ValueError("the runs differ in the sizes of their cohorts")
    outcomes = [_beyond_the_untreated(panel) for panel in panels]
    cohorts = np.concatenate([panel.cohorts for panel in panels])
    return Panel(panels[0].times, cohorts, np.concatenate(outcomes), "all seeds")


def _beyond_the_untreated(panel: Panel) -> np.ndarray:
    """Outcomes float64[units, times] minus the mean of the untreated units at each time.

    Where only rounding is left, they are 0: the rounding of each run is another constant, and would
    look like a difference between runs.
    """
    untreated = panel.outcome[panel.cohorts == NEVER]
    beyond = panel.outcome - untreated.mean(axis=0)
    rounding = rounding_error(
        np.abs(panel.outcome).max(axis=0), max(len(untreated), terms_of(panel.stored))
    )
    return np.where(np.abs(beyond) <= rounding, 0.0, beyond)


@makes(kinds.PANEL_PROFILE, kinds.PANEL_PERSISTENCE)
def of_panel_file(
    panel: str, language: str, columns: Mapping[str, str] | None, others: Sequence[str] = ()
) -> dict[str, pd.DataFrame]:
    """The estimates of a panel; `others` are further columns of outcomes."""
    found = [
        of_panel(one, language, outcome)
        for outcome, one in read_outcomes(panel, columns or {}, others).items()
    ]
    tables = (pd.concat(parts, ignore_index=True) for parts in zip(*found, strict=True))
    names = kinds.PANEL_PROFILE.name, kinds.PANEL_PERSISTENCE.name
    return dict(zip(names, tables, strict=True))


def read_outcomes(
    path: str, columns: Mapping[str, str], others: Sequence[str] = ()
) -> dict[str, Panel]:
    """A panel for each outcome of a file, by the name of its column; the panel's own comes first.

    Raises `UserError` as `read_panel` does.
    """
    file = user_files.opened(path, user_files.TABLES, "a panel")
    first, _ = outcome_column(file.where, file.columns, columns)
    found = {first: read_panel(path, columns)}
    keys = {name: column for name, column in columns.items() if name not in (OUTCOME, LOSS)}
    for other in others:
        with warnings.catch_warnings():
            # What is said of units and times is the same for every outcome.
            warnings.simplefilter("ignore", Notice)
            found[other] = read_panel(path, {**keys, OUTCOME: other})
    return found


def of_panel(panel: Panel, name: str, outcome: str = OUTCOME) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables `panel_profile` and `panel_persistence` of one outcome."""
    # Of a loss, only difference-in-differences warns.
    cells = _cells(panel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", estimators.LossWarning)
        since = estimators.by_time_since_treatment(panel)
    about = {"panel": name, "outcome": outcome}
    return (
        cells.assign(**about, kind_of_time=panel.kind_of_time, is_loss=panel.is_loss)[
            kinds.PANEL_PROFILE.names
        ],
        since.assign(**about)[kinds.PANEL_PERSISTENCE.names],
    )


def _tables(panels: Iterable[tuple[Stream, dict, Panel]]) -> dict[str, pd.DataFrame]:
    """The cells, and the means by time since treatment, of panels with their key columns."""
    cells, since = [], []
    for stream, keys, panel in panels:
        with warnings.catch_warnings():
            # More is better for all outcomes of a stream; what is negative was not memorised.
            warnings.simplefilter("ignore", estimators.LossWarning)
            found, over_time = _cells(panel), estimators.by_time_since_treatment(panel)
        rates = stream.rates if keys["string_role"] == kinds.TRAINED else {}
        cells.append(found.assign(**keys, learning_rate=found["cohort"].map(rates).astype(float)))
        since.append(over_time.assign(**keys))
    whole = pd.concat(cells, ignore_index=True).astype({"cohort": int, "time": int})
    return {kinds.PROFILE.name: whole, kinds.PERSISTENCE.name: pd.concat(since, ignore_index=True)}


def _cells(panel: Panel) -> pd.DataFrame:
    rows = []
    for name, estimate in ESTIMATORS.items():
        with warnings.catch_warnings():
            if name == kinds.DIFFERENCE:
                warnings.simplefilter("ignore", estimators.LossWarning)
            rows.append(estimate(panel).assign(estimator=name))
    return pd.concat(rows, ignore_index=True)


def _by_strings(panels: Iterable[dict[str, Panel]]) -> dict[str, list[Panel]]:
    by_strings: dict[str, list[Panel]] = {}
    for of_stream in panels:
        for strings, panel in of_stream.items():
            by_strings.setdefault(strings, []).append(panel)
    return by_strings
