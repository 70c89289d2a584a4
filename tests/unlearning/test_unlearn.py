"""Unlearning of twins on a CPU, from trained models to the tables that a job delivers."""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.method_costs import passes as planned
from helpers.unlearning_twins import (
    GRAMMAR,
    MODEL,
    MODELS,
    RECIPE,
    VARIANTS,
    Trained,
    assignment,
    trained_twins,
)
from palimpsest import tables
from palimpsest.corpora import GrammarCorpus
from palimpsest.errors import UserError
from palimpsest.jobs import model_queries
from palimpsest.jobs.bench import TrainedWeights
from palimpsest.jobs.query import QueryFiles
from palimpsest.models import read_models, resolve
from palimpsest.sections import KINDS
from palimpsest.training.fleet.members import Member
from palimpsest.training.runs import Material, Run
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.run import unlearn as unlearning
from palimpsest.unlearning.run.method_models import Afterwards, Curve, MethodModels, Relearning
from palimpsest.unlearning.run.unlearn import Unlearning, unlearn
from palimpsest.unlearning.run.wave import UnlearningWave

# The grammar has a rule that is never reached, and says so.
pytestmark = [
    pytest.mark.filterwarnings("ignore::palimpsest.languages.GrammarWarning"),
    pytest.mark.usefixtures("on_the_cpu"),
]

