"""The planner: a row for every run, and estimates for other runs from finished runs."""

import json
from dataclasses import replace

import pytest

from helpers.experiments import DEFAULT, ROOT, experiment, message
from palimpsest.planning.assumptions import TWIN_START_SECONDS
from palimpsest.planning.memory import GB
from palimpsest.planning.plan import Planner
from palimpsest.planning.summary import additions, summary
from palimpsest.planning.wall_time import at_least, gpu_hours_left, longest_chain
from palimpsest.regimes import SINGLE, LeaveOneOut, OnePass, Removals, Replicates
from palimpsest.requests import CHECKPOINTS, Runs
from palimpsest.section import Derived


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    """Paths of a configuration are relative to where Snakemake runs."""
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def default():
    """The default experiment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return experiment(DEFAULT)


@pytest.fixture
def rows(default, tmp_path):
    """The plan of the default experiment where nothing is done."""
    return Planner(default.settings, tmp_path).rows(default.requests, default.derived)


def test_every_run_has_a_row_of_the_plan(default, rows):
    """Trainings of leave-one-out count one per string at most; parts of the hours add up."""
    n_single = sum(len(runs.seeds) for runs in default.single_runs)
    of_unlearning = rows[n_single:]
    of_a_problem = {
        ("original", 32),
        ("retain", 64),  # half of them for the ideal
        # Seven methods and the repair of four of them, two repetitions; the two ends
        ("unlearned", 11 * 2 * 32 + 2 * 32),
    }
    assert {(row["variant"], row["trainings"]) for row in of_unlearning} == of_a_problem
    problems = {(row["language"], row["seed"]) for row in of_unlearning}
    assert problems == {("L3-short", seed) for seed in (1, 2, 3)}
    assert len(of_unlearning) == len(problems) * len(of_a_problem)
    left_out = [row for row in rows if row["variant"].startswith("leave-one-out")]
    assert {(row["variant"], row["trainings"]) for row in left_out} == {
        ("leave-one-out", 12),
        ("leave-one-out-again", 13),  # with one on the whole training set
    }
    assert len(left_out) == 2 * 2 * 5  # languages, variants and seeds
    for row in rows:
        parts = row["training_hours"] + row["measuring_hours"] + row["checkpoint_hours"]
        assert row["hours"] == pytest.approx(parts)
        assert row["gpu_memory_gb"] is None
        assert not row["done"]


def test_an_experiment_plans_its_own_requests(default, rows):
    """The table of the rule `plan`, whether anything is done or not."""
    assert [{**row, "done": False, "basis": ""} for row in default.plan] == [
        {**row, "done": False, "basis": ""} for row in rows
    ]


def test_requests_with_replicates_of_one_dataset_are_one_row(default):
    """Single runs come before them, in whatever order they are requested."""
    named = ("opt-1.3b-twin", "L1", 16)
    requests = [
        Runs(*named, "retain", seeds=(0,), regime=Replicates(range(4))),
        Runs(*named, "retain", seeds=(0,), regime=Replicates(range(4, 10))),
        Runs(*named, "retain", seeds=(0,)),
    ]
    found = Planner(default.settings, "nowhere").rows(requests, [])
    assert [row["trainings"] for row in found] == [1, 10]


def test_the_weights_of_every_epoch_that_is_measured_take_space(default):
    """Those before training are among them."""
    plain = Runs("opt-1.3b-twin", "L3", 16, seeds=(0,))
    kept = replace(plain, keeps=plain.keeps | {CHECKPOINTS})
    planner = Planner(default.settings, "nowhere")
    (without,), (with_all,) = (planner.rows([runs], []) for runs in (plain, kept))
    weights = 2 * without["parameters"] / GB  # in bf16, as on a GPU
    assert with_all["disk_gb"] - without["disk_gb"] == pytest.approx(51 * weights)


def test_a_finished_run_makes_its_model_measured(default, tmp_path):
    """Speeds are from manifests, but only of runs with the same engine and settings."""
    folder = tmp_path / "runs/base/short/opt-6.7b-twin/L1/n256-seed0"
    folder.mkdir(parents=True)
    (folder / "trace.parquet").touch()
    manifest = {
        "model": "opt-6.7b-twin",
        "language": "L1",
        "size": 256,
        "variant": "base",
        "engine": "fleet",
        "resumed_from_epoch": 0,
        "one_pass": False,
        "hardware": {"gpus": []},
        "configuration": {
            "recipe": {**default.settings.recipe("default"), "epochs": 10, "evaluate_every": 1}
        },
        "training_seconds": 10.0,
        "training_tokens_per_second": 4672.0,
        "wall_time_seconds": 30.0,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    every = Planner(default.settings, tmp_path / "runs").rows(default.requests, [])
    rows = [row for row in every if row["model"] == "opt-6.7b-twin"]
    assert {row["basis"] for row in rows} == {"measured"}
    assert [row["done"] for row in rows].count(True) == 1
    # 25 epochs of 256 strings of 73 tokens; measured 26 times; the manifest's run was 11 times.
    for row in rows:
        assert row["training_hours"] == pytest.approx(25 * 256 * 73 / 4672 / 3600)
        assert row["measuring_hours"] == pytest.approx(20 * 26 / 11 / 3600)
    assert {row["basis"] for row in every if row["model"] != "opt-6.7b-twin"} == {"assumed"}
    unlike = ({"engine": "deepspeed"}, {"resumed_from_epoch": 3}, {"training_seconds": 0.0})
    for change in unlike:
        (folder / "manifest.json").write_text(json.dumps({**manifest, **change}))
        assert Planner(default.settings, tmp_path / "runs").speed("opt-6.7b-twin", "short") is None
    for damaged in ("{", "{}", "[]", ""):
        (folder / "manifest.json").write_text(damaged)
        assert Planner(default.settings, tmp_path / "runs").speed("opt-6.7b-twin", "short") is None


def test_a_job_of_twins_takes_as_long_as_all_its_runs(default):
    """Three seeds of base, and one of leave-one-out with 64 trainings, and a start."""
    planner, named = default.planner, ("pythia-1b-twin", "L2", 64)
    one = planner.duration(*named).seconds
    assert planner.job_seconds(*named, 67) - TWIN_START_SECONDS == pytest.approx(67 * one)
    without = planner.duration(*named, regime=LeaveOneOut())
    crossed = planner.duration(*named, regime=Removals())
    assert without.training == planner.duration(*named).training
    # Measured on two strings, not on 64 and on 96 in each of the test set and the strings set apart
    assert without.measuring == pytest.approx(
        planner.duration(*named).measuring * 2 / (64 + 2 * 96)
    )
    # Removals measure all strings, each with its placebo.
    assert crossed.measuring == pytest.approx(64 * without.measuring)
    job = planner.job_seconds(*named, {SINGLE: 3, LeaveOneOut(): 64})
    assert job - TWIN_START_SECONDS == pytest.approx(3 * one + 64 * without.seconds)


def test_the_jobs_of_the_workflow_ask_for_all_their_runs(default):
    """The study `exact` trains one model for each seed and string, in the job of its base runs."""
    named = "opt-1.3b-twin", "L2", 64
    (job,) = (
        job
        for jobs in default.training_jobs
        for job in jobs
        if named in {(runs.model, runs.corpus, runs.size) for runs in job}
    )
    assert {runs.variant: runs.seeds for runs in job} == {
        "base": (0, 1, 2, 3, 4),
        "leave-one-out": (0, 1, 2, 3, 4),
        "leave-one-out-again": (0, 1, 2, 3, 4),
    }


def test_an_8b_model_is_planned_on_a_card_of_24_gb_with_adapters(tmp_path):
    """Of the same configuration without adapters, each model is refused."""
    small = "micro_batch_size: 2, evaluation_batch_size: 16"
    text = "models: [llama-3.1-8b]\nmemorisation: {{studies: null}}\n"
    text += "hardware: {{gpu_memory_gb: 24}}\ntraining_by_model:\n"
    text += f"  llama-3.1-8b: {{{{adapter: {{}}, {small}}}}}\n"
    file = tmp_path / "mine.yaml"
    file.write_text(text.format("lora"))
    planned = experiment(DEFAULT, file)
    rows = [row for row in planned.plan if row["model"] == "llama-3.1-8b"]
    assert len(rows) == 10  # two languages, five seeds
    for row in rows:
        assert 16 < row["gpu_memory_gb"] < 24
        assert row["main_memory_gb"] < 40
        assert row["state_gb"] < 2
    line = summary(rows, planned.planner.hardware).splitlines()[2]
    assert line.split()[4:6] == ["22", "GB"]
    file.write_text(text.format("none"))
    said = message(lambda: experiment(DEFAULT, file))
    assert "llama-3.1-8b needs 1" in said
    assert "hardware/gpu_memory_gb is 24; " in said
    assert "with adapters, training_by_model/llama-3.1-8b: {adapter: lora}" in said


def test_a_finished_training_of_all_weights_says_nothing_about_adapters(tmp_path):
    """Its speed is another one; manifests of versions without adapters have no such key."""
    file = tmp_path / "mine.yaml"
    text = "models: [opt-1.3b]\nrecipes: {{default: {{zero_stage: 2}}}}\n"
    text += "training_by_model: {{opt-1.3b: {}}}\n"
    folder = tmp_path / "runs/base/default/opt-1.3b/L1/n256-seed0"
    folder.mkdir(parents=True)
    for block in ("{adapter: lora}", "{}"):
        file.write_text(text.format(block))
        settings = experiment(DEFAULT, file).settings
        manifest = {
            "model": "opt-1.3b",
            "language": "L1",
            "size": 256,
            "variant": "base",
            "engine": "deepspeed",
            "resumed_from_epoch": 0,
            "one_pass": False,
            "hardware": {"gpus": ["a card"]},
            "configuration": {"processes": 1, "recipe": settings.training("opt-1.3b")},
            "training_seconds": 10.0,
            "training_tokens_per_second": 4672.0,
            "wall_time_seconds": 30.0,
        }
        (folder / "manifest.json").write_text(json.dumps(manifest))
        assert Planner(settings, tmp_path / "runs").speed("opt-1.3b") is not None
    # The last manifest is of all weights.
    file.write_text(text.format("{adapter: lora}"))
    adapted = experiment(DEFAULT, file).settings
    assert Planner(adapted, tmp_path / "runs").speed("opt-1.3b") is None


def test_longer_training_takes_longer(default):
    """The recipe counts for a run and for its job; that of the grid has half of the epochs."""
    named = "pythia-1b-twin", "L4", 48
    planner = default.planner
    half, usual = (planner.duration(*named, name).training for name in ("short", "default"))
    assert usual == pytest.approx(2 * half)
    assert planner.job_seconds(*named, 3, "short") == pytest.approx(
        TWIN_START_SECONDS + 3 * planner.duration(*named, "short").seconds
    )


def test_without_gpus_only_a_large_model_gets_all_cores(default, tmp_path):
    """A second thread does not help a twin, and a GPU needs only one thread beside it."""
    planner = Planner(default.settings, tmp_path)
    assert planner.threads("mistral-7b-v0.3", cores=8) == 8
    assert planner.threads("mistral-7b-v0.3") == 1
    assert planner.threads("mistral-7b-v0.3-twin", cores=8) == 1


def test_a_stream_is_one_pass(default):
    """Not the recipe's passes, and measured after every macro-batch, on its panel only."""
    planner, named = default.planner, ("pythia-1b-twin", "L2", 256)
    length = OnePass(cohorts=8, measured=40)
    took = planner.duration(*named, regime=length)
    of_base = planner.duration(*named)
    assert took.training == pytest.approx(of_base.training / 50)
    assert took.measuring == pytest.approx(of_base.measuring * 9 / 51 * 40 / (256 + 2 * 96))
    job = planner.job_seconds(*named, {length: 5})
    assert job - TWIN_START_SECONDS == pytest.approx(5 * took.seconds)


