"""What the block `unlearning` of a configuration asks for: models, and jobs that make them."""

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palimpsest import paths
from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError
from palimpsest.requests import TRACE, WEIGHTS
from palimpsest.unlearning import kinds
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.run.jobs import UnlearningJobs, UnlearningRun, jobs_of, models_by_method
from palimpsest.unlearning.run.method_models import MethodModels
from palimpsest.unlearning.run.setups import SETUPS
from palimpsest.unlearning.section import SECTION

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "config/unlearning.yaml"
UNHURRIED = settings(deadline=None)
TWIN, FULL = "pythia-1b-twin", "pythia-1b"
TRAINING = {"epochs": 50, "evaluate_every": 1, "batch_size": 8, "adapter": "none"}
VARIANTS = ("original", "retain")
METHODS = ("none", "scrub", "npo", "retrain")
BLOCK = {
    "models": [TWIN, FULL],
    "languages": ["L1", "L3"],
    "size": 80,
    "seeds": [5, 6],
    "recipe": "forgetting",
    "innocent_recipe": None,
    "n": 4,
    "repetitions": 3,
    "pool": 7,
    "setups": ["reuse-n-n"],
    "table": str(TABLE),
    "own_methods": {},
    "transfer": None,
    "methods": ["scrub", "npo"],
    "ablation": True,
    "cutoff": 0.2,
    "curve": {"models": 2, "points": 4},
    "relearn": {"models": 2, "steps": 6},
    "save_models": 0,
    "runs_per_job": 5,
}


def settings_with(block):
    """Settings whose block `unlearning` is this one."""
    return Settings(
        {
            "models_table": str(ROOT / "config/models.tsv"),
            "recipes": {"default": TRAINING, "forgetting": {"epochs": 30}},
            "training_by_model": {},
            "datasets": {"test_size": 40},
            "unlearning": block,
        }
    )


def jobs(**changes):
    """The jobs of a block that differs from the above."""
    return UnlearningJobs(settings_with({**BLOCK, **changes}))


@cache
def usual():
    """The jobs of the block above, whose table is read once."""
    return jobs()


def unlearning_run(model=TWIN):
    """A model that is to forget."""
    return UnlearningRun(model, "L1", 80, 5, "forgetting")


# The bootstrap's pool has at least the n models of a repetition.
some_jobs = st.builds(
    lambda n, more, **changes: jobs(n=n, pool=n + more, **changes),
    n=st.integers(1, 12),
    more=st.integers(0, 9),
    repetitions=st.integers(1, 4),
    setups=st.lists(st.sampled_from(SETUPS), min_size=1, unique=True),
    runs_per_job=st.integers(1, 20),
    seeds=st.lists(st.integers(0, 99), min_size=1, max_size=2, unique=True),
)


def places(parts):
    """Everything in some parts, in their order."""
    return [place for first, last in parts for place in range(first, last + 1)]


def members(asked):
    """The models of every repetition of every set-up."""
    for setup in asked.setups:
        for repetition in range(setup.repetitions):
            yield setup.members(repetition)


