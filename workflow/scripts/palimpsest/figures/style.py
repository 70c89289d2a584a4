"""The style of all figures: the meaning of colours, markers and line styles, and how to save.

In all figures, each visual channel has the same meaning. Colour is the measure. The shape of a
marker is the model family, and its tint is the model. The line style is the role of a curve:
training or test, with or without the string, variant of the dataset. The colours are those of Okabe
and Ito, which colour-blind readers can distinguish.

Figures about forgetting show no measures, and every model has its own row of panels. So in these
figures, colour and shape together mean the set-up of the evaluation, with colours that no measure
has. Grey means the two ends: doing nothing and retraining.
"""

from __future__ import annotations

import functools
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from palimpsest import tables
from palimpsest.arguments import WrongKind
from palimpsest.figures.glyphs import find_glyphs
from palimpsest.figures.libraries import colors, matplotlib, np, pd, plt
from palimpsest.tables.kinds import Document, Kind

WIDTH = 7.2  # inches: the text width of a paper
PNG_DPI = 150
CHARACTERS_PER_LINE = 120  # of the small print, at full width

RC = {
    "font.family": "sans-serif",
    # Verdana is as wide as DejaVu Sans, and the other fonts are narrower. So the text fits into the
    # space measured here with any of these fonts.
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
    "figure.labelsize": 8,
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
    "svg.hashsalt": "palimpsest",  # without a salt, the ids in the file are random
}


@dataclass(frozen=True)
class Look:
    """The label, the colour and the marker of what a figure compares."""

    label: str
    colour: str
    marker: str = "o"


class Looks(dict[str, Look]):
    """Looks by name. A measure of an extension has its name as its label, and one more colour."""

    def __missing__(self, name: str) -> Look:
        colour = OTHER_COLOURS[zlib.crc32(name.encode()) % len(OTHER_COLOURS)]
        return Look(name.replace("_", " "), colour)


OTHER_COLOURS = ("#E69F00", "#882255", "#44AA99", "#661100")
MEASURES = Looks(
    {
        "recollection": Look("recollection", "#009E73"),
        "recollection_accuracy": Look("recollection by accuracy", "#56B4E9"),
        "counterfactual": Look("counterfactual", "#0072B2"),
        "contextual": Look("contextual", "#D55E00"),
        "bayes": Look("Bayes", "#CC79A7"),
    }
)

SETUPS = {
    "full": Look("full", "#882255", "^"),
    "reuse-n-n": Look("reuse-n-n", "#D18F00", "o"),
    "bootstrap": Look("bootstrap", "#333333", "s"),
    "reuse-n-1": Look("reuse-n-1", "#999933", "D"),
}
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
    present = set(names)
    return [*(name for name in MEASURES if name in present), *sorted(present - MEASURES.keys())]


def measures_with_evidence(table: pd.DataFrame) -> list[tuple[str, str]]:
    """The pairs of measure and evidence in a table, by measure in the order of all figures."""
    pairs = table[["measure", "evidence"]].drop_duplicates()
    return [
        (measure, evidence)
        for measure in measures_in(pairs["measure"])
        for evidence in pairs.loc[pairs["measure"] == measure, "evidence"]
    ]


def marker(model: str) -> str:
    """The marker of the family with which the model's name begins."""
    family = model.lower()
    for known, shape in FAMILY_MARKERS.items():
        if family.startswith(known):
            return shape
    family = family.split("-")[0]
    return OTHER_MARKERS[zlib.crc32(family.encode()) % len(OTHER_MARKERS)]


def model_tints(models: list[str]) -> dict[str, float]:
    """The tint of each model; models with the same marker go from light to full colour."""
    tints = {}
    for model in models:
        alike = [other for other in models if marker(other) == marker(model)]
        tints[model] = (alike.index(model) + 1) / len(alike) if len(alike) > 1 else 1.0
    return tints


def tinted(colour: str, strength: float) -> tuple[float, float, float]:
    """The colour mixed with white: strength 1 is the colour, 0 is white."""
    return tuple(1 - strength * (1 - channel) for channel in colors.to_rgb(colour))


def darkened(colour: str) -> tuple[float, float, float]:
    return tuple(0.72 * channel for channel in colors.to_rgb(colour))


def styled(draw: Callable[..., plt.Figure]) -> Callable[..., plt.Figure]:
    """Draw in the style of this module, whatever the caller's settings of matplotlib are.

    Raises `WrongKind` for something that is no table, or for a table without a column that is used.
    """

    @functools.wraps(draw)
    def draw_in_style(*args, **kwargs) -> plt.Figure:
        _check_tables(draw, [*args, *kwargs.values()])
        with matplotlib.rc_context({**matplotlib.rcParamsDefault, **RC}):
            try:
                return draw(*args, **kwargs)
            except KeyError as error:
                if missing := _missing_column(draw, args, error):
                    raise WrongKind(missing) from None
                raise

    return draw_in_style


def _declared(draw: Callable) -> Sequence[Kind | Document]:
    """The kinds of the tables that a figure is drawn from."""
    figure = draw.__globals__.get("FIGURE")
    return figure.tables if figure and figure.name == draw.__name__ else ()


def _check_tables(draw: Callable, given: Sequence) -> None:
    for kind, table in zip(_declared(draw), given, strict=False):
        if not isinstance(table, pd.DataFrame | dict):
            raise WrongKind(
                f"{draw.__name__}: is given {type(table).__name__}; must be a table "
                f"`{kind.name}` (pandas.DataFrame), see docs/tables.md"
            )


def _missing_column(draw: Callable, given: Sequence, error: KeyError) -> str | None:
    """What is missing, if the error is about a column of a table that the figure is drawn from."""
    for kind, table in zip(_declared(draw), given, strict=False):
        names = getattr(kind, "names", ())
        missing = [name for name in names if name not in table]
        if name := next((name for name in missing if repr(name) in str(error)), None):
            return (
                f"{draw.__name__}: its table has no column {name!r}; a table `{kind.name}` has the "
                f"columns {', '.join(names)}"
            )
    return None


def save(figure: plt.Figure, svg_path: str | Path) -> None:
    """Write the SVG, and a PNG to the same folder, atomically; equal figures give equal bytes.

    A warning names characters that no installed font has. Raises `UserError` if a file cannot be
    written.
    """
    svg_path = Path(svg_path)
    style = matplotlib.rc_context({**matplotlib.rcParamsDefault, **RC})
    with style, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        settle(figure)
        find_glyphs(figure, svg_path)
        with tables.replacing(svg_path.with_suffix(".png")) as temporary:
            figure.savefig(temporary, format="png", dpi=PNG_DPI, metadata={"Software": None})
        with tables.replacing(svg_path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": None})


def settle(figure: plt.Figure) -> None:
    """Fix the panels at the positions of the layout, rounded to a ten-thousandth of the page.

    The last digits of the layout differ between processes, and the ids in an SVG file depend on the
    positions.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for part in parts(figure):
        part.bbox_relative.set_points(np.round(part.bbox_relative.get_points(), 4))
    for axes in figure.axes:
        axes.set_position(np.round(axes.get_position(original=True).bounds, 4))


def parts(figure: plt.Figure) -> list[plt.Figure]:
    """All subfigures of a figure, nested ones included."""
    return [part for child in figure.subfigs for part in [child, *parts(child)]]
