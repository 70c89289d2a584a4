"""The search for the settings of methods: its problems, its points, its jobs and its verdict."""

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from helpers.experiments import DEFAULT, ROOT, configuration, experiment, message
from helpers.jobs import do_job
from helpers.unlearning_twins import GRAMMAR, MODEL, MODELS, RECIPE, assignment, trained_twins
from palimpsest import tables
from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError
from palimpsest.jobs.query import QueryFiles, keys_of_job
from palimpsest.requests import TRACE, WEIGHTS
from palimpsest.sections import KINDS
from palimpsest.unlearning.evaluate.rules import Rules
from palimpsest.unlearning.evaluate.samples import RETAIN, read_trained
from palimpsest.unlearning.methods import Method, read_methods
from palimpsest.unlearning.run.jobs import UnlearningJobs
from palimpsest.unlearning.section import SECTION
from palimpsest.unlearning.tuning.choice import (
    SearchProblem,
    chosen_methods,
    search_problem,
    tuning,
)
from palimpsest.unlearning.tuning.jobs import SEARCH, SearchJobs, drawn_points, search_of
from palimpsest.unlearning.tuning.search import Search, search

# The grammar has a rule that is never reached, and says so.
pytestmark = pytest.mark.filterwarnings("ignore::palimpsest.languages.GrammarWarning")

TABLE = ROOT / "config/unlearning.yaml"
SETTINGS = 16


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    """Paths of a configuration are relative to where Snakemake runs."""
    monkeypatch.chdir(ROOT)


def jobs(**changes):
    """The search of the default configuration, with some keys of `unlearning/search` changed."""
    config = configuration(ROOT / DEFAULT)
    config["unlearning"]["search"] |= changes
    return search_of(Settings(config))


# Problems


def test_the_problems_of_the_search_are_of_no_evaluation():
    """By default, and with the same language in both."""
    asked = jobs()
    evaluated = {(one.language, one.seed) for one in asked.jobs.unlearning_runs}
    searched = [(one.language, one.seed) for one in asked.unlearning_runs]
    assert searched == [("L3-short", 100), ("L3-short", 101)]
    assert not evaluated & set(searched)
    assert "L3-short" in asked.jobs.block["languages"]


@pytest.mark.parametrize(
    ("languages", "seeds", "refused"),
    [
        (["L3-short", "L6"], [100, 2], "seed 2 of L3-short"),
        (["L3-short"], [1], "seed 1 of L3-short"),
        (["L6"], [0, 1, 2], None),
        (["L3-short"], [7], None),
    ],
)
def test_a_problem_of_the_evaluation_is_refused(languages, seeds, refused):
    """The same seed of another language is another problem."""
    changed = {"unlearning": {"search": {"languages": languages, "seeds": seeds}}}
    if not refused:
        assert experiment(DEFAULT, command_line=changed).replicates_on_demand
        return
    said = message(lambda: experiment(DEFAULT, command_line=changed))
    assert f"unlearning/search/seeds: {refused} is in the evaluation, too" in said


def test_models_of_the_search_are_trained_only_on_demand():
    """They are in no plan. They are trained as those of the evaluation, with `n` of each kind."""
    whole = experiment(DEFAULT)
    asked = whole.replicates_on_demand
    assert [(runs.corpus, runs.variant, runs.seeds) for runs in asked] == [
        ("L3-short", "original", (100,)),
        ("L3-short", "retain", (100,)),
        ("L3-short", "original", (101,)),
        ("L3-short", "retain", (101,)),
    ]
    planned = {(row["language"], row["seed"]) for row in whole.plan}
    assert not planned & {("L3-short", 100), ("L3-short", 101)}
    for runs in asked:
        assert runs not in whole.requests
        assert runs.replicates == range(12)
        assert runs.keeps == {TRACE, WEIGHTS}
        assert runs.recipe == whole.settings.config["unlearning"]["recipe"]


# Points


def test_every_method_tries_equally_many_points():
    """Every grid of the table has at least as many points as the default tries."""
    found = jobs().methods
    assert set(found) == {name for name, one in read_methods(TABLE).items() if one.grid}
    assert {len(points) for points in found.values()} == {SETTINGS}