def check_parts(parts, first, n, most):
    """They hold the `n` numbers from `first` on, once and in order, in as few parts as possible."""
    assert places(parts) == list(range(first, first + n))
    sizes = [last - start + 1 for start, last in parts]
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1
    assert len(parts) == -(-n // most)


# Models


@pytest.mark.parametrize(
    ("setup", "originals", "retrained"),
    [
        ("full", lambda n, e, k: n * e, lambda n, e, k: n * e),
        ("reuse-n-n", lambda n, e, k: n, lambda n, e, k: n),
        ("reuse-n-1", lambda n, e, k: 1, lambda n, e, k: n),
        ("bootstrap", lambda n, e, k: k, lambda n, e, k: k),
    ],
)
@pytest.mark.parametrize(("n", "repetitions", "pool"), [(4, 3, 7), (1, 1, 1), (32, 20, 256)])
def test_trainings_are_those_of_table_1(setup, originals, retrained, n, repetitions, pool):
    """The ideal needs the same number of retrained models again."""
    asked = jobs(setups=[setup], n=n, repetitions=repetitions, pool=pool)
    assert asked.n_trained("original") == originals(n, repetitions, pool)
    assert asked.n_trained("retain") == 2 * retrained(n, repetitions, pool)


@UNHURRIED
@given(some_jobs)
def test_set_ups_together_train_what_the_largest_does(asked):
    """They share models: no model is trained twice for two set-ups."""
    alone = [
        UnlearningJobs(settings_with({**asked.block, "setups": [setup.name]}))
        for setup in asked.setups
    ]
    for variant in VARIANTS:
        assert asked.n_trained(variant) == max(one.n_trained(variant) for one in alone)


@UNHURRIED
@given(some_jobs)
def test_every_member_of_a_repetition_is_made(asked):
    """Every model that a repetition needs is made, once."""
    runs = asked.runs("scrub")
    assert runs == sorted(set(runs))
    reference = asked.n_trained("retain") // 2
    for origins, unlearning_replicates, retrained in members(asked):
        assert set(zip(origins.tolist(), unlearning_replicates.tolist(), strict=True)) <= set(runs)
        assert {(int(origin), 0) for origin in origins} <= set(asked.runs("none"))
        assert {(int(replicate), 0) for replicate in retrained} <= set(asked.runs("retrain"))
        assert origins.max() < asked.n_trained("original")
        assert retrained.max() < reference
    assert asked.runs("npo") == runs


def of_methods(asked, part):
    """The models of every method in a job."""
    return models_by_method(asked.methods, asked.models_of_job(*part))


def of_method(asked, method, model=TWIN):
    """The origins, replicates and starts of a method's models in all jobs, one after another."""
    found = [of_methods(asked, part)[method] for part in asked.jobs(model)]
    keys = ("origins", "unlearning_replicates", "starts")
    return {key: [one for of in found for one in getattr(of, key)] for key in keys}


@UNHURRIED
@given(some_jobs)
def test_the_ideal_shares_no_model_with_the_reference(asked):
    """The ideal has as many models of its own; all are trained, and each is used once."""
    ideal = of_method(asked, "retrain")
    starts, half = ideal["starts"], asked.n_trained("retain") // 2
    reference = {int(replicate) for m in members(asked) for replicate in m.retrained}
    assert not reference & set(starts)
    assert len(set(starts)) == len(starts) == half
    assert max(starts) == asked.n_trained("retain") - 1
    assert [
        replicate - origin for replicate, origin in zip(starts, ideal["origins"], strict=True)
    ] == ([half] * half)


# Jobs


@UNHURRIED
@given(some_jobs, st.sampled_from(METHODS))
def test_the_jobs_hold_every_run_of_a_method_once(asked, method):
    """One job applies all methods; the two ends may have fewer models, then the last jobs none."""
    runs = asked.runs(method)
    check_parts(asked.jobs(TWIN), 0, len(asked.runs("scrub")), asked.block["runs_per_job"])
    found = of_method(asked, method)
    assert list(zip(found["origins"], found["unlearning_replicates"], strict=True)) == runs


@UNHURRIED
@given(some_jobs)
def test_a_file_is_awaited_only_of_a_job_that_has_models(asked):
    """Every other file of the job is an empty table, which no evaluation reads."""
    one = unlearning_run()
    files = asked.unlearned(one, kinds.UNLEARNED.path, asked.methods)
    assert [*dict.fromkeys(Path(path).parent.parent.name for path in files)] == asked.methods
    for method in METHODS:
        awaited = [path for path in files if Path(path).parent.parent.name == method]
        full = [part for part in asked.jobs(TWIN) if of_methods(asked, part)[method].starts]
        assert [Path(path).parent.name for path in awaited] == [
            f"runs-{first}-{last}" for first, last in full
        ]


@UNHURRIED
@given(some_jobs)
def test_the_jobs_of_a_training_hold_every_replicate_once(asked):
    """The ideal's are in jobs of their own, so that no method waits for them."""
    most = asked.block["runs_per_job"]
    check_parts(
        asked.training_jobs(unlearning_run(), "original"), 0, asked.n_trained("original"), most
    )
    half = asked.n_trained("retain") // 2
    retain = asked.training_jobs(unlearning_run(), "retain")
    check_parts([part for part in retain if part[0] < half], 0, half, most)
    check_parts([part for part in retain if part[0] >= half], half, half, most)
    assert retain == sorted(retain)


@UNHURRIED
@given(some_jobs, st.sampled_from(VARIANTS), st.sampled_from([TWIN, FULL]), st.data())
def test_replicates_are_found_in_their_jobs(asked, variant, model, data):
    """All jobs that have any of them, and no others; replicates beyond the last are in no job."""
    replicate = st.integers(0, asked.n_trained(variant) + 3)
    wanted = data.draw(st.lists(replicate, min_size=1, max_size=8))
    given = asked.training_jobs(unlearning_run(model), variant)
    expected = [job for job in given if set(places([job])) & set(wanted)]
    found = asked.trained_among(
        unlearning_run(model), variant, "{model} {variant} {first} {last}", wanted
    )
    assert found == [f"{model} {variant} {first} {last}" for first, last in expected]


@UNHURRIED
@given(some_jobs)
def test_every_job_starts_from_models_that_are_trained(asked):
    """Each model from its own original, the ideal from the ideal's; the weights hold them all."""
    one = unlearning_run()
    trained = {v: set(places(asked.training_jobs(one, v))) for v in VARIANTS}
    for part in asked.jobs(TWIN):
        needed = set(asked.weights(one, *part))
        for method, found in of_methods(asked, part).items():
            assert found.variant == ("retain" if method == "retrain" else "original")
            assert set(found.starts) <= trained[found.variant]
            if method != "retrain":
                assert found.starts == found.origins
            for variant, numbers in (
                (found.variant, found.starts),
                ("original", found.origins),
                ("retain", found.origins),
            ):
                pattern = paths.REPLICATES_WEIGHTS
                assert set(asked.trained_among(one, variant, pattern, numbers)) <= needed


@UNHURRIED
@given(some_jobs)
def test_a_full_model_has_a_job_of_its_own(asked):
    """The key `runs_per_job` is for twins only."""
    assert asked.runs_per_job(FULL) == 1
    assert asked.runs_per_job(TWIN) == asked.block["runs_per_job"]
    for variant in VARIANTS:
        each = range(asked.n_trained(variant))
        assert asked.training_jobs(unlearning_run(FULL), variant) == [
            (replicate, replicate) for replicate in each
        ]
    each = range(len(asked.runs("scrub")))
    assert asked.jobs(FULL) == [(place, place) for place in each]


# Methods


def test_phases_survive_the_command_line():
    """The phases of every method that is applied, the two ends too, are JSON in one line."""
    asked = usual()
    text = json.dumps(asked.values(0, 0)["phases"])
    assert "\n" not in text
    again = {name: Method.of(name, phases) for name, phases in json.loads(text).items()}
    assert list(again) == asked.applied == ["none", "scrub", "npo", "retrain", "scrub.repair"]
    for name in ("scrub", "npo"):
        assert again[name].phases == asked.table[name].phases
        assert len(again[name].phases) > 0
    assert again["none"].phases == again["retrain"].phases == []


def test_the_models_of_a_job_survive_the_command_line():
    """By hand: a set-up with one origin, where the two ends have fewer models than a method."""
    asked = jobs(setups=["reuse-n-1"], n=2, repetitions=2, runs_per_job=3)
    assert asked.jobs(TWIN) == [(0, 1), (2, 3)]
    text = json.dumps(asked.values(0, 1)["models"])
    assert (
        models_by_method(asked.methods, json.loads(text))
        == of_methods(asked, (0, 1))
        == {
            "none": MethodModels(
                origins=[0], unlearning_replicates=[0], variant="original", starts=[0]
            ),
            "scrub": MethodModels(
                origins=[0, 0], unlearning_replicates=[0, 1], variant="original", starts=[0, 0]
            ),
            "npo": MethodModels(
                origins=[0, 0], unlearning_replicates=[0, 1], variant="original", starts=[0, 0]
            ),
            "retrain": MethodModels(
                origins=[0, 1], unlearning_replicates=[0, 0], variant="retain", starts=[2, 3]
            ),
        }
    )
    last = of_methods(asked, (2, 3))
    assert last["scrub"].unlearning_replicates == [2, 3]
    assert last["none"].starts == last["retrain"].starts == []


def test_what_follows_unlearning_is_the_blocks():
    assert usual().values(0, 0)["afterwards"] == {
        name: BLOCK[name] for name in ("cutoff", "curve", "relearn")
    }


# Files


def replicates_of(asked, one, variant):
    """The requests for the trainings of a model on a variant."""
    return [runs for runs in asked.replicates(one, variant) if runs.variant == variant]


def test_every_forgetter_has_three_kinds_of_models():
    """Original and retrained ones are asked for, and unlearned ones are made of them."""
    asked = usual()
    keys = [(f.model, f.language, f.size, f.seed) for f in asked.unlearning_runs]
    assert keys == [
        (model, language, 80, seed)
        for model in (TWIN, FULL)
        for language in ("L1", "L3")
        for seed in (5, 6)
    ]
    requests = list(asked.requests())
    for one in asked.unlearning_runs:
        for variant, n in {"original": 4, "retain": 8}.items():
            found = replicates_of(asked, one, variant)
            assert all(runs in requests for runs in found)
            assert sum(runs.trainings for runs in found) == n == asked.n_trained(variant)
            named = {(r.model, r.corpus, r.size, *r.seeds) for r in found}
            assert named == {(one.model, one.language, one.size, one.seed)}
    derived = list(SECTION.derived(settings_with(BLOCK)))
    assert [
        (made.runs.model, made.runs.corpus, made.runs.size, made.seed) for made in derived
    ] == keys
    assert {made.n for made in derived} == {4 + 4 + 3 * 4 * 3}
    assert {(made.name, made.share) for made in derived} == {("unlearned", 0.2)}


def test_what_is_asked_for_is_trained_in_its_own_way_and_kept_whole():
    """With the block's own keys of `training`; weights are kept, as methods start from them."""
    for runs in usual().requests():
        assert runs.recipe == "forgetting"
        assert runs.keeps == {TRACE, WEIGHTS}
        assert runs.regime.per_job == (5 if runs.model == TWIN else 1)


def test_innocent_models_are_asked_for_with_a_recipe_of_their_own():
    """As many as the reference has, with numbers of their own: their dataset is that of retain."""
    one, asked = unlearning_run(), jobs(innocent_recipe="small")
    (runs,) = asked.innocent_replicates(one)
    assert runs in list(asked.requests())
    assert (runs.recipe, runs.variant) == ("small", "retain")
    retained = [number for of in asked.replicates(one, "retain") for number in of.replicates]
    assert [*retained, *runs.replicates] == list(range(12))
    assert len(asked.innocent_trained(one, paths.REPLICATES_TRACE)) == 1


def test_without_innocent_models_nothing_more_is_trained():
    asked = jobs(innocent_recipe=None)
    assert list(asked.requests()) == list(usual().requests())
    assert asked.innocent_trained(unlearning_run(), paths.REPLICATES_TRACE) == []


@settings(UNHURRIED, max_examples=15)
@given(some_jobs)
def test_every_job_has_a_manifest_of_its_own(asked):
    """Each folder's name says which models it holds; together, they hold all models."""
    for one in asked.unlearning_runs:
        of_variants = {
            variant: (
                asked.trained(one, variant, paths.REPLICATES_MANIFEST),
                asked.n_trained(variant),
            )
            for variant in VARIANTS
        }
        # A folder of an end is named like those of the methods, and may hold fewer models.
        applied = asked.methods[1:-1]
        n_unlearned = sum(len(asked.runs(method)) for method in applied)
        unlearned = [
            path
            for path in asked.unlearned(one, kinds.UNLEARNED_MANIFEST, asked.methods)
            if Path(path).parent.parent.name in applied
        ]
        for folder, (files, n) in {**of_variants, "unlearned": (unlearned, n_unlearned)}.items():
            assert len(set(files)) == len(files)
            ends = [Path(file).parent.name.removeprefix("runs-").split("-") for file in files]
            assert sum(int(last) - int(first) + 1 for first, last in ends) == n
            assert {Path(file).name for file in files} == {"manifest.json"}
            place = "forgetting/{model}/{language}/n{size}-seed{seed}".format(**vars(one))
            start = f"results/{'unlearning' if folder == 'unlearned' else 'replicates'}/{place}"
            assert all(file.startswith(f"{start}/{folder}/") for file in files)


def test_the_tables_of_an_evaluation_are_of_every_forgetter():
    """The table of the search is not among them: its own target makes it."""
    names = [Path(path).stem for path in usual().tables()]
    assert len(names) == 8 * len(set(names))
    assert {"epsilons", "scores", "metrics", "memorisation"} <= set(names)
    assert "tuning" not in names
    assert kinds.METRICS.path.format(**vars(unlearning_run())) in usual().tables()


def test_the_section_delivers_the_models_and_their_tables():
    """Files of unlearned models are outputs; else Snakemake would not make a lost one again."""
    delivered = list(SECTION.outputs(settings_with(BLOCK)))
    assert len(set(delivered)) == len(delivered)
    asked = usual()
    for one in asked.unlearning_runs:
        for name in ("unlearned.parquet", "models.parquet", "stages.parquet", "manifest.json"):
            files = asked.unlearned(one, f"{kinds.UNLEARNED_FOLDER}/{name}", asked.applied)
            assert set(files) <= set(delivered)
    assert set(asked.tables()) <= set(delivered)


def test_a_method_with_both_roles_is_also_applied_without_its_erase_phases():
    """Npo has no repair phase, so there is nothing to apply alone."""
    asked = usual()
    assert asked.applied == ["none", "scrub", "npo", "retrain", "scrub.repair"]
    assert asked.ablated == ["scrub", "scrub.repair"]
    assert asked.phases()["scrub.repair"] == asked.table["scrub"].repair_alone.written
    models = models_by_method(asked.applied, asked.models_of_job(0, 4))
    assert models["scrub.repair"] == models["scrub"]
    assert asked.values(0, 4)["parts"] == ["scrub.repair"]


@pytest.mark.parametrize("changes", [{"ablation": False}, {"methods": ["npo", "finetune"]}])
def test_without_an_ablation_only_methods_are_applied(changes):
    asked = jobs(**changes)
    assert asked.applied == asked.methods
    assert not any("ablation" in path for path in asked.tables())


def test_the_jobs_of_some_settings_are_worked_out_once():
    """Every input function asks for the jobs."""
    given = settings_with(BLOCK)
    assert jobs_of(given) is jobs_of(given)


# Folders of models


def test_the_first_models_of_every_method_have_folders():
    """One folder per original model, however often it is unlearned; none by default."""
    assert usual().model_folders(unlearning_run()) == []
    folder = f"results/unlearning/forgetting/{TWIN}/L1/n80-seed5/unlearned"
    for setups, origins in ((["reuse-n-n"], (0, 1)), (["reuse-n-1"], (0,))):
        found = jobs(setups=setups, save_models=2).model_folders(unlearning_run())
        expected = {
            f"{folder}/{method}/model-{origin}"
            for method in METHODS
            for origin in (range(2) if method == "retrain" else origins)
        }
        assert set(found) == expected
        assert len(found) == len(expected)


@pytest.mark.parametrize("method", METHODS)
def test_a_folder_has_the_model_that_the_tables_name(method):
    """It starts from the same trained model as in the job that unlearns."""
    asked = usual()
    first, last = asked.jobs(TWIN)[0]
    part = models_by_method([method], asked.models_of_job(first, last))[method]
    one = unlearning_run()
    for origin, start in zip(part.origins, part.starts, strict=True):
        values = asked.values_of_model(method, origin)
        assert (values["variant"], values["start"]) == (part.variant, start)
        files = asked.trained_among(one, part.variant, paths.REPLICATES_WEIGHTS, [start])
        assert asked.weights_of_model(one, method, origin) == files


@pytest.mark.parametrize(
    ("method", "origin", "said"),
    [
        ("rmu", 0, "unlearning/methods: has no 'rmu'; it has: none, scrub, npo, retrain"),
        ("scrub", 99, "unlearning/n: too small for a model 99; raise n"),
    ],
)
def test_a_model_that_no_method_makes_has_no_folder(method, origin, said):
    with pytest.raises(UserError) as error:
        usual().weights_of_model(unlearning_run(), method, origin)
    assert str(error.value) == said
