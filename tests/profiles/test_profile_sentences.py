"""What the report says of a panel that a user brings, and of effects, in a sentence each."""

import re

import pandas as pd
import pytest

from helpers import panel_worlds
from helpers import profile_worlds as worlds
from palimpsest.estimates import with_interval
from palimpsest.profiles import kinds, summaries
from palimpsest.profiles.panel import to_panel
from palimpsest.profiles.profile import of_panel
from palimpsest.profiles.report import part
from palimpsest.profiles.sentences import lasting, sentences
from palimpsest.statistics import Interval, student

# What is untrue of a panel: nothing was trained, on no language, in no macro-batch of ours
OF_TRAININGS = r"language|macro-batch|Here the estimates|trained again|as a whole|seeds|darker"


def tables_of(effect, name="mine", loss=False, **world) -> dict[str, pd.DataFrame]:
    """The tables of a panel with a known effect."""
    frame = panel_worlds.panel_frame(effect, **world)
    if loss:
        frame = frame.assign(loss=-frame.pop("outcome"))
    panel = to_panel(frame, name)
    profile, since = of_panel(panel, name, "loss" if loss else "outcome")
    return {kinds.PANEL_PROFILE.name: profile, kinds.PANEL_PERSISTENCE.name: since}


def for_a_time(strength: float, times: int):
    """An effect of training for some times, and none later."""
    return lambda cohort, since: strength * (since < times)


def test_a_panel_says_its_effect_how_long_it_lasts_and_its_placebo():
    """The numbers are those of the table, with the simultaneous band."""
    tables = tables_of(for_a_time(1.0, 3))
    (said,) = sentences(tables)
    since = tables[kinds.PANEL_PERSISTENCE.name].set_index("since")
    ends = {
        lag: with_interval(Interval(*since.loc[lag, ["estimate", "lower", "upper"]]))
        for lag in (0, 10)
    }
    start = "In the panel mine, training on strings changes their outcome by"
    later = f"just after it, and by {ends[10]} 10 times later (1 of 8 cohorts)"
    assert said.text.startswith(f"{start} {ends[0]} {later}")
    assert said.text.endswith(": the intervals exclude 0 until 2 times later.")
    assert since.loc[0, "lower"] < 1 < since.loc[0, "upper"]
    assert "Placebo: of 7 mean effects before the training" in said.note
    before = since[since.index < -1]
    largest = before.loc[before["estimate"].abs().idxmax()]
    assert with_interval(Interval(*largest[["estimate", "lower", "upper"]])) in said.note
    assert "none excludes 0" in said.note
    assert "one training" in said.note


def test_a_panel_without_an_effect_cannot_tell():
    (said,) = sentences(tables_of(for_a_time(0.0, 0)))
    assert "reaches 0, so the panel cannot tell; more strings in each cohort would" in said.text


def test_an_effect_before_the_training_speaks_against_the_estimate():
    """Strings that gain before they are trained on: the placebo says so."""
    frame = panel_worlds.panel_frame(for_a_time(1.0, 3))
    early = frame["time"] < frame["cohort"] - 2
    panel = to_panel(frame.assign(outcome=frame["outcome"] + early), "mine")
    profile, since = of_panel(panel, "mine", "outcome")
    (said,) = sentences({kinds.PANEL_PROFILE.name: profile, kinds.PANEL_PERSISTENCE.name: since})
    assert re.search(r"find, \d exclude 0; the largest is 1\.", said.note)


def test_the_outcome_of_a_loss_is_minus_the_loss():
    (said,) = sentences(tables_of(for_a_time(1.0, 3), loss=True))
    assert "changes minus their loss by" in said.text


@pytest.mark.parametrize(
    ("excludes", "words"),
    [
        ([True, True], "the intervals exclude 0 at all times after it"),
        ([True, False, True], "the interval excludes 0 just after it, and not at the next time"),
        ([True, True, False], "the intervals exclude 0 until 1 time later"),
        ([False, True], "the interval just after it reaches 0"),
    ],
)
def test_an_effect_lasts_until_its_interval_reaches_0(excludes, words):
    after = pd.DataFrame({"since": range(len(excludes)), "significant": excludes})
    assert lasting(after).startswith(words)


def test_a_panel_with_one_time_before_has_no_placebo():
    tables = tables_of(for_a_time(1.0, 3))
    since = tables[kinds.PANEL_PERSISTENCE.name]
    (said,) = sentences({kinds.PANEL_PERSISTENCE.name: since[since["since"] >= -1]})
    assert "Placebo: none, because no cohort is measured twice before its training." in said.note


def test_the_page_of_a_panel_says_what_holds_of_it_alone():
    """Nothing was trained, so nothing is said of trainings; the table has the panel's numbers."""
    tables = tables_of(for_a_time(1.0, 3))
    made = part(tables)
    chapters = {chapter.id: chapter for chapter in made.chapters}
    words = [made.introduction, made.reading, made.claims, *made.glossary.values()]
    words += [words for one in chapters.values() if one.before for words in (one.text, one.before)]
    assert not re.findall(OF_TRAININGS, " ".join(map(str, words)))
    assert "A panel has the outcome of every string at every time" in made.introduction
    assert not chapters["dilution"].before
    since = tables[kinds.PANEL_PERSISTENCE.name].set_index("since")
    for lag in (0, 1, 10):
        cell = Interval(*since.loc[lag, ["estimate", "lower", "upper"]])
        assert with_interval(cell) in chapters["profiles"].before
    assert '<td class="numbers">0 of 7</td>' in chapters["profiles"].before
    assert "nan" not in chapters["profiles"].before


def test_a_page_of_trained_models_has_the_words_of_both():
    made = part({**worlds.world(), **tables_of(for_a_time(1.0, 3))})
    assert "Here the truth stands beside it" in made.introduction
    assert "<td>mine</td>" in made.chapters[0].before


def test_trained_models_say_what_is_left_and_what_placebos_give():
    """Means over models, with Student's interval over the seeds."""
    profile = worlds.world()[kinds.PROFILE.name]
    (said,) = sentences({kinds.PROFILE.name: profile})
    for strings, text in ((kinds.TRAINED, said.text), (kinds.PLACEBO, said.note)):
        cells = summaries.estimates(profile, strings)
        for chosen in (summaries.instantaneous, summaries.residual):
            by_seed = chosen(cells).groupby("seed")["estimate"].mean()
            assert with_interval(student(by_seed)) in text
    (said,) = sentences({kinds.PROFILE.name: profile[profile["seed"] == profile["seed"].min()]})
    assert "one seed: no interval" in said.note
    assert not re.search(r"\[[−\d]", said.text + said.note)


def test_there_is_nothing_to_say_of_nothing():
    empty = kinds.PANEL_PERSISTENCE.schema.empty_table().to_pandas()
    assert not [*sentences({})]
    assert not [*sentences({kinds.PANEL_PERSISTENCE.name: empty})]
