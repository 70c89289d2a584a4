"""The figure of the study `fields`: the loss of every field over the epochs."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.memorisation.studies.fields import KIND

FIGURE = Figure(
    __name__,
    order=150,
    chapter="fields",
    title="Fields, inferred or memorised",
    caption=(
        "The mean loss of each field in training strings (solid) and unseen ones (dashed), "
        "and the Bayes-optimal loss (grey). Where both fall to the grey line, the value is "
        "inferred; where only the solid curve falls below, it is memorised."
    ),
    tables=(KIND,),
)
GROUPS = {"train": "train", "unseen": "test"}  # the lines of groups of strings
COLOUR = style.MEASURES["bayes"].colour  # the loss is compared with the threshold of `bayes`
REST = "outside of fields"
COLUMNS = 4
ROW = 1.75  # inches, of a row of panels
UNTRAINED = 0.1  # share of the training whose losses may be above the panels: they are far higher
CUT_OFF = "Losses in the first tenth of the training may lie above a panel."
MARGIN = 0.06  # of a panel, below a loss of 0 and above the highest one


@style.styled
def fields(study: pd.DataFrame) -> plt.Figure:
    """A panel for each open field, the rest of the texts, and each determined field."""
    study = study.assign(panel=names_of_panels(study))
    names = ordered(study)
    rows = -(-len(names) // COLUMNS)
    figure = elements.figure_of(1.3 + ROW * rows, "Fields, inferred or memorised", study)
    panels = elements.panels_in(figure)
    for axes, name in zip(elements.grid_of(panels, len(names), COLUMNS), names, strict=True):
        draw_field(axes, study[study["panel"] == name])
        axes.set_title(name, weight="bold")
    panels.supxlabel("epoch")
    panels.supylabel("loss (nats per string)")
    handles = [
        elements.line_handle("training strings", COLOUR, linestyle=style.LINES["train"]),
        elements.line_handle("strings never trained on", COLOUR, linestyle=style.LINES["test"]),
        elements.line_handle("Bayes-optimal loss", style.BAYES_LINE["color"], linewidth=1.6),
        elements.line_handle("epoch of optimal learning", **style.EPOCH_LINE),
    ]
    elements.legend(figure, handles, f"{elements.spread_note(study)} {CUT_OFF}")
    return figure


def names_of_panels(study: pd.DataFrame) -> pd.Series:
    state = study["determined"].map({True: "determined", False: "open"})
    return (study["field"] + ", " + state).where(study["field"].notna(), REST)


def ordered(study: pd.DataFrame) -> list[str]:
    """The panels: first open fields, the hardest one first, then determined ones, then the rest."""
    found = study.groupby("panel").agg(
        determined=("determined", "first"), optimal=("optimal", "max"), name=("panel", "first")
    )
    found = found.assign(rest=found["name"] == REST)
    keys = ["rest", "determined", "optimal", "name"]
    return list(found.sort_values(keys, ascending=[True, True, False, True])["name"])


def draw_field(axes: plt.Axes, rows: pd.DataFrame) -> None:
    for group, line in GROUPS.items():
        of_group = rows[rows["group"] == group]
        optimal = elements.spread(of_group, "epoch", "optimal")["mean"]
        axes.plot(optimal.index, optimal, **{**style.BAYES_LINE, "linestyle": style.LINES[line]})
        curve = elements.spread(of_group, "epoch", "loss")
        elements.draw_spread(axes, curve, COLOUR, linestyle=style.LINES[line])
    elements.mark_optima(axes, rows)
    trained = rows[rows["epoch"] > UNTRAINED * rows["epoch"].max()]
    highest = trained[["loss", "optimal"]].max().max() or 1.0
    axes.set_ylim(-MARGIN * highest, (1 + MARGIN) * highest)
    elements.whole_ticks(axes.xaxis, 4)
    axes.margins(x=0.02)
