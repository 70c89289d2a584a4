"""Rows, titles and curves of target strings."""

from __future__ import annotations

from palimpsest.figures import elements
from palimpsest.figures.libraries import np, pd, plt

# The exact evidence of every measure that has a row of panels.
EXACT = {
    "recollection": "constant",
    "counterfactual": "retraining",
    "contextual": "retraining",
    "bayes": "language",
}


def first_model(exact: pd.DataFrame) -> pd.DataFrame:
    return exact[exact["model"] == exact["model"].iloc[0]]


def rows_of(exact: pd.DataFrame, measure: str, evidence: str) -> pd.DataFrame:
    wanted = (exact["measure"] == measure) & (exact["evidence"] == evidence)
    return exact[wanted].sort_values("epoch")


def roles(exact: pd.DataFrame) -> list[str]:
    """The roles s0, s1, ..., s10 in order of number."""
    return sorted(exact["role"].unique(), key=lambda role: (len(role), role))


def averaged(exact: pd.DataFrame) -> pd.DataFrame:
    """The rows for losses averaged over the seeds; their starts are those of the mean losses."""
    return exact[exact["seed"].isna()]


def target_title(target: pd.DataFrame) -> str:
    first = target.iloc[0]
    decades = first["log_prob"] / np.log(10)
    times = "once" if first["count"] == 1 else f"{first['count']} times"
    # Worked out in powers of ten, as a small probability underflows.
    mantissa, power = 10 ** (decades - np.floor(decades)), int(np.floor(decades))
    return f"{first['role']}: {times} in training\nprobability {mantissa:.1f}e{power}"


def averaged_note(shown: pd.DataFrame) -> str:
    seeds = shown["seed"].dropna().nunique()
    if seeds == 1:
        return "One seed: lines without a band."
    return (
        f"Lines and starts: losses averaged over {seeds} seeds; bands: smallest to largest value "
        "of a seed."
    )


def draw_averaged(
    axes: plt.Axes, target: pd.DataFrame, column: str, colour, mean: str | None = None, **line
) -> None:
    """A band over the seeds of a column; the line is the column `mean` of the averaged rows."""
    seeds = elements.spread(target[target["seed"].notna()], "epoch", column)
    elements.draw_band(axes, seeds.index, seeds["min"], seeds["max"], colour)
    rows = averaged(target)
    axes.plot(rows["epoch"], rows[mean or column], color=colour, **line)
