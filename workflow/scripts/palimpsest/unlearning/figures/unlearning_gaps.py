"""The share of the gap to retraining that each method closes."""

from __future__ import annotations

from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.unlearning import kinds
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.figures import seeds as by_seed
from palimpsest.unlearning.run.setups import INNOCENT

FIGURE = Figure(
    __name__,
    order=10,
    chapter="unlearning",
    title="How far methods go towards retraining",
    caption=(
        "How much of the gap between original and retrained models a method closes, in the "
        "loss of the forget strings. See how near large markers are to 1, and whether unseen "
        "strings (circles) and retained ones (squares) are where those of retraining are."
    ),
    tables=(kinds.GAPS, kinds.GAP_SUMMARY),
)
FORGET = "forget"
# Strings other than the forget strings, with their markers.
CONTROLS = {"placebo": "o", "retained": "s"}
LOWEST, HIGHEST = -0.5, 2.0
MARGIN = 0.14  # of the axis, for arrows
LANE = 0.08  # inches, of one seed in the row of a method
JITTER = 0.3  # of a lane, up and down
AXIS = "share of the gap closed (0: nothing done, 1: as retrained models)"


@style.styled
def unlearning_gaps(gaps: pd.DataFrame, summary: pd.DataFrame) -> plt.Figure:
    """The share of the way to retrained models that every method goes, per string and overall.

    Source: the figure is Palimpsest's own.
    """
    summary = summary[summary["method"] != INNOCENT]
    seeds = by_seed.seeds_in(summary)
    rows = {
        model: method_rows.with_ends(by_share(of_model), of_model["method"])
        for model, of_model in summary.groupby("model", sort=False)
    }
    n_lanes = lanes_of(seeds)
    heights = {
        model: 0.75 + (LANE * n_lanes + 0.06) * len(methods) for model, methods in rows.items()
    }
    figure, parts = method_rows.figure_of_models(
        "How far methods go towards retraining", gaps, heights, 1.1
    )
    for model, part in parts:
        own, summed = gaps[gaps["model"] == model], summary[summary["model"] == model]
        draw_gaps(part, own, summed, rows[model], seeds)
    handles = by_seed.seed_handles(seeds) if len(seeds) > 1 else []
    handles += [
        elements.marker_handle("a forget string", by_seed.COLOUR, ".", size=3, alpha=0.6),
        barred("all forget strings of a seed", by_seed.COLOUR),
    ]
    if len(seeds) > 1:
        handles.append(barred("mean over the seeds", style.INK, "D", size=4, linewidth=0.9))
    handles += [
        barred("strings that no model was trained on", "0.45", filled=False),
        barred("strings to be retained", "0.45", "s", filled=False, size=3.4),
        method_rows.ideal_handle("doing nothing, retraining"),
    ]
    elements.legend(figure, handles, gaps_note(gaps, seeds))
    return figure


def barred(label: str, colour, marker: str = "o", size: float = 3.6, **look):
    """A legend entry for a marker with a bar."""
    line = {"linestyle": "-", "linewidth": 0.8}
    return elements.marker_handle(label, colour, marker, size=size, **{**line, **look})


def gaps_note(gaps: pd.DataFrame, seeds: list[int]) -> str:
    unclear = gaps[(gaps["string_role"] == FORGET) & gaps["share"].isna()]
    n_unclear = len(unclear.drop_duplicates(["model", "seed", "string_id"]))
    note = (
        "Bars of a seed: 95 % intervals over strings and models. Arrows: the bar goes on, or the "
        "number of strings beyond the axis. Strings that no model was trained on, and strings to "
        "be retained: the rise of their loss, as a share of the gap of equally hard forget "
        "strings; compare with retrain."
    )
    if len(seeds) > 1:
        note += f" Bars of the mean: 95 % interval over {len(seeds)} seeds (Student)."
    if n_unclear:
        note += f" Forget strings without a clear gap ({n_unclear}) have no dot."
    return note


def lanes_of(seeds: list[int]) -> int:
    return len(seeds) + (len(seeds) > 1) + len(CONTROLS)


def by_share(summary: pd.DataFrame) -> list[str]:
    forget = summary[summary["string_role"] == FORGET]
    return method_rows.best_first(forget.groupby("method", sort=False)["share"].mean())


