"""The fixed effects of all regressions, as a forest of intervals."""

from __future__ import annotations

from typing import NamedTuple

from palimpsest.density import kinds
from palimpsest.density.figures import palette
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt, ticker

FIGURE = Figure(
    __name__,
    order=60,
    chapter="regressions",
    title="Regressions on leaks and on density",
    caption=(
        "Effects of the leak, of density, and of density and distance on perplexity (left) "
        "and accuracy (right), for leaked strings and for placebos. See which are away from 0 "
        "for leaked strings, and near 0 for placebos."
    ),
    tables=(kinds.REGRESSIONS,),
)
# Effects of the length are of no interest here.
NOT_SHOWN, DENSITY = ("intercept", "log length"), "density"
SIGNIFICANT = 0.05
BELOW = f"p\N{NO-BREAK SPACE}<\N{NO-BREAK SPACE}{SIGNIFICANT}"
OFFSETS = {kinds.LEAKED: -0.17, kinds.PLACEBO: 0.17}
SIDES = {kinds.LEAKED: "right", kinds.PLACEBO: "left"}  # of words in place of an estimate
OUTCOMES = {
    kinds.PERPLEXITY: "perplexity (linear):\nchange of the perplexity",
    kinds.ACCURACY: "accuracy (logistic):\nchange of the log odds",
}
HEADS = {
    kinds.LEAK_CONDITION: "on the leak (per contrast)",
    kinds.ON_DENSITY: "on density (per SD)",
    kinds.ON_BOTH: "on density and distance (per SD)",
}


class Row(NamedTuple):
    """A row of the forest: a fixed effect, or a heading if there is no term."""

    regression: str
    predictor: str = ""
    embedding: str = ""
    term: str = ""

    @property
    def label(self) -> str:
        if not self.term:
            return HEADS.get(self.regression, f"on {self.regression}")
        if not self.predictor:
            return self.term
        density = f"{self.predictor} {DENSITY}"
        name = density if self.term == DENSITY else f"{self.term} ({self.predictor})"
        return f"{name}, {palette.of_embedding(self.embedding).label}"


@style.styled
def density_regressions(table: pd.DataFrame) -> plt.Figure:
    """Estimates with intervals, of leaked strings and of placebos.

    Source: LMD3, appendix A.5.
    """
    table = table[~table["term"].isin(NOT_SHOWN)].copy()
    names = ["predictor", "embedding"]
    table[names] = table[names].astype(object).where(table[names].notna(), "")
    rows = list(rows_of(table))
    figure = elements.figure_of(0.185 * len(rows) + 1.6, "Regressions", table)
    panels = figure.subplots(1, len(OUTCOMES), sharey=True)
    for axes, (outcome, label) in zip(panels, OUTCOMES.items(), strict=True):
        draw_forest(axes, table[table["outcome"] == outcome], rows)
        axes.set_xlabel(label)
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6))
    known = table[table["kernel"].notna()]
    setting = f" Density: {palette.setting(known)}." if len(known) else ""
    note = (
        f"SD: standard deviation over leaked strings, placebos and all others. Bars: "
        f"{elements.PERCENT} intervals by exchanging strings of one seed and group; filled: "
        f"{BELOW} by the same exchanges; no bar: too few strings to exchange. (raw), (log): the "
        f"form of the density in the same regression.{setting} Terms of paraphrases: orthogonal "
        "polynomials of their number."
    )
    handles = [
        *(elements.look_handle(palette.STRINGS[name], label) for name, label in
          ((kinds.LEAKED, "leaked strings"), (kinds.PLACEBO, "placebos: none is leaked"))),
        elements.marker_handle(BELOW),
        elements.marker_handle(f"p ≥ {SIGNIFICANT}", filled=False),
    ]  # fmt: skip
    elements.legend(figure, handles, note)
    return figure


def rows_of(table: pd.DataFrame):
    for regression in [name for name in HEADS if name in set(table["regression"])]:
        yield Row(regression)
        own = table[table["regression"] == regression]
        keys = ["embedding", "predictor", "term"]
        for embedding, predictor, term in own[keys].drop_duplicates().itertuples(index=False):
            yield Row(regression, predictor, embedding, term)


def draw_forest(axes: plt.Axes, table: pd.DataFrame, rows: list[Row]) -> None:
    axes.axvline(0, **elements.ZERO)
    elements.name_rows(axes, [row.label for row in rows])
    # Panels that share the axis have no labels of their own.
    for label, row in zip(axes.get_yticklabels(), rows, strict=False):
        label.set_weight("normal" if row.term else "bold")
    indexed = table.set_index(["string_role", "regression", "predictor", "embedding", "term"])
    has_any = table["effect"].notna().any()
    for place, row in enumerate(rows):
        if not row.term:
            axes.axhspan(place - 0.5, place + 0.5, color="0.95", linewidth=0, zorder=0)
            continue
        for strings, offset in OFFSETS.items():
            if has_any and (strings, *row) in indexed.index:
                draw_effect(axes, place + offset, indexed.loc[(strings, *row)], strings)
    if not has_any:
        axes.set_xlim(-1, 1)
        said = {"fontsize": 7, "ha": "center", "va": "center", "color": "0.35"}
        axes.text(
            0, (len(rows) - 1) / 2, "no term has an estimate", backgroundcolor="white", **said
        )


def draw_effect(axes: plt.Axes, place: float, effect: pd.Series, strings: str) -> None:
    look = palette.STRINGS[strings]
    if pd.isna(effect["effect"]):
        said = {"fontsize": 6, "va": "center", "ha": SIDES[strings], "color": look.colour}
        axes.text(0, place, "  no estimate  ", **said)
        return
    found = effect[["effect", "lower", "upper"]].astype(float)
    found = found.where(np.isfinite(found))
    is_significant = effect["p_value"] < SIGNIFICANT
    fill = look.colour if is_significant else "white"
    elements.draw_interval(
        axes, place, found, color=look.colour, marker=look.marker, markerfacecolor=fill,
        markersize=3.5,
    )  # fmt: skip
