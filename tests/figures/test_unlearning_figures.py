"""What must hold of the figures of unlearning, for few methods and many, one model and several."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
import test_figures as others
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from matplotlib.text import Annotation, Text

from helpers import unlearning_study as study
from helpers import unlearning_tables as made
from helpers.drawn import words_around
from palimpsest import tables
from palimpsest.errors import UserError
from palimpsest.figures import point_labels, style
from palimpsest.figures.render import render
from palimpsest.figures.style import save
from palimpsest.lazy_import import named
from palimpsest.sections import FIGURES, KINDS
from palimpsest.statistics import student
from palimpsest.unlearning.figures import FIGURES as ROWS
from palimpsest.unlearning.figures import method_rows, seeds
from palimpsest.unlearning.figures.unlearning_agreement import alike_together, matrix
from palimpsest.unlearning.figures.unlearning_epsilons import by_epsilon, last_edge
from palimpsest.unlearning.figures.unlearning_hardness import spearman
from palimpsest.unlearning.run.setups import ENDS

NAMES = [figure.name for figure in ROWS]
ONE, TWO = ["pythia-1b-twin"], ["pythia-1b-twin", "qwen-2.5-7b-twin"]
SEEDS = (0, 1, 2)
# Every shape of a study: models, methods (without the two ends), repetitions, set-ups, seeds.
SHAPES = {
    "two methods, once": (ONE, 2, 1, ("reuse-n-n",), (0,)),
    "six methods": (ONE, 6, 3, ("reuse-n-n", "bootstrap"), (0,)),
    "three seeds": (ONE, 6, 2, ("reuse-n-n",), SEEDS),
    "all methods, all set-ups": (ONE, 25, 2, tuple(style.SETUPS), SEEDS),
    "two models": (TWO, 4, 2, ("reuse-n-n", "bootstrap"), SEEDS),
}
REPEATED = ("epsilons", "unlearning_scores", "unlearning_summary")


def table(kind, shape="six methods"):
    models, n, repetitions, setups, seeds = SHAPES[shape]
    extra = (repetitions, setups) if kind in REPEATED else ()
    return study.TABLES[kind](models, n, seeds, *extra)


def of_figure(name, shape="six methods"):
    """The tables of a figure."""
    return [table(kind.name, shape) for kind in FIGURES[name].tables]


def draw(name, *frames, shape="six methods"):
    """A figure, before its layout."""
    return named(FIGURES[name].draw)(*(frames or of_figure(name, shape)))


def said(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


LOOKED_AT = ("two methods, once", "all methods, all set-ups", "two models")


@pytest.fixture(scope="module", params=itertools.product(NAMES, LOOKED_AT), ids=" - ".join)
def drawn(request):
    """Every figure of several shapes, drawn once."""
    name, shape = request.param
    figure = draw(name, shape=shape)
    figure.draw_without_rendering()
    return figure


# The look of all of them


@pytest.mark.parametrize("kind", study.TABLES)
def test_the_tables_tested_on_are_of_their_kinds(kind, tmp_path):
    frame = table(kind, "two models")
    tables.write(tmp_path / "table.parquet", frame, KINDS[kind])


def test_every_axis_is_named_with_its_unit(drawn):
    """An axis of numbers says what they are; rows, columns and titles may name methods instead."""
    units = re.compile(
        r"0 to 1|of retraining’s|nats per\s+token|epochs|L2|log p|−1 to 1|epsilon|rank"
        r"|share|\(N\)|K\)|\(E\)|AUC|passes over batches|steps on|log\(p"
    )
    for axes in drawn.axes:
        if is_second(axes):
            continue
        title = axes.get_title(loc="left")
        for which, rest in (("x", ""), ("y", title)):
            words = f"{' '.join(words_around(axes, which))} {rest}"
            assert units.search(words) or has_categories(axes, which), (which, title)


def is_second(axes):
    """Whether the panel is a second y axis, whose label is at the right of the figure."""
    return axes.yaxis.get_label_position() == "right"


def has_categories(axes, which):
    shared = getattr(axes, f"get_shared_{which}_axes")().get_siblings(axes)
    labels = [label for other in shared for label in getattr(other, f"get_{which}ticklabels")()]
    return any(re.match(r"[a-z]", label.get_text()) for label in labels)


def test_no_panel_is_empty(drawn):
    for axes in drawn.axes:
        unasked = any("no string asked" in text.get_text() for text in axes.texts)
        assert axes.has_data() or unasked, axes.get_title(loc="left")


def test_no_text_is_cut_off(drawn):
    page, unused = drawn.bbox, others.unused_tick_labels(drawn)
    for text in drawn.findobj(Text):
        if text.get_text() and text.get_visible() and text not in unused:
            box = text.get_window_extent()
            assert box.x0 >= -1, text
            assert box.y0 >= -1, text
            assert box.x1 <= page.x1 + 1, text
            assert box.y1 <= page.y1 + 1, text


def test_labels_of_rows_and_titles_do_not_run_into_each_other(drawn):
    for axes in drawn.axes:
        labels = [label for label in axes.get_yticklabels() if label.get_text()]
        boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.y0)
        for lower, upper in itertools.pairwise(boxes):
            assert lower.y1 <= upper.y0 + 1
    titles = [axes.title for axes in drawn.axes] + [axes._left_title for axes in drawn.axes]
    around = [drawn._suptitle, *(part._supylabel for part in style.parts(drawn))]
    titles += [text for text in around if text is not None]
    boxes = [title.get_window_extent() for title in titles if title.get_text()]
    for one, other in itertools.combinations(boxes, 2):
        assert not one.padded(-1).overlaps(other)


def test_legends_do_not_cover_panels(drawn):
    others.test_legends_do_not_cover_panels(drawn)


def test_all_methods_are_named(drawn):
    """In a row, a title or the key to the numbers; some figures are not about every method."""
    if re.search("hard to forget|bootstrap samples|put together", drawn.get_suptitle()):
        return
    names = " ".join(said(drawn)).replace("\n", "")
    for method in made.NAMES[:2]:
        assert method in names


@pytest.mark.parametrize("name", ["unlearning_epsilons"])
def test_equal_tables_give_equal_bytes(name, tmp_path):
    for attempt in "ab":
        save(draw(name), tmp_path / f"{attempt}.svg")
    for suffix in ("svg", "png"):
        first, second = (tmp_path / f"{attempt}.{suffix}" for attempt in "ab")
        assert first.read_bytes() == second.read_bytes()


def test_setups_have_colours_that_no_measure_has():
    colours = [to_hex(look.colour) for look in (*style.SETUPS.values(), *style.MEASURES.values())]
    assert len(set(colours)) == len(colours)
    assert len({look.marker for look in style.SETUPS.values()}) == len(style.SETUPS)


# What they show


def test_scores_stand_best_first_between_the_two_ends():
    summary = table("unlearning_summary")
    figure = draw(
        "unlearning_scores", summary, table("unlearning_scores"), table("unlearning_tests")
    )
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert (labels[0], labels[-1]) == ("retrain (the ideal)", "none (the original)")
    main = summary[(summary["setup"] == "reuse-n-n") & (summary["method"] != "none")]
    quality = main[main["quantity"] == "forgetting_quality"].set_index("method")["mean"]
    expected = quality.drop("retrain").sort_values(ascending=False)
    assert [label.removesuffix(" *") for label in labels[1:-1]] == list(expected.index)
    points = markers(figure.axes[0], style.SETUPS["reuse-n-n"].colour)
    assert [x for x, _ in sorted(points, key=lambda point: point[1])] == pytest.approx(
        list(expected)
    )


def markers(axes, colour):
    """Places of the single markers of a colour."""
    lines = [line for line in axes.get_lines() if len(line.get_xdata()) == 1]
    lines = [line for line in lines if to_hex(line.get_color()) == to_hex(colour)]
    return [(line.get_xdata()[0], line.get_ydata()[0]) for line in lines]


def test_methods_beyond_the_cut_off_are_hollow_and_starred():
    summary, scores, tests = of_figure("unlearning_scores")
    slow = set(scores.loc[~scores["within_cutoff"], "method"])
    assert 0 < len(slow) < 6
    figure = draw("unlearning_scores", summary, scores, tests)
    labels = {label.get_text() for label in figure.axes[0].get_yticklabels()}
    assert {label.removesuffix(" *") for label in labels if label.endswith(" *")} == slow
    hollow = [line for line in figure.axes[0].get_lines() if line.get_markerfacecolor() == "white"]
    assert len(hollow) == 2 * len(slow), "one of every set-up"
    fast = scores.assign(within_cutoff=True)
    figure = draw("unlearning_scores", summary, fast, tests)
    assert not any("cut-off" in text for text in said(figure))


def test_one_repetition_has_no_interval_and_says_so():
    figure = draw("unlearning_scores", shape="two methods, once")
    assert not [line for axes in figure.axes for line in axes.collections]
    assert any("without an interval" in text for text in said(figure))


def test_what_is_not_drawn_anew_has_no_bar_and_the_legend_says_so():
    figure = draw("unlearning_scores")  # reuse-n-n and the bootstrap
    bars = len(figure.axes[0].collections)
    ends, setups, methods = 2, 2, 6
    assert bars == setups * (methods + ends) - ends
    assert any("No bar: the same models" in text for text in said(figure))
    tables = [study.TABLES[f"unlearning_{name}"](ONE, 6, (0,), 3, ("bootstrap",))
              for name in ("summary", "scores")]  # fmt: skip
    figure = draw("unlearning_scores", *tables, table("unlearning_tests"))
    assert len(figure.axes[0].collections) == methods + ends
    assert not any("No bar" in text for text in said(figure))


def test_the_strip_is_that_of_relabelled_models_and_retraining_is_in_it():
    figure = draw("unlearning_scores", shape="three seeds")
    tests, axes = table("unlearning_tests", "three seeds"), figure.axes[0]
    strips = [patch for patch in axes.patches if patch.get_height() == 1]
    means = tests.groupby("method")[["null_lower", "null_upper"]].mean()
    assert len(strips) == len(means)
    for strip in strips:
        assert strip.get_x() == pytest.approx(means["null_lower"].iloc[0])
        assert strip.get_x() + strip.get_width() == pytest.approx(means["null_upper"].iloc[0])


def test_several_seeds_have_a_mean_with_its_interval_and_a_marker_each():
    summary = table("unlearning_summary", "three seeds")
    figure = draw("unlearning_scores", shape="three seeds")
    quality = summary[summary["quantity"] == "forgetting_quality"]
    each = quality[quality["method"] == "finetune"]["mean"]
    lines = [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == len(SEEDS)]
    assert any(np.allclose(line.get_xdata(), each) for line in lines)
    expected = student(each)
    bars = [segment for bar in figure.axes[0].collections for segment in bar.get_segments()]
    assert any(np.allclose(segment[:, 0], expected[1:]) for segment in bars)
    assert any("mean over 3 seeds" in text for text in said(figure))


def test_a_curve_over_seeds_ends_where_the_first_seed_ends():
    first, second = pd.Series([0.0, 2.0], [0, 2]), pd.Series([0.0, 1.0, 3.0], [0, 1, 3])
    mean = seeds.mean_curve({0: first, 1: second})
    assert list(mean.index) == [0, 1, 2]
    assert list(mean) == [0, 1, 2]


def test_the_tradeoff_divides_by_what_retrained_models_have():
    scores = table("unlearning_scores")
    figure = draw("unlearning_tradeoff", scores)
    main = scores[scores["setup"] == "reuse-n-n"]
    names = ("retain_accuracy", "test_accuracy", "retain_probability", "test_probability")
    for axes, name in zip(figure.axes, names, strict=True):
        ratio = main[name] / main[f"{name}_retrained"]
        expected = ratio.groupby(main["method"]).mean().drop(["none", "retrain"])
        found = [y for _, y in markers(axes, style.SETUPS["reuse-n-n"].colour)]
        assert sorted(found) == pytest.approx(sorted(expected))
        notes = {text.get_text() for text in axes.findobj(Annotation)}
        assert notes >= {"1", "2", "3", "4", "5", "6", "none", "retrain"}


def test_histograms_hold_every_string_once():
    epsilons, scores = table("epsilons"), table("unlearning_scores")
    figure = draw("unlearning_epsilons", epsilons, scores)
    assert len(figure.axes) == 8
    for axes in figure.axes:
        assert sum(bar.get_height() for bar in axes.patches) == pytest.approx(1)
    nothing = epsilons[(epsilons["method"] == "none") & (epsilons["setup"] == "reuse-n-n")]
    last = figure.axes[-1].patches[-1]
    assert figure.axes[-1].get_title(loc="left") == "none"
    assert last.get_height() == pytest.approx((nothing["epsilon"] == 50).mean()) != 0
    assert last.get_x() > last_edge(32) == 4
    assert "ln(31) = 3.4" in " ".join(" ".join(said(figure)).split())


def test_histograms_are_in_the_order_of_their_medians():
    epsilons = table("epsilons").assign(epsilon=1.0)
    epsilons.loc[epsilons["method"] == "scrub", "epsilon"] = 0.0
    assert by_epsilon(epsilons)[0] == "scrub"


@pytest.mark.parametrize(("n_models", "edge"), [(2, 1), (4, 2), (32, 4), (512, 7)])
def test_from_where_on_there_are_no_points(n_models, edge):
    assert last_edge(n_models) == edge


def test_hard_strings_are_ranked_and_held_against_the_gap():
    hardness = table("unlearning_hardness").sample(frac=1, random_state=0)
    bars, scatter = draw("unlearning_hardness", hardness).axes
    heights = [bar.get_height() for bar in bars.patches]
    assert heights == sorted(hardness["epsilon_sum"])
    expected = spearman(hardness["loss_gap"], hardness["epsilon_sum"])
    assert scatter.get_title(loc="left") == f"rank correlation {expected:.2f}"
    flat = draw("unlearning_hardness", hardness.assign(loss_gap=0.5)).axes[1]
    assert flat.get_title(loc="left") == "rank correlation undefined"


def test_hard_strings_of_several_seeds_are_ranked_in_their_seed():
    hardness = table("unlearning_hardness", "three seeds")
    bars, scatter = draw("unlearning_hardness", hardness).axes
    expected = [
        height for seed in SEEDS for height in sorted(hardness[hardness["seed"] == seed]
                                                      ["epsilon_sum"])
    ]  # fmt: skip
    assert [bar.get_height() for bar in bars.patches] == expected
    assert [label.get_text() for label in bars.get_xticklabels()] == ["seed 0", "seed 1", "seed 2"]
    assert scatter.get_title(loc="left").count(",") == 2


def test_rank_correlation_is_spearmans():
    x = pd.Series([1.0, 2, 3, 4, np.nan])
    assert spearman(x, pd.Series([1.0, 10, 100, 1e6, 0])) == pytest.approx(1)
    assert spearman(x, -(x**3)) == pytest.approx(-1)
    assert spearman(pd.Series([1.0, 2, 3, 4]), pd.Series([2.0, 1, 4, 3])) == pytest.approx(0.6)
    assert np.isnan(spearman(x.head(2), x.head(2)))
    assert np.isnan(spearman(x, x * 0))


def test_agreement_is_symmetric_and_like_methods_are_neighbours():
    names = ["a1", "b1", "a2", "b2", "a3"]
    pairs = pd.DataFrame(itertools.combinations(names, 2), columns=["method", "other"])
    alike = pairs["method"].str[0] == pairs["other"].str[0]
    full = alike_together(matrix(pairs.assign(spearman=np.where(alike, 0.9, -0.5))))
    np.testing.assert_array_equal(full, full.T)
    np.testing.assert_array_equal(np.diag(full), 1)
    families = [name[0] for name in full.index]
    assert families in (["a", "a", "a", "b", "b"], ["b", "b", "a", "a", "a"])


def test_what_has_no_correlation_is_left_blank():
    pairs = table("unlearning_agreement")
    assert pairs["spearman"].isna().any()
    figure = draw("unlearning_agreement", pairs)
    assert said(figure).count("–") == 2 * pairs["spearman"].isna().sum()
    assert "−0.0" not in said(figure)


def test_metrics_are_held_against_the_forgetting_quality():
    metrics, summary = table("unlearning_metrics"), table("unlearning_summary")
    quality = summary[summary["quantity"] == "forgetting_quality"].set_index("method")["mean"]
    quality = quality.groupby("method").first()
    gap = metrics["metric"] == "accuracy_gap"
    metrics.loc[gap, "estimate"] = -metrics.loc[gap, "method"].map(quality)
    metrics.loc[metrics["metric"] == "mia_gap", ["estimate", "lower", "upper"]] = np.nan
    figure = draw("unlearning_metrics", metrics, summary)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0] == "accuracy gap (share)\nρ = −1.00"
    assert titles[2].endswith("ρ undefined")
    assert len(titles) == len(made.METRICS)


def test_a_metric_that_is_new_has_a_panel():
    metrics = table("unlearning_metrics")
    metrics["metric"] = metrics["metric"].replace("extraction", "a_new_one")
    figure = draw("unlearning_metrics", metrics, table("unlearning_summary"))
    assert figure.axes[-1].get_title(loc="left").startswith("a new one")


def test_metrics_of_several_seeds_are_each_against_their_own_quality():
    metrics = table("unlearning_metrics", "three seeds")
    summary = table("unlearning_summary", "three seeds")
    gap = metrics["metric"] == "accuracy_gap"
    axes = draw("unlearning_metrics", metrics, summary).axes[0]
    expected = metrics[gap].groupby("method")["estimate"].mean().drop(["none", "retrain"])
    found = [line for line in axes.get_lines() if line.get_marker() == "o"]
    heights = [y for line in found for y in line.get_ydata()]
    assert set(np.round(expected, 9)) <= set(np.round(heights, 9))
    dots = [line for line in axes.get_lines() if line.get_marker() == "."]
    assert len(dots) == gap.sum()


def test_effects_without_attackers_held_out():
    effects = table("unlearning_effects")
    kept = effects[~effects["effect"].isin(["attacker", "n"])]
    figure = draw("unlearning_effects", kept)
    assert "too few models\nto hold some out" in said(figure)
    assert len(figure.axes) == 3
    assert len(draw("unlearning_effects", effects[effects["effect"] == "attacker"]).axes) == 1


def test_curves_are_means_over_the_repetitions():
    effects = table("unlearning_effects")
    panel = draw("unlearning_effects", effects).axes[1]
    method = effects[(effects["effect"] == "n") & (effects["method"] == "finetune")]
    expected = method.groupby("level")["forgetting_quality"].mean()
    curves = [line for line in panel.get_lines() if len(line.get_xdata()) == len(expected)]
    assert any(np.allclose(line.get_ydata(), expected) for line in curves)
    assert len(curves) == 8


def test_the_first_setup_of_the_study_is_the_one_shown():
    scores = study.scores(ONE, 3, (0,), 3, ("bootstrap", "full"))
    assert any("Set-up bootstrap" in text for text in said(draw("unlearning_tradeoff", scores)))


@pytest.mark.parametrize("name", NAMES)
def test_the_two_ends_may_be_missing(name):
    frames = of_figure(name)
    if "method" not in frames[0].columns:
        pytest.skip("not by method")
    kept = [frame[~frame["method"].isin(ENDS)] if "method" in frame else frame for frame in frames]
    figure = draw(name, *kept)
    assert figure.axes or said(figure)


# Numbers and places


@given(
    places=st.lists(st.floats(0, 300), min_size=1, max_size=30).map(sorted),
    gap=st.floats(0.5, 20),
)
def test_places_are_spread_with_the_least_moves(places, gap):
    places = np.array(places)
    spread = point_labels.spread_out(places, gap)
    assert (np.diff(spread) >= gap - 1e-6).all()
    assert spread.sum() == pytest.approx(places.sum(), abs=1e-6)
    if (np.diff(places) >= gap).all():
        np.testing.assert_allclose(spread, places, atol=1e-9)


def test_numbers_do_not_cover_each_other_or_the_markers():
    figure = draw("unlearning_tradeoff")
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [note.get_window_extent().padded(-1) for note in axes.findobj(Annotation)]
        assert len(boxes) == 8
        for one, other in itertools.combinations(boxes, 2):
            assert not one.overlaps(other)
        for line in axes.get_lines():
            if line.get_marker() == "o":
                x, y = axes.transData.transform(line.get_xydata()[0])
                assert not any(box.contains(x, y) for box in boxes)


@pytest.mark.parametrize(
    ("highest", "end"), [(0.0, 0.2), (0.2, 0.2), (0.21, 0.4), (1.0, 1.0), (1.7, 1.0)]
)
def test_axes_of_scores_end_above_the_highest(highest, end):
    assert method_rows.unit_end(highest) == pytest.approx(end)


# From files


def test_render_stacks_models_and_reads_every_kind(tmp_path):
    figure, given = FIGURES["unlearning_scores"], {}
    for kind in figure.tables:
        given[kind.name] = [str(tmp_path / f"{kind.name}-{model}.parquet") for model in TWO]
        for path, model in zip(given[kind.name], TWO, strict=True):
            tables.write(path, study.TABLES[kind.name]([model], 3, (0,)), kind)
    svg = tmp_path / "unlearning_scores-L4.svg"
    render(figure, given, svg)
    for model in TWO:
        assert model in svg.read_text()
    empty = study.scores(ONE, 3, (0,)).head(0)
    tables.write(given["unlearning_scores"][1], empty, KINDS["unlearning_scores"])
    with pytest.raises(UserError, match=rf"{TWO[1]}\.parquet: has no rows to draw"):
        render(figure, given, svg)


def test_render_skips_tables_of_models_that_are_not_measured_while_they_run(tmp_path):
    figure, kind = FIGURES["unlearning_curves"], KINDS["unlearning_stages"]
    paths = [str(tmp_path / f"{part}.parquet") for part in ("first", "second")]
    stages = study.stages(ONE, 2, (0,))
    tables.write(paths[0], stages, kind)
    tables.write(paths[1], stages.head(0), kind)
    render(figure, {kind.name: paths}, tmp_path / "unlearning_curves-L4.svg")
    with pytest.raises(UserError, match="has no rows to draw"):
        render(figure, {kind.name: paths[1:]}, tmp_path / "unlearning_curves-L4.svg")
