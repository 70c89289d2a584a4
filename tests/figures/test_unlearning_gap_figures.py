"""What must hold of the figures of gaps, memorisation, stages, settings and single models.

How these figures look is tested with all figures of unlearning.
"""

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Annotation
from test_unlearning_figures import ONE, SEEDS, draw, is_second, markers, of_figure, said, table

from helpers import unlearning_study as study
from helpers import unlearning_tables as made
from palimpsest.figures import style
from palimpsest.unlearning.figures.confidences import strings_of
from palimpsest.unlearning.figures.unlearning_bootstrap import halves
from palimpsest.unlearning.figures.unlearning_curves import progress
from palimpsest.unlearning.figures.unlearning_gaps import HIGHEST, LOWEST
from palimpsest.unlearning.figures.unlearning_relearning import against_rounded
from palimpsest.unlearning.figures.unlearning_stitching import stitched
from palimpsest.unlearning.figures.unlearning_tuning import undominated, unlearning_tuning

# How far methods go


def test_methods_are_sorted_by_the_gap_closed_between_the_two_ends():
    gaps, summary = of_figure("unlearning_gaps", "three seeds")
    axes = draw("unlearning_gaps", gaps, summary).axes[0]
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert (rows[0], rows[-1]) == ("retrain (the ideal)", "none (the original)")
    forget = summary[summary["string_role"] == "forget"].groupby("method")["share"].mean()
    expected = forget.drop(["none", "retrain"]).sort_values(ascending=False)
    assert rows[1:-1] == list(expected.index)
    diamonds = [line.get_xdata()[0] for line in axes.get_lines() if line.get_marker() == "D"]
    inside = forget[(forget >= LOWEST) & (forget <= HIGHEST)]
    assert sorted(diamonds) == pytest.approx(sorted(inside))


def test_every_string_is_a_dot_or_counted_at_the_edge():
    gaps, summary = of_figure("unlearning_gaps", "three seeds")
    axes = draw("unlearning_gaps", gaps, summary).axes[0]
    known = gaps[(gaps["string_role"] == "forget") & gaps["share"].notna()]
    beyond = (known["share"] > HIGHEST) | (known["share"] < LOWEST)
    dots = sum(len(line.get_xdata()) for line in axes.get_lines() if line.get_marker() == ".")
    counted = [text.get_text() for text in axes.findobj(Annotation)]
    assert dots == (~beyond).sum()
    assert sum(int(text) for text in counted if text.isdigit()) == beyond.sum() > 0
    assert any("a clear gap (3)" in text.replace("\n", " ") for text in said(axes.figure.figure))


def test_placebos_are_hollow():
    axes = draw("unlearning_gaps").axes[0]
    hollow = [line for line in axes.get_lines() if line.get_markerfacecolor() == "white"]
    assert len(hollow) == 8


# What happens while a method runs, and afterwards


def test_the_gap_is_closed_by_the_loss_relative_to_start_and_retraining():
    stages = table("unlearning_stages", "three seeds")
    found = progress(stages)
    assert (
        found.loc[found["passes"] == 0, ["gap", "retain", "unseen"]].round(9).nunique() == 1
    ).all()
    means = stages.groupby(["method", "seed", "stage", "passes"])["forget_loss"].mean()
    start = means["finetune", 1, "unlearning", 0]
    goal = means["retrain", 1, "relearning", 0]
    expected = (means["finetune", 1, "unlearning", 10] - start) / (goal - start)
    last = found[(found["method"] == "finetune") & (found["seed"] == 1) & (found["passes"] == 10)]
    assert last["gap"].iloc[0] == pytest.approx(expected)
    assert set(found["method"]) == set(made.NAMES[:6])