def test_the_plan_counts_every_stream(default):
    """A row for each seed; one of each macro-batch that is left out; and replicates of these."""
    rows = [row for row in default.plan if row["variant"].startswith("stream")]
    block = default.settings.block("profiles")
    models, cohorts = block["models"], block["cohorts"]
    again = block["notions"]["replicates"] * (1 + cohorts)
    assert len(rows) == 5 * (len(models) + cohorts + again)
    whole, without, replicate = (
        [row["hours"] for row in rows if row["model"] == models[-1] and row["variant"] == name]
        for name in ("stream", "stream-without-1", "stream-without-1-0")
    )
    # Without a macro-batch, fewer strings are measured; a replicate is measured at its end only.
    assert min(whole) > max(without) >= min(without) > max(replicate) > 0


def test_the_wall_time_on_some_gpus_is_a_bound_from_below(default, tmp_path):
    """More GPUs never take longer, and none shortens the longest chain."""
    rows = Planner(default.settings, tmp_path).rows(default.requests, default.derived)
    bounds = [at_least(rows, default.derived, n) for n in (1, 2, 8, 10**6)]
    total, chain = sum(row["gpu_hours"] for row in rows), longest_chain(rows, default.derived)
    assert bounds[:2] == pytest.approx([total, total / 2])
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == chain


