"""The part of the report on unlearning: its numbers and its words agree with its tables."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import test_report as others
from scipy import stats

from helpers import unlearning_problems as made
from helpers.unlearning_problems import ends, method
from palimpsest import tables
from palimpsest.sections import KINDS, SECTIONS
from palimpsest.statistics import Interval
from palimpsest.unlearning import opening_sentences
from palimpsest.unlearning import report as unlearning
from palimpsest.unlearning.evaluate import residual_memorisation, verdicts

TITLE = "What it can be made to forget"
SEVERAL = {
    "npo": method([0.9, 0.95, 0.88], bounded=2),
    "scrub": method([0.4, 0.5, 0.45], [0.0025, 0.3, 0.0025], [0.0025, 0.4, 0.0025], bounded=5),
    "sebastian": method([3.1, 3.5, 3.3], placebo=0.9, kept=0.8),
    "finetune": method([0.85, 0.9, 0.95], [0.4, 0.2, 0.6], [0.5, 0.3, 0.7], steps=0.5),
}


def changed(table, rows, **values):
    """The table with other values in the rows that are chosen."""
    return table.assign(**{name: table[name].mask(rows, value) for name, value in values.items()})


def findings(given=None, n_models=32, **replaced):
    """The findings on the tables of some methods and the two ends."""
    methods = {**ends(), **(SEVERAL if given is None else given)}
    frames = {**made.tables(methods, n_models), **replaced}
    return unlearning.findings(*(frames[kind.name] for kind in unlearning.KINDS))


def said(found):
    """The opening of the only group, as one text with plain spaces."""
    (group,) = found["groups"]
    return " ".join(group["opening"]).replace("\u00a0", " ")


def rows_of(found):
    (group,) = found["groups"]
    return {row["name"]: row for row in group["methods"]}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report on three problems of two models."""
    given = made.tables({**ends(), **SEVERAL})
    given = {
        kind: pd.concat([table.assign(model=name) for name in ("m", "n")], ignore_index=True)
        for kind, table in given.items()
    }
    path = tmp_path_factory.mktemp("report") / "report.html"
    return others.Page(others.rendered(path, **given))


# The opening


def test_retraining_must_not_be_told_from_retraining():
    text = said(findings())
    assert (
        "Retraining is not told from retraining (p = 0.31, 0.77 and 0.64 by the forgetting "
        "quality, 0.5, 0.5 and 0.5 by the joint attacker), as it must be. It closes 101 % [94, 107]"
    ) in text
    assert (
        "Doing nothing is told from retraining in every problem (p at most 0.005, the smallest"
        in text
    )


def test_retraining_that_is_told_is_an_alarm():
    wrong = {**ends(), "retrain": method([1.0] * 3, [0.0025, 0.5, 0.5], 0.5, steps=1.0)}
    text = said(findings(wrong))
    assert "Retraining is told from retraining in 1 of 3 problems" in text
    assert "Trust no other test" in text


def test_without_retraining_or_doing_nothing_no_end_is_claimed():
    given = made.tables({"npo": method([0.9, 0.95, 0.88])})
    found = unlearning.findings(*(given[kind.name] for kind in unlearning.KINDS))
    text = said(found)
    assert "Retraining itself was not tested" in text
    assert "Doing nothing" not in text
    assert list(rows_of(found)) == ["npo"]


def test_methods_are_counted_by_where_they_are_told():
    text = said(findings())
    assert (
        "2 of 4 methods are told from retraining in every problem (p at most 0.01, corrected over "
        "the methods; before that, 0.005, the smallest possible)."
    ) in text
    assert "Without this correction: scrub in 2 of 3 problems." in text
    assert "Not told in any problem: finetune (smallest p = 0.4)" in text


def test_everything_or_nothing_may_be_told():
    every = {name: method([0.5, 0.6, 0.7]) for name in ("a", "b")}
    assert "2 of 2 methods are told from retraining in every problem" in said(findings(every))
    none = {name: method([0.5, 0.6, 0.7], 0.4, 0.5) for name in ("a", "b")}
    text = said(findings(none))
    assert "No method is told from retraining in every problem (p = 0.8 or more" in text
    assert "Not told in any problem: a and b (smallest p = 0.8)" in text