def test_the_same_points_are_drawn_everywhere():
    """Other models, languages and methods make no difference; other numbers of points do."""
    scrub = read_methods(TABLE)["scrub"]
    drawn = drawn_points(scrub, SETTINGS)
    assert list(drawn) == list(jobs(languages=["L1"], seeds=[5]).methods["scrub"])
    assert list(drawn) == [name for name in scrub.points() if name in drawn]
    assert {name: point.written for name, point in drawn.items()} == {
        name: scrub.points()[name].written for name in drawn
    }
    assert list(drawn_points(scrub, 3)) != list(drawn)[:3]
    renamed = Method("other", scrub.written, scrub.grid)
    numbers = [[name.rpartition(".")[2] for name in drawn_points(one, SETTINGS)]
               for one in (scrub, renamed)]  # fmt: skip
    assert numbers[0] != numbers[1]


def test_a_small_grid_is_tried_whole_and_a_method_without_one_is_left_out(tmp_path):
    """Without a grid there is nothing to choose."""
    phase = {"erase": "gradient-ascent", "share": 0.5, "rate": 0.1}
    methods = {
        "small": {"phases": [phase], "grid": {"1.rate": [0.1, 0.2]}},
        "fixed": {"phases": [phase]},
    }
    path = tmp_path / "methods.yaml"
    path.write_text(yaml.safe_dump(methods))
    config = configuration(ROOT / DEFAULT)
    config["unlearning"]["table"] = str(path)
    asked = SearchJobs(UnlearningJobs(Settings(config)))
    assert {name: list(points) for name, points in asked.methods.items()} == {
        "small": ["small.1", "small.2"]
    }
    assert len(asked.searched(asked.unlearning_runs)) == 2  # of two languages


def test_states_of_the_search_are_of_the_configuration():
    """Otherwise a listing would call the state of a killed search stale."""
    settings = Settings(configuration(ROOT / DEFAULT))
    found = [job for job in SECTION.unfinished(settings) if job.given["query"] == SEARCH]
    assert len(found) == 2
    assert {frozenset(job.given["values"]["points"]) for job in found} == {
        frozenset(search_of(settings).methods)
    }
    assert {job.dataset for job in found} == {
        f"results/datasets/L3-short/n64-seed{seed}/original/strings.parquet" for seed in (100, 101)
    }


# A search with models


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A problem with two models of each variant, on a CPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        yield trained_twins(tmp_path_factory.mktemp("trained"), 2)


CUTOFF = 1.0
ASCENT = {"erase": "gradient-ascent", "share": 0.5, "rate": 1.0}
POINTS = {
    "ascent": {"ascent.1": [ASCENT], "ascent.2": [{**ASCENT, "rate": 2.0}]},
    "repair": {"repair.1": [{"repair": "finetune", "share": 1.0, "rate": 0.5}]},
    "ruin": {
        "ruin.1": [
            {"erase": "select-parts", "parts": ["matrices"]},
            {"erase": "noise", "sigma": 1e30},
        ]
    },
}


def searched(trained, folder, methods=("ascent", "repair"), **more):
    """The tables of some methods, as the job delivers them."""
    made = {name: [str(folder / name / "searched.parquet")] for name in methods}
    files = [
        QueryFiles(
            trained.datasets["original"],
            trained.weights[:1],
            made[name],
            str(folder / name / "manifest.json"),
        )
        for name in methods
    ]
    search.query.run(files, values_of(methods), assignment(folder / "state", **more))
    kind = KINDS["unlearning_searched"]
    return {name: tables.read(*path, kind).reset_index(drop=True) for name, path in made.items()}


def values_of(methods):
    """What a job is asked that tries the points of some methods."""
    return {"points": {name: POINTS[name] for name in methods}, "n": 2, "cutoff": CUTOFF}


@pytest.fixture(scope="module")
def found(trained, tmp_path_factory):
    return searched(trained, tmp_path_factory.mktemp("search"))


def losses_in(trained, origin, split):
    """Loss of each string of a split at the end of the training of an original model."""
    strings = tables.read(trained.datasets["original"], KINDS["strings"])
    last = trained.trace("original", origin, RECIPE.epochs)
    chosen = (strings["split"] == split).to_numpy()
    return (last["nll"] / last["n_tokens"])[chosen].to_numpy()


