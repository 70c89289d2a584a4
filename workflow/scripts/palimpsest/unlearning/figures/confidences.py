"""Histograms of single models' confidences in forget strings: unlearned and retrained models."""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.figures.libraries import np, pd, plt, ticker

RETRAINED = "retrained"  # the models that methods are compared with
RANKS = ("hardest", "median", "easiest")
N_BINS = 18
CUT = 0.01  # share of the models that may be beyond the axis on either side
RETRAINED_LOOK = {"color": "0.55", "alpha": 0.55, "linewidth": 0}
AXIS = "logit-scaled confidence, log(p / (1 − p))"
SHARE = "share of the models"


def strings_of(
    confidences: pd.DataFrame, hardness: pd.DataFrame, model: str
) -> list[tuple[int, str, str]]:
    """Seed, string and rank of hardness of a model's strings; the hardest of each seed first."""
    there = confidences.loc[confidences["model"] == model, ["seed", "string_id"]].drop_duplicates()
    known = there.merge(hardness[hardness["model"] == model], on=["seed", "string_id"])
    known = known.sort_values(["seed", "epsilon_sum"], ascending=[True, False], kind="stable")
    found = []
    for seed, strings in known.groupby("seed"):
        names = ranks(len(strings))
        found += [
            (seed, name, rank) for name, rank in zip(strings["string_id"], names, strict=True)
        ]
    return found


def ranks(n: int) -> Sequence[str]:
    return RANKS if n == len(RANKS) else [f"rank {place}" for place in range(1, n + 1)]


def bins(samples: list[np.ndarray]) -> np.ndarray:
    """Edges of bins over nearly all values: at most 1 % of a sample is beyond either end."""
    lowest = min(np.quantile(sample, CUT) for sample in samples)
    highest = max(np.quantile(sample, 1 - CUT) for sample in samples)
    room = max(0.02 * (highest - lowest), 1e-3)
    return np.linspace(lowest - room, highest + room, N_BINS + 1)


def draw_pair(
    axes: plt.Axes, unlearned: np.ndarray, retrained: np.ndarray, edges: np.ndarray, colour
) -> None:
    for sample, look in ((retrained, RETRAINED_LOOK), (unlearned, {"color": colour, "alpha": 0.75,
                                                                   "linewidth": 0})):  # fmt: skip
        if len(sample):
            counts, _ = np.histogram(np.clip(sample, edges[0], edges[-1]), edges)
            axes.stairs(counts / len(sample), edges, fill=True, **look)
    axes.grid(visible=False)
    axes.tick_params(labelsize=5.5, length=2, pad=1)
    axes.yaxis.set_major_locator(ticker.MaxNLocator(2))
