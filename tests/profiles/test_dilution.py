"""Dilution and order: the factorial's datasets, its contrasts, claims and requests."""

import itertools
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp

from helpers import dilution_worlds as worlds
from helpers.commands import GRAMMAR
from helpers.experiments import DEFAULT, ROOT, experiment, message
from palimpsest.claims import judge_all
from palimpsest.corpora import read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.profiles.claims import CLAIMS
from palimpsest.profiles.dilution_effects import (
    at_the_end,
    contrasts,
    dilution_effects,
    placebos_of,
)
from palimpsest.profiles.factorial import EARLY, LATE, Design
from palimpsest.profiles.interventions import DILUTED, DILUTED_WITHOUT
from palimpsest.statistics import student

CORPUS = read_corpus(GRAMMAR)
DESIGN = Design(sizes=(80, 160), copies=(1, 3), probes=2, validation=12, cohort_size=10)


def stream(variant=DILUTED, size=80, seed=0) -> pd.DataFrame:
    """A dataset of macro-batches of ten strings; two probes in each arm."""
    sampler = Sampler("L2", CORPUS, seed)
    made_by = "palimpsest.profiles.dilution_data:diluted"
    return build(sampler, variant, size, 8, False, options=asdict(DESIGN), made_by=made_by)


def arms(table: pd.DataFrame) -> dict[str, tuple[int, str]]:
    """The arm of each probe, from the columns of the dataset."""
    probes = table[table["split"] == "panel"]
    half = table["cohort"].max() / 2
    position = np.where(probes["cohort"] <= half, EARLY, LATE)
    found = zip(probes["count"], position, strict=True)
    return dict(zip(probes["string_id"], found, strict=True))


def ids(table: pd.DataFrame, split: str) -> set[str]:
    """The names of the strings of a split."""
    return set(table.loc[table["split"] == split, "string_id"])


def steps(table: pd.DataFrame, cohort: int) -> list[str]:
    """The training strings of a macro-batch, with copies, in the order that training shuffles."""
    rows = table[table["cohort"] == cohort]
    return rows["string_id"].repeat(rows["count"]).tolist()


