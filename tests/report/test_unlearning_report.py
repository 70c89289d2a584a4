"""The part of the report on unlearning: its numbers and its words agree with its tables."""

import numpy as np
import pandas as pd
import pytest
import test_report as others
from scipy import stats

from helpers import unlearning_tables as made
from palimpsest import tables
from palimpsest.sections import KINDS
from palimpsest.unlearning import held_out_verdicts
from palimpsest.unlearning import report as unlearning

MODEL = ["pythia-1b-twin"]
TITLE = "What it can be made to forget"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report on tables of every kind, of two models."""
    given = {
        kind: pd.concat([make(MODEL, 6).assign(model=model, size=64) for model in ("m", "n")])
        for kind, make in made.TABLES.items()
    }
    path = tmp_path_factory.mktemp("report") / "report.html"
    return others.Page(others.rendered(path, **given))


def held(**methods):
    """Held-out forgetting quality by repetition, as `held_out_verdicts.in_words` takes it."""
    ends = {"none": [0.05, 0.1, 0.0], "retrain": [0.9, 1.0, 0.95]}
    return pd.DataFrame({**ends, **methods})


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ([0.35, 0.4, 0.3], "forgets in part"),
        ([0.9, 0.9, 0.95], "not told apart from retraining"),
        ([1.0, 1.1, 1.05], "not told apart from retraining"),
        ([0.06, 0.09, 0.05], "not told apart from doing nothing"),
        ([0.05, 0.1, 0.0], "not told apart from doing nothing"),
        ([0.0, 1.0, 0.7], "cannot tell: intervals too wide"),
        ([-0.15, -0.1, -0.2], "easier to tell from retraining than the original is"),
    ],
)
def test_words_follow_from_the_differences_to_both_ends(own, words):
    assert held_out_verdicts.in_words("own", held(own=own)) == words


def test_differences_are_paired_by_repetition():
    """What every method has by chance in a repetition does not hide a difference."""
    chance = np.array([0.0, 0.5, 0.2])
    found = pd.DataFrame(
        {"none": chance, "own": chance + 0.1, "retrain": chance + np.array([0.3, 0.31, 0.32])}
    )
    assert held_out_verdicts.in_words("own", found) == "forgets in part"
    unpaired = found.assign(own=found["own"].to_numpy()[[1, 2, 0]])
    assert held_out_verdicts.in_words("own", unpaired) == "cannot tell: intervals too wide"


def test_the_interval_of_differences_is_students():
    values = pd.Series([0.1, 0.4, 0.3, 0.35])
    found = held_out_verdicts.interval(values)
    expected = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert (found["lower"], found["upper"]) == pytest.approx(expected)
    assert held_out_verdicts.interval(pd.Series([0.1 + 0.2 - 0.3] * 3)) == dict.fromkeys(found, 0)


def test_without_models_held_out_or_repetitions_nothing_can_be_told():
    found = held(own=[0.3] * 3)
    assert held_out_verdicts.in_words("own", found.head(1)) == "cannot tell: one repetition"
    for missing in found.columns:
        words = held_out_verdicts.in_words("own", found.drop(columns=missing))
        assert words == "cannot tell: too few models"
    effects = made.effects(MODEL, 6)
    it = findings(effects=effects[effects["effect"] == "pool"])
    assert it["held_out"] is None
    for row in it["problems"][0]["methods"]:
        assert row["held_out"] == "–"
        assert row["end"] or row["words"].startswith("cannot tell: too few models")


def test_words_know_nothing_of_attackers_judged_where_they_were_fitted():
    """For every set-up, only held-out rows of the problem's own effects count."""
    effects = made.effects(MODEL, 6)
    other = effects["attacker"] == "same"
    changed = effects.assign(
        forgetting_quality=effects["forgetting_quality"].mask(other, 1 - effects["value"] / 40)
    )
    changed = pd.concat([changed, made.effects(["another"], 6).assign(forgetting_quality=0.5)])
    scores = made.scores(MODEL, 6, 3, ("bootstrap", "full"))
    words = [
        [row["words"] for row in it["problems"][0]["methods"]]
        for it in (findings(effects=effects), findings(effects=changed),
                   findings(made.summary(MODEL, 6, 3, ("bootstrap", "full")), scores))
    ]  # fmt: skip
    assert words[0] == words[1]
    assert sorted(words[0]) == sorted(words[2]), "the order alone is that of the set-up"
    assert len(set(words[0])) > 2


