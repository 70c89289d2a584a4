"""What changes inside of models while they are fine-tuned, layer by layer."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.information import kinds
from palimpsest.information.figures import palette
from palimpsest.information.interventions import FRESH, REPEATED
from palimpsest.information.trends import ENTROPY, INFORMATION
from palimpsest.lazy_import import lazy_import

epochs = lazy_import("palimpsest.information.epochs")

FIGURE = Figure(
    __name__,
    order=50,
    chapter="epochs",
    title="Inside of a model while it is fine-tuned",
    caption=(
        "Entropy and mutual information before fine-tuning and after every epoch, on the same "
        "strings and on fresh ones. See what changes at the vertical line, where contextual "
        "memorisation starts: what both kinds of strings change is learning."
    ),
    tables=(kinds.EPOCHS,),
)
NAMES = {ENTROPY: "entropy", INFORMATION: "mutual information"}
LINES = {REPEATED: "-", FRESH: (0, (4, 1.5))}
LABELS = {
    REPEATED: "the same strings in every epoch",
    FRESH: "fresh strings in every epoch (placebo)",
}
MEMORISED = "#8031A7"
LOSSES = {
    "train_loss": ("training strings", MEMORISED),
    "test_loss": ("never trained on", style.INK),
}


@style.styled
def information_epochs(table: pd.DataFrame) -> plt.Figure:
    """Entropy and mutual information by epoch and layer, from tables `epochs` of one language."""
    rows = palette.shown(table)
    models = list(rows["model"].unique())
    figure = elements.figure_of(8.2, "Inside of models that are fine-tuned", rows)
    grid = figure.subplots(6, len(models), sharex="col", squeeze=False)
    for column, model in zip(grid.T, models, strict=True):
        draw_model(figure, column, rows[rows["model"] == model])
        column[0].set_title(model, weight="bold")
    handles = [
        *(
            elements.line_handle(LABELS[name], "0.35", linestyle=line)
            for name, line in LINES.items()
        ),
        *(elements.line_handle(f"loss: {name}", colour) for name, colour in LOSSES.values()),
        elements.line_handle("memorised: training strings", MEMORISED),
        elements.line_handle("memorised: never trained on (placebo)", palette.PLACEBO),
    ]
    note = (
        f"{palette.site_note(rows)} Lines: means over neurons or pairs, layers and seeds; bands: "
        "lowest to highest seed. Maps: repeated minus fresh strings, mean over seeds; blue is "
        "lower, red is higher. Vertical line: the median epoch after which the share of memorised "
        "training strings is above that of strings never trained on by 0.25."
    )
    elements.legend(figure, handles, note)
    return figure


def draw_model(figure: plt.Figure, panels: np.ndarray, rows: pd.DataFrame) -> None:
    """The panels of one model, from above: both measures, each with its map; losses; memorised."""
    for place, measure in enumerate(NAMES):
        draw_means(panels[2 * place], rows, measure)
        draw_map(figure, panels[2 * place + 1], rows, measure)
    draw_losses(panels[4], rows)
    draw_memorised(panels[5], rows)
    start = epochs.starts(rows).median()
    if np.isfinite(start):
        for axes in panels:
            elements.mark_epoch(axes, start)
    panels[-1].set_xlabel("epochs of fine-tuning")
    elements.whole_ticks(panels[-1].xaxis)


def draw_means(axes: plt.Axes, rows: pd.DataFrame, measure: str) -> None:
    colour = palette.MEASURES[measure].colour
    for variant, line in LINES.items():
        own = rows[rows["variant"] == variant]
        by_seed = own.groupby(["seed", "epoch"], as_index=False)[measure].mean()
        elements.draw_spread(
            axes, elements.spread(by_seed, "epoch", measure), colour, linestyle=line
        )
    axes.set_ylabel(f"{NAMES[measure]}\n(mean, nats)")


def draw_map(figure: plt.Figure, axes: plt.Axes, rows: pd.DataFrame, measure: str) -> None:
    """Repeated minus fresh strings, by layer and epoch."""
    means = rows.groupby(["variant", "layer", "epoch"])[measure].mean()
    if not {REPEATED, FRESH} <= set(means.index.get_level_values("variant")):
        axes.text(0.5, 0.5, "no fresh strings", ha="center", transform=axes.transAxes)
        return
    difference = (means[REPEATED] - means[FRESH]).unstack("epoch")
    widest = np.nanmax(np.abs(difference.to_numpy())) or 1.0
    mesh = axes.pcolormesh(
        difference.columns, difference.index, difference, cmap="RdBu_r", vmin=-widest, vmax=widest,
        shading="nearest",
    )  # fmt: skip
    axes.grid(False)
    axes.set_ylabel("layer")
    elements.whole_ticks(axes.yaxis, 4)
    bar = figure.colorbar(mesh, ax=axes, pad=0.01, aspect=8)
    bar.set_label(f"difference of\n{NAMES[measure]} (nats)", fontsize=6)


def draw_losses(axes: plt.Axes, rows: pd.DataFrame) -> None:
    for variant, line in LINES.items():
        own = rows[rows["variant"] == variant]
        for column, (_, colour) in LOSSES.items():
            if own[column].notna().any():
                by_seed = own.groupby(["seed", "epoch"], as_index=False)[column].first()
                curve = elements.spread(by_seed, "epoch", column)
                elements.draw_spread(axes, curve, colour, linestyle=line)
    axes.set_ylabel("loss (nats\nper token)")


def draw_memorised(axes: plt.Axes, rows: pd.DataFrame) -> None:
    own = rows[rows["variant"] == REPEATED]
    for column, colour in (("memorised_unseen", palette.PLACEBO), ("memorised", MEMORISED)):
        by_seed = own.groupby(["seed", "epoch"], as_index=False)[column].first()
        elements.draw_spread(axes, elements.spread(by_seed, "epoch", column), colour)
    axes.set_ylabel("memorised\n(share, 0 to 1)")
    elements.share_axis(axes)
