"""Unlearning of twins on a CPU, from trained models to the tables that a job delivers."""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load_file

from palimpsest import tables
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.forgetting import build_forgetting
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import UserError
from palimpsest.jobs.bench import TrainedWeights
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.finetune import Job, finetune
from palimpsest.models import read_models, resolve
from palimpsest.sections import KINDS
from palimpsest.training.fleet.members import Member
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Material, Run
from palimpsest.unlearning import unlearn as unlearning
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.unlearn import Part, Relearning, Unlearning, UnlearningWave, unlearn

# The grammar has a rule that is never reached, and says so.
pytestmark = pytest.mark.filterwarnings("ignore::palimpsest.languages.GrammarWarning")

ROOT = Path(__file__).parents[2]
GRAMMAR = str(ROOT / "config/languages/L3.pcfg")
MODELS = str(ROOT / "config/models.tsv")
MODEL = "pythia-1b-twin"
RECIPE = Recipe(3e-3, epochs=2, batch_size=4, checkpoint_every=0)
VARIANTS = ("original", "retain")
DRAWS = 3
ONE_AT_A_TIME = 1  # bytes of memory, in which no two models fit
NOTHING = ("none", [])
# Random numbers decide its noise on weights, its order of strings and its second batches.
METHOD = (
    "mine",
    [
        {"erase": "select-parts", "parts": ["matrices"]},
        {"erase": "noise", "sigma": 0.2},
        {"erase": "gradient-ascent", "epochs": 2, "rate": 1.0},
        {"repair": "neggrad", "epochs": 1.5, "rate": 0.5, "alpha": 0.9},
    ],
)


