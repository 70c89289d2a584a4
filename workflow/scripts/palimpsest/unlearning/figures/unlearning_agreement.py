"""Whether methods find the same strings hard."""

from __future__ import annotations

from palimpsest.figures import style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.unlearning import kinds
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.paper import PAPER

FIGURE = Figure(
    __name__,
    order=110,
    chapter="unlearning",
    title="Whether methods find the same strings hard",
    caption=(
        "The rank correlation of two methods' epsilons over the forget strings; similar "
        "methods are next to each other. If all squares have one colour, the strings decide "
        "what is hard to forget; if they form blocks, the methods do."
    ),
    numbers="15",
    paper=PAPER,
    tables=(kinds.AGREEMENT,),
)
WRITTEN = 12  # methods up to which a correlation is written into its square


@style.styled
def unlearning_agreement(agreement: pd.DataFrame) -> plt.Figure:
    """Whether methods find the same strings hard: a square per pair of methods.

    Source: Are we making progress in unlearning?, appendix A.9, figure 15, which shows the strings
    of every pair; here, their rank correlation.
    """
    matrices = {
        model: alike_together(matrix(pairs))
        for model, pairs in agreement.groupby("model", sort=False)
    }
    heights = {model: 1.7 + 0.17 * max(len(of), 8) for model, of in matrices.items()}
    figure = method_rows.titled(
        "Whether methods find the same strings hard", agreement, 0.5 + sum(heights.values())
    )
    n_seeds = agreement["seed"].nunique()
    for model, part in method_rows.of_models(figure, heights):
        draw_matrix(part, matrices[model], n_seeds)
    return figure


def matrix(pairs: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlations of every two methods, means over the seeds that define them."""
    methods = list(dict.fromkeys([*pairs["method"], *pairs["other"]]))
    full = pd.DataFrame(np.nan, methods, methods)
    means = pairs.groupby(["method", "other"], sort=False)["spearman"].mean().reset_index()
    for row in means.itertuples():
        full.loc[row.method, row.other] = full.loc[row.other, row.method] = row.spearman
    for method in methods:
        full.loc[method, method] = 1.0
    return full


def alike_together(full: pd.DataFrame) -> pd.DataFrame:
    """The methods sorted by the first eigenvector, so that similar methods are neighbours."""
    _, axes = np.linalg.eigh(full.fillna(0).to_numpy())
    main = axes[:, -1] * (1 if axes[:, -1].sum() >= 0 else -1)
    order = full.index[np.argsort(-np.round(main, 6), kind="stable")]
    return full.loc[order, order]


def draw_matrix(figure: plt.Figure, full: pd.DataFrame, n_seeds: int = 1) -> None:
    axes = figure.subplots()
    n = len(full)
    axes.set_facecolor("0.85")
    image = axes.pcolormesh(
        np.arange(n + 1) - 0.5, np.arange(n + 1) - 0.5, np.ma.masked_invalid(full.to_numpy()),
        cmap="PuOr_r", vmin=-1, vmax=1, edgecolors="white", linewidth=0.5,
    )  # fmt: skip
    axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5))
    axes.set_xticks(range(n), full.index, rotation=90, fontsize=6.5)
    axes.set_yticks(range(n), full.index, fontsize=6.5)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.set_aspect("equal", anchor="W")
    if n <= WRITTEN:
        for (row, column), value in np.ndenumerate(full.to_numpy()):
            shown = (
                "–"
                if np.isnan(value)
                else f"{value + 0.0:.1f}".replace("-0.0", "0.0").replace("-", "−")
            )
            ink = "white" if abs(value) > 0.75 else "black"
            axes.text(column, row, shown, ha="center", va="center", fontsize=6, color=ink)
    bar = figure.colorbar(image, cax=axes.inset_axes([1.04, 0.1, 0.035, 0.8]))
    averaged = f"; mean of {n_seeds} seeds" * (n_seeds > 1)
    bar.set_label(f"rank correlation of epsilon over\nthe forget strings (−1 to 1{averaged})")
    bar.outline.set_visible(False)