def findings(summary=None, scores=None, memorisation=None, effects=None):
    given = {
        "unlearning_summary": summary,
        "unlearning_scores": scores,
        "unlearning_memorisation": memorisation,
        "unlearning_effects": effects,
    }
    frames = [made.TABLES[kind](MODEL, 6) if frame is None else frame
              for kind, frame in given.items()]  # fmt: skip
    return unlearning.findings(*frames)


def test_methods_stand_by_final_score_and_the_slow_ones_last():
    summary, scores = made.summary(MODEL, 25), made.scores(MODEL, 25)
    (problem,) = findings(summary, scores)["problems"]
    names = [row["name"] for row in problem["methods"]]
    slow = set(scores.loc[~scores["within_cutoff"], "method"])
    assert names[0] == "retrain"
    assert names[-1] == "none"
    assert set(names[-1 - len(slow) : -1]) == slow
    main = summary[(summary["setup"] == "reuse-n-n") & (summary["quantity"] == "final_score")]
    final = main.set_index("method")["mean"]
    fast = names[1 : -1 - len(slow)]
    assert list(final[fast]) == sorted(final[fast], reverse=True)
    assert problem["best"] == fast[0]
    for row in problem["methods"]:
        assert ("too slow" in row["words"]) == (row["name"] in slow)


def test_accuracy_is_said_to_suffer_where_it_does():
    summary = made.summary(MODEL, 6)
    accuracy = (summary["quantity"] == "test_accuracy") & (summary["method"] == "scrub")
    for kept, suffers in ((0.94, True), (0.96, False)):
        changed = summary.copy()
        changed.loc[changed["quantity"] == "retain_accuracy", "mean"] = 0.8
        changed.loc[accuracy, "mean"] = 0.5 * kept
        (problem,) = findings(changed)["problems"]
        (row,) = [row for row in problem["methods"] if row["name"] == "scrub"]
        assert ("accuracy suffers" in row["words"]) == suffers
        assert row["kept"] == {"retain": "100\u00a0%", "test": f"{100 * kept:.0f}\u00a0%"}


def memorised(recollection, contextual):
    """One method, with before, after and retrained of two measures."""
    rows = zip(("recollection", "contextual"), (recollection, contextual), strict=True)
    return pd.DataFrame(
        {"method": "scrub", "measure": name, "evidence": "constant", "before": values[0],
         "after": values[1], "retrained": values[2]} for name, values in rows
    )  # fmt: skip


def test_what_is_left_is_told_in_one_sentence():
    first, best, way = unlearning.told(memorised((0.8, 0.2, 0.1), (0.6, 0.6, 0.2)), "scrub")
    assert first.replace("\u00a0", " ") == (
        "Under its only method, recollection of the forget strings falls from 80 % to 20 %, while "
        "contextual memorisation stays at 60 %; retrained models have 10 % and 20 %."
    )
    assert best.startswith("Under scrub, the best of them by final score")
    assert "go 86\u00a0% by recollection and 0\u00a0% by contextual memorisation" in way


def test_memorisation_may_rise():
    first, *_ = unlearning.told(memorised((0.2, 0.3, 0.1), (0.1, 0.2, 0.3)), None)
    assert "recollection of the forget strings rises from 20\u00a0% to 30\u00a0%" in first


def test_where_there_is_no_way_to_go_no_share_of_it_is_told():
    found = unlearning.told(memorised((0.8, 0.2, 0.1), (0.2, 0.1, 0.2)), None)
    assert len(found) == 1
    rows = unlearning.measure_rows(memorised((0.8, 0.2, 0.1), (0.2, 0.1, 0.2)), None)
    assert [row["removed"] for row in rows] == ["86\u00a0%", "–"]