def test_where_doing_nothing_is_not_told_the_tests_are_weak():
    weak = {**ends(), "none": method([0.0] * 3, 0.3, 0.4, steps=0.0)}
    text = said(findings(weak))
    assert "Doing nothing is told from retraining in 0 of 3 problems" in text
    assert "means little there" in text


def test_with_many_methods_those_named_as_told_are_rarely_wrong():
    """Simulated: 20 methods that differ from retraining in two problems, but not in the third.

    No method may be named. This is the hardest case, because only one p-value of each protects.
    """
    chance = np.random.default_rng(0)
    wrong = []
    for _ in range(1000):
        shared, own = chance.normal(), chance.normal(size=20)
        third = stats.norm.sf(0.7 * shared + np.sqrt(0.51) * own)
        tested = [
            SimpleNamespace(name=str(i), p_values=np.array([0.0025, p, 0.0025]))
            for i, p in enumerate(third)
        ]
        wrong.append(bool(opening_sentences.told_in_every(tested)))
    assert 0 < np.mean(wrong) <= 0.06


def test_the_nearest_method_has_its_interval_its_spread_and_its_placebo():
    text = said(findings())
    expected = stats.t.interval(0.95, 2, np.mean([0.9, 0.95, 0.88]), stats.sem([0.9, 0.95, 0.88]))
    share = f"91 % [{100 * expected[0]:.0f}, {100 * expected[1]:.0f}]"
    assert f"The method nearest to retraining, npo, closes {share} of the gap" in text
    assert (
        "over the 27 of 30 forget strings with a clear gap, the middle half of the shares is 71 % "
        "to 111 % (retraining: 81 % to 121 %). On placebos, it closes 20 % [20, 20]; the "
        "difference is 71 %"
    ) in text
    assert "more to the forget strings than to others" in text


def test_placebos_are_compared_with_those_of_retraining():
    text = said(findings())
    assert (
        "On placebos, retraining closes 20 % [15, 25] of the gap, because retrained models had "
        "fewer strings and steps; this share, and not 0 %, is the goal there."
    ) in text
    assert (
        "Its share on placebos minus that of retraining is 0 % [−5, 5], so no more damage than "
        "by retraining is shown."
    ) in text
    given = {"same": method([0.8] * 3), "none of it": method([0.85] * 3, placebo=0.0)}
    found = findings(given)
    assert found["groups"][0]["nearest"] == "same", "its placebos are those of retraining"
    harm = findings({"harm": method([0.9, 1.0, 1.1], placebo=[0.5, 0.52, 0.48])})
    assert "so it damages unseen strings." in said(harm)
    assert rows_of(harm)["harm"]["words"].endswith("damages unseen strings")


def test_without_retraining_placebos_are_compared_with_nothing():
    given = made.tables({"npo": method([0.9, 0.95, 0.88], placebo=[0.18, 0.22, 0.2])})
    text = said(unlearning.findings(*(given[kind.name] for kind in unlearning.KINDS)))
    assert "so methods are compared with 0 % there." in text
    assert "Its share on placebos minus 0 % is 20 % [15, 25], so it damages" in text


def test_one_problem_compares_placebos_by_the_intervals_of_both_sides():
    text = said(findings({**ends(1), "npo": method([0.9])}))
    reach = 100 * np.hypot(0.1, 0.1)
    assert f"minus that of retraining is 2 % [−{reach - 2:.0f}, {reach + 2:.0f}]" in text


def test_general_damage_is_not_called_forgetting():
    """A method that closes the whole gap everywhere is neither near nor said to forget."""
    given = {"harm": method([1.0, 1.02, 0.98], placebo=[0.9, 1.1, 1.0]), "mild": method([0.6] * 3)}
    found = findings(given)
    assert found["groups"][0]["nearest"] == "mild"
    assert rows_of(found)["harm"]["words"] == (
        "not told from general damage; damages unseen strings"
    )
    assert "cannot be told from general damage" in said(findings({"harm": given["harm"]}))