@pytest.fixture(scope="module", autouse=True)
def _on_the_cpu():
    """On the CPU, a model's bits do not depend on the models trained with it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        yield


@dataclass
class Trained:
    """The files of a problem's originals and retrained models."""

    folder: Path
    datasets: dict

    def path(self, variant, name):
        return str(self.folder / variant / name)

    def train(self, draws, recipe=RECIPE):
        jobs = [
            Job(
                self.datasets[variant],
                self.path(variant, "trace.parquet"),
                self.path(variant, "manifest.json"),
                self.path(variant, "weights.safetensors"),
                replicates=draws,
            )
            for variant in VARIANTS
        ]
        state = str(self.folder / "state")
        finetune(Assignment(MODEL, MODELS, GRAMMAR, recipe, "fleet", state), jobs)
        return self

    @property
    def weights(self):
        return [self.path(variant, "weights.safetensors") for variant in VARIANTS]

    def trace(self, variant, draw, epoch=None):
        """What a model predicts, at one epoch or all of them."""
        frame = tables.read(self.path(variant, "trace.parquet"), KINDS["trace"])
        chosen = frame["variant"] == f"{variant}-{draw}"
        if epoch is not None:
            chosen &= frame["epoch"] == epoch
        return frame[chosen].reset_index(drop=True)

    def vector(self, variant, draw):
        """All weights of a model, as one vector."""
        held = load_file(self.path(variant, "weights.safetensors"))
        start = f"{variant}-{draw}/"
        chosen = [held[name] for name in sorted(held) if name.startswith(start)]
        return np.concatenate([values.ravel() for values in chosen]).astype(float)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Twelve strings, three of them to be forgotten; three models of each variant."""
    folder = tmp_path_factory.mktemp("trained")
    sampler = Sampler("L3", GrammarCorpus.from_file(GRAMMAR), 0)
    datasets = {}
    for variant, frame in build_forgetting(sampler, 12, 8, 4, False, "string", 0.25).items():
        datasets[variant] = str(folder / variant / "strings.parquet")
        tables.write(datasets[variant], frame, KINDS["strings"])
    return Trained(folder, datasets).train(range(DRAWS))


@dataclass
class Bench:
    """Applies methods to trained models, and reads their results."""

    folder: Path
    trained: Trained

    @property
    def state(self):
        return self.folder / "state"

    def part(self, name, origins, draws=None, variant="original", starts=None):
        files = [str(self.folder / name / file) for file in ("u.parquet", "m.parquet", "m.json")]
        return Part(origins, draws or [0] * len(origins), variant, starts or origins, *files)

    def apply(self, method, part, relearn=(0, 0), memory=2**33, recipe=RECIPE, **more):
        """The tables of a part, strings and models, as they are delivered."""
        name, phases = method
        given = {"dataset": self.trained.datasets["original"], "weights": self.trained.weights}
        unlearn(
            Unlearning(Method.from_json(name, json.dumps(phases)), part, Relearning(*relearn)),
            Assignment(MODEL, MODELS, GRAMMAR, recipe, "fleet", str(self.state), memory=memory),
            **{**given, **more},
        )
        return tables.read(part.predictions, KINDS["unlearned"]), timeless(part.models)


@pytest.fixture
def bench(tmp_path, trained):
    return Bench(tmp_path, trained)


def timeless(path):
    """The rows of `unlearned_models` without the time that they took."""
    return tables.read(path, KINDS["unlearned_models"]).drop(columns="seconds")


PREDICTED = ["string_id", "nll", "n_tokens", "n_correct", "rank_sum"]


# Draws of a training


def test_draws_are_independent(trained):
    """Draws differ in their initial weights, in their order of strings and in what they learn."""
    row, scale = resolve(MODEL, read_models(MODELS))
    of_model = MODEL, row, scale, GrammarCorpus.from_file(GRAMMAR)
    runs = [Run(*of_model, trained.datasets["original"], RECIPE, draw=d) for d in range(DRAWS)]
    orders = {tuple(Member(run, Material(run), None).next_epoch().ravel()) for run in runs}
    assert len(orders) == DRAWS
    assert len({tuple(sorted(order)) for order in orders}) == 1
    for epoch in (0, RECIPE.epochs):
        losses = [trained.trace("original", draw, epoch)["nll"].to_numpy() for draw in range(DRAWS)]
        for one in range(DRAWS):
            for other in range(one):
                assert (losses[one] != losses[other]).all()


@pytest.mark.parametrize("draw", range(DRAWS))
def test_a_draw_of_one_variant_is_independent_of_the_others(trained, draw):
    """Original and retrained models are samples of two distributions, not pairs."""
    original = trained.trace("original", draw, 0)["nll"]
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
    assert models["relearn_epochs"].tolist() == [0] * DRAWS


def test_the_ideal_is_a_retrained_model(bench):
    """The ideal is not the retrained model with which its original is paired."""
    part = bench.part("retrain", [0, 1], variant="retain", starts=[2, 0])
    found, models = bench.apply(("retrain", []), part)
    for origin, draw in ((0, 2), (1, 0)):
        expected = bench.trained.trace("retain", draw, RECIPE.epochs)
        here = found[found["origin"] == origin]
        np.testing.assert_allclose(here["nll"], expected["nll"], rtol=0, atol=1e-6)
    assert models["steps"].tolist() == [0, 0]
    vector = bench.trained.vector
    expected = [
        [np.linalg.norm(vector("retain", draw) - vector(variant, origin)) for variant in VARIANTS]
        for origin, draw in ((0, 2), (1, 0))
    ]
    distances = models[["distance_to_original", "distance_to_retrained"]]
    np.testing.assert_allclose(distances, expected, rtol=1e-9)
    assert np.min(expected) > 0.01


# A method


def test_a_model_does_not_depend_on_its_part_or_wave(bench):
    """Three models at once, in waves of one and in parts of one: bit for bit."""
    origins, draws, relearn = [0, 1, 1], [0, 0, 1], (2, 3)
    found, models = bench.apply(METHOD, bench.part("whole", origins, draws), relearn)
    waves = bench.apply(METHOD, bench.part("waves", origins, draws), relearn, ONE_AT_A_TIME)
    parts = [
        bench.apply(METHOD, bench.part(f"part-{place}", [origin], [draw]), relearn)
        for place, (origin, draw) in enumerate(zip(origins, draws, strict=True))
    ]
    for others in (waves, [pd.concat(of_parts) for of_parts in zip(*parts, strict=True)]):
        assert found.equals(others[0].reset_index(drop=True))
        assert models.equals(others[1].reset_index(drop=True))
    # Not because all models are alike: of one origin, two draws are not.
    losses = found["nll"].to_numpy().reshape(3, -1)
    assert (losses[1] != losses[2]).all()
    assert models[["origin", "draw"]].to_numpy().tolist() == [[0, 0], [1, 0], [1, 1]]


@pytest.mark.parametrize(
    "phases",
    [
        METHOD[1],
        [{"repair": "finetune", "epochs": 1, "rate": 0.5}],
        [{"repair": "finetune", "epochs": 0.3, "rate": 0.5}] * 2,
        [{"erase": "select-gradient", "share": 0.5, "which": "largest"}, METHOD[1][1]],
        [{"repair": "distil", "epochs": 2, "rate": 1.0, "over": "validation"}],
    ],
)
def test_steps_are_what_the_method_is_planned_to_take(bench, phases):
    """The sizes of the sets are counted here; batches have four strings."""
    strings = tables.read(bench.trained.datasets["original"], KINDS["strings"])
    counts = strings.groupby("split")["count"].agg(["sum", "size"])
    sizes = {
        "retain": int(counts.loc["train", "sum"]),
        "forget": int(counts.loc["forget", "sum"]),
        "validation": int(counts.loc["validation", "size"]),
    }
    assert sizes == {"retain": 9, "forget": 3, "validation": 4}
    planned = Method.from_json("m", json.dumps(phases)).passes(sizes, RECIPE.batch_size)
    _, models = bench.apply(("m", phases), bench.part("m", [0, 2]))
    assert models["steps"].tolist() == [planned] * 2
    assert planned > 0


def test_a_method_works_on_the_sets_that_it_names(bench):
    """A set with ascent is predicted worse; a set in training improves more than others."""
    strings = tables.read(bench.trained.datasets["original"], KINDS["strings"]).set_index(
        "string_id"
    )
    origins = list(range(DRAWS))
    before, _ = bench.apply(NOTHING, bench.part("none", origins))
    split = strings["split"].reindex(before["string_id"]).to_numpy()

    def rise(phase):
        """The rise of each split's mean loss per token."""
        found, models = bench.apply(("m", [phase]), bench.part("m", origins))
        assert (models["distance_to_original"] > 0.1).all()
        return ((found["nll"] - before["nll"]) / found["n_tokens"]).groupby(split).mean()

    assert rise({"erase": "gradient-ascent", "epochs": 4, "rate": 1.0})["forget"] > 0.1
    learned = rise({"repair": "finetune", "epochs": 40, "rate": 1.0})
    assert learned["train"] < learned.drop("train").min() - 0.3


