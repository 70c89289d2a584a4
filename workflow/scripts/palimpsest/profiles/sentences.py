"""What the report's first page says of profiles: effects with their intervals, and placebos."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from palimpsest.estimates import with_interval
from palimpsest.number_format import plural
from palimpsest.profiles import kinds, summaries
from palimpsest.report.part import Sentence
from palimpsest.report.templates import given, groups, mean_over_seeds
from palimpsest.statistics import Interval


def sentences(tables: Mapping[str, pd.DataFrame]) -> Iterator[Sentence]:
    """A sentence for each language of `profile`, and for each panel of `panel_persistence`."""
    profile, since, cells = given(
        tables, kinds.PROFILE, kinds.PANEL_PERSISTENCE, kinds.PANEL_PROFILE
    )
    if not profile.empty:
        yield from (of_language(own) for _, own in groups(profile, ["language"]))
    if not since.empty:
        losses = losses_in(cells)
        for key, own in groups(since, ["panel", "outcome"]):
            yield of_panel(own, is_loss=tuple(key.values()) in losses)


def of_language(profile: pd.DataFrame) -> Sentence:
    """What training on strings once leaves of them, just after it and at the end."""
    after, left, *unseen = (
        mean_of(part(summaries.estimates(profile, strings)))
        for strings in (kinds.TRAINED, kinds.PLACEBO)
        for part in (summaries.instantaneous, summaries.residual)
    )
    n_models, n_seeds = profile["model"].nunique(), profile["seed"].nunique()
    return Sentence(
        f"On {profile['language'].iloc[0]}, training on strings once raises their log-likelihood "
        f"by {after} nats just after it; at the end of training, {left} is left.",
        f"Placebo: strings never trained on give {' and '.join(unseen)}. "
        f"Mean over {plural(n_models, 'model')}; "
        f"{f'intervals over {n_seeds} seeds' if n_seeds > 1 else 'one seed: no interval'}.",
    )


def mean_of(cells: pd.DataFrame) -> str:
    """The mean of cells over all models, with its interval over the seeds."""
    return mean_over_seeds(cells.groupby("seed")["estimate"].mean())


def losses_in(cells: pd.DataFrame) -> set[tuple[str, str]]:
    """The panels, with their outcomes, whose outcome is a loss; its negative is estimated."""
    if cells.empty:
        return set()
    rows = cells.loc[cells["is_loss"].astype(bool), ["panel", "outcome"]].drop_duplicates()
    return set(rows.itertuples(index=False, name=None))


def of_panel(since: pd.DataFrame, is_loss: bool) -> Sentence:
    """What training on strings changes in a panel, how long it lasts, and what there is before.

    `since` are the rows of one panel and outcome in the table `panel_persistence`.
    """
    panel, outcome = since[["panel", "outcome"]].iloc[0]
    cells = tested(since)
    before, after = cells[cells["since"] < 0], cells[cells["since"] >= 0]
    if after.empty:
        return Sentence(f"In the panel {panel}, no cohort is measured after its training.")
    first, last = after.iloc[0], after.iloc[-1]
    name = f"minus their {outcome}" if is_loss else f"their {outcome}"
    text = (
        f"In the panel {panel}, training on strings changes {name} by {with_band(first)} "
        "just after it"
    )
    if len(after) > 1:
        text += (
            f", and by {with_band(last)} {plural(last['since'], 'time')} later "
            f"({last['n_cohorts']} of {plural(since['n_cohorts'].max(), 'cohort')})"
        )
    return Sentence(
        f"{text}: {lasting(after)}.",
        f"{placebo(before)} Difference-in-differences; intervals over strings, at once for all "
        "times since the training; one training.",
    )


def tested(since: pd.DataFrame) -> pd.DataFrame:
    """The times since the training but the one just before it, where the effect is 0 by design."""
    return since.dropna(subset=["std_error"]).sort_values("since")


def lasting(after: pd.DataFrame) -> str:
    """Until when the interval excludes 0, without a gap; `after` are the times since, in order."""
    excludes = after["significant"].astype(bool)
    n = len(after) if excludes.all() else int((~excludes).to_numpy().argmax())
    if n == 0:
        return (
            "the interval just after it reaches 0, so the panel cannot tell; more strings in each "
            "cohort would decide"
        )
    if n == len(after):
        return "the intervals exclude 0 at all times after it"
    if n == 1:
        return "the interval excludes 0 just after it, and not at the next time"
    last = plural(after["since"].iloc[n - 1], "time")
    return f"the intervals exclude 0 until {last} later"


def placebo(before: pd.DataFrame) -> str:
    """What the estimator finds before the training, where there is nothing to find."""
    if before.empty:
        return "Placebo: none, because no cohort is measured twice before its training."
    largest = before.loc[before["estimate"].abs().idxmax()]
    n_found = int(before["significant"].sum())
    excluding = "none excludes" if not n_found else f"{n_found} exclude{'s' * (n_found == 1)}"
    return (
        f"Placebo: of {plural(len(before), 'mean effect')} before the training, where there is "
        f"nothing to find, {excluding} 0; the largest is {with_band(largest)}."
    )


def with_band(row: pd.Series) -> str:
    return with_interval(Interval(*row[["estimate", "lower", "upper"]]))