DRAWS = 3
ONE_AT_A_TIME = 1  # bytes of memory, in which no two models fit
NOTHING = ("none", [])
SELECTION = {"erase": "select-gradient", "share": 0.5, "which": "largest", "alpha": 0.5}
# Random numbers decide its noise on weights, its order of strings and its second batches.
METHOD = (
    "mine",
    [
        {"erase": "select-parts", "parts": ["matrices"]},
        {"erase": "noise", "sigma": 0.2},
        {"erase": "gradient-ascent", "share": 0.4, "rate": 1.0},
        {"repair": "neggrad", "share": 0.6, "rate": 0.5, "alpha": 0.9},
    ],
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Twelve strings, three of them to be forgotten; three models of each variant."""
    return trained_twins(tmp_path_factory.mktemp("trained"), DRAWS)


@dataclass(frozen=True)
class Delivered(MethodModels):
    """The models of a method in a job, and the files that the job delivers."""

    predictions: str
    models: str
    stages: str
    manifest: str


@dataclass
class Bench:
    """Applies methods to trained models, and reads their results."""

    folder: Path
    trained: Trained

    @property
    def state(self):
        return self.folder / "state"

    def part(self, name, origins, unlearning_replicates=None, variant="original", starts=None):
        names = ("u.parquet", "m.parquet", "s.parquet", "m.json")
        files = [str(self.folder / name / file) for file in names]
        return Delivered(
            origins, unlearning_replicates or [0] * len(origins), variant, starts or origins, *files
        )

    def apply(self, method, part, **more):
        """The tables of a part, strings and models, as they are delivered."""
        self.apply_all([(method, part)], **more)
        return tables.read(part.predictions, KINDS["unlearned"]), timeless(part.models)

    def apply_all(
        self,
        methods,
        relearn=(0, 0),
        curve=(0, 1),
        cutoff=1.0,
        memory=2**33,
        recipe=RECIPE,
        **more,
    ):
        """Apply methods, each with its part, in one job."""
        given = {"dataset": self.trained.datasets["original"], "weights": self.trained.weights}
        afterwards = Afterwards(cutoff, Curve(*curve), Relearning(*relearn))
        asked = [
            Unlearning(Method.of(name, phases), part, afterwards).question
            for (name, phases), part in methods
        ]
        files = [
            QueryFiles(
                **{**given, **more},
                tables=(part.predictions, part.models, part.stages),
                manifest=part.manifest,
            )
            for _, part in methods
        ]
        query = replace(unlearn.query, questions=lambda *_: asked)
        query.run(files, {}, assignment(self.state, recipe, memory=memory))


@pytest.fixture
def bench(tmp_path, trained):
    return Bench(tmp_path, trained)


def stages(part):
    """The losses of a part's models on the way."""
    return tables.read(part.stages, KINDS["unlearning_stages"]).reset_index(drop=True)


def timeless(path):
    """The rows of `unlearned_models` without the time that they took."""
    return tables.read(path, KINDS["unlearned_models"]).drop(columns="seconds")


PREDICTED = ["string_id", "nll", "n_tokens", "n_correct", "rank_sum"]


# Draws of a training


def test_draws_are_independent(trained):
    """Draws differ in their initial weights, in their order of strings and in what they learn."""
    row, scale = resolve(MODEL, read_models(MODELS))
    of_model = MODEL, row, scale, GrammarCorpus.from_file(GRAMMAR)
    runs = [Run(*of_model, trained.datasets["original"], RECIPE, replicate=d) for d in range(DRAWS)]
    orders = {tuple(Member(run, Material(run), None).next_epoch().ravel()) for run in runs}
    assert len(orders) == DRAWS
    assert len({tuple(sorted(order)) for order in orders}) == 1
    for epoch in (0, RECIPE.epochs):
        losses = [
            trained.trace("original", replicate, epoch)["nll"].to_numpy()
            for replicate in range(DRAWS)
        ]
        for one in range(DRAWS):
            for other in range(one):
                assert (losses[one] != losses[other]).all()


@pytest.mark.parametrize("replicate", range(DRAWS))
def test_a_replicate_of_one_variant_is_independent_of_the_others(trained, replicate):
    """Original and retrained models are samples of two distributions, not pairs."""
    original = trained.trace("original", replicate, 0)["nll"]
    for other in range(DRAWS):
        assert (original != trained.trace("retain", other, 0)["nll"]).all()


def test_a_draw_does_not_depend_on_its_neighbours(trained, tmp_path):
    alone = Trained(tmp_path, trained.datasets).train(range(1, 2))
    for variant in VARIANTS:
        assert alone.trace(variant, 1).equals(trained.trace(variant, 1))
        np.testing.assert_array_equal(alone.vector(variant, 1), trained.vector(variant, 1))
        assert alone.trace(variant, 0).empty


# The ends


def test_none_is_the_original_model(bench):
    found, models = bench.apply(NOTHING, bench.part("none", [0, 1, 2]), relearn=(DRAWS, 2))
    for origin in range(DRAWS):
        expected = bench.trained.trace("original", origin, RECIPE.epochs)
        here = found[found["origin"] == origin].reset_index(drop=True)
        np.testing.assert_allclose(here["nll"], expected["nll"], rtol=0, atol=1e-6)
        assert here[PREDICTED].drop(columns="nll").equals(expected[PREDICTED].drop(columns="nll"))
    assert models["steps"].tolist() == [0] * DRAWS
    assert models["distance_to_original"].tolist() == [0] * DRAWS
    assert models["relearn_steps"].tolist() == [0] * DRAWS


def test_the_ideal_is_a_retrained_model(bench):
    """The ideal is not the retrained model with which its original is paired."""
    part = bench.part("retrain", [0, 1], variant="retain", starts=[2, 0])
    found, models = bench.apply(("retrain", []), part)
    for origin, replicate in ((0, 2), (1, 0)):
        expected = bench.trained.trace("retain", replicate, RECIPE.epochs)
        here = found[found["origin"] == origin]
        np.testing.assert_allclose(here["nll"], expected["nll"], rtol=0, atol=1e-6)
    assert models["steps"].tolist() == [0, 0]
    vector = bench.trained.vector
    expected = [
        [
            np.linalg.norm(vector("retain", replicate) - vector(variant, origin))
            for variant in VARIANTS
        ]
        for origin, replicate in ((0, 2), (1, 0))
    ]
    distances = models[["distance_to_original", "distance_to_retrained"]]
    np.testing.assert_allclose(distances, expected, rtol=1e-9)
    assert np.min(expected) > 0.01


# A method


def test_a_model_does_not_depend_on_its_part_or_wave(bench):
    """Three models at once, in waves of one and in parts of one: bit for bit."""
    origins, unlearning_replicates, then = [0, 1, 1], [0, 0, 1], {"relearn": (2, 3)}
    found, models = bench.apply(METHOD, bench.part("whole", origins, unlearning_replicates), **then)
    waves = bench.apply(
        METHOD, bench.part("waves", origins, unlearning_replicates), memory=ONE_AT_A_TIME, **then
    )
    parts = [
        bench.apply(METHOD, bench.part(f"part-{place}", [origin], [replicate]), **then)
        for place, (origin, replicate) in enumerate(
            zip(origins, unlearning_replicates, strict=True)
        )
    ]
    for others in (waves, [pd.concat(of_parts) for of_parts in zip(*parts, strict=True)]):
        assert found.equals(others[0].reset_index(drop=True))
        assert models.equals(others[1].reset_index(drop=True))
    # Not because all models are alike: of one origin, two unlearning_replicates are not.
    losses = found["nll"].to_numpy().reshape(3, -1)
    assert (losses[1] != losses[2]).all()
    assert models[["origin", "unlearning_replicate"]].to_numpy().tolist() == [
        [0, 0],
        [1, 0],
        [1, 1],
    ]


@pytest.mark.parametrize(
    ("phases", "cutoff", "passes"),
    [
        (METHOD[1], 1.0, 2 + 2),  # 0.4 of 6 passes; a step of neggrad makes two
        ([{"repair": "finetune", "share": 1.0, "rate": 0.5}], 0.5, 3),
        ([{"repair": "finetune", "share": 0.3, "rate": 0.5}] * 2, 1.0, 1 + 1),
        ([SELECTION, METHOD[1][1]], 1.0, 1 + 3),
        ([{"repair": "distil", "share": 1.0, "rate": 1.0, "over": "validation"}], 1.0, 6),
    ],
)
def test_steps_are_what_the_method_is_planned_to_take(bench, phases, cutoff, passes):
    """The sizes of the sets are counted here; batches have four strings.

    Retraining takes 2 epochs of 3 steps. A selection by gradients takes an epoch over the forget
    set, one step, and one over the retain set, three.
    """
    strings = tables.read(bench.trained.datasets["original"], KINDS["strings"])
    counts = strings.groupby("split")["count"].agg(["sum", "size"])
    sizes = {
        "retain": int(counts.loc["train", "sum"]),
        "forget": int(counts.loc["forget", "sum"]),
        "validation": int(counts.loc["validation", "size"]),
    }
    assert sizes == {"retain": 9, "forget": 3, "validation": 4}
    method = Method.of("m", phases)
    assert planned(method.phases, sizes, RECIPE.batch_size, round(6 * cutoff)) == passes
    _, models = bench.apply(("m", phases), bench.part("m", [0, 2]), cutoff=cutoff)
    assert models["steps"].tolist() == [passes] * 2


def test_a_method_works_on_the_sets_that_it_names(bench):
    """A set with ascent is predicted worse; a set in training improves more than others."""
    strings = tables.read(bench.trained.datasets["original"], KINDS["strings"]).set_index(
        "string_id"
    )
    origins = list(range(DRAWS))
    before, _ = bench.apply(NOTHING, bench.part("none", origins))
    split = strings["split"].reindex(before["string_id"]).to_numpy()

    def rise(phase, epochs):
        """The rise of each split's mean loss per token."""
        given = {**phase, "share": 1.0, "rate": 1.0}
        cutoff = epochs / RECIPE.epochs
        found, models = bench.apply(("m", [given]), bench.part("m", origins), cutoff=cutoff)
        assert (models["distance_to_original"] > 0.1).all()
        return ((found["nll"] - before["nll"]) / found["n_tokens"]).groupby(split).mean()

    assert rise({"erase": "gradient-ascent"}, 4 / 3)["forget"] > 0.1  # four steps
    learned = rise({"repair": "finetune"}, 40)
    assert learned["train"] < learned.drop("train").min() - 0.3


@pytest.mark.parametrize(
    "phases",
    [
        [{"repair": "finetune", "share": 1.0, "rate": 1000}],
        [
            {"erase": "select-parts", "parts": ["matrices"]},
            {"erase": "noise", "sigma": 1e30},
        ],
    ],
)
def test_a_method_that_diverges_is_refused(bench, phases):
    """The job delivers no file."""
    part = bench.part("huge", [0, 1])
    recipe = replace(RECIPE, learning_rate=1e33)
    with pytest.raises(UserError) as error:
        bench.apply(("huge", phases), part, recipe=recipe)
    assert str(error.value) == (
        "huge on pythia-1b-twin: the loss is no longer finite; lower the method's rates in "
        "unlearning/table"
    )
    assert not Path(part.predictions).parent.exists()
    assert files_in(bench.state) == []


# Relearning


def test_relearning_is_of_the_first_models_and_ends_in_time(bench):
    """Origin 2 is not among the first two, nor is another replicate the first of its origin.

    A model that needs more steps than were tried is counted as not yet done.
    """
    part = bench.part("long", [0, 0, 1, 2], [0, 1, 0, 0])
    _, models = bench.apply(METHOD, part, relearn=(2, 20))
    steps = models["relearn_steps"].to_numpy()
    assert np.isnan(steps).tolist() == [False, True, False, True]
    np.testing.assert_array_equal(models["relearn_limit"], [20, np.nan, 20, np.nan])
    tried = steps[[0, 2]]
    assert (tried >= 2).all()
    assert (tried <= 20).all()
    for most in (int(tried.min()), 1, 0):
        part = bench.part(f"at-most-{most}", [0, 1])
        _, models = bench.apply(METHOD, part, relearn=(2, most))
        expected = np.where(tried <= most, tried, np.inf)
        np.testing.assert_array_equal(models["relearn_steps"], expected)
        assert models["relearn_limit"].tolist() == [most] * 2


def test_a_model_has_relearned_when_its_loss_is_the_originals(bench):
    """The stages show the losses from which the number of steps follows."""
    part = bench.part("told", [0, 1])
    _, models = bench.apply(METHOD, part, relearn=(2, 8))
    goal = forget_losses(bench, bench.apply(NOTHING, bench.part("none", [0, 1]))[0])
    rows = stages(part)
    rows = rows[rows["stage"] == "relearning"]
    for origin, steps in zip((0, 1), models["relearn_steps"], strict=True):
        curve = rows[rows["origin"] == origin]
        assert curve["passes"].tolist() == list(range(9))
        there = np.flatnonzero(curve["forget_loss"] <= goal[origin])
        assert steps == (there[0] if len(there) else np.inf)
    assert np.isfinite(models["relearn_steps"]).any()
    assert rows[["retain_loss", "unseen_loss"]].isna().all(axis=None)


def test_what_follows_leaves_the_tables_of_the_unlearned_models(bench):
    """Relearning, rounding and the curve use copies of the models."""
    both = {"relearn": (2, 5), "curve": (2, 3)}
    with_it, models = bench.apply(METHOD, bench.part("with", [0, 1]), **both)
    without, others = bench.apply(METHOD, bench.part("without", [0, 1]))
    assert with_it.equals(without)
    assert others["relearn_steps"].isna().all()
    columns = models.columns.drop(["relearn_steps", "relearn_limit"])
    assert models[columns].equals(others[columns])


# Stages


def losses_of(bench, found, split):
    """Loss of a split, nats per token with copies, of each model in a table `unlearned`."""
    strings = tables.read(bench.trained.datasets["original"], KINDS["strings"])
    copies = np.maximum(strings["count"], 1).where(strings["split"] == split, 0).to_numpy()
    nll = found["nll"].to_numpy().reshape(-1, len(strings))
    n_tokens = found["n_tokens"].to_numpy().reshape(-1, len(strings))
    return (nll @ copies) / (n_tokens @ copies)


def forget_losses(bench, found):
    return losses_of(bench, found, "forget")


def test_the_curve_begins_at_the_originals_and_ends_at_what_is_delivered(bench):
    """Of the first models only: not of origin 2, nor of another replicate."""
    part = bench.part("followed", [0, 0, 1, 2], [0, 1, 0, 0])
    found, models = bench.apply(METHOD, part, curve=(2, 6))
    originals, _ = bench.apply(NOTHING, bench.part("none", [0, 1, 2]))
    rows = stages(part)
    assert set(rows["stage"]) == {"unlearning"}
    assert rows.groupby(["origin", "unlearning_replicate"]).size().index.tolist() == [
        (0, 0),
        (1, 0),
    ]
    for origin, place in ((0, 0), (1, 2)):
        curve = rows[rows["origin"] == origin]
        assert curve["phase"].isna().tolist() == [True] + [False] * (len(curve) - 1)
        assert curve["phase"].iloc[1:].is_monotonic_increasing
        assert set(curve["phase"].iloc[1:]) == {"1", "2", "3", "4"}
        assert curve["passes"].is_monotonic_increasing
        assert curve["passes"].iloc[-1] == models["steps"].iloc[place]
        # Of 6 passes each is measured; a step of the last phase makes two, so one is between.
        assert set(curve["passes"]) == {0, 1, 2, 4}
        for name, split in (("forget", "forget"), ("retain", "train"), ("unseen", "test")):
            ends = curve[f"{name}_loss"].iloc[[0, -1]]
            expected = losses_of(bench, originals, split)[origin], losses_of(bench, found, split)
            np.testing.assert_allclose(ends, [expected[0], expected[1][place]], rtol=1e-9)
            assert ends.iloc[0] != ends.iloc[1]


def test_an_end_has_no_curve(bench):
    part = bench.part("none", [0, 1])
    bench.apply(NOTHING, part, curve=(2, 4))
    assert stages(part).empty
    assert list(stages(part).columns) == KINDS["unlearning_stages"].names


def test_weights_of_4_bits_are_measured_once(bench, monkeypatch):
    """Rounded matrices change the losses; with a rounding that does nothing, they do not."""
    part, exact = bench.part("rounded", [0, 1, 2]), bench.part("exact", [0, 1])
    found, _ = bench.apply(METHOD, part, relearn=(2, 1))
    rows = stages(part)
    rows = rows[rows["stage"] == "4-bit"]
    assert rows["origin"].tolist() == [0, 1]
    assert rows["passes"].tolist() == [0, 0]
    delivered = losses_of(bench, found, "train")[:2]
    apart = np.abs(rows["retain_loss"] - delivered)
    assert (apart > 1e-4).all()
    assert (apart < 1).all()
    monkeypatch.setattr("palimpsest.unlearning.run.wave.rounded_to_4_bits", lambda weight: weight)
    bench.apply(METHOD, exact, relearn=(2, 1))
    rows = stages(exact)
    rows = rows[rows["stage"] == "4-bit"]
    np.testing.assert_allclose(rows["retain_loss"], delivered, rtol=1e-9)


def test_stages_do_not_depend_on_the_part_or_wave(bench):
    """Models of later waves are followed, rounded and taught as well."""
    then = {"relearn": (3, 2), "curve": (3, 3)}
    whole, waves, alone = (
        bench.part(name, origins)
        for name, origins in (("whole", [0, 1, 2]), ("waves", [0, 1, 2]), ("alone", [2]))
    )
    bench.apply(METHOD, whole, **then)
    bench.apply(METHOD, waves, memory=ONE_AT_A_TIME, **then)
    bench.apply(METHOD, alone, **then)
    rows = stages(whole)
    assert rows.groupby("stage")["origin"].nunique().to_dict() == {
        "unlearning": 3,
        "4-bit": 3,
        "relearning": 3,
    }
    pd.testing.assert_frame_equal(stages(waves), rows, rtol=0, atol=0)
    of_2 = rows[rows["origin"] == 2].reset_index(drop=True)
    pd.testing.assert_frame_equal(stages(alone), of_2, rtol=0, atol=0)


# Files


def files_in(folder):
    return [path for path in Path(folder).rglob("*") if path.is_file()]


def stamps(part):
    """When each delivered file was written."""
    return [Path(path).stat().st_mtime_ns for path in (part.predictions, part.models, part.stages)]


def key_in(part):
    return json.loads(Path(part.manifest).read_text())["key"]


def test_what_is_delivered_is_left_as_it_is(bench, monkeypatch):
    """A second call does nothing, even if the dataset is elsewhere; no state is left."""
    part = bench.part("twice", [0, 1])
    bench.apply(METHOD, part)
    before = stamps(part), Path(part.manifest).stat().st_mtime_ns
    assert files_in(bench.state) == []
    copy = bench.folder / "copy" / "strings.parquet"
    copy.parent.mkdir()
    shutil.copyfile(bench.trained.datasets["original"], copy)
    monkeypatch.setattr(unlearning, "UnlearningWave", None)
    bench.apply(METHOD, part)
    bench.apply(METHOD, part, dataset=str(copy))
    assert (stamps(part), Path(part.manifest).stat().st_mtime_ns) == before


def test_anything_that_decides_the_tables_makes_them_anew(bench, tmp_path):
    """Method, weights, dataset, recipe, cut-off, curve, relearning; each alone."""
    part = bench.part("changing", [0])
    first = bench.apply(METHOD, part)
    other = Trained(tmp_path / "other", bench.trained.datasets)
    other.train(range(1), replace(RECIPE, learning_rate=1e-3))
    dataset = str(tmp_path / "original" / "strings.parquet")
    strings = tables.read(bench.trained.datasets["original"], KINDS["strings"])
    tables.write(dataset, strings.assign(log_prob=strings["log_prob"] - 1), KINDS["strings"])
    weaker = [*METHOD[1][:-1], {**METHOD[1][-1], "rate": 0.4}]
    changes = [
        (METHOD, {"weights": other.weights}),
        (("mine", weaker), {}),
        (METHOD, {"dataset": dataset}),
        (METHOD, {"recipe": replace(RECIPE, weight_decay=0.1)}),
        (METHOD, {"cutoff": 0.9}),
        (METHOD, {"curve": (1, 1)}),
        (METHOD, {"relearn": (1, 1)}),
        (METHOD, {}),
    ]
    keys, tables_of = [key_in(part)], [first]
    for method, change in changes:
        before = stamps(part)
        tables_of.append(bench.apply(method, part, **change))
        assert all(now > then for now, then in zip(stamps(part), before, strict=True))
        keys.append(key_in(part))
    assert len(set(keys)) == len(keys) - 1
    assert keys[-1] == keys[0]
    assert tables_of[-1][0].equals(first[0])
    for changed in tables_of[1:3]:
        assert not changed[0]["nll"].equals(first[0]["nll"])


@pytest.mark.parametrize("lost", ["predictions", "models", "stages", "manifest"])
def test_a_lost_file_is_made_again(bench, lost):
    part = bench.part("lost", [0])
    expected = bench.apply(METHOD, part)
    Path(getattr(part, lost)).unlink()
    found = bench.apply(METHOD, part)
    assert all(now.equals(then) for now, then in zip(found, expected, strict=True))
    assert Path(part.manifest).exists()


@pytest.mark.parametrize(("lost", "to_do"), [(None, 2), ("unlearned_models", 3)])
def test_a_killed_job_goes_on_where_it_was(bench, monkeypatch, lost, to_do):
    """The saved results of a wave are used, unless the job was killed while it saved them."""
    origins = [0, 1, 2]
    expected = bench.apply(METHOD, bench.part("whole", origins))
    part, begun = bench.part("killed", origins), []
    whole = UnlearningWave.forget

    def forget(wave, method, cutoff):
        begun.append(wave.origins.tolist())
        if dies and len(begun) == 2:
            raise KeyboardInterrupt
        whole(wave, method, cutoff)

    monkeypatch.setattr(UnlearningWave, "forget", forget)
    dies = True
    with pytest.raises(KeyboardInterrupt):
        bench.apply(METHOD, part, memory=ONE_AT_A_TIME)
    assert begun == [[0], [1]]
    assert not Path(part.predictions).parent.exists()
    left = {path.stem.rpartition("-")[2]: path for path in files_in(bench.state)}
    assert set(left) == {"unlearned", "unlearned_models", "unlearning_stages", "about"}
    if lost:
        left[lost].unlink()
    begun.clear()
    dies = False
    found = bench.apply(METHOD, part, memory=ONE_AT_A_TIME)
    assert begun == [[0], [1], [2]][-to_do:]
    assert all(now.equals(then) for now, then in zip(found, expected, strict=True))
    assert files_in(bench.state) == []


# Several methods in one job

OTHER = ("other", [{"erase": "gradient-ascent", "share": 0.5, "rate": 0.5}])


@pytest.fixture
def applied(monkeypatch):
    """The methods that are applied, in order; the job dies at the method in the list `dies`."""
    begun, dies, whole = [], [], UnlearningWave.forget

    def forget(wave, method, cutoff):
        if method.name in dies:
            raise KeyboardInterrupt
        begun.append(method.name)
        whole(wave, method, cutoff)

    monkeypatch.setattr(UnlearningWave, "forget", forget)
    return begun, dies


def contents(part):
    """The bytes of a part's files."""
    names = ("predictions", "models", "stages", "manifest")
    return {name: Path(getattr(part, name)).read_bytes() for name in names}


def same_tables(part, other):
    """Whether two parts have the same tables, except for the time that they took."""
    return (
        tables.read(part.predictions, KINDS["unlearned"]).equals(
            tables.read(other.predictions, KINDS["unlearned"])
        )
        and timeless(part.models).equals(timeless(other.models))
        and stages(part).equals(stages(other))
    )


def test_a_job_applies_each_method_as_if_alone(bench):
    """The ends among them, and a method that has no model in this job."""
    then = {"relearn": (2, 2), "curve": (2, 2)}
    methods = [
        (NOTHING, bench.part("none", [0])),
        (METHOD, bench.part("mine", [0, 1])),
        (OTHER, bench.part("other", [1, 2], [0, 1])),
        (("retrain", []), bench.part("retrain", [], variant="retain")),
    ]
    bench.apply_all(methods, **then)
    for method, part in methods:
        alone = bench.part(
            f"{method[0]}-alone", part.origins, part.unlearning_replicates, part.variant
        )
        bench.apply(method, alone, **then)
        assert same_tables(part, alone)
        assert len(timeless(part.models)) == len(part.origins)
        assert json.loads(Path(part.manifest).read_text())["method"] == method[0]
    assert files_in(bench.state) == []


def test_a_further_method_is_the_only_one_that_is_applied(bench, applied):
    """The files of the others are left as they are; so if a method changes."""
    begun, _ = applied
    mine, other = bench.part("mine", [0, 1]), bench.part("other", [0, 1])
    bench.apply_all([(METHOD, mine)])
    before = contents(mine), stamps(mine)
    begun.clear()
    bench.apply_all([(METHOD, mine), (OTHER, other)])
    assert begun == ["other"]
    assert (contents(mine), stamps(mine)) == before
    begun.clear()
    weaker = ("other", [{**OTHER[1][0], "rate": 0.1}])
    then = contents(other)
    bench.apply_all([(METHOD, mine), (weaker, other)])
    assert begun == ["other"]
    assert (contents(mine), stamps(mine)) == before
    assert contents(other)["predictions"] != then["predictions"]
    assert files_in(bench.state) == []


def test_a_job_killed_between_two_methods_keeps_the_first(bench, applied):
    begun, dies = applied
    mine, other = bench.part("mine", [0, 1]), bench.part("other", [0, 1])
    dies.append("other")
    with pytest.raises(KeyboardInterrupt):
        bench.apply_all([(METHOD, mine), (OTHER, other)])
    assert begun == ["mine"]
    assert not Path(mine.manifest).exists()
    dies.clear()
    bench.apply_all([(METHOD, mine), (OTHER, other)])
    assert begun == ["mine", "other"]
    for method, part in ((METHOD, mine), (OTHER, other)):
        alone = bench.part(f"{method[0]}-alone", [0, 1])
        bench.apply(method, alone)
        assert same_tables(part, alone)
    assert files_in(bench.state) == []


def test_a_finished_method_survives_the_deletion_of_its_files(bench, applied):
    """Snakemake deletes all files of a job that failed, also those of finished methods."""
    begun, dies = applied
    mine, other = bench.part("mine", [0, 1]), bench.part("other", [0, 1])
    bench.apply_all([(METHOD, mine)])
    finished = contents(mine)
    dies.append("other")
    with pytest.raises(KeyboardInterrupt):
        bench.apply_all([(METHOD, mine), (OTHER, other)])
    shutil.rmtree(Path(mine.manifest).parent)
    dies.clear()
    begun.clear()
    bench.apply_all([(METHOD, mine), (OTHER, other)])
    assert begun == ["other"]
    again = contents(mine)
    for name in ("predictions", "models", "stages"):  # the manifest has the time of delivery
        assert again[name] == finished[name]
    assert files_in(bench.state) == []


def test_a_job_killed_after_its_delivery_leaves_no_state(bench, applied, monkeypatch):
    """The next attempt has nothing to do but clear the state."""
    begun, _ = applied
    mine, other = bench.part("mine", [0, 1]), bench.part("other", [0, 1])

    def killed(states):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(model_queries, "_clear", killed)
        with pytest.raises(KeyboardInterrupt):
            bench.apply_all([(METHOD, mine), (OTHER, other)])
    assert files_in(bench.state)
    before = contents(mine), contents(other)
    begun.clear()
    bench.apply_all([(METHOD, mine), (OTHER, other)])
    assert begun == files_in(bench.state) == []
    assert (contents(mine), contents(other)) == before


# The manifest


def test_the_manifest_says_what_was_done(bench):
    part = bench.part("told", [1, 2], [3, 0])
    bench.apply(METHOD, part, relearn=(2, 1), curve=(1, 3), cutoff=0.8)
    told = json.loads(Path(part.manifest).read_text())
    expected = {
        "model": MODEL,
        "language": "L3",
        "size": 12,
        "seed": 0,
        "method": "mine",
        "origins": [1, 2],
        "draws": [3, 0],
        "starts": [1, 2],
        "afterwards": {
            "cutoff": 0.8,
            "curve": {"models": 1, "points": 3},
            "relearn": {"models": 2, "steps": 1},
        },
    }
    assert {name: told[name] for name in expected} == expected
    assert [phase.get("erase") or phase["repair"] for phase in told["phases"]] == [
        "select-parts",
        "noise",
        "gradient-ascent",
        "neggrad",
    ]
    assert len(told["weights"]) == len(VARIANTS)
    assert told["wall_time_seconds"] > 0


# Weights


def test_weights_are_those_of_the_draw(trained):
    weights = TrainedWeights(trained.weights)
    for variant in VARIANTS:
        for replicate in range(DRAWS):
            found = weights.of(variant, replicate)
            flat = np.concatenate([found[name].numpy().ravel() for name in sorted(found)])
            np.testing.assert_array_equal(flat, trained.vector(variant, replicate))


@pytest.mark.parametrize(
    ("part", "missing"),
    [
        ({"origins": [0, 7]}, "original-7"),
        ({"origins": [0], "variant": "retain", "starts": [5]}, "retain-5"),
    ],
)
def test_a_missing_draw_is_refused(bench, part, missing):
    with pytest.raises(UserError) as error:
        bench.apply(NOTHING, bench.part("missing", **part))
    assert str(error.value) == (f"no weights of {missing} were given; train its models first")


def test_a_retrained_model_beside_is_needed_too(bench):
    """For the distance to it; the error comes before anything is delivered."""
    part = bench.part("missing", [0])
    with pytest.raises(UserError, match=r"^no weights of retain-0 were given"):
        bench.apply(NOTHING, part, weights=bench.trained.weights[:1])
    assert not Path(part.manifest).exists()


def test_a_dataset_without_strings_to_forget_is_refused(bench):
    strings = tables.read(bench.trained.datasets["original"], KINDS["strings"])
    path = str(bench.folder / "original" / "strings.parquet")
    tables.write(path, strings[strings["split"] != "forget"], KINDS["strings"])
    with pytest.raises(UserError) as error:
        bench.apply(NOTHING, bench.part("wrong", [0]), dataset=path)
    assert str(error.value) == f"{path}: has no string to forget; it must be of `original`"