def test_overshooting_and_lost_utility_are_said():
    text = said(findings())
    assert (
        "1 of 4 methods overshot, by the whole interval: sebastian closes 330 % [280, 380], and"
        in text
    )
    assert "and 90 % [90, 90] on placebos" in text
    assert "1 of 4 methods kept less than 95 % of the probability" in text
    assert "retained or test strings; the least, sebastian, 80 % [80, 80]." in text
    text = said(findings({"npo": SEVERAL["npo"]}))
    assert "No method overshoots by its whole interval." in text
    assert "every method keeps 95 % or more" in text
    assert (
        rows_of(findings())["sebastian"]["words"]
        == "overshoots; damages unseen strings; loses retained and test strings"
    )


def test_bounds_stand_beside_those_of_the_ends():
    text = said(findings())
    assert (
        "the 95 % lower bound of epsilon is above 0 for 6 of 30 forget strings, against 24 of 30 "
        "for doing nothing and 0 of 30 for retraining; "
    ) in text


def test_what_remains_stands_beside_retraining_and_placebos():
    text = said(findings())
    assert "What remains: after npo, 13 % [" in text
    assert "of the forget strings are still memorised (counterfactual); before, it was 86 %" in text
    assert "retrained models have 6 % [6, 6], where 5 % are meant" in text
    assert "On placebos, the shares are 4 % [4, 4] after, 5 % [5, 5] before" in text


@pytest.mark.parametrize(
    ("excess", "words"),
    [
        (Interval(0.1, 0.05, 0.15), "The excess over retraining is 10 % [5, 15]."),
        (Interval(0.1, -0.05, 0.25), "10 % [−5, 25], so it may be none"),
        (Interval(-0.1, -0.15, -0.05), "That is less than retraining has"),
        (Interval(0.1, np.nan, np.nan), "10 %, without an interval"),
    ],
)
def test_an_excess_is_only_claimed_with_an_interval(excess, words):
    assert words in opening_sentences.about_excess(excess).replace("\u00a0", " ")


# What cannot be said


def test_one_problem_says_nothing_of_other_forget_sets():
    found = findings({**ends(1), "npo": method([0.9], bounded=2)})
    text = said(found)
    assert "There is only one problem, so nothing can be said of other forget sets" in text
    assert "told from retraining in the only problem" in text
    assert "npo, closes 90 % [80, 100] of the gap" in text, "the interval of the table"
    assert "the difference is 70 % [56, 84]" in text, "from the intervals of both sides"
    assert "The excess over retraining is 8 %, without an interval." in text
    assert "[" not in rows_of(found)["npo"]["relative_quality"]


def test_intervals_speak_of_other_forget_sets_only_if_there_are_some():
    """A file or the split of records gives all seeds the same strings to forget."""
    kind = "unlearning_memorisation"
    drawn = made.tables({**ends(), **SEVERAL})[kind]
    drawn["string_id"] = drawn["seed"].astype(str) + drawn["string_id"].str[1:]
    assert "so they speak of other forget sets, too." in said(findings(**{kind: drawn}))
    given = said(findings())
    assert "There are three problems, all with the same forget set, and each with" in given
    assert "so they speak of other trainings, and not of other forget sets." in given


def test_without_a_clear_gap_no_share_is_given():
    gapless = {name: {**each, "shares": [np.nan] * 3, "placebo": np.nan}
               for name, each in {**ends(), **SEVERAL}.items()}  # fmt: skip
    found = findings(gapless)
    assert "No share of the gap can be given" in said(found)
    assert "nearest to retraining" not in said(found)
    row = rows_of(found)["npo"]
    assert (row["closed"], row["placebo"]) == ("–", "–")
    assert row["words"] == "cannot tell: no clear gap"


def test_problems_without_a_clear_gap_do_not_count():
    found = findings({"npo": method([0.9, np.nan, 0.8], placebo=[0.0, np.nan, 0.1])})
    assert rows_of(found)["npo"]["closed"].startswith("85\u00a0% [")


