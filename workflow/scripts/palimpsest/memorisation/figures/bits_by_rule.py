"""The figure of the study `bits_by_rule`: bits by level over the epochs, and of every rule."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import matplotlib, np, pd, plt
from palimpsest.memorisation.figures.bits import LINEAR
from palimpsest.memorisation.studies.bits_by_rule import KIND

FIGURE = Figure(
    __name__,
    order=140,
    chapter="bits_by_rule",
    title="Memorised bits by rule",
    caption=(
        "Above, bits per string by level of the grammar (0: the start symbol), of training "
        "strings (solid) and unseen ones (dashed); below, bits of each rule, with the most "
        "that is possible (bar). See which filled marks come near their bar while hollow ones "
        "stay at 0."
    ),
    tables=(KIND,),
)
GROUPS = {"bits": "train", "bits_unseen": "test"}
RUN = ["model", "size", "seed"]
NO_RULE = "no rule"
NO_RULE_COLOUR = "0.55"
CEILING = {"marker": "|", "markersize": 8, "linestyle": "none"}
ROW = 0.15  # inches, of a rule
EPOCHS_HEIGHT = 2.2  # inches
DOT = {"linestyle": "none", "marker": "o", "markersize": 4}


@style.styled
def bits_by_rule(study: pd.DataFrame) -> plt.Figure:
    """Bits of each level of the grammar over the epochs; below, bits of each rule at the end.

    Source: Palimpsest's own split of the bits of arXiv 2505.24832.
    """
    sizes, rules = sorted(study["size"].unique()), ordered(study)
    colours = level_colours(rules)
    height = 0.6 + ROW * len(rules)
    figure = elements.figure_of(EPOCHS_HEIGHT + height + 1.3, "Memorised bits by rule", study)
    heights = (EPOCHS_HEIGHT, height)
    above, below = elements.panels_in(figure).subfigures(2, 1, height_ratios=heights)
    last = study[study["epoch"] == study.groupby(RUN)["epoch"].transform("max")]
    for axes, size in zip(row_of(above, sizes), sizes, strict=True):
        draw_levels(axes, study[study["size"] == size], colours)
        axes.set_title(f"{size} training strings", weight="bold")
    above.axes[0].set_ylabel("bits per string (symmetric\nlogarithmic scale)")
    above.supxlabel("epoch")
    for axes, size in zip(row_of(below, sizes), sizes, strict=True):
        draw_rules(axes, last[last["size"] == size], rules, colours)
        axes.set_title(f"{size} training strings", weight="bold")
    below.axes[0].set_yticks(range(len(rules)), list(rules["label"]), fontsize=6)
    below.axes[0].set_ylim(len(rules) - 0.4, -0.6)
    below.supylabel("rule (probability)")
    below.supxlabel("bits per string, last epoch (symmetric logarithmic scale)")
    several = len(study[["model", "seed"]].drop_duplicates()) > 1
    also = " Points of rules and error bars: likewise." if several else ""
    elements.legend(figure, handles(colours), elements.spread_note(study) + also)
    return figure


def row_of(figure: plt.Figure, sizes: list[int]) -> list[plt.Axes]:
    return list(figure.subplots(1, len(sizes), sharex=True, sharey=True, squeeze=False)[0])


def ordered(study: pd.DataFrame) -> pd.DataFrame:
    """The rules from the top of the grammar to its ends, likely ones first, and their labels.

    The last row is for symbols that no rule decides.
    """
    columns = ["level", "nonterminal", "rule", "probability"]
    rules = study[columns].drop_duplicates().reset_index(drop=True)
    rules = rules.sort_values(
        ["level", "nonterminal", "probability"],
        ascending=[True, True, False],
        kind="stable",
        na_position="last",
    )
    labels = [
        NO_RULE if pd.isna(rule) else f"{rule.replace(chr(39), '').replace('->', '→')}  ({p:.2g})"
        for rule, p in zip(rules["rule"], rules["probability"], strict=True)
    ]
    return rules.assign(label=labels).reset_index(drop=True)


def level_colours(rules: pd.DataFrame) -> dict[str, object]:
    """A colour per level, from dark at the top of the grammar to light; grey for no rule."""
    found = sorted(rules["level"].dropna().astype(int).unique())
    tones = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.85, len(found)))
    named = {f"level {level}": tone for level, tone in zip(found, tones, strict=True)}
    return {**named, NO_RULE: NO_RULE_COLOUR}


def level_of(levels: pd.Series) -> pd.Series:
    return levels.map(lambda level: NO_RULE if pd.isna(level) else f"level {int(level)}")


def draw_levels(axes: plt.Axes, rows: pd.DataFrame, colours: dict[str, object]) -> None:
    axes.axhline(0, **style.BAYES_LINE)
    rows = rows.assign(of=level_of(rows["level"]))
    sums = rows.groupby([*RUN, "epoch", "of"])[list(GROUPS)].sum(min_count=1).reset_index()
    for name, colour in colours.items():
        for column, line in GROUPS.items():
            curve = elements.spread(sums[sums["of"] == name], "epoch", column)
            elements.draw_spread(axes, curve, colour, linestyle=style.LINES[line], linewidth=1.1)
    axes.set_yscale("symlog", linthresh=LINEAR)
    elements.plain_numbers(axes.yaxis)
    axes.margins(x=0.02)


def draw_rules(
    axes: plt.Axes, rows: pd.DataFrame, rules: pd.DataFrame, colours: dict[str, object]
) -> None:
    axes.axvline(0, **style.BAYES_LINE)
    of_rule = dict(list(rows.groupby(rows["rule"].fillna(NO_RULE))))
    named = zip(rules["rule"].fillna(NO_RULE), level_of(rules["level"]), strict=True)
    for place, (rule, level) in enumerate(named):
        colour, found = colours[level], of_rule[rule]
        for column, face in (("bits_unseen", "white"), ("bits", colour)):
            mean, reach = elements.whiskers(found[column])
            axes.errorbar(
                mean, place, xerr=reach, color=colour, elinewidth=0.7, markerfacecolor=face, **DOT
            )
        axes.plot(found["optimal"].mean(), place, color=style.INK, **CEILING)
    axes.set_xscale("symlog", linthresh=LINEAR)
    elements.plain_numbers(axes.xaxis)


def handles(colours: dict[str, object]) -> list:
    labels = {name: f"{name} of grammar" for name in colours}
    labels[NO_RULE] = "decided by no rule"
    return [
        *(elements.line_handle(labels[name], colour) for name, colour in colours.items()),
        elements.line_handle("training strings", linestyle=style.LINES["train"]),
        elements.line_handle("strings never trained on", linestyle=style.LINES["test"]),
        elements.line_handle("training strings, by rule", **DOT),
        elements.line_handle("never trained on, by rule", markerfacecolor="white", **DOT),
        elements.line_handle("most that a model can hold", **CEILING),
        elements.line_handle("the language", style.BAYES_LINE["color"], linewidth=1.6),
    ]
