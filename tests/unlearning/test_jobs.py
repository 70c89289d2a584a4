"""What the block `unlearning` of a configuration asks for: models, and jobs that make them."""

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palimpsest import paths
from palimpsest.configuration.settings import Settings
from palimpsest.requests import TRACE, WEIGHTS
from palimpsest.unlearning import kinds
from palimpsest.unlearning.jobs import Forgetter, UnlearningJobs, jobs_of
from palimpsest.unlearning.methods import Method, read_methods
from palimpsest.unlearning.section import SECTION
from palimpsest.unlearning.setups import SETUPS

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "config/unlearning.yaml"
UNHURRIED = settings(deadline=None)
TWIN, FULL = "pythia-1b-twin", "pythia-1b"
TRAINING = {"epochs": 50, "batch_size": 8}
VARIANTS = ("original", "retain")
METHODS = ("none", "scrub", "npo", "scrub.2", "retrain")
BLOCK = {
    "models": [TWIN, FULL],
    "languages": ["L1", "L3"],
    "size": 80,
    "seed": 5,
    "training": {"epochs": 30},
    "n": 4,
    "repetitions": 3,
    "pool": 7,
    "setups": ["reuse-n-n"],
    "table": str(TABLE),
    "methods": ["scrub", "npo"],
    "tuning": ["scrub"],
    "runs_per_job": 5,
}