def test_without_placebos_forgetting_is_not_claimed():
    given = {name: {**each, "placebo": None} for name, each in {**ends(), **SEVERAL}.items()}
    found = findings(given)
    assert "There are no placebos, so forgetting cannot be told from general damage." in said(found)
    assert "cannot tell from general damage" in rows_of(found)["npo"]["words"]
    assert not any("(" in row["retrained"] for row in found["groups"][0]["memorised"])


def test_few_models_cannot_tell_anything():
    assert not opening_sentences.can_tell(4)
    assert opening_sentences.can_tell(5)
    found = findings(n_models=4)
    assert "with 4 models of each kind, the smallest possible p-value is 0.0286" in said(found)
    assert "told from retraining" not in said(found)
    assert {row["told"] for row in rows_of(found).values()} == {"cannot tell"}
    assert "smallest possible p-value" not in said(findings())


def test_methods_beyond_the_cutoff_are_never_the_nearest():
    found = findings({"slow": method([1.0, 1.01, 0.99], steps=0.5), "fast": method([0.5] * 3)})
    assert found["groups"][0]["nearest"] == "fast"
    assert list(rows_of(found)) == ["retrain", "fast", "slow", "none"]
    assert rows_of(found)["slow"]["words"].endswith("too slow to count")
    assert "No method is within the cut-off" in said(
        findings({"slow": method([1.0] * 3, steps=0.5)})
    )


def test_tables_may_be_missing():
    absent = {
        kind: tables.read_all([], KINDS[kind])
        for kind in ("unlearning_tests", "unlearning_gap_summary", "unlearning_memorisation")
    }
    found = findings(**absent)
    assert found["groups"][0]["memorised"] == []
    row = rows_of(found)["npo"]
    assert (row["told"], row["relative_quality"], row["closed"]) == ("–",) * 3
    assert row["kept"]["retain"] != "–"


# The tables


def test_methods_stand_by_their_distance_from_retraining():
    assert list(rows_of(findings())) == ["retrain", "npo", "scrub", "sebastian", "finetune", "none"]


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ([0.5, 0.55, 0.6], "forgets in part"),
        ([0.9, 1.0, 1.1], "forgets; the interval reaches retraining"),
        ([2.0, 2.1, 2.2], "overshoots"),
        ([-0.5, 0.5, 0.6], "no forgetting shown"),
        ([-0.5, -0.55, -0.6], "knows the strings better than before"),
    ],
)
def test_words_are_no_stronger_than_intervals(shares, words):
    assert rows_of(findings({"own": method(shares)}))["own"]["words"] == words


def test_words_agree_with_rounded_numbers():
    """An upper end of 0.997 is shown as 100 %, so nothing is said that needs less than 100 %."""
    row = rows_of(findings({"own": method([0.9, 0.95, 0.88])}))["own"]
    assert row["closed"] == "91\u00a0% [82, 100]"
    assert row["words"] == "forgets; the interval reaches retraining"
    assert opening_sentences.in_percent(Interval(-0.001, -0.004, 0.2)) == "0\u00a0% [0, 20]"
    assert "may be none" in opening_sentences.about_excess(Interval(0.1, 0.004, 0.2))


def test_retraining_should_close_the_whole_gap():
    assert opening_sentences.about_goal(Interval(np.nan, np.nan, np.nan)) == ""
    assert "it does not" in opening_sentences.about_goal(Interval(0.8, 0.7, 0.9))
    assert "is right" in opening_sentences.about_goal(Interval(0.8, np.nan, np.nan))


def test_rows_have_the_numbers_of_the_tables():
    row = rows_of(findings())["scrub"]
    assert row["told"] == "2 of 3 (0.005)"
    assert row["relative_quality"] == "0.450 [0.326, 0.574]"
    assert row["kept"] == {"retain": "100\u00a0% [100, 100]", "test": "100\u00a0% [100, 100]"}
    assert row["steps"] == "10\u00a0%"


