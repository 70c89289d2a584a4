"""Other definitions of memorisation against training again."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.profiles import kinds
from palimpsest.profiles.figures import palette

FIGURE = Figure(
    __name__,
    order=80,
    chapter="profiles",
    title="Other definitions of memorisation",
    caption=(
        "Five notions of memorisation at the end (panels), each beyond its value for strings "
        "never trained on, against the specific effect by retraining. On the dashed line "
        "estimate and truth are equal; some do not even rise with the truth."
    ),
    tables=(kinds.NOTIONS,),
)
TITLES = {
    kinds.DIFFERENCE_IN_DIFFERENCES: "difference-in-\ndifferences",
    kinds.DIFFERENCE: "difference",
    kinds.ARCHITECTURAL: "means over\nmodels",
    kinds.INFLUENCE: "influence\nfunction",
    kinds.REMOVAL: "influence,\nplain removal",
    kinds.EXTRACTABLE: "extractable\nstrings",
}


@style.styled
def profile_notions(table: pd.DataFrame) -> plt.Figure:
    """A panel for each notion: its estimate against the true effect of the macro-batch.

    Source: Causal Estimation of Memorisation Profiles, section 5.
    """
    figure = palette.figure_of(2.9, "Notions of memorisation", table, table["model"].unique())
    inner = elements.panels_in(figure)
    row = inner.subplots(1, len(TITLES), sharex=True)
    for axes, (notion, title) in zip(row, TITLES.items(), strict=True):
        own = table[table["notion"] == notion]
        draw_against_truth(axes, own, is_in_nats=notion != kinds.EXTRACTABLE)
        axes.set_title(title)
    limits = np.array([axes.get_ylim() for axes in row[:-1]])
    for axes in row[:-1]:
        axes.set_ylim(limits[:, 0].min(), limits[:, 1].max())
    for axes in row[1:-1]:
        axes.tick_params(labelleft=False)
    row[0].set_ylabel("estimate minus that of\nunseen strings (nats)")
    row[-1].set_ylabel("share of strings, minus\nthat of unseen strings")
    inner.supxlabel("specific effect, by training again without the macro-batch (nats)")
    n = table["seed"].nunique()
    note = (
        f"A point is a macro-batch; {elements.counted(n, 'run')} of each model, each with strings "
        "of its own. Large: the mean."
    )
    handles = [elements.line_handle("equal to the truth", "0.6", linestyle="--")]
    elements.legend(figure, handles, note)
    return figure


def draw_against_truth(axes: plt.Axes, rows: pd.DataFrame, is_in_nats: bool) -> None:
    """The points of one notion, their mean, and the line on which estimate and truth are equal."""
    minus_placebo = rows["estimate"] - rows["placebo"]
    axes.axhline(0, **elements.ZERO)
    axes.axvline(0, **elements.ZERO)
    if is_in_nats:
        axes.axline((0, 0), slope=1, color="0.6", linestyle="--", linewidth=1)
    axes.plot(rows["specific"], minus_placebo, "o", color=palette.MODELS, markersize=2.5, alpha=0.5)
    axes.plot(rows["specific"].mean(), minus_placebo.mean(), "o", color=style.INK, markersize=6)