def test_every_point_is_applied_to_every_original_model(found, trained):
    """The point `none` is the original models; the others differ from it and from each other."""
    ascent = found["ascent"]
    assert list(dict.fromkeys(ascent["point"])) == ["none", "ascent.1", "ascent.2"]
    for origin in (0, 1):
        rows = {
            point: of_point.sort_values("string_id")["loss"].to_numpy()
            for point, of_point in ascent[ascent["origin"] == origin].groupby("point")
        }
        expected = losses_in(trained, origin, "forget")
        np.testing.assert_allclose(np.sort(rows["none"]), np.sort(expected), rtol=1e-6)
        assert (rows["ascent.1"] > rows["none"]).all()
        assert (rows["ascent.2"] != rows["ascent.1"]).all()
    # Half of the 6 passes of retraining
    assert ascent.groupby("point")["steps"].unique().map(list).to_dict() == {
        "none": [0],
        "ascent.1": [3],
        "ascent.2": [3],
    }
    unseen = ascent[ascent["point"] == "none"].groupby("origin")["unseen_loss"].first()
    strings = tables.read(trained.datasets["original"], KINDS["strings"])
    for origin in (0, 1):
        last = trained.trace("original", origin, RECIPE.epochs)
        test = (strings["split"] == "test").to_numpy()
        expected = last["nll"][test].sum() / last["n_tokens"][test].sum()
        assert unseen[origin] == pytest.approx(expected, rel=1e-6)


def test_a_killed_search_ends_with_the_same_rows(found, trained, tmp_path, monkeypatch):
    """Killed in the second method; then one model at a time. The state's key is in the listing."""
    whole = Search.of_some

    def killed(self, workbench, weights, places):
        if self.method == "repair":
            raise KeyboardInterrupt
        return whole(self, workbench, weights, places)

    with monkeypatch.context() as patch:
        patch.setattr(Search, "of_some", killed)
        with pytest.raises(KeyboardInterrupt):
            searched(trained, tmp_path)
    states = {path.parent.name for path in (tmp_path / "state").rglob("*.parquet")}
    how = assignment("")
    given = {
        "model": MODEL,
        "corpus": GRAMMAR,
        "learning_rate": RECIPE.learning_rate,
        "predict_end": RECIPE.predict_end,
        "training": {"epochs": RECIPE.epochs, "batch_size": 4, "checkpoint_every": 0},
        "engine": how.engine,
        "dataset": trained.datasets["original"],
        "weights": trained.weights[:1],
        "query": SEARCH,
        "values": values_of(["ascent"]),
    }
    assert states == set(keys_of_job(MODELS, given))
    resumed = searched(trained, tmp_path, memory=1)
    for name, rows in found.items():
        pd.testing.assert_frame_equal(resumed[name], rows, rtol=0, atol=0)


def test_a_ruined_model_is_infinitely_far(trained, tmp_path):
    """A setting that makes losses infinite does not end the search."""
    rows = searched(trained, tmp_path, ["ruin"])["ruin"]
    assert np.isfinite(rows[rows["point"] == "none"]["loss"]).all()
    ruined = rows[rows["point"] == "ruin.1"]
    assert np.isinf(ruined[["loss", "retain_loss", "unseen_loss"]]).all(axis=None)


# The choice

IDS = np.array(["a", "b"])
KEYS = {"model": "m", "language": "L", "size": 10, "seed": 7}
PROBLEM = tuple(KEYS.values())


N_MODELS = 4
SPREAD = np.array([-0.03, -0.01, 0.01, 0.03])  # of the models of a point
RULES = Rules("geometric_mean", "exact", 1e-5, 0.5, 0.2)