@pytest.mark.parametrize(
    "phases",
    [
        [{"repair": "finetune", "epochs": 1, "rate": 1000}],
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
    """Origin 2 is not among the first two, nor is another draw the first of its origin."""
    part = bench.part("long", [0, 0, 1, 2], [0, 1, 0, 0])
    _, models = bench.apply(METHOD, part, relearn=(2, 20))
    epochs = models["relearn_epochs"].to_numpy()
    assert np.isnan(epochs).tolist() == [False, True, False, True]
    tried = epochs[[0, 2]]
    assert (tried >= 2).all()
    assert (tried <= 20).all()
    for most in (int(tried.min()), 1, 0):
        part = bench.part(f"at-most-{most}", [0, 1])
        _, models = bench.apply(METHOD, part, relearn=(2, most))
        expected = np.where(tried <= most, tried, np.inf)
        np.testing.assert_array_equal(models["relearn_epochs"], expected)


def test_relearning_leaves_the_tables_of_the_unlearned_models(bench):
    """Relearning uses copies of the models."""
    with_it, models = bench.apply(METHOD, bench.part("with", [0, 1]), relearn=(2, 5))
    without, others = bench.apply(METHOD, bench.part("without", [0, 1]), relearn=(0, 5))
    assert with_it.equals(without)
    assert others["relearn_epochs"].isna().all()
    columns = models.columns.drop("relearn_epochs")
    assert models[columns].equals(others[columns])


# Files


def files_in(folder):
    return [path for path in Path(folder).rglob("*") if path.is_file()]


def stamps(part):
    """When each delivered file was written."""
    return [Path(path).stat().st_mtime_ns for path in (part.predictions, part.models)]


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
    """Method, weights, dataset, recipe, relearning; each alone."""
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


@pytest.mark.parametrize("lost", ["predictions", "models", "manifest"])
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

    def forget(wave, method):
        begun.append(wave.origins.tolist())
        if dies and len(begun) == 2:
            raise KeyboardInterrupt
        whole(wave, method)

    monkeypatch.setattr(UnlearningWave, "forget", forget)
    dies = True
    with pytest.raises(KeyboardInterrupt):
        bench.apply(METHOD, part, memory=ONE_AT_A_TIME)
    assert begun == [[0], [1]]
    assert not Path(part.predictions).parent.exists()
    left = {path.stem.rpartition("-")[2]: path for path in files_in(bench.state)}
    assert set(left) == {"unlearned", "unlearned_models", "about"}
    if lost:
        left[lost].unlink()
    begun.clear()
    dies = False
    found = bench.apply(METHOD, part, memory=ONE_AT_A_TIME)
    assert begun == [[0], [1], [2]][-to_do:]
    assert all(now.equals(then) for now, then in zip(found, expected, strict=True))
    assert files_in(bench.state) == []


def test_the_manifest_says_what_was_done(bench):
    part = bench.part("told", [1, 2], [3, 0])
    bench.apply(METHOD, part, relearn=(2, 1))
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
        "relearning": {"models": 2, "epochs": 1},
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
        for draw in range(DRAWS):
            found = weights.of(variant, draw)
            flat = np.concatenate([found[name].numpy().ravel() for name in sorted(found)])
            np.testing.assert_array_equal(flat, trained.vector(variant, draw))


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
