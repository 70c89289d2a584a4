"""Distributions of a value by share and layer."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.information.figures import palette
from palimpsest.information.trends import GREEK

MOST_LAYERS = 4  # columns of panels
MOST_VALUES = 4000  # of a distribution; more look the same
WIDTH = 0.85
SEED_POINT = {"marker": "o", "markersize": 2.4, "linestyle": "none", "zorder": 3}


def figure_of_distributions(
    table: pd.DataFrame, column: str, title: str, label: str, placebo: str | None = None
) -> plt.Figure:
    """A row of panels for each model and intervention, with a panel for each shown layer."""
    rows = palette.with_share(palette.shown(table))
    models = sorted(
        rows["model"].unique(), key=lambda name: rows.loc[rows["model"] == name, "layer"].max()
    )
    lines = [(model, name) for model in models for name in palette.interventions_in(rows)]
    layers = {model: layers_of(rows[rows["model"] == model]) for model in models}
    n_columns = max(map(len, layers.values()))
    figure = elements.figure_of(1.45 * len(lines) + 1.1, title, rows)
    inner = elements.panels_in(figure)
    grid = inner.subplots(len(lines), n_columns, sharey="row", squeeze=False)
    for line, (model, intervention) in zip(grid, lines, strict=True):
        own = rows[(rows["model"] == model) & (rows["intervention"] == intervention)]
        for axes, layer in zip(line, layers[model], strict=False):
            draw_shares(axes, own[own["layer"] == layer], intervention, column, placebo)
            last = " (last)" if layer == max(layers[model]) > 0 else ""
            axes.set_title(f"layer {layer}{last}")
            axes.set_xlabel(f"{GREEK[intervention]} (share, 0 to 1)")
        for axes in line[len(layers[model]) :]:
            axes.set_axis_off()
        line[0].set_ylabel(f"{model}\n{label}" if len(models) > 1 else label)
    share_limits(grid, lines)
    n = rows["seed"].nunique()
    values, limits = (
        ("neurons that vary", "")
        if column == "entropy"
        else ("pairs", "Estimates can be below 0. ")
    )
    note = (
        f"{palette.site_note(rows)} Areas: distributions over all {values} of "
        f"{'one seed' if n == 1 else f'{n} seeds'}; lines: medians; points: the mean of each seed. "
        f"{limits}Layers are numbered from 0."
    )
    handles = palette.share_handles(palette.interventions_in(rows))
    if placebo:
        handles.append(
            elements.bar_handle("the same pairs, strings exchanged (placebo)", palette.PLACEBO)
        )
    elements.legend(figure, handles, note)
    return figure


def layers_of(rows: pd.DataFrame) -> list[int]:
    found = sorted(rows["layer"].unique())
    places = np.linspace(0, len(found) - 1, min(len(found), MOST_LAYERS)).round().astype(int)
    return [found[place] for place in places]


def draw_shares(
    axes: plt.Axes, rows: pd.DataFrame, intervention: str, column: str, placebo: str | None
) -> None:
    shares = sorted(rows["share"].unique())
    for place, share in enumerate(shares):
        own = rows[rows["share"] == share].dropna(subset=[column])
        draw_area(axes, place, own[column].to_numpy(), palette.tint(intervention, share))
        if placebo:
            draw_area(axes, place, own[placebo].to_numpy(), palette.PLACEBO, WIDTH / 2)
        draw_centres(axes, place, own, column, palette.INTERVENTIONS[intervention].colour)
    axes.set_xticks(range(len(shares)), [f"{share:g}" for share in shares])
    axes.set_xlim(-0.6, len(shares) - 0.4)
    axes.grid(False, axis="x")


def draw_area(axes: plt.Axes, place: float, values: np.ndarray, colour, width=WIDTH) -> None:
    """The density of values as an area on both sides of a place; no area if they do not vary."""
    values = values[:: 1 + len(values) // MOST_VALUES]
    if len(values) < 2 or np.ptp(values) <= 1e-9 * np.abs(values).max():
        return
    area = axes.violinplot(values, [place], widths=width, showextrema=False)
    for body in area["bodies"]:
        body.set(facecolor=colour, edgecolor="none", alpha=0.9)


def draw_centres(axes: plt.Axes, place: float, rows: pd.DataFrame, column: str, colour) -> None:
    if rows.empty:
        return
    dark = style.darkened(colour)
    ends = [place - WIDTH / 3, place + WIDTH / 3]
    axes.plot(ends, [rows[column].median()] * 2, color=dark, linewidth=1.1)
    means = rows.groupby("seed")[column].mean()
    shifts = np.linspace(-0.12, 0.12, len(means)) if len(means) > 1 else [0]
    axes.plot(place + np.array(shifts), means, color=style.INK, **SEED_POINT)


def share_limits(grid: np.ndarray, lines: list[tuple[str, str]]) -> None:
    for model in dict.fromkeys(model for model, _ in lines):
        own = [grid[place, 0] for place, (name, _) in enumerate(lines) if name == model]
        ends = np.array([axes.get_ylim() for axes in own])
        for axes in own:
            axes.set_ylim(ends[:, 0].min(), ends[:, 1].max())
