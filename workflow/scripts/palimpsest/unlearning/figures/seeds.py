"""Several problems of one language in a figure: a value for every seed, and the mean over seeds.

Each seed is a problem with its own training strings, forget set and models. Where a figure shows
strings, the tint of a colour is the seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from palimpsest.figures import elements, style
from palimpsest.figures.libraries import lines, np, pd

COLOUR = "#332288"  # no measure and no set-up has this colour
SEED_MARKER = 2.4
LIGHTEST = 0.4


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
    return [
        elements.line_handle(f"seed {seed}", tints[seed], linestyle="none", marker=marker,
                             markersize=4)
        for seed in seeds
    ]  # fmt: skip


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