def settings_with(block):
    """Settings whose block `unlearning` is this one."""
    return Settings(
        {
            "models_table": str(ROOT / "config/models.tsv"),
            "training": TRAINING,
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


def forgetter(model=TWIN):
    """A model that is to forget."""
    return Forgetter(model, "L1", 80, 5)


# The bootstrap's pool has at least the n models of a repetition.
some_jobs = st.builds(
    lambda n, more, **changes: jobs(n=n, pool=n + more, **changes),
    n=st.integers(1, 12),
    more=st.integers(0, 9),
    repetitions=st.integers(1, 4),
    setups=st.lists(st.sampled_from(SETUPS), min_size=1, unique=True),
    runs_per_job=st.integers(1, 20),
    seed=st.integers(0, 99),
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
    for origins, draws, retrained in members(asked):
        assert set(zip(origins.tolist(), draws.tolist(), strict=True)) <= set(runs)
        assert {(int(origin), 0) for origin in origins} <= set(asked.runs("none"))
        assert {(int(draw), 0) for draw in retrained} <= set(asked.runs("retrain"))
        assert origins.max() < asked.n_trained("original")
        assert retrained.max() < reference
    assert asked.runs("npo") == asked.runs("scrub.2") == runs


@UNHURRIED
@given(some_jobs)
def test_the_ideal_shares_no_model_with_the_reference(asked):
    """The ideal has as many models of its own; all are trained, and each is used once."""
    variant, draws = asked.starts("retrain", 0, len(asked.runs("retrain")) - 1)
    assert variant == "retain"
    reference = {int(draw) for m in members(asked) for draw in m.retrained}
    assert not reference & set(draws)
    assert len(set(draws)) == len(draws) == asked.n_trained("retain") // 2
    assert max(draws) == asked.n_trained("retain") - 1
    origins = asked.origins("retrain", 0, len(draws) - 1)
    assert [draw - origin for draw, origin in zip(draws, origins, strict=True)] == [
        asked.n_trained("retain") // 2
    ] * len(draws)


# Jobs


@UNHURRIED
@given(some_jobs, st.sampled_from(METHODS))
def test_the_parts_of_a_method_hold_every_run_once(asked, method):
    runs = asked.runs(method)
    parts = asked.jobs(TWIN, method)
    check_parts(parts, 0, len(runs), asked.block["runs_per_job"])
    origins = [origin for part in parts for origin in asked.origins(method, *part)]
    assert origins == [origin for origin, _ in runs]


@UNHURRIED
@given(some_jobs)
def test_the_jobs_of_a_training_hold_every_draw_once(asked):
    """The ideal's are in jobs of their own, so that no method waits for them."""
    most = asked.block["runs_per_job"]
    check_parts(asked.training_jobs(forgetter(), "original"), 0, asked.n_trained("original"), most)
    half = asked.n_trained("retain") // 2
    retain = asked.training_jobs(forgetter(), "retain")
    check_parts([part for part in retain if part[0] < half], 0, half, most)
    check_parts([part for part in retain if part[0] >= half], half, half, most)
    assert retain == sorted(retain)


@UNHURRIED
@given(some_jobs, st.sampled_from(VARIANTS), st.sampled_from([TWIN, FULL]), st.data())
def test_replicates_are_found_in_their_jobs(asked, variant, model, data):
    """All jobs that have any of them, and no others; replicates beyond the last are in no job."""
    replicate = st.integers(0, asked.n_trained(variant) + 3)
    wanted = data.draw(st.lists(replicate, min_size=1, max_size=8))
    given = asked.training_jobs(forgetter(model), variant)
    expected = [job for job in given if set(places([job])) & set(wanted)]
    found = asked.trained_among(
        forgetter(model), variant, "{model} {variant} {first} {last}", wanted
    )
    assert found == [f"{model} {variant} {first} {last}" for first, last in expected]


@UNHURRIED
@given(some_jobs, st.sampled_from(METHODS))
def test_every_job_starts_from_models_that_are_trained(asked, method):
    """Each model from its own original, the ideal from the ideal's."""
    for part in asked.jobs(TWIN, method):
        variant, starts = asked.starts(method, *part)
        assert variant == ("retain" if method == "retrain" else "original")
        assert len(starts) == part[1] - part[0] + 1
        assert set(starts) <= set(places(asked.training_jobs(forgetter(), variant)))
        if method != "retrain":
            assert starts == asked.origins(method, *part)


@UNHURRIED
@given(some_jobs)
def test_a_full_model_has_a_job_of_its_own(asked):
    """The key `runs_per_job` is for twins only."""
    assert asked.runs_per_job(FULL) == 1
    assert asked.runs_per_job(TWIN) == asked.block["runs_per_job"]
    for variant in VARIANTS:
        each = range(asked.n_trained(variant))
        assert asked.training_jobs(forgetter(FULL), variant) == [(draw, draw) for draw in each]
    for method in METHODS:
        each = range(len(asked.runs(method)))
        assert asked.jobs(FULL, method) == [(place, place) for place in each]


# Methods


def test_phases_survive_the_command_line():
    """The phases of every method and of every point of a grid are JSON in one line."""
    names = list(usual().table)
    assert {"scrub", "scrub.2"} <= set(names)
    for name in names:
        text = usual().phases(name)
        assert "\n" not in text
        again = Method.from_json(name, text)
        assert (again.name, again.as_json()) == (name, text)
        assert again.phases == usual().table[name].phases
        assert len(again.phases) > 0


@pytest.mark.parametrize("name", ["none", "retrain"])
def test_the_ends_have_no_phases(name):
    text = usual().phases(name)
    assert json.loads(text) == []
    assert Method.from_json(name, text).phases == []


def test_methods_stand_between_the_ends_and_points_are_apart():
    asked = usual()
    assert asked.methods == ["none", "scrub", "npo", "retrain"]
    scrub = read_methods(TABLE)["scrub"]
    grid = scrub.points()
    assert asked.points == list(grid)
    assert len(grid) > 1
    assert {point: about["method"] for point, about in asked.settings_of_points().items()} == (
        dict.fromkeys(grid, "scrub")
    )
    for point, about in asked.settings_of_points().items():
        assert about["settings"] == scrub.settings()[point]
    assert jobs(tuning=[]).points == []


# Files


def replicates_of(asked, one, variant):
    """The requests for the trainings of a model on a variant."""
    return [runs for runs in asked.replicates(one, variant) if runs.variant == variant]


def test_every_forgetter_has_three_kinds_of_models():
    """Original and retrained ones are asked for, and unlearned ones are made of them."""
    asked = usual()
    keys = [(f.model, f.language, f.size, f.seed) for f in asked.forgetters]
    assert keys == [(model, language, 80, 5) for model in (TWIN, FULL) for language in ("L1", "L3")]
    requests = list(asked.requests())
    for one in asked.forgetters:
        for variant, n in {"original": 4, "retain": 8}.items():
            found = replicates_of(asked, one, variant)
            assert all(runs in requests for runs in found)
            assert sum(runs.trainings for runs in found) == n == asked.n_trained(variant)
            named = {(r.model, r.corpus, r.size, *r.seeds) for r in found}
            assert named == {(one.model, one.language, one.size, one.seed)}
    n_applied = len(asked.points) + 2
    derived = list(SECTION.derived(with_cutoff()))
    assert [
        (made.runs.model, made.runs.corpus, made.runs.size, made.seed) for made in derived
    ] == keys
    assert {made.n for made in derived} == {4 + 4 + n_applied * 4 * 3}
    assert {(made.name, made.share) for made in derived} == {("unlearned", 0.2)}


def with_cutoff():
    """The settings of the block above, with the other values that the plan needs."""
    return settings_with({**BLOCK, "cutoff": 0.2})


def test_what_is_asked_for_is_trained_in_its_own_way_and_kept_whole():
    """With the block's own keys of `training`; weights are kept, as methods start from them."""
    for runs in usual().requests():
        assert runs.training == {"epochs": 30}
        assert runs.keeps == {TRACE, WEIGHTS}
        assert runs.replicates_per_job == (5 if runs.model == TWIN else 1)


@settings(UNHURRIED, max_examples=15)
@given(some_jobs)
def test_every_job_has_a_manifest_of_its_own(asked):
    """Each folder's name says which models it holds; together, they hold all models."""
    for one in asked.forgetters:
        of_variants = {
            variant: (
                asked.trained(one, variant, paths.REPLICATES_MANIFEST),
                asked.n_trained(variant),
            )
            for variant in VARIANTS
        }
        n_unlearned = sum(len(asked.runs(method)) for method in METHODS)
        unlearned = asked.unlearned(one, METHODS, "manifest.json")
        for folder, (files, n) in {**of_variants, "unlearned": (unlearned, n_unlearned)}.items():
            assert len(set(files)) == len(files)
            ends = [Path(file).parent.name.split("-")[1:] for file in files]
            assert sum(int(last) - int(first) + 1 for first, last in ends) == n
            assert {Path(file).name for file in files} == {"manifest.json"}
            start = "results/unlearning/{model}/{language}/n{size}-seed{seed}".format(**vars(one))
            assert all(file.startswith(f"{start}/{folder}/") for file in files)


def test_the_tables_of_an_evaluation_are_of_every_forgetter():
    """The table of the grids exists only if a grid is searched."""
    names = [Path(path).stem for path in usual().tables()]
    assert len(names) == 4 * len(set(names))
    assert {"epsilons", "scores", "metrics", "memorisation", "tuning"} <= set(names)
    without = [Path(path).stem for path in jobs(tuning=[]).tables()]
    assert set(names) - set(without) == {"tuning"}
    assert kinds.TUNING.path.format(**vars(forgetter())) in usual().tables()


def test_the_section_delivers_the_models_and_their_tables():
    """Files of unlearned models are outputs; else Snakemake would not make a lost one again."""
    delivered = list(SECTION.outputs(with_cutoff()))
    assert len(set(delivered)) == len(delivered)
    asked = usual()
    for one in asked.forgetters:
        for name in ("unlearned.parquet", "models.parquet", "manifest.json"):
            assert set(asked.unlearned(one, asked.applied, name)) <= set(delivered)
    assert set(asked.tables()) <= set(delivered)


def test_the_training_of_the_block_wins():
    own = {"processes": 1, "offload_optimizer": "none"}  # of a twin
    assert usual().training(TWIN) == {"epochs": 30, "batch_size": 8, **own}
    assert usual().training(FULL) == {"epochs": 30, "batch_size": 8}


def test_the_jobs_of_some_settings_are_worked_out_once():
    """Every input function asks for the jobs."""
    given = with_cutoff()
    assert jobs_of(given) is jobs_of(given)
