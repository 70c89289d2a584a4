"""Foretelling, in simulated worlds with a known truth."""

import json
import math
from functools import cache

import numpy as np
import pandas as pd
import pytest

from helpers.commands import ROOT
from helpers.experiments import DEFAULT, experiment, message
from palimpsest import manifests, tables
from palimpsest.atlas import kinds
from palimpsest.atlas.foretelling import (
    DESIGNS,
    OF_RUN,
    OF_STRING,
    Foresight,
    digest_of,
    foretell,
    foretelling_table,
    judged,
    known_before,
    of_texts,
    outcomes_of,
    presentations,
    reach,
    was_before,
)
from palimpsest.atlas.kinds import BELOW_OPTIMAL, BITS, OUTCOMES, RECOLLECTED
from palimpsest.atlas.report import foretold_rows, part
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import UserError
from palimpsest.traces import Trace
from palimpsest.training.recipe import Recipe, epoch_order

RECIPE = {"learning_rate": 0.003, "epochs": 50, "batch_size": 8, "evaluate_every": 5}
EPOCHS = np.arange(0, 51, 5)
N = 40
MADE_BY = "palimpsest.datasets.plain:base"
CELLS = [(model, language) for model in "abc" for language in ("L1", "L2")]


def rows_of(model, language, seed, rarity=0.8, exposure=0.0, noise=0.1, shift=0.0, n=N):
    """Features and outcomes of a run in which loss is a power of rarity and of exposure."""
    chance = np.random.default_rng([seed, *map(ord, model + language)])
    of_string = pd.DataFrame(0.3 * chance.standard_normal((n, len(OF_STRING))), columns=OF_STRING)
    mean_bits = {"L1": 0.5, "L2": 0.2, "L3": 0.9}[language]
    scaled = rarity * of_string["rarity"] - exposure * of_string["exposure"] + shift
    scaled = scaled + noise * chance.standard_normal(n)
    start = 25 * np.exp(scaled + noise * chance.standard_normal(n))
    start = np.ceil(start / 5) * 5
    return of_string.assign(
        model=model,
        language=language,
        size=n,
        seed=seed,
        string_id=[f"{language}-{seed}-{place}" for place in range(n)],
        **dict.fromkeys(OF_RUN, 1.0),
        mean_bits=mean_bits,
        beyond=55.0,
        **{
            BITS: mean_bits * np.exp(scaled),
            RECOLLECTED: np.nan,
            BELOW_OPTIMAL: start.where(start <= 50),
        },
    )


def earlier(seeds=range(3), cells=CELLS, **world):
    return pd.concat([rows_of(*cell, seed, **world) for cell in cells for seed in seeds])


def told(runs, known, outcome=BITS) -> pd.DataFrame:
    """What the judge says of later runs, one row each."""
    foresight = Foresight.of(known.reset_index(drop=True), runs[0])
    found = []
    for run in runs:
        table = foresight.table(run.drop(columns=list(OUTCOMES)))
        rows = table[table["outcome"] == outcome]
        found.append(judged(rows, run[outcome].to_numpy(dtype=float), 55.0))
    return pd.DataFrame(found)


def test_a_world_that_follows_rarity_is_foretold_and_its_intervals_hold():
    later = [rows_of(*cell, seed) for cell in CELLS for seed in range(10, 14)]
    found = told(later, earlier())
    assert (found["new"] == "seed").all()
    assert found["r_squared"].mean() > 0.8
    assert found["coverage"].mean() == pytest.approx(0.9, abs=0.03)
    assert found["placebo"].mean() < -0.5
    assert found["r_squared_by_mean"].mean() < 0.01
    # Nothing else matters in this world, so nothing else helps.
    assert found["r_squared"].mean() == pytest.approx(found["r_squared_by_rarity"].mean(), abs=0.03)
    starts = told(later, earlier(), BELOW_OPTIMAL)
    assert starts["r_squared"].mean() > 0.6
    assert starts["coverage"].mean() == pytest.approx(0.9, abs=0.04)