def test_curves_have_a_panel_per_method_with_its_seeds_and_phases():
    figure = draw("unlearning_curves", shape="three seeds")
    first = [axes for axes in figure.axes if not is_second(axes)]
    assert [axes.get_title(loc="left") for axes in first] == list(made.NAMES[:6])
    curves = [line for line in first[0].get_lines() if len(line.get_xdata()) == 11]
    assert len(curves) == len(SEEDS) + 1
    ends = [line.get_xdata()[0] for line in first[0].get_lines()
            if line.get_xdata()[0] == line.get_xdata()[-1]]  # fmt: skip
    assert ends == [4, 10]


def test_without_measured_models_figures_of_stages_say_what_to_set():
    stages = table("unlearning_stages")
    for name, stage in (("curves", "unlearning"), ("relearning", "relearning")):
        figure = draw(f"unlearning_{name}", stages[stages["stage"] != stage])
        assert not figure.axes
        assert any("set `unlearning/" in text for text in said(figure))
    assert draw("unlearning_relearning", stages[stages["stage"] != "4-bit"]).axes


def test_rounded_weights_are_held_against_full_weights():
    stages = table("unlearning_stages", "three seeds")
    found = against_rounded(stages).set_index(["method", "seed"])
    means = stages.groupby(["method", "seed", "stage", "passes"])["forget_loss"].mean()
    assert found.loc[("salun", 1), "rounded"] == pytest.approx(means["salun", 1, "4-bit", 0])
    assert found.loc[("salun", 1), "full"] == pytest.approx(means["salun", 1, "relearning", 0])
    without = against_rounded(stages[stages["stage"] != "relearning"])
    last = without.set_index(["method", "seed"]).loc[("salun", 1), "full"]
    assert last == pytest.approx(means["salun", 1, "unlearning", 10])


# Settings, single models and stitched methods


def test_settings_have_their_trade_off_and_the_chosen_one_is_filled():
    tuning = study.tuning(6)
    figure = unlearning_tuning(tuning)
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(made.NAMES[:6])
    for axes, (_, points) in zip(figure.axes, tuning.groupby("method", sort=False), strict=True):
        drawn = sum(len(line.get_xdata()) for line in axes.get_lines()
                    if line.get_marker() in ("o", "x"))  # fmt: skip
        assert drawn == len(points) == 16
        chosen = points[points["chosen"]].iloc[0]
        filled = [line for line in axes.get_lines()
                  if line.get_marker() == "o" and line.get_markersize() == 5]  # fmt: skip
        assert filled[0].get_xdata()[0] == pytest.approx(chosen["retain_ratio"])


def test_another_problem_has_a_hollow_and_a_filled_marker_for_every_method():
    table = study.transfer(["m"], 4, [0, 1, 2])
    figure = draw("unlearning_transfer", table)
    (axes,) = figure.axes
    means = table.groupby(["method", "tuning"])["final_score"].mean()
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert sorted(names) == sorted(made.NAMES[:4])
    large = [line for line in axes.get_lines() if line.get_markersize() == pytest.approx(4.2)]
    found = {
        (names[round(line.get_ydata()[0])], line.get_markerfacecolor() == "white"): (
            line.get_xdata()[0]
        )
        for line in large
    }
    expected = {(method, way == "direct"): mean for (method, way), mean in means.items()}
    assert found == pytest.approx(expected)


def test_the_trade_off_has_no_setting_that_another_beats():
    damage = np.array([1.0, 1.1, 1.2, 1.3, np.inf, 1.1])
    distance = np.array([0.9, 0.5, 0.6, 0.2, 0.0, 0.7])
    assert list(undominated(damage, distance)) == [0, 1, 3]
    assert not len(undominated(np.array([np.inf]), np.array([1.0])))


def test_histograms_of_confidences_have_a_row_per_string_and_a_column_per_method():
    figure = draw("unlearning_histograms", shape="three seeds")
    assert len(figure.axes) == 9 * 8
    names = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()]
    assert names[:3] == ["seed 0\nhardest", "seed 0\nmedian", "seed 0\neasiest"]
    for axes in figure.axes:
        assert [patch.get_data().values.sum() for patch in axes.patches] == pytest.approx([1, 1])
    assert len(draw("unlearning_histograms", shape="all methods, all set-ups").axes) == 27 * 3