def draw_gaps(
    figure: plt.Figure, gaps: pd.DataFrame, summary: pd.DataFrame, rows: list[str], seeds: list[int]
) -> None:
    """A row per method with a lane per seed, a lane for the mean, and a lane for each control."""
    axes = figure.subplots()
    for line in (0, 1):
        axes.axvline(line, **method_rows.IDEAL_LINE)
    n_lanes = lanes_of(seeds)
    lanes = (np.arange(n_lanes) + 0.5) / n_lanes * 0.9 - 0.45
    tints = by_seed.shades(seeds)
    forget = summary[summary["string_role"] == FORGET]
    # The jitter is drawn once, so that equal tables give equal figures.
    chance = np.random.default_rng(0)
    of_strings = gaps[gaps["string_role"] == FORGET].dropna(subset=["share"])
    for (method, seed), strings in of_strings.groupby(["method", "seed"], sort=False):
        lane, grey = lanes[seeds.index(seed)], method in method_rows.ENDS
        colour = style.END if grey else tints[seed]
        y = rows.index(method) + lane
        spread = y + chance.uniform(-JITTER, JITTER, len(strings)) / n_lanes
        draw_strings(axes, strings["share"].to_numpy(), spread, y, colour)
    for row in forget.dropna(subset=["share"]).itertuples():
        colour = style.END if row.method in method_rows.ENDS else tints[row.seed]
        y = rows.index(row.method) + lanes[seeds.index(row.seed)]
        draw_summary(axes, row, row.share, y, color=style.darkened(colour), marker="o")
    if len(seeds) > 1:
        for row in intervals_over_seeds(forget, ["method"], "share").reset_index().itertuples():
            y = rows.index(row.method) + lanes[len(seeds)]
            draw_summary(axes, row, row.mean, y, color=style.INK, marker="D")
    for lane, (kind, marker) in zip(lanes[-len(CONTROLS) :], CONTROLS.items(), strict=True):
        draw_control(axes, summary[summary["string_role"] == kind], rows, lane, marker)
    axes.set_xlim(LOWEST - MARGIN, HIGHEST + MARGIN)
    axes.set_xticks(np.arange(LOWEST, HIGHEST + 0.1, 0.5))
    axes.set_xlabel(AXIS)
    method_rows.name_rows(axes, rows)
    axes.set_ylim(len(rows) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    for edge in range(1, len(rows)):
        axes.axhline(edge - 0.5, color="0.9", linewidth=0.6, zorder=0)


def draw_strings(axes: plt.Axes, share: np.ndarray, spread: np.ndarray, y: float, colour) -> None:
    """A dot per string; an arrow at the edge of the axis counts the strings beyond the edge."""
    inside = (share >= LOWEST) & (share <= HIGHEST)
    dots = {"marker": ".", "markersize": 4, "color": colour, "alpha": 0.75}
    elements.draw_dots(axes, share[inside], spread[inside], **dots)
    for edge, marker, n, towards in (
        (LOWEST, "<", int((share < LOWEST).sum()), 1),
        (HIGHEST, ">", int((share > HIGHEST).sum()), -1),
    ):
        if n:
            axes.plot(
                edge - 0.03 * towards, y, linestyle="none", marker=marker, markersize=3,
                color=colour, clip_on=False,
            )  # fmt: skip
            axes.annotate(
                str(n), (edge - 0.03 * towards, y), xytext=(-6 * towards, 0),
                textcoords="offset points", ha="center", va="center", fontsize=5.5,
                color=style.darkened(colour),
            )  # fmt: skip


def draw_summary(axes: plt.Axes, row, share: float, y: float, **look) -> None:
    """A share with its interval; a share beyond the axis is written at its edge."""
    if np.isfinite([row.lower, row.upper]).all():
        ends = np.clip([row.lower, row.upper], LOWEST, HIGHEST)
        axes.plot(ends, [y, y], color=look["color"], linewidth=0.8)
        for beyond, edge, marker in (
            (row.lower < LOWEST, LOWEST, "<"),
            (row.upper > HIGHEST, HIGHEST, ">"),
        ):
            if beyond:
                axes.plot(edge, y, marker=marker, markersize=2.6, color=look["color"])
    if LOWEST <= share <= HIGHEST:
        axes.plot(share, y, linestyle="none", **{"markersize": 3.4, **look})
        return
    towards = 1 if share < LOWEST else -1
    edge = LOWEST if share < LOWEST else HIGHEST
    axes.annotate(
        f"{share:.1f}".replace("-", "−"), (edge, y), xytext=(10 * towards, 0), ha="center",
        textcoords="offset points", va="center", fontsize=6, weight="bold", color=look["color"],
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
    )  # fmt: skip


def draw_control(
    axes: plt.Axes, control: pd.DataFrame, rows: list[str], lane: float, marker: str
) -> None:
    if control["seed"].nunique() > 1:
        shown = intervals_over_seeds(control, ["method"], "share").reset_index()
        shown = shown.rename(columns={"mean": "share"})
    else:
        shown = control.dropna(subset=["share"])
    for row in shown.itertuples():
        look = {"color": "0.45", "markerfacecolor": "white", "markeredgewidth": 0.8}
        draw_summary(axes, row, row.share, rows.index(row.method) + lane, marker=marker, **look)