def test_a_measure_only_counts_answerable_strings():
    (group,) = findings()["groups"]
    rows = {row["measure"]: row for row in group["memorised"]}
    assert rows["recollection"]["answerable"].startswith("15 of 30 (")
    assert rows["contextual memorisation"]["answerable"].startswith("0 of 30 (")
    assert rows["contextual memorisation"]["after"].startswith("– (")
    assert rows["counterfactual memorisation"]["retrained"].startswith("6\u00a0% (")
    after = rows["counterfactual memorisation"]["after"]
    assert after == "21\u00a0% [6, 50] (4\u00a0% [4, 4])"


def test_a_measure_that_finds_no_more_than_in_retrained_models_has_no_answer():
    (group,) = findings()["groups"]
    assert group["nothing"] == ["recollection"]
    assert residual_memorisation.shows_more(Interval(0.2, 0.1, 0.3))
    assert not residual_memorisation.shows_more(Interval(0.2, -0.1, 0.5))
    assert not residual_memorisation.shows_more(Interval(0.004, np.nan, np.nan))


def test_the_interval_of_a_difference_is_that_of_independent_sides():
    one, other = Interval(0.5, 0.2, 0.8), Interval(0.1, -0.3, 0.5)
    assert verdicts.difference(one, other) == pytest.approx((0.4, -0.1, 0.9))


@pytest.mark.parametrize(
    ("n_models", "largest", "bound"),
    [(32, "3.43", "2.1"), (512, "6.24", "4.93"), (2, "0", "0")],
)
def test_the_limits_are_computed_from_the_number_of_models(n_models, largest, bound):
    it = findings(n_models=n_models)
    assert (it["largest"], it["largest_bound"]) == (largest, bound)


def test_the_limits_of_the_tests_are_from_the_models_of_the_tests():
    """The scores are of the first set-up, and the tests of all distinct models."""
    scores = made.tables({**ends(), **SEVERAL}, 64)["unlearning_scores"]
    it = findings(unlearning_scores=scores)
    assert (it["n_scored"], it["n_models"]) == (64, 32)
    assert (it["largest"], it["largest_bound"]) == ("4.14", "2.1")


def test_a_p_value_is_only_called_the_smallest_where_it_is():
    text = said(findings({"npo": method([0.9] * 3, 0.005, 0.5)}))
    assert "in every problem (p at most 0.01, corrected over the methods)." in text


def test_intervals_are_cut_where_no_value_can_be():
    table = made.tables({**ends(), **SEVERAL})["unlearning_memorisation"]
    wide = changed(table, (table["seed"] == 0) & (table["string_role"] == "forget"), after=0.9)
    shares = residual_memorisation.of_method(wide, "counterfactual", "forget", "npo")
    assert shares["after"].lower == 0


# The page


def test_where_nothing_was_unlearned_there_is_no_chapter(tmp_path):
    text = others.rendered(tmp_path / "report.html")
    assert TITLE not in text
    assert "Forget set" not in text


def test_the_chapter_is_whole(page):
    assert page.text.count(TITLE) == 1
    assert "unlearning" in page.ids
    for term in ("Forget set", "Placebo", "Joint attacker", "Share of the gap closed"):
        assert term in page.text
    for model in ("m", "n"):
        assert f"Methods on language L4, model {model}: mean over 3 problems" in page.text
        assert f"Language L4, model {model}." in page.text
    first = page.text.index("What can be said, and how surely")
    assert first < page.text.index("How near the methods come to retraining")
    assert "ln(32 − 1) = 3.43; with 32 in the tests" in page.text
    assert "no lower bound can be above 2.1, and no p-value below 0.00249, or 0.00499" in page.text
    assert "for the highest final score (by probability)." in page.text
    assert "Claims on set-ups need both full and reuse-n-n. With 3 problems and 2 rep" in page.text


def test_the_chapter_no_longer_speaks_of_splits_or_of_recitation(page):
    for gone in ("splits", "held out", "no longer recited"):
        assert gone not in page.text


def test_the_section_hands_over_what_the_chapter_reads():
    (section,) = [each for each in SECTIONS if each.name == "unlearning"]
    assert set(unlearning.KINDS) <= set(section.reported)
