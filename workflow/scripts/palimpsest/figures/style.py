"""How every figure looks: what a colour, a marker and a line style mean, and how it is saved.

Each channel carries one meaning in all figures, so that no figure has to be learned anew: colour
is the measure, the marker's shape is the model family and its tint the model, the line style is
the role of a curve (training or test, with or without the string, dataset variant). The colours
are those of Okabe and Ito, which the colour-blind tell apart.

Where no measure of memorisation is shown but how well models forget, every model has its own row
of panels, so that colour and shape are free: both together are the set-up of the evaluation, in
colours that no measure has. Grey are the two ends that no method is, doing nothing and retraining.
"""

import functools
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure, SubFigure

from palimpsest import tables

WIDTH = 7.2  # inches: the text width of a paper
PNG_DPI = 150
CHARACTERS_PER_LINE = 120  # of the small print, at full width

RC = {
    "font.family": "sans-serif",
    # Verdana is as wide as DejaVu Sans and the others are narrower: text set in whichever of them
    # the reader has stays inside the room that was measured here.
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "figure.titlesize": 9,
    "figure.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.92",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 5,
    "svg.fonttype": "none",  # text stays text: it can be searched, copied and read aloud
    "svg.hashsalt": "palimpsest",  # without it the ids in the file are drawn at random
}


@dataclass(frozen=True)
class Look:
    """How a measure is named and coloured."""

    label: str
    colour: str


MEASURES = {
    "recollection": Look("recollection", "#009E73"),
    "recollection_accuracy": Look("recollection by accuracy", "#56B4E9"),
    "counterfactual": Look("counterfactual", "#0072B2"),
    "contextual": Look("contextual", "#D55E00"),
    "bayes": Look("Bayes", "#CC79A7"),
}

SETUPS = {
    "full": Look("full", "#882255"),
    "reuse-n-n": Look("reuse-n-n", "#D18F00"),
    "bootstrap": Look("bootstrap", "#333333"),
    "reuse-n-1": Look("reuse-n-1", "#999933"),
}
SETUP_MARKERS = {"full": "^", "reuse-n-n": "o", "bootstrap": "s", "reuse-n-1": "D"}
END = "0.5"

LINES = {
    "train": "-",
    "test": (0, (4, 1.5)),
    "with": "-",
    "without": (0, (1, 1)),
    "threshold": (0, (6, 1.5, 1, 1.5)),
    "top": "-",
    "bottom": (0, (4, 1.5)),
    "base": "-",
    "dedup": (0, (4, 1.5)),
    "dedup-matched": (0, (1, 1)),
}

INK = "0.15"
BAYES_LINE = {"color": "0.6", "linestyle": "-", "linewidth": 1.6, "zorder": 1}
TEST_LINE = {"color": "0.35", "linestyle": LINES["test"], "linewidth": 0.8}
EPOCH_LINE = {"linestyle": (0, (1, 1.6)), "linewidth": 1.2}

FAMILY_MARKERS = {
    "mistral": "o",
    "llama": "s",
    "qwen": "^",
    "gemma": "D",
    "pythia": "v",
    "opt": "P",
}
OTHER_MARKERS = "X*phd<>"


def measures_in(names: Iterable[str]) -> list[str]:
    """The measures among `names`, in the one order in which every figure shows them."""
    present = set(names)
    return [measure for measure in MEASURES if measure in present]


def marker(model: str) -> str:
    """The marker of the model's family, which is the word that its name begins with."""
    family = model.lower()
    for known, shape in FAMILY_MARKERS.items():
        if family.startswith(known):
            return shape
    family = family.split("-")[0]
    return OTHER_MARKERS[zlib.crc32(family.encode()) % len(OTHER_MARKERS)]


def model_tints(models: list[str]) -> dict[str, float]:
    """How strongly each model is coloured: models that share a marker go from white to full."""
    tints = {}
    for model in models:
        alike = [other for other in models if marker(other) == marker(model)]
        tints[model] = (alike.index(model) + 1) / len(alike) if len(alike) > 1 else 1.0
    return tints


def tinted(colour: str, strength: float) -> tuple[float, float, float]:
    """The colour mixed with white: strength 1 is the colour, 0 is white."""
    return tuple(1 - strength * (1 - channel) for channel in to_rgb(colour))


def darkened(colour: str) -> tuple[float, float, float]:
    """The colour for text, which needs more contrast to the page than a line does."""
    return tuple(0.72 * channel for channel in to_rgb(colour))


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw in the house style, whatever the caller's matplotlib settings are."""

    @functools.wraps(draw)
    def draw_in_style(*args, **kwargs) -> Figure:
        with matplotlib.rc_context({**matplotlib.rcParamsDefault, **RC}):
            return draw(*args, **kwargs)

    return draw_in_style


def save(figure: Figure, svg_path: str | Path) -> None:
    """Write the SVG and a PNG beside it, each atomically; equal figures give equal bytes.

    Raises `UserError` if the disk or folder refuses a file.
    """
    svg_path = Path(svg_path)
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **RC}):
        settle(figure)
        with tables.replacing(svg_path.with_suffix(".png")) as temporary:
            figure.savefig(temporary, format="png", dpi=PNG_DPI, metadata={"Software": None})
        with tables.replacing(svg_path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": None})


def settle(figure: Figure) -> None:
    """Fix the panels where the layout puts them, to a ten-thousandth of the page.

    The last digits of the solver's answer differ from one process to the next, and the ids in an
    SVG file are made from them.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for part in parts(figure):
        part.bbox_relative.set_points(np.round(part.bbox_relative.get_points(), 4))
    for axes in figure.axes:
        axes.set_position(np.round(axes.get_position(original=True).bounds, 4))


def parts(figure: Figure | SubFigure) -> list[SubFigure]:
    """The figure's subfigures, and theirs."""
    return [part for child in figure.subfigs for part in [child, *parts(child)]]
