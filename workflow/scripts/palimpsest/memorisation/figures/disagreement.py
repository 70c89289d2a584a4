"""When each measure calls the same string memorised."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.memorisation.figures import targets
from palimpsest.memorisation.paper import PAPER
from palimpsest.memorisation.studies.disagreement import KIND

FIGURE = Figure(
    __name__,
    order=10,
    chapter="disagreement",
    title="The same string under every measure",
    caption=(
        "The loss of strings from frequent to rare (columns), trained on and not, with the "
        "threshold and the start of each measure (rows). The training is the same in a "
        "column: where the dotted line moves, the measures disagree."
    ),
    numbers="1, 2, 13 and 15",
    paper=PAPER,
    tables=(KIND,),
)
RETRAINED = ("counterfactual", "contextual")


@style.styled
def disagreement(exact: pd.DataFrame) -> plt.Figure:
    """Losses of the target strings with every measure's threshold and start.

    The panels show the first model. If there are several, a strip below shows the starts of all.

    Source: section 3.2, figures 1, 2, 13 and 15.
    """
    shown = targets.first_model(exact)
    measures = [
        m for m, evidence in targets.EXACT.items() if len(targets.rows_of(shown, m, evidence))
    ]
    models = list(exact["model"].unique())
    panels_height = 1.35 * len(measures) + 1.2
    strip_height = (
        0.5 * len(targets.roles(exact)) + 1.3 + 0.05 * len(models) if len(models) > 1 else 0
    )
    figure = elements.figure_of(
        panels_height + strip_height + 0.2, "When a string is memorised", shown
    )
    panels = elements.panels_in(figure)
    if strip_height:
        panels, strip = figure.subfigures(2, 1, height_ratios=[panels_height, strip_height])
        draw_starts(strip, exact)
    draw_panels(panels, shown, measures)
    elements.legend(panels, line_handles(), targets.averaged_note(shown))
    return figure


def draw_panels(figure: plt.Figure, shown: pd.DataFrame, measures: list[str]) -> None:
    roles = targets.roles(shown)
    grid = figure.subplots(len(measures), len(roles), sharex=True, sharey=True, squeeze=False)
    for row, measure in zip(grid, measures, strict=True):
        exactly = targets.rows_of(shown, measure, targets.EXACT[measure])
        for axes, role in zip(row, roles, strict=True):
            draw_losses(axes, exactly[exactly["role"] == role], measure)
        name_row(row[-1], measure)
    for axes, role in zip(grid[0], roles, strict=True):
        axes.set_title(targets.target_title(shown[shown["role"] == role]))
    for axes in grid[-1]:
        axes.set_xlabel("epoch")
    figure.supylabel("loss (nats per token, logarithmic scale)")
    losses = shown.loc[shown["measure"].isin(measures), ["loss", "loss_without", "optimal_loss"]]
    thresholds = shown.loc[shown["measure"].isin(measures), ["threshold", "optimal_loss"]]
    elements.scale_losses(grid[0, 0], losses, floor=0.5 * thresholds.min().min())


def name_row(axes: plt.Axes, measure: str) -> None:
    look = style.MEASURES[measure]
    axes.text(
        1.03, 0.5, look.label, transform=axes.transAxes, rotation=-90, va="center", ha="left",
        color=style.darkened(look.colour), weight="bold",
    )  # fmt: skip


def draw_losses(axes: plt.Axes, target: pd.DataFrame, measure: str) -> None:
    if target.empty:
        return
    colour = style.MEASURES[measure].colour
    mean = targets.averaged(target)
    axes.axhline(target["optimal_loss"].iloc[0], **style.BAYES_LINE)
    axes.plot(mean["epoch"], mean["test_loss"], **style.TEST_LINE)
    targets.draw_averaged(axes, target, "loss", colour, linestyle=style.LINES["with"])
    if measure in RETRAINED:
        targets.draw_averaged(
            axes, target, "loss_without", colour, linestyle=style.LINES["without"]
        )
    if measure in ("recollection", "contextual"):
        axes.plot(
            mean["epoch"], mean["threshold"], color=colour, linewidth=1,
            linestyle=style.LINES["threshold"],
        )  # fmt: skip
    start = mean["start"].iloc[0] if len(mean) else np.nan
    elements.mark_epoch(axes, start)
    elements.write_in_corner(axes, start_in_words(start), 0.97, 0.95)


def start_in_words(start: float) -> str:
    return f"starts at epoch {start:.0f}" if np.isfinite(start) else "never starts"


def draw_starts(figure: plt.Figure, exact: pd.DataFrame) -> None:
    axes = figure.subplots()
    evidence = {**targets.EXACT, "recollection_accuracy": "constant"}
    mean = targets.averaged(exact)
    mean = mean[mean["evidence"] == mean["measure"].map(evidence)]
    starts = mean.drop_duplicates(["model", "role", "measure"])
    models, roles = list(exact["model"].unique()), targets.roles(exact)
    measures = style.measures_in(starts["measure"])
    last = exact["epoch"].max()
    for row in starts.itertuples():
        level = measures.index(row.measure) - (len(measures) - 1) / 2
        look = elements.model_marker(row.model, models, style.MEASURES[row.measure].colour)
        # Markers of models that never memorise are next to each other, so that they can be counted.
        beside = last * (1.06 + 0.14 * (models.index(row.model) + 1) / (len(models) + 1))
        x = row.start if np.isfinite(row.start) else beside
        y = roles.index(row.role) + 0.75 * level / len(measures)
        axes.plot(x, y, linestyle="none", **{**look, "markersize": 4, "alpha": 0.8})
    axes.axvspan(last * 1.04, last * 1.22, color="0.94", linewidth=0, zorder=0)
    axes.text(last * 1.13, -0.62, "never", ha="center", va="bottom", fontsize=7)
    axes.set_xlim(-0.02 * last, last * 1.22)
    axes.set_ylim(len(roles) - 0.4, -0.6)
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= last])
    axes.set_yticks(range(len(roles)), roles)
    axes.grid(axis="y", visible=False)
    for between in range(1, len(roles)):
        axes.axhline(between - 0.5, color="0.85", linewidth=0.6)
    axes.set(xlabel="start of memorisation (epoch)", ylabel="target string")
    axes.set_title("Starts of memorisation, one marker per model", weight="bold")
    elements.legend(figure, [*elements.measure_handles(measures), *elements.model_handles(models)])


def line_handles() -> list:
    return [
        elements.line_handle("loss, trained with the string", linestyle=style.LINES["with"]),
        elements.line_handle("loss, trained without the string", linestyle=style.LINES["without"]),
        elements.line_handle("constant threshold", linestyle=style.LINES["threshold"]),
        elements.bayes_handle(),
        elements.line_handle("test loss", style.TEST_LINE["color"], linestyle=style.LINES["test"]),
        elements.line_handle("start of memorisation", **style.EPOCH_LINE),
    ]