def rows_of(point, losses, retain=1.0, unseen=2.0, steps=1, **keys):
    """Rows of a point with models around the given losses on the two forget strings."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    **KEYS,
                    **keys,
                    "method": point.partition(".")[0],
                    "point": point,
                    "origin": origin,
                    "string_id": IDS,
                    "loss": np.array(losses, dtype=float) + more,
                    "retain_loss": retain,
                    "unseen_loss": unseen,
                    "steps": steps,
                }
            )
            for origin, more in enumerate(SPREAD)
        ]
    )


def problem_of(retrained, n_steps=10):
    """A problem whose retrained models have losses around these, and 1 and 2 on other strings."""
    kept = {"retain": np.exp(-1.0), "unseen": np.exp(-2.0)}
    return SearchProblem(IDS, np.array(retrained) + SPREAD[:, None], np.full(2, 5), kept, n_steps)


BEFORE = rows_of("none", [1.0, 1.0], steps=0)
PROBLEMS = {PROBLEM: problem_of([2.0, 3.0])}


def judged(*points, problems=PROBLEMS, before=BEFORE):
    """The table of one method, indexed by point."""
    rows = pd.concat([before, *points])
    settings = {"m": {point: {"1.rate": 1} for point in rows["point"].unique()}}
    return tuning({"m": rows}, problems, settings, RULES).set_index("point")


def test_the_distance_is_the_share_of_the_way_that_is_left():
    """By hand: the way is 1 + 2. Beyond the goal counts like before it."""
    found = judged(
        rows_of("m.1", [2.0, 3.0]),
        rows_of("m.2", [1.5, 2.0]),
        rows_of("m.3", [3.0, 2.0]),
        rows_of("m.4", [1.0, 1.0]),
    )
    assert found["distance_left"].to_dict() == pytest.approx(
        {"m.1": 0, "m.2": 1.5 / 3, "m.3": 2 / 3, "m.4": 1}
    )
    assert found["gap_closed"].to_dict() == pytest.approx(
        {"m.1": 1, "m.2": 0.5, "m.3": 1, "m.4": 0}
    )
    # Without any quality, the smaller distance is better.
    assert found.index.tolist() == ["m.1", "m.2", "m.3", "m.4"]
    assert found["chosen"].tolist() == [True, False, False, False]


def test_the_criterion_is_the_final_score():
    """By hand: models with the losses of retrained models have quality 1, others 0."""
    found = judged(
        rows_of("m.1", [2.0, 3.0], retain=1.5, unseen=2.1),
        rows_of("m.2", [1.0, 3.0]),
        rows_of("m.3", [1.0, 1.0], retain=0.5),
    )
    assert found["forgetting_quality"].to_dict() == {"m.1": 1, "m.2": 0.5, "m.3": 0}
    assert found["final_score"].to_dict() == pytest.approx(
        {"m.1": np.exp(-0.6), "m.2": 0.5, "m.3": 0}
    )
    assert found.index.tolist() == ["m.1", "m.2", "m.3"]


def test_forgetting_less_is_better_than_ruining_other_strings():
    """A point that would be the nearest on the forget strings alone."""
    found = judged(
        rows_of("m.1", [2.0, 3.0], retain=2.0),
        rows_of("m.2", [1.0, 3.0]),
    )
    assert found.index.tolist() == ["m.2", "m.1"]
    assert found["distance_left"]["m.1"] < found["distance_left"]["m.2"]
    assert found["retain_ratio"]["m.1"] == 2


def test_a_point_that_takes_too_long_is_not_allowed():
    """A fifth of ten steps. The best allowed one is chosen."""
    found = judged(rows_of("m.1", [2.0, 3.0], steps=3), rows_of("m.2", [1.0, 3.0], steps=2))
    assert found["allowed"].to_dict() == {"m.1": False, "m.2": True}
    assert found.index[found["chosen"]].tolist() == ["m.2"]
    assert found["steps_share"]["m.1"] == 0.3


def test_if_no_point_is_allowed_the_best_is_chosen():
    """The table says that the point is not allowed."""
    found = judged(
        rows_of("m.1", [1.0, 3.0], steps=3),
        rows_of("m.2", [2.0, 3.0], steps=4),
    )
    assert found.index.tolist() == ["m.2", "m.1"]
    assert found["chosen"].tolist() == [True, False]
    assert not found["allowed"].any()


def test_a_point_with_infinite_losses_is_last():
    found = judged(
        rows_of("m.1", [np.inf, np.inf], retain=np.inf, unseen=np.inf),
        rows_of("m.2", [1.0, 1.0], retain=1.5),
    )
    assert found.index.tolist() == ["m.2", "m.1"]
    assert np.isinf(found["distance_left"]["m.1"])
    assert found["final_score"]["m.1"] == 0


def test_problems_are_averaged():
    """The second problem knows nothing of the point."""
    other = {**KEYS, "seed": 8}
    problems = {**PROBLEMS, tuple(other.values()): PROBLEMS[PROBLEM]}
    again = [rows_of(point, [1.0, 1.0], seed=8) for point in ("none", "m.1")]
    found = judged(
        rows_of("m.1", [2.0, 3.0]),
        again[1],
        problems=problems,
        before=pd.concat([BEFORE, again[0]]),
    )
    assert found["distance_left"]["m.1"] == pytest.approx(0.5)
    assert found["final_score"]["m.1"] == pytest.approx(0.5)
    assert found["n_problems"]["m.1"] == 2


def test_the_cut_off_holds_on_every_problem():
    other = {**KEYS, "seed": 8}
    problems = {**PROBLEMS, tuple(other.values()): problem_of([2.0, 3.0], 20)}
    rows = [rows_of(point, [1.0, 1.0], seed=8) for point in ("none", "m.1")]
    points = pd.concat([rows_of("m.1", [2.0, 3.0], steps=3), rows[1]])
    found = judged(points, problems=problems, before=pd.concat([BEFORE, rows[0]]))
    assert found["steps_share"]["m.1"] == pytest.approx((0.3 + 0.05) / 2)
    assert not found["allowed"]["m.1"]


def test_a_problem_without_a_gap_is_refused():
    with pytest.raises(UserError, match="know its forget strings equally well"):
        judged(rows_of("m.1", [1.0, 1.0]), problems={PROBLEM: problem_of([1.0, 1.0])})


def test_the_chosen_phases_make_a_table_of_methods(tmp_path):
    """The file can be given as unlearning/table."""
    methods = read_methods(TABLE)
    phases = jobs(settings=1000).phases()
    chosen = pd.DataFrame(
        {
            "method": ["scrub", "scrub", "npo"],
            "point": ["scrub.3", "scrub.1", "npo.2"],
            "chosen": [True, False, True],
        }
    )
    path = tmp_path / "tuned.yaml"
    path.write_text(yaml.safe_dump(chosen_methods(phases, chosen), sort_keys=False))
    read = read_methods(path)
    assert list(read) == ["scrub", "npo"]
    assert read["scrub"].phases == methods["scrub"].points()["scrub.3"].phases
    assert read["npo"].phases == methods["npo"].points()["npo.2"].phases


# The script


def test_the_script_writes_the_table_and_the_methods(found, trained, tmp_path):
    """From the tables of a search, the retrained models' traces and the dataset."""
    methods = {
        name: {
            "phases": next(iter(points.values())),
            "grid": {"1.rate": [phases[0]["rate"] for phases in points.values()]},
        }
        for name, points in POINTS.items()
        if name != "ruin"
    }
    table = tmp_path / "methods.yaml"
    table.write_text(yaml.safe_dump(methods))
    files = []
    for name, rows in found.items():
        files.append(str(tmp_path / name / "searched.parquet"))
        tables.write(files[-1], rows, KINDS["unlearning_searched"])
    dataset, traces = trained.datasets["original"], [trained.path("retain", "trace.parquet")]
    settings = {name: read_methods(table)[name].settings() for name in methods}
    phases = {name: POINTS[name] for name in methods}
    outputs = {"table": tmp_path / "tuning.parquet", "methods": tmp_path / "tuned.yaml"}
    do_job(
        tmp_path,
        "palimpsest.unlearning.tuning.choice:choose",
        input={"searched": files, "datasets": [dataset], "retrained": traces},
        output=outputs,
        params={
            "settings": settings,
            "phases": phases,
            "cutoff": CUTOFF,
            "confidence": "geometric_mean",
            "thresholds": "grid",
            "delta": 1e-5,
            "bin_width": 0.5,
            "epochs": RECIPE.epochs,
            "batch_size": RECIPE.batch_size,
        },
    )
    made = tables.read(outputs["table"], KINDS["unlearning_tuning"])
    assert sorted(made["point"]) == ["ascent.1", "ascent.2", "repair.1"]
    assert made.groupby("method")["chosen"].sum().to_dict() == {"ascent": 1, "repair": 1}
    assert made.set_index("point")["steps_share"].to_dict() == {
        "ascent.1": 0.5,
        "ascent.2": 0.5,
        "repair.1": 1.0,
    }
    assert set(read_methods(outputs["methods"])) == {"ascent", "repair"}