def test_what_exposure_adds_is_seen():
    world = {"rarity": 0.4, "exposure": 0.8}
    found = told([rows_of(*cell, 10, **world) for cell in CELLS], earlier(**world))
    assert found["r_squared"].mean() > found["r_squared_by_rarity"].mean() + 0.4


def test_where_nothing_decides_nothing_is_foretold_and_intervals_still_hold():
    world = {"rarity": 0.0, "noise": 0.3}
    later = [rows_of(*cell, seed, **world) for cell in CELLS for seed in range(10, 14)]
    found = told(later, earlier(**world))
    assert found["r_squared"].mean() < 0.05
    assert found["coverage"].mean() == pytest.approx(0.9, abs=0.03)


def test_a_new_model_that_is_unlike_the_others_is_not_covered():
    """Its mean is shifted by more than the models that are known differ."""
    found = told([rows_of("d", "L1", 10, shift=1.0)], earlier())
    assert found["new"].tolist() == ["model"]
    assert found["coverage"].iloc[0] < 0.2
    assert found["r_squared"].iloc[0] < 0


def test_models_that_differ_make_intervals_of_a_new_one_wide():
    """Those of a new seed stay narrow, because the model's own mean is known."""
    known = pd.concat(
        [earlier(cells=CELLS[2 * place : 2 * place + 2], shift=place) for place in range(3)]
    )
    seed, model = (told([rows_of(name, "L1", 10, shift=1.0)], known) for name in ("b", "d"))
    assert model["width"].iloc[0] > 4 * seed["width"].iloc[0]


def test_without_runs_that_are_as_new_there_is_no_interval():
    known = earlier(cells=CELLS[:1]).reset_index(drop=True)
    found = told([rows_of("d", "L1", 10)], known)
    assert found["coverage"].isna().all()
    assert found["r_squared"].iloc[0] > 0.5
    assert math.isnan(reach(known, np.zeros(len(known)), ["model", "language"]))
    of_one_seed = earlier(seeds=[0], cells=CELLS[:1]).reset_index(drop=True)
    assert math.isnan(reach(of_one_seed, np.zeros(len(of_one_seed)), ["seed"]))


@pytest.mark.parametrize(
    ("cell", "new"),
    [(("d", "L1"), "model"), (("a", "L3"), "language"), (("d", "L3"), "model, language")],
)
def test_what_is_new_is_named(cell, new):
    assert told([rows_of(*cell, 0)], earlier())["new"].tolist() == [new]


def test_never_is_after_the_end():
    """A start at no epoch is the worst that can be foretold, and no number beyond it is."""
    found = told([rows_of(*CELLS[0], 10, shift=3.0)], earlier(shift=3.0), BELOW_OPTIMAL)
    assert found["never"].iloc[0] > 0.9
    assert found["coverage"].iloc[0] > 0.9
    whole = told([rows_of(*CELLS[0], 10)], earlier(), RECOLLECTED)
    assert whole["never"].tolist() == [1.0]
    assert whole["r_squared"].isna().all()
    assert whole["coverage"].tolist() == [1.0]