def test_a_measure_that_found_nothing_before_has_no_answer():
    """Nearly nothing is nothing: 0.4 % would be shown as 0 %."""
    found = unlearning.told(memorised((0.004, 0.0, 0.0), (0.9, 0.6, 0.3)), "scrub")
    first, second, third, way = (text.replace("\u00a0", " ") for text in found)
    assert first == (
        "Recollection cannot answer here: the original models show it on 0 % of the forget "
        "strings, so there was nothing to remove."
    )
    assert second == (
        "Under its only method, contextual memorisation of the forget strings falls from 90 % to "
        "60 %; retrained models have 30 %."
    )
    assert third.startswith("Under scrub")
    assert way.endswith("the methods go 50 % by contextual memorisation, on average.")
    rows = unlearning.measure_rows(memorised((0.004, 0.0, 0.0), (0.9, 0.6, 0.3)), "scrub")
    assert [row["removed"] for row in rows] == ["–", "50\u00a0%"]
    neither = unlearning.told(memorised((0.0, 0.1, 0.0), (0.0, 0.0, 0.0)), "scrub")
    assert [text.split(" here")[0] for text in neither] == [
        "Recollection cannot answer", "Contextual memorisation cannot answer"
    ]  # fmt: skip


def test_without_both_measures_nothing_is_told():
    only = memorised((0.8, 0.2, 0.1), (0.6, 0.6, 0.2)).head(1)
    assert unlearning.told(only, None) == []


@pytest.mark.parametrize(
    ("n_models", "largest", "edge"), [(32, "3.43", 4), (512, "6.24", 7), (2, "0", 1)]
)
def test_the_limit_is_computed_from_the_number_of_models(n_models, largest, edge):
    it = findings(scores=made.scores(MODEL, 6).assign(n_models=n_models))
    assert (it["largest"], it["no_points_from"]) == (largest, edge)


def test_where_nothing_was_unlearned_there_is_no_chapter(tmp_path):
    text = others.rendered(tmp_path / "report.html")
    assert TITLE not in text
    assert "Forget set" not in text


def test_the_chapter_is_whole(page):
    assert page.text.count(TITLE) == 2, "in the contents, and as a heading"
    assert "unlearning" in page.ids
    assert "Forget set" in page.text
    for model in ("m", "n"):
        assert f"Methods on language L4, model {model}, by final score" in page.text
        assert f"Language L4, model {model}." in page.text
    assert (
        "about ln(32 − 1) = 3.43, and a string whose epsilon is 4 or more has no points"
        in page.text
    )
    assert "The repetitions of the set-up reuse-n-n share trained models" in page.text


def test_the_numbers_are_those_of_the_summary(page):
    summary = made.summary(MODEL, 6)
    main = summary[(summary["setup"] == "reuse-n-n") & (summary["method"] == "finetune")]
    for quantity in ("forgetting_quality", "final_score"):
        row = main[main["quantity"] == quantity].iloc[0]
        shown = f"{row['mean']:.3f} [{row['lower']:.3f}, {row['upper']:.3f}]".replace("-", "−")
        assert page.text.count(shown) >= 2, "once for each model"


def test_one_repetition_has_no_brackets():
    it = findings(
        made.summary(MODEL, 6, 1), made.scores(MODEL, 6, 1), effects=made.effects(MODEL, 6, 1)
    )
    for row in it["problems"][0]["methods"]:
        assert "[" not in row["quality"] + row["held_out"]
        assert row["end"] or row["words"].startswith("cannot tell: one repetition")


def test_the_ends_have_no_brackets_where_nothing_is_drawn_anew():
    for setup, brackets in (("reuse-n-n", False), ("bootstrap", True)):
        it = findings(made.summary(MODEL, 6, 3, (setup,)), made.scores(MODEL, 6, 3, (setup,)))
        for row in it["problems"][0]["methods"]:
            assert ("[" in row["quality"]) == (brackets or not row["end"])
            assert "[" in row["held_out"], "whose splits are drawn anew under any set-up"


def test_the_held_out_quality_is_that_of_the_effects(page):
    effects = made.effects(MODEL, 6)
    effects = effects[(effects["effect"] == "attacker") & (effects["attacker"] == "held-out")]
    for method in ("finetune", "retrain", "none"):
        mean = effects.loc[effects["method"] == method, "forgetting_quality"].mean()
        assert page.text.count(f"{mean:.3f} [") >= 2, "once for each model"
    assert "chosen on 16 models of each kind and judged on 16 others" in page.text


def test_the_settings_are_said_to_be_tuned_in_view_of_the_evaluation(page):
    assert "tuned on a twin by this same evaluation" in page.text


def test_memorisation_may_be_missing():
    it = findings(memorisation=tables.read_all([], KINDS["unlearning_memorisation"]))
    assert it["problems"][0]["memorised"] == []
    assert it["problems"][0]["told"] == []
