"""What changes inside of models while they are fine-tuned, layer by layer."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from palimpsest.figures import curves, style
from palimpsest.information.epochs import starts
from palimpsest.information.figures import looks
from palimpsest.information.trends import ENTROPY, INFORMATION
from palimpsest.variants import FRESH, REPEATED

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
def information_epochs(table: pd.DataFrame) -> Figure:
    """Entropy and mutual information by epoch and layer, from tables `epochs` of one language."""
    rows = looks.shown(table)
    models = list(rows["model"].unique())
    figure = curves.figure_of(8.2, f"Inside of models that are fine-tuned: {curves.subject(rows)}")
    grid = figure.subplots(6, len(models), sharex="col", squeeze=False)
    for column, model in zip(grid.T, models, strict=True):
        draw_model(figure, column, rows[rows["model"] == model])
        column[0].set_title(model, weight="bold")
    handles = [
        *(curves.line_handle(LABELS[name], "0.35", linestyle=line) for name, line in LINES.items()),
        *(curves.line_handle(f"loss: {name}", colour) for name, colour in LOSSES.values()),
        curves.line_handle("memorised: training strings", MEMORISED),
        curves.line_handle("memorised: never trained on (placebo)", looks.PLACEBO),
    ]
    note = (
        f"{looks.site_note(rows)} Lines: means over neurons or pairs, layers and seeds; bands: "
        "lowest to highest seed. Maps: repeated minus fresh strings, mean over seeds; blue is "
        "lower, red is higher. Vertical line: the median epoch after which the share of memorised "
        "training strings is above that of strings never trained on by 0.25."
    )
    curves.legend(figure, handles, note)
    return figure


def draw_model(figure: Figure, panels: np.ndarray, rows: pd.DataFrame) -> None:
    """The panels of one model, from above: both measures, each with its map; losses; memorised."""
    for place, measure in enumerate(NAMES):
        draw_means(panels[2 * place], rows, measure)
        draw_map(figure, panels[2 * place + 1], rows, measure)
    draw_losses(panels[4], rows)
    draw_memorised(panels[5], rows)
    start = starts(rows).median()
    if np.isfinite(start):
        for axes in panels:
            curves.mark_epoch(axes, start)
    panels[-1].set_xlabel("epochs of fine-tuning")
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_means(axes: Axes, rows: pd.DataFrame, measure: str) -> None:
    """The mean over all layers by epoch, of repeated and of fresh strings."""
    colour = looks.MEASURES[measure].colour
    for variant, line in LINES.items():
        own = rows[rows["variant"] == variant]
        by_seed = own.groupby(["seed", "epoch"], as_index=False)[measure].mean()
        curves.draw_spread(axes, curves.spread(by_seed, "epoch", measure), colour, linestyle=line)
    axes.set_ylabel(f"{NAMES[measure]}\n(mean, nats)")


def draw_map(figure: Figure, axes: Axes, rows: pd.DataFrame, measure: str) -> None:
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
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    bar = figure.colorbar(mesh, ax=axes, pad=0.01, aspect=8)
    bar.set_label(f"difference of\n{NAMES[measure]} (nats)", fontsize=6)


def draw_losses(axes: Axes, rows: pd.DataFrame) -> None:
    """Losses of training strings and of strings never trained on."""
    for variant, line in LINES.items():
        own = rows[rows["variant"] == variant]
        for column, (_, colour) in LOSSES.items():
            if own[column].notna().any():
                by_seed = own.groupby(["seed", "epoch"], as_index=False)[column].first()
                curve = curves.spread(by_seed, "epoch", column)
                curves.draw_spread(axes, curve, colour, linestyle=line)
    axes.set_ylabel("loss (nats\nper token)")


def draw_memorised(axes: Axes, rows: pd.DataFrame) -> None:
    """The share of strings whose contextual memorisation has started, trained and never trained."""
    own = rows[rows["variant"] == REPEATED]
    for column, colour in (("memorised_unseen", looks.PLACEBO), ("memorised", MEMORISED)):
        by_seed = own.groupby(["seed", "epoch"], as_index=False)[column].first()
        curves.draw_spread(axes, curves.spread(by_seed, "epoch", column), colour)
    axes.set_ylabel("memorised\n(share, 0 to 1)")
    curves.share_axis(axes)