def test_the_hardest_string_is_the_first():
    confidences, hardness = of_figure("unlearning_histograms")
    found = strings_of(confidences, hardness, ONE[0])
    sums = hardness.set_index("string_id")["epsilon_sum"]
    values = [sums[string_id] for _, string_id, _ in found]
    assert values == sorted(sums[confidences["string_id"].unique()], reverse=True)


def test_halves_are_disjoint_and_bootstrap_samples_are_of_one_half():
    first, second = halves(np.arange(33), 0)
    assert len(first) == len(second) == 16
    assert not set(first) & set(second)
    figure = draw("unlearning_bootstrap")
    assert len(figure.axes) == 8
    for axes in figure.axes:
        assert [patch.get_data().values.sum() for patch in axes.patches] == pytest.approx([1, 1])


def test_stitched_methods_stand_above_their_two_parts():
    names = ["none", "fanchuan", "seif", "kookmin", "fanchuan-seif", "l1-sparse", "retrain"]
    assert stitched(pd.Series(names)) == [("fanchuan-seif", "fanchuan", "seif")]
    summary = table("unlearning_summary", "three seeds")
    renamed = {"gradient-ascent": "seif", "finetune": "fanchuan", "scrub": "fanchuan-seif"}
    summary["method"] = summary["method"].replace(renamed)
    figure = draw("unlearning_stitching", summary)
    assert [label.get_text().strip() for label in figure.axes[0].get_yticklabels()] == [
        "fanchuan-seif", "fanchuan", "seif",
    ]  # fmt: skip
    each = summary[(summary["quantity"] == "forgetting_quality")]
    expected = each[each["method"] == "fanchuan-seif"]["mean"].mean()
    assert expected in [pytest.approx(x) for x, _ in markers(
        figure.axes[0], style.SETUPS["reuse-n-n"].colour)]  # fmt: skip


def test_without_stitched_methods_the_figure_says_which_to_add():
    figure = draw("unlearning_stitching")
    assert not figure.axes
    assert any("fanchuan-seif" in text for text in said(figure))


# Memorisation


def test_memorisation_has_the_shares_of_the_strings_asked():
    memorisation = table("unlearning_memorisation", "three seeds")
    figure = draw("unlearning_memorisation", memorisation)
    measures = style.measures_in(memorisation["measure"])
    titles = [axes.get_title(loc="left").replace("\n", " ") for axes in figure.axes]
    assert titles[0] == "recollection 12 of 27 asked"
    assert titles[measures.index("contextual")] == "contextual 0 of 27 asked"
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    bars = {(round(bar.get_y() + bar.get_height() / 2, 2), round(bar.get_height(), 2)):
            bar.get_width() for bar in figure.axes[0].patches}  # fmt: skip
    asked = memorisation[memorisation["answerable"] & (memorisation["measure"] == "recollection")]
    means = asked.groupby(["string_role", "method"])[["before", "after"]].mean()
    for method in made.NAMES[:6]:
        y = rows.index(method)
        assert bars[y, 0.62] == pytest.approx(means.loc[("forget", method), "before"])
        assert bars[y, 0.34] == pytest.approx(means.loc[("forget", method), "after"])
        assert bars[y + 0.4, 0.13] == pytest.approx(means.loc[("placebo", method), "after"])


def test_a_measure_without_strings_says_so():
    figure = draw("unlearning_memorisation")
    texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert texts.count(["no string asked"]) == 1
    none = table("unlearning_memorisation").assign(answerable=False)
    assert said(draw("unlearning_memorisation", none)).count("no string asked") == 5


def test_two_kinds_of_evidence_have_a_panel_each():
    memorisation = table("unlearning_memorisation")
    other = memorisation[memorisation["measure"] == "bayes"].assign(evidence="same-frequency")
    figure = draw("unlearning_memorisation", pd.concat([memorisation, other]))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert {"Bayes\nlanguage\n9 of 9 asked", "Bayes\nsame-frequency\n9 of 9 asked"} <= set(titles)