def test_the_goal_is_what_the_retrained_models_predict(trained):
    """By their traces; one retraining is two epochs of three steps."""
    strings = tables.read(trained.datasets["original"], KINDS["strings"])
    ids = strings["string_id"].to_numpy(dtype=object)
    retrained = read_trained([trained.path("retain", "trace.parquet")], RETAIN, ids)
    found = search_problem(strings, retrained, RECIPE.epochs, RECIPE.batch_size)
    forget = (strings["split"] == "forget").to_numpy()
    assert found.string_ids.tolist() == ids[forget].tolist()
    last = [trained.trace("retain", draw, RECIPE.epochs) for draw in (0, 1)]
    each = [(rows["nll"] / rows["n_tokens"]).to_numpy()[forget] for rows in last]
    np.testing.assert_allclose(found.retrained, each)
    np.testing.assert_array_equal(found.n_tokens, last[0]["n_tokens"][forget])
    copies = {
        "retain": strings["count"].where(strings["split"] == "train", 0).to_numpy(),
        "unseen": (strings["split"] == "test").to_numpy(),
    }
    for name, of_set in copies.items():
        losses = [rows["nll"] @ of_set / (rows["n_tokens"] @ of_set) for rows in last]
        assert found.kept[name] == pytest.approx(np.exp(-np.array(losses)).mean())
    assert found.steps == 6