@pytest.mark.parametrize("size", DESIGN.sizes)
@pytest.mark.parametrize("variant", [DILUTED, DILUTED_WITHOUT])
def test_every_macro_batch_has_equally_many_training_strings(variant, size):
    """Copies count, because a macro-batch is a fixed number of steps."""
    table = stream(variant, size)
    assert table["string_id"].is_unique
    assert table.groupby("cohort")["count"].sum().tolist() == [10] * (size // 10)
    never = table[table["split"] == "validation"]
    assert len(never) == 12
    assert never["cohort"].isna().all()
    assert (never["count"] == 0).all()


@pytest.mark.parametrize("size", DESIGN.sizes)
def test_probes_are_in_the_outer_quarters(size):
    """Two in each arm, spread over the macro-batches of the quarter."""
    table = stream(size=size)
    found = arms(table)
    expected = dict.fromkeys(itertools.product((1, 3), (EARLY, LATE)), 2)
    assert pd.Series(found).value_counts().to_dict() == expected
    n_cohorts = size // 10
    cohorts = table.set_index("string_id").loc[list(found), "cohort"]
    outer = {*range(1, n_cohorts // 4 + 1), *range(n_cohorts - n_cohorts // 4 + 1, n_cohorts + 1)}
    assert set(cohorts) <= outer
    for arm in expected:
        own = [cohorts[name] for name, its in found.items() if its == arm]
        assert len(set(own)) == min(2, n_cohorts // 4)


def test_streams_of_all_sizes_have_the_same_probes_in_the_same_arms():
    """So that sizes are compared on the same strings."""
    small, large = (stream(size=size) for size in DESIGN.sizes)
    assert arms(small) == arms(large)
    assert ids(small, "validation") == ids(large, "validation")
    assert ids(small, "train") < ids(large, "train")


@pytest.mark.parametrize("size", DESIGN.sizes)
def test_without_the_probes_only_their_places_have_other_strings(size):
    """Place by place of every macro-batch; no string takes two places, or was in the stream."""
    whole, without = stream(size=size), stream(DILUTED_WITHOUT, size)
    probes, new = set(arms(whole)), []
    for cohort in range(1, size // 10 + 1):
        for one, other in zip(steps(whole, cohort), steps(without, cohort), strict=True):
            assert (one != other) == (one in probes)
            new += [other] if one in probes else []
    assert len(new) == len(set(new)) == DESIGN.n_copies == 16
    assert not set(new) & set(whole["string_id"])
    assert ids(without, "held_out") == probes
    assert ids(without, "validation") == ids(whole, "validation")
    assert not ids(without, "panel")


def test_arms_are_random_samples():
    """Frequent strings are drawn early, so the order of drawing must not decide the arm."""
    rows = []
    for seed in range(24):
        table = stream(seed=seed).set_index("string_id")
        found = arms(table.reset_index())
        rows.append(table.assign(arm=pd.Series(found).astype(str)).fillna({"arm": "none"}))
    table = pd.concat(rows)
    groups = [own["log_prob"] for _, own in table[table["split"] == "panel"].groupby("arm")]
    groups += [table.loc[table["split"] == name, "log_prob"] for name in ("validation", "train")]
    for one, other in itertools.combinations(groups, 2):
        assert ks_2samp(one, other).pvalue > 0.001


def cells(values: dict[tuple, float]) -> pd.DataFrame:
    """Cells of one seed, by copies, position and size."""
    keys = ["copies", "position", "size"]
    return pd.DataFrame(values.keys(), columns=keys).assign(seed=0, specific=values.values())


EIGHT = dict(zip(itertools.product((1, 4), (EARLY, LATE), (80, 160)), range(8), strict=True))
BY_HAND = {
    "mean": 3.5,
    "copies": 4.0,
    "position": 2.0,
    "size": 1.0,
    "copies x position": 0.0,
    "copies x size": 0.0,
    "position x size": 0.0,
    "copies x position x size": 0.0,
}


def test_contrasts_by_hand():
    """Cells 0 to 7 in binary order have main effects 4, 2 and 1; one cell more interacts."""
    found = contrasts(cells(EIGHT), "specific")
    assert found.loc[0].to_dict() == pytest.approx(BY_HAND)
    raised = contrasts(cells({**EIGHT, (4, LATE, 160): 7 + 8}), "specific")
    more = [1, 2, 2, 2, 4, 4, 4, 8]  # 8 in one of eight cells, of which each contrast halves
    expected = {name: BY_HAND[name] + each for name, each in zip(BY_HAND, more, strict=True)}
    assert raised.loc[0].to_dict() == pytest.approx(expected)


def test_levels_in_between_change_no_contrast():
    between = {(2, position, 80): 100.0 for position in (EARLY, LATE)}
    found = contrasts(cells({**EIGHT, **between}), "specific")
    assert found.loc[0].to_dict() == pytest.approx(BY_HAND)


def test_an_incomplete_factorial_has_no_contrasts():
    some = dict(itertools.islice(EIGHT.items(), 7))
    with pytest.raises(ValueError, match="does not have every combination"):
        contrasts(cells(some), "specific")
    one_size = {key: value for key, value in EIGHT.items() if key[2] == 80}
    with pytest.raises(ValueError, match="size has one level only"):
        contrasts(cells(one_size), "specific")


def test_known_effects_are_found():
    """Without noise: by retraining and, because strings are alike, from one run."""
    table = worlds.table(noise=0.0)
    rows = table[(table["outcome"] == "log_likelihood") & (table["string_role"] == "trained")]
    end = at_the_end(rows)
    keys = zip(end["copies"], end["position"], end["size"], strict=True)
    known = [worlds.effect(*key) for key in keys]
    for column in ("specific", "difference"):
        np.testing.assert_allclose(end[column], known, atol=1e-9)
    np.testing.assert_allclose(end["general"], worlds.GENERAL, atol=1e-9)
    np.testing.assert_allclose(end["total"], np.add(known, worlds.GENERAL), atol=1e-9)
    before = rows[(rows["position"] == LATE) & (rows["quarter"] < 4)]
    np.testing.assert_allclose(before["specific"], 0, atol=1e-9)
    assert (rows["n_strings"] == worlds.DESIGN.probes).all()
    late = end[end["position"] == LATE]["learning_rate"].max()
    assert 0 < late < end[end["position"] == EARLY]["learning_rate"].min()


def test_contrasts_of_a_known_world():
    effects = dilution_effects(worlds.table(noise=0.0))
    rows = effects[effects["outcome"] == "log_likelihood"].set_index(["string_role", "effect"])
    for contrast, value in {**dict.fromkeys(BY_HAND, 0.0), **worlds.CONTRASTS}.items():
        found = rows[rows["contrast"] == contrast]["estimate"]
        if contrast != "mean":
            assert found.loc[("trained", "specific")] == pytest.approx(value, abs=1e-9)
            assert found.loc[("placebo", "specific")] == pytest.approx(0, abs=1e-9)
    level = rows[rows["contrast"] == "mean"]["estimate"]
    assert level.loc[("trained", "specific")] == pytest.approx(worlds.LEVEL)
    assert level.loc[("placebo", "total")] == pytest.approx(worlds.GENERAL)


@pytest.fixture(scope="module")
def many() -> pd.DataFrame:
    """A noisy world of many seeds, at the end of training."""
    table = at_the_end(worlds.table(range(100), noise=1.0))
    return table[table["outcome"] == "log_likelihood"]


@pytest.mark.parametrize("effect", ["specific", "difference"])
def test_placebos_are_significant_as_often_as_they_should_be(many, effect):
    """Intervals over five seeds exclude 0 in about 5 % of 160 cases: 1 to 16 of them."""
    found = contrasts(many[many["string_role"] == "placebo"], effect)
    studies = [student(found.iloc[n : n + 5][name]) for n in range(0, 100, 5) for name in found]
    wrong = np.mean([study.lower > 0 or study.upper < 0 for study in studies])
    assert 0.005 < wrong < 0.105


@pytest.mark.parametrize("effect", ["specific", "difference"])
def test_intervals_hold_the_known_contrasts(many, effect):
    """In about 95 % of the studies of five seeds."""
    found = contrasts(many[many["string_role"] == "trained"], effect)
    known = {**dict.fromkeys(found, 0.0), **worlds.CONTRASTS, "mean": worlds.LEVEL}
    held = [
        study.lower < known[name] < study.upper
        for n in range(0, 100, 5)
        for name in found
        for study in [student(found.iloc[n : n + 5][name])]
    ]
    assert 0.895 < np.mean(held) < 0.995


def test_placebos_keep_their_arms_at_every_size():
    """The strings of a placebo arm are the same, so their levels drop out between sizes."""
    arms = {
        (seed, size): [tuple(group.own) for group in placebos_of(stream, strings)]
        for seed in (0, 1)
        for size in worlds.DESIGN.sizes
        for stream, strings in [worlds.stream(seed, size)]
    }
    assert arms[0, 80] == arms[0, 160]
    assert arms[1, 80] == arms[1, 160]
    places = [[name.partition("-")[2] for own in arms[s, 80] for name in own] for s in (0, 1)]
    assert places[0] != places[1]
    table = at_the_end(worlds.table(noise=0.0))
    placebos = table[table["string_role"] == "placebo"]
    assert (placebos["n_strings"] == worlds.DESIGN.validation // 2 // 4).all()
    assert placebos["learning_rate"].isna().all()


DILUTED_LESS = "Strings are memorised less when they are diluted in more data."
EARLY_LESS = "Strings that are seen early are memorised less."


@pytest.mark.parametrize(
    ("strength", "verdicts"),
    [(1.0, ["agrees", "agrees"]), (-1.0, ["disagrees", "disagrees"])],
)
def test_verdicts_on_a_known_world(strength, verdicts):
    given = {"dilution": worlds.table(range(5), noise=0.2, strength=strength)}
    judged = judge_all(CLAIMS, given).set_index("claim")
    assert judged.loc[[DILUTED_LESS, EARLY_LESS], "verdict"].tolist() == verdicts
    for note in judged.loc[[DILUTED_LESS, EARLY_LESS], "note"]:
        for words in ("placebos: ", "one run alone: ", "more minus fewer copies: "):
            assert words in note
    assert "learning rate" in judged.loc[EARLY_LESS, "note"]


def test_nothing_is_claimed_where_nothing_is_memorised():
    """In most of six worlds: about one in twenty verdicts is wrong by chance."""
    worlds_of_nothing = worlds.table(range(30), noise=1.0, strength=0.0)
    verdicts = []
    for first in range(0, 30, 5):
        some = worlds_of_nothing[worlds_of_nothing["seed"].between(first, first + 4)]
        judged = judge_all(CLAIMS, {"dilution": some}).set_index("claim")
        verdicts += judged.loc[[DILUTED_LESS, EARLY_LESS], "verdict"].tolist()
    assert verdicts.count("cannot tell") >= 9


WRONG = {
    "a size that is no four quarters": (
        {"sizes": [512, 2000]},
        "profiles/dilution/sizes[1]: 2000 strings are not 4 equal quarters of whole macro-batches; "
        "it must be a multiple of 128",
    ),
    "no copies": ({"copies": [0, 8]}, "profiles/dilution/copies[0]"),
    "one number of copies": ({"copies": [8]}, "profiles/dilution/copies"),
    "too many probes for a quarter": (
        {"probes": 32},
        "profiles/dilution/probes: 32 strings of each arm do not fit into a quarter of the "
        "smallest stream, 512 strings: a macro-batch would have to hold 72 copies, and "
        "profiles/cohort_size is 32",
    ),
    "an unknown model": (
        {"model": "llama-4-twin"},
        "profiles/dilution/model: unknown model 'llama-4-twin'",
    ),
    "an unknown language": (
        {"languages": ["L9"]},
        "profiles/dilution/languages[0]: unknown language 'L9'",
    ),
}


@pytest.fixture
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_factorial_is_refused_in_one_line(in_the_project, what):
    block, expected = WRONG[what]
    over = {"profiles": {"dilution": block}}
    assert expected in message(lambda: experiment(DEFAULT, command_line=over))


def test_too_few_placebos_are_refused(in_the_project):
    copies = {"copies": list(range(1, 26)), "probes": 1, "sizes": [2048, 4096]}
    over = {"profiles": {"cohort_size": 512, "dilution": copies}}
    said = message(lambda: experiment(DEFAULT, command_line=over))
    assert "profiles/validation: 96 strings are too few" in said
    assert "raise it to 100" in said


def test_each_size_is_trained_with_and_without_the_probes(in_the_project):
    made = experiment(DEFAULT)
    asked = [runs for runs in made.requests if runs.variant.startswith(DILUTED)]
    sizes = made.settings.block("profiles")["dilution"]["sizes"]
    found = {(runs.size, runs.variant) for runs in asked}
    assert found == set(itertools.product(sizes, (DILUTED, DILUTED_WITHOUT)))
    for runs in asked:
        assert runs.seeds == made.settings.seeds
        assert runs.one_pass.every * 4 == runs.one_pass.cohorts == runs.size // 32
    tables = [file for file in made.outputs["profiles"] if "dilution" in file]
    assert len(tables) == len(set(tables)) == 2


def test_the_study_can_be_left_out(in_the_project):
    made = experiment(DEFAULT, command_line={"profiles": {"dilution": None}})
    assert not [runs for runs in made.requests if runs.variant.startswith(DILUTED)]
    assert not [file for file in made.outputs["profiles"] if "dilution" in file]
    assert not [file for file in made.all_figures if "dilution" in file]
