"""The figure of the study `exact`: leave-one-out compared with the approximations."""

from __future__ import annotations

from palimpsest.figures import copies, elements, style
from palimpsest.figures.copies import MARKER, copies_class, copies_handles, filled
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt, ticker
from palimpsest.memorisation.studies.exact import KIND

FIGURE = Figure(
    __name__,
    order=40,
    chapter="exact",
    title="Approximations compared with exact retraining",
    caption=(
        "Threshold and start of memorisation of every training string, by retraining without "
        "it (across) and by the approximation (up). See how near the markers are to the "
        "diagonal, and how near the crosses are: retraining once more with other initial "
        "weights."
    ),
    tables=(KIND,),
)
QUANTITIES = {"threshold": "nats per token", "start": "epoch"}
GREY = "0.6"
IDENTITY = {"linewidth": 1, "zorder": 1}
JITTER = 0.3  # epochs
TICKS = {"nbins": 5, "steps": [1, 2, 5, 10]}
# A measure without a second retraining, and the measure that has the same exact values
SAME_EXACT = {"bayes": "contextual"}
CROSS = {"linestyle": "none", "marker": "x", "markersize": 4, "markeredgewidth": 0.7}
NOTE = (
    "Each marker is a training string. Correlations are of ranks. Counterfactual threshold: the "
    "loss without the string, mean over the epochs. Exact threshold for contextual and Bayes: the "
    "optimal contextual loss. Starts are moved by up to 0.3 epochs, and strings that never start "
    "are spread out, so that markers do not hide each other."
)


@style.styled
def exact(study: pd.DataFrame) -> plt.Figure:
    """Thresholds and starts, by retraining and by approximation, with a column per measure.

    Source: section 3.3; the figure is Palimpsest's own.
    """
    is_ceiling = study["evidence"] == "replicate"
    ceiling, study = study[is_ceiling], study[~is_ceiling]
    measures = style.measures_in(study["measure"])
    models = list(study["model"].unique())
    figure = elements.figure_of(7.3, "What retraining without each string shows", study)
    rows = figure.subfigures(len(QUANTITIES), 1)
    for row, (quantity, unit) in zip(rows, QUANTITIES.items(), strict=True):
        shown = study[study["quantity"] == quantity]
        panels = row.subplots(1, len(measures), squeeze=False)[0]
        again = ceiling[ceiling["quantity"] == quantity]
        for axes, measure in zip(panels, measures, strict=True):
            strings = shown[shown["measure"] == measure]
            best = again[again["measure"] == SAME_EXACT.get(measure, measure)]
            if quantity == "start":
                draw_starts(axes, strings, best, measure, last_start(study))
            else:
                draw_points(axes, strings, best, measure)
            name_panel(axes, strings, best, measure)
            axes.set_box_aspect(1)
        row.supxlabel(f"exact {quantity} ({unit})")
        row.supylabel(f"approximate {quantity} ({unit})")
    handles = [
        *copies_handles(study["count"]),
        elements.line_handle("approximate = exact", GREY, **IDENTITY),
    ]
    if len(ceiling):
        handles.append(elements.line_handle("retraining once more (the ceiling)", GREY, **CROSS))
    if len(models) > 1:
        handles += [copies.shape_handle(model, style.marker(model)) for model in models]
    elements.legend(figure, handles, NOTE)
    return figure


def name_panel(axes: plt.Axes, strings: pd.DataFrame, best: pd.DataFrame, measure: str) -> None:
    look = style.MEASURES[measure]
    title = f"{look.label}\ncorrelation {correlation_in_words(strings)}"
    if len(best):
        title += f"\nceiling {correlation_in_words(best)}"
    axes.set_title(title, color=style.darkened(look.colour), weight="bold")


def correlation_in_words(strings: pd.DataFrame) -> str:
    values = strings.drop_duplicates(["model", "seed"])["correlation"].dropna()
    if values.empty:
        return "undefined"
    ends = dict.fromkeys(f"{value:.2f}" for value in (values.min(), values.max()))
    return " to ".join(ends).replace("-", "−")


def draw_points(axes: plt.Axes, strings: pd.DataFrame, best: pd.DataFrame, measure: str) -> None:
    """A marker per string; strings with more copies have a stronger fill, and are on top.

    The crosses below the markers are the same strings by retraining once more.
    """
    axes.axline((0, 0), slope=1, color=GREY, **IDENTITY)
    axes.plot(best["by_retraining"], best["approximate"], color=GREY, zorder=1.5, **CROSS)
    colour = style.MEASURES[measure].colour
    for least, members in strings.groupby(copies_class(strings["count"])):
        for model, of_model in members.groupby("model"):
            axes.plot(
                of_model["by_retraining"], of_model["approximate"], linestyle="none",
                marker=style.marker(model), markersize=MARKER,
                markerfacecolor=filled(colour, least), markeredgecolor=colour, markeredgewidth=0.7,
            )  # fmt: skip
    values = pd.concat([strings, best])[["by_retraining", "approximate"]]
    low, high = values.min().min(), values.max().max()
    margin = 0.06 * (high - low) or 0.1
    axes.set(xlim=(low - margin, high + margin), ylim=(low - margin, high + margin))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(ticker.MaxNLocator(**TICKS))


def draw_starts(
    axes: plt.Axes, strings: pd.DataFrame, best: pd.DataFrame, measure: str, last: float
) -> None:
    """Strings that never start are drawn beyond the last start."""
    generator = np.random.default_rng(0)
    begin, never, end = 1.04 * last, 1.13 * last, 1.22 * last
    moved = []
    for rows in (strings, best):
        sides = {}
        for side in ("by_retraining", "approximate"):
            aside = generator.uniform(-1, 1, len(rows))
            starts = rows[side] + JITTER * aside
            sides[side] = starts.fillna(pd.Series(never + 0.06 * last * aside, rows.index))
        moved.append(rows.assign(**sides))
    draw_points(axes, *moved, measure)
    for span in (axes.axvspan, axes.axhspan):
        span(begin, end, color="0.94", linewidth=0, zorder=0)
    # The last tick label would overlap the next word.
    ticks = [
        tick for tick in ticker.MaxNLocator(**TICKS).tick_values(0, last) if 0 <= tick <= 0.9 * last
    ]
    labels = [f"{tick:g}" for tick in ticks]
    axes.set_xticks([*ticks, never], [*labels, "never"])
    axes.set_yticks([*ticks, never], [*labels, "never"])
    axes.set(xlim=(-0.04 * last, end), ylim=(-0.04 * last, end))


def last_start(study: pd.DataFrame) -> float:
    starts = study.loc[study["quantity"] == "start", ["by_retraining", "approximate"]]
    return max(1.0, starts.max().fillna(0).max())