def test_the_chain_of_a_model_and_what_is_made_from_it():
    """A training of 3 hours, then an unlearning of 2; done work counts no more."""
    named = {"model": "opt-1.3b-twin", "language": "L1", "size": 16, "seed": 0}
    trained = {**named, "variant": "original", "trainings": 4, "hours": 12.0, "gpu_hours": 12.0}
    made = {**named, "variant": "unlearned", "trainings": 8, "hours": 16.0, "gpu_hours": 16.0}
    runs = Runs("opt-1.3b-twin", "L1", 16, "original", seeds=(0,), regime=Replicates(range(4)))
    derived = [Derived(runs, "unlearned", 0, 8, 2 / 3, ())]

    def longest(*, trained_done=False, made_done=False) -> float:
        rows = [{**trained, "done": trained_done}, {**made, "done": made_done}]
        assert at_least(rows, derived, 1000) == longest_chain(rows, derived)
        return longest_chain(rows, derived)

    assert longest() == 5
    assert longest(trained_done=True) == 2
    assert longest(made_done=True) == 3
    assert longest(trained_done=True, made_done=True) == 0


def test_the_summary_says_the_wall_time_where_the_number_of_gpus_is_known(default, rows):
    hardware = default.planner.hardware
    assert hardware.gpus is None
    assert "wall time" not in summary(rows, hardware, default.derived)
    shown = summary(rows, replace(hardware, gpus=8), default.derived)
    assert "On 8 GPUs (hardware/gpus): at least " in shown
    assert "of wall time, an estimate" in shown
    assert "runs are of twins, whose speed is assumed to be that of one thread" in shown
    known = [{**row, "basis": "measured"} for row in rows]
    assert "of twins, whose speed" not in summary(known, replace(hardware, gpus=8))
    wide = [{**row, "gpus": 2} for row in rows]
    assert "On 1 GPU (hardware/gpus): no end; a run of " in summary(wide, replace(hardware, gpus=1))


