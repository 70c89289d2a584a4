"""Several problems of one language in a figure: a value for every seed, and the mean over seeds.

Each seed is a problem with its own training strings, forget set and models. Where a figure shows
strings, the tint of a colour is the seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from palimpsest.figures import elements, style
from palimpsest.figures.libraries import lines, np, pd, plt

COLOUR = "#332288"  # no measure and no set-up has this colour
SEED_MARKER = 2.4
LIGHTEST = 0.4
UNLEARNING, ROUNDED, RELEARNING = "unlearning", "4-bit", "relearning"  # the stages
GAP = {"color": COLOUR, "linewidth": 1.4}
SEED_LINE = {"linewidth": 0.5, "alpha": 0.45}


def seeds_in(frame: pd.DataFrame) -> list[int]:
    return sorted(frame["seed"].unique())


def shades(seeds: Sequence[int], colour: str = COLOUR) -> dict[int, tuple[float, float, float]]:
    strengths = np.linspace(LIGHTEST, 1, len(seeds)) if len(seeds) > 1 else [1.0]
    return {
        seed: style.tinted(colour, strength)
        for seed, strength in zip(seeds, strengths, strict=True)
    }


def of_seeds(frame: pd.DataFrame, keys: Iterable[str], values: Iterable[str]) -> pd.DataFrame:
    """Means of some columns over all rows of a seed: a row for every value of the keys and seed."""
    return frame.groupby([*keys, "seed"], sort=False)[list(values)].mean().reset_index()


def seed_handles(
    seeds: Sequence[int], colour: str = COLOUR, marker: str = "o"
) -> list[lines.Line2D]:
    tints = shades(seeds, colour)
    return [elements.marker_handle(f"seed {seed}", tints[seed], marker, size=4) for seed in seeds]


def draw_seeds(axes: plt.Axes, values: pd.Series, y: float, look: dict) -> None:
    """A small, pale marker for each seed, in the look of their mean."""
    shape = {"color": look["color"], "marker": look["marker"], "markersize": SEED_MARKER}
    elements.draw_dots(axes, values, [y] * len(values), alpha=0.45, **shape)


def note(seeds: Sequence[int], what: str = "Large markers", small: str = "small markers") -> str:
    """One sentence on means over seeds; an empty string for a single seed."""
    if len(seeds) == 1:
        return ""
    return (
        f"{what}: mean over {len(seeds)} seeds, each a problem with its own strings and models, "
        f"with its 95 % interval (Student); {small}: the seeds."
    )


def mean_curve(by_seed: dict[int, pd.Series]) -> pd.Series:
    """The mean of one curve per seed; a curve is a series over its x, ascending.

    The seeds may be measured at different x. Values between them are interpolated linearly, and the
    mean ends where the first of the curves ends.
    """
    places = np.unique(np.concatenate([curve.index for curve in by_seed.values()]))
    places = places[places <= min(curve.index[-1] for curve in by_seed.values())]
    each = [np.interp(places, curve.index, curve) for curve in by_seed.values()]
    return pd.Series(np.mean(each, axis=0), index=places)


def draw_means(axes: plt.Axes, found: pd.DataFrame, x: str, value: str, look: dict) -> None:
    found = found.dropna(subset=[value])
    by = {seed: group.groupby(x)[value].mean() for seed, group in found.groupby("seed")}
    if not by:
        return
    if len(by) > 1:
        for curve in by.values():
            axes.plot(curve.index, curve, **{**look, **SEED_LINE})
    mean = mean_curve(by)
    axes.plot(mean.index, mean, **look)
