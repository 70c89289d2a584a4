"""Larger models: does better learning come with more or with less memorisation?"""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import matplotlib, np, pd, plt
from palimpsest.memorisation.paper import PAPER
from palimpsest.memorisation.studies.model_size import KIND

FIGURE = Figure(
    __name__,
    order=100,
    chapter="model_size",
    title="Larger models of a family",
    caption=(
        "Test loss and weighted contextual memorisation along the epochs, by family; larger "
        "models are darker. Diamonds mark optimal learning: further left is better learning, "
        "further down less memorisation."
    ),
    numbers="31 to 38",
    paper=PAPER,
    tables=(KIND,),
)
FAMILY_COLUMNS = 4


@style.styled
def model_size(study: pd.DataFrame) -> plt.Figure:
    """Test loss against weighted contextual memorisation along the epochs, a panel per family.

    Parameters
    ----------
    study : table `model_size` of one language; contextual memorisation is shown

    Source: appendix F, figures 31 to 38.
    """
    rows = study[study["measure"] == "contextual"]
    rows = rows if len(rows) else study  # a study of other measures shows its first
    rows = rows[rows["measure"] == rows["measure"].iloc[0]]
    families = list(rows["family"].unique())
    lines = -(-len(families) // min(FAMILY_COLUMNS, len(families)))
    figure = elements.figure_of(2.9 * lines + 0.9, "Larger models", rows)
    inner = elements.panels_in(figure)
    panels = elements.grid_of(inner, len(families), FAMILY_COLUMNS, sharex=True, sharey=True)
    for axes, family in zip(panels, families, strict=True):
        draw_family(axes, rows[rows["family"] == family])
        axes.set_title(family, weight="bold")
    limit_to_memorised(panels[0], rows)
    measure = style.MEASURES[rows["measure"].iloc[0]].label
    inner.supxlabel(elements.TEST_LOSS)
    inner.supylabel(f"weighted {measure} memorisation (0 to 1)")
    elements.legend(figure, path_handles(), elements.error_note(rows).replace("Points", "Curves"))
    return figure


def limit_to_memorised(axes: plt.Axes, rows: pd.DataFrame) -> None:
    """End the loss axis where memorisation begins; before that, every path is at 0."""
    memorised = rows[(rows["mean_score"] > 0) | (rows["epoch"] == rows["optimal_epoch"])]
    losses = memorised[["test_loss", "optimal_test_loss"]]
    low, high = losses.min().min(), losses.max().max()
    if high > low:
        axes.set_xlim(low - 0.08 * (high - low), high + 0.08 * (high - low))
    top = rows["mean_score"].max()
    if top > 0:
        axes.set_ylim(-0.05 * top, 1.1 * top)


def draw_family(axes: plt.Axes, rows: pd.DataFrame) -> None:
    axes.axvline(rows["optimal_test_loss"].mean(), **style.BAYES_LINE)
    models = rows.drop_duplicates("model").sort_values("parameters")
    shades = model_shades(len(models), rows["measure"].iloc[0])
    for (model, parameters), shade in zip(
        models[["model", "parameters"]].itertuples(index=False), shades, strict=True
    ):
        runs = rows[rows["model"] == model]
        path = runs.groupby("epoch")[["test_loss", "mean_score"]].mean()
        axes.plot(path["test_loss"], path["mean_score"], color=shade, label=counted(parameters))
        axes.plot(*path.iloc[-1], marker="s", markersize=3.5, color=shade)
        optimum = runs[runs["epoch"] == runs["optimal_epoch"]]
        look = {"color": shade, "marker": "D", "markeredgecolor": "white", "markeredgewidth": 0.6}
        elements.draw_runs(
            axes, optimum["test_loss"], optimum["mean_score"], elinewidth=0.8, **look
        )
    axes.xaxis.set_tick_params(labelbottom=True)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, title="parameters",
                handlelength=1.2, columnspacing=0.8)  # fmt: skip


def model_shades(n: int, measure: str) -> list:
    colour = style.MEASURES[measure].colour
    ramp = matplotlib.colors.LinearSegmentedColormap.from_list(
        measure,
        [style.tinted(colour, 0.45), colour, tuple(0.5 * c for c in style.tinted(colour, 1))],
    )
    return [ramp(level) for level in (np.linspace(0, 1, n) if n > 1 else [0.5])]


def counted(parameters: int) -> str:
    """A number of parameters in the style of model names: 133k, 1.3M, 6.9B."""
    for unit, name in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if parameters >= unit:
            return f"{parameters / unit:.3g}{name}"
    return str(parameters)


def path_handles() -> list:
    return [
        elements.marker_handle("optimal learning", style.INK, "D", size=5, markeredgecolor="white"),
        elements.marker_handle("last epoch", style.INK, "s", size=3.5),
        elements.line_handle("path from the first epoch to the last"),
        elements.bayes_handle(),
    ]