def test_the_plan_says_who_asks_for_what():
    """Every training is counted once, and a study that adds models of its own names them."""
    whole = experiment(DEFAULT)
    total = sum(len(runs.seeds) * runs.trainings for runs in whole.requests)
    assert sum(sum(of_models.values()) for of_models in whole.bill.added.values()) == total
    assert set(whole.bill.added["exact"]) == {"opt-1.3b-twin"}
    assert "extraction" not in whole.bill.added  # it reads what others train
    parts = whole.bill.parts
    assert (
        sum(len(runs.seeds) * runs.trainings for own, _ in parts.values() for runs in own) == total
    )
    assert [one for _, derived in parts.values() for one in derived] == whole.derived
    header, _, *rows, _, last = additions(
        whole.bill.added, {"exact": 3}, {"exact": 5}, 7
    ).splitlines()
    assert header.split() == ["asked", "for", "by", "runs", "unlearned", "GPU", "time", "models"]
    assert rows[2].split() == ["exact", "260", "5", "3", "h", "opt-1.3b-twin"]
    assert last.split() == ["all", f"{total:,}", "5", "7", "h"]
    assert additions({}, {}, {}, 0) == ""


def test_the_hours_of_sections_and_studies_are_those_of_all(default):
    parts = default.bill.parts.values()
    hours = [gpu_hours_left(default.planner.rows(*part)) for part in parts]
    assert sum(hours) == pytest.approx(gpu_hours_left(default.plan))