def test_rates_of_the_steps_that_show_a_string():
    recipe, copies = Recipe(**RECIPE), np.array([3, 1, 5, 2])
    exposure, last_seen = presentations(copies, 7, recipe)
    owner = [row for row, n in enumerate(copies) for _ in range(n)]
    expected, latest = np.zeros(4), np.zeros(4)
    for epoch in range(50):
        for place, row in enumerate(epoch_order(11, 7, epoch + 1)):
            expected[owner[row]] += recipe.learning_rate_at(2 * epoch + place // 8, 100)
            if epoch == 49:
                latest[owner[row]] = (place + 1) / 11
    np.testing.assert_allclose(exposure, expected)
    np.testing.assert_allclose(last_seen, latest)


def test_what_strings_have_in_common():
    isolation, shared = of_texts(("1 2 3 4", "1 2 3 4 5", "6 7 8 9"))
    np.testing.assert_allclose(isolation, [1 / 4, 1 / 5, 1])
    np.testing.assert_allclose(shared, [math.log(2), 2 * math.log(2) / 3, 0])
    np.testing.assert_allclose(of_texts(("1 2",)), [[1], [0]])


# Whole runs


@cache
def dataset(seed, variant="base"):
    corpus = GrammarCorpus.from_file(ROOT / "config/languages/L2.pcfg")
    return build(
        Sampler("L2", corpus, seed),
        variant,
        24,
        12,
        False,
        made_by="palimpsest.datasets.plain:base",
    )


def trace_of(strings, model="m", noise=0.05):
    """A run in which loss falls to 0.9 times the optimal loss of each string."""
    chance = np.random.default_rng(int(strings["seed"].iloc[0]))
    optimal = strings["optimal_loss"].to_numpy()
    end = 0.9 * optimal * np.exp(noise * chance.standard_normal(len(strings)))
    falls = np.linspace(0, 1, len(EPOCHS))[:, None]
    n_tokens = strings["n_tokens"].to_numpy()
    loss = 2.0 * (1 - falls) + end * falls
    right = np.zeros(loss.shape, dtype=int)
    about = strings[["language", "size", "seed", "variant"]].iloc[0].to_dict()
    ids = strings["string_id"].to_numpy(dtype=object)
    return Trace({"model": model, **about}, EPOCHS, ids, n_tokens, loss * n_tokens, right, right)


def foretold_runs(paths, seeds=(3,), noise=0.05):
    known = [dataset(seed) for seed in range(3)]
    traces = [trace_of(strings, model, noise) for model in ("m", "o") for strings in known]
    return list(
        foretell(
            traces,
            pd.concat(known),
            [dataset(seed) for seed in seeds],
            paths,
            "m",
            recipes={"m": RECIPE, "o": RECIPE},
            n_parameters={"m": {"L2": 1000}, "o": {"L2": 1000}},
            start="after_last_miss",
            loss_threshold=0.2,
        )
    )


def table_of(made, started, resumed=0, strings=None):
    strings = dataset(3, "foretold") if strings is None else strings
    return foretelling_table(
        made["foretold"],
        [made["promise"]],
        [trace_of(strings)],
        [strings],
        [{"started": started, "resumed_from_epoch": resumed}],
        start="after_last_miss",
        loss_threshold=0.2,
    )


@pytest.fixture(scope="module")
def made():
    (made,) = foretold_runs(["none.json"])
    return made


def test_features_are_about_the_run_alone():
    strings = dataset(0)
    found = known_before(strings, Recipe(**RECIPE), 1000)
    np.testing.assert_allclose(found[OF_STRING].mean(), 0, atol=1e-12)
    assert found["beyond"].unique().tolist() == [55]
    outcomes = outcomes_of(trace_of(strings, noise=0.0), strings, "after_last_miss", 0.2)
    train = strings[strings["count"] > 0]
    expected = 0.9 * train["optimal_loss"] / math.log(2)
    np.testing.assert_allclose(outcomes[BITS], expected)
    assert outcomes[BELOW_OPTIMAL].eq(50).all()


def test_later_runs_are_foretold(made, tmp_path):
    table, promise = made["foretold"], made["promise"]
    assert list(table.columns) == kinds.FORETOLD.names
    assert set(table["outcome"]) == set(OUTCOMES)
    assert table[list(DESIGNS)].notna().all(axis=None)
    assert len(promise["earlier"]) == 6
    judged_of = table_of(made, started=manifests.now()).set_index("outcome")
    assert judged_of["foretold_before"].all()
    assert judged_of.loc[BITS, "r_squared"] > 0.9
    assert judged_of.loc[BITS, "sha256"] == promise["sha256"]
    tables.write(tmp_path / "foretelling.parquet", judged_of.reset_index(), kinds.FORETELLING)
    # What is read again is what was promised.
    path = tmp_path / "foretold.parquet"
    tables.write(path, table, kinds.FORETOLD)
    assert digest_of(tables.read_all([path], kinds.FORETOLD)) == promise["sha256"]


def test_nothing_is_foretold_of_a_run_that_had_begun(made):
    """Or that was resumed, or whose manifest says no time."""
    later = manifests.now()
    assert table_of(made, started=later)["foretold_before"].all()
    for started, resumed in (("2020-01-01T00:00:00.000000+00:00", 0), ("", 0), (later, 5)):
        assert not table_of(made, started, resumed)["foretold_before"].any()


def test_other_predictions_than_those_promised_are_none(made):
    manifest = {"started": manifests.now(), "resumed_from_epoch": 0}
    assert was_before(made["foretold"], made["promise"], manifest)
    changed = made["foretold"].assign(predicted=made["foretold"]["predicted"] + 1e-12)
    assert not was_before(changed, made["promise"], manifest)
    assert not was_before(made["foretold"], made["promise"], {"resumed_from_epoch": 0})


def test_a_promise_keeps_its_time_while_it_stays_the_same(made, tmp_path):
    path = tmp_path / "promise.json"
    path.write_text(json.dumps(made["promise"]))
    (again,) = foretold_runs([path])
    assert again["promise"] == made["promise"]
    (other,) = foretold_runs([path], noise=0.06)
    assert other["promise"]["sha256"] != made["promise"]["sha256"]
    assert other["promise"]["written"] > made["promise"]["written"]


def test_predictions_of_other_strings_are_refused(made):
    strings = dataset(3, "foretold")
    other = dataset(4, "foretold").assign(seed=3)
    assert set(other["string_id"]) != set(strings["string_id"])
    with pytest.raises(UserError, match="of other strings than the run; delete the run"):
        table_of(made, manifests.now(), strings=other)


def test_the_report_shows_runs_that_were_foretold_only(made):
    before = table_of(made, manifests.now())
    late = table_of(made, "").assign(model="late")
    rows = foretold_rows(pd.concat([before, late]))
    assert {row["model"] for row in rows} == {"m"}
    assert [row["outcome"] for row in rows] == list(OUTCOMES)
    (chapter,) = (
        chapter
        for chapter in part({kinds.FORETELLING.name: before}).chapters
        if chapter.id == "atlas_foretold"
    )
    assert "By exact probability alone" in str(chapter.before)


# The configuration

RUNS = {"models": ["opt-1.3b-twin"], "languages": ["L2"], "sizes": [16], "seeds": [0, 1]}


def asked(**later):
    block = {"foretelling": {"earlier": RUNS, "later": {**RUNS, "seeds": [2], **later}}}
    return experiment(DEFAULT, command_line={"atlas": block}, targets=["atlas"])


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ({"seeds": [1, 2]}, "an earlier one, or a cell's: opt-1.3b-twin, L2, 16, 1; what"),
        ({"languages": ["L99"]}, "atlas/foretelling/later/languages[0]: unknown language 'L99'"),
        ({"models": ["opt"]}, "atlas/foretelling/later/models[0]: unknown model 'opt'"),
        (
            {"languages": ["people"]},
            "'people' is a language of text, which a tokenizer cuts; foret",
        ),
        ({"seeds": []}, "atlas/foretelling/later/seeds"),
    ],
)
def test_what_cannot_be_foretold_is_refused(later, said):
    assert said in message(lambda: asked(**later))


def test_a_run_of_a_cell_is_not_foretold():
    cell = {"models": ["opt-1.3b-twin"], "languages": ["L2"], "sizes": [16]}
    block = {**cell, "foretelling": {"earlier": RUNS, "later": {**RUNS, "seeds": [2]}}}
    given = {"seeds": [2, 4], "atlas": block}
    said = message(lambda: experiment(DEFAULT, command_line=given, targets=["atlas"]))
    assert "or a cell's: opt-1.3b-twin, L2, 16, 2; what is known cannot be foretold" in said


def test_later_runs_have_strings_and_a_job_of_their_own(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = asked()
    (later,) = [runs for runs in found.requests if runs.intervention == "foretold"]
    (job,) = [job for group in found.training_jobs for job in group if later in job]
    assert job == [later]
    assert later.seeds == (2,)
