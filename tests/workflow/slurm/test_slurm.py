"""The workflow on a real SLURM cluster, undisturbed and under faults that are injected for real.

Most of each test is waiting, so the first ones run side by side, in folders of their own. Whatever
happens to a training, its traces are those of an undisturbed run on this machine, bit for bit.
"""

import json
import re
import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import cluster as slurm
import pytest

from helpers.projects import Project, wait_until
from helpers.slurm_projects import SlurmProject, environment_of, output

RULE = "train_twins_on_base"
RUN = "results/runs/base/default/opt-1.3b-twin/L2/n24-seed1"
DATASETS = [f"results/datasets/L2/n24-seed{seed}/base/strings.parquet" for seed in (0, 1)]
# The tour on one language with one of its studies: few submissions from grammar to report.
SMALL = [
    "--config",
    "languages=[L1]",
    "memorisation={studies: {only: [tradeoff]}}",
    "unlearning=null",
    "profiles=null",
    "density=null",
    "information=null",
    "records=null",
]
# Long enough to be met in the middle.
ONE_TRAINING = [
    f"{RUN}/trace.parquet",
    "--config",
    "recipes={default: {epochs: 80, checkpoint_every: 10}}",
]

# Here and not in the fixture, so that it is said once and not for every test.
if reason := slurm.unusable():
    pytest.skip(reason, allow_module_level=True)

pytestmark = pytest.mark.usefixtures("cluster")


def traces(project: Project) -> dict[str, bytes]:
    """Every trace of a project, by its place."""
    found = project.contents().items()
    return {name: content for name, content in found if name.endswith("trace.parquet")}


def resumed_from(project: Project) -> int:
    """The epoch from which the training went on after a fault."""
    manifest = project.folder / RUN / "manifest.json"
    return json.loads(manifest.read_text())["resumed_from_epoch"]


def undisturbed(folder: Path, *arguments: str) -> dict[str, bytes]:
    """The traces of a run on this machine without SLURM."""
    project = Project.fresh(folder)
    done = project.snakemake(*arguments)
    assert done.returncode == 0, done.stdout
    return traces(project)


def ready_to_train(folder: Path) -> SlurmProject:
    """A project whose datasets are there, so that its first submission is a training."""
    done = Project.fresh(folder).snakemake(*DATASETS)
    assert done.returncode == 0, done.stdout
    return SlurmProject(folder)


def whole_experiment(folder: Path) -> SlurmProject:
    """A small experiment to its report; its models are trained on a GPU."""
    project = SlurmProject.fresh(folder)
    project.finish(project.start(*SMALL))
    return project


def cancelled(folder: Path) -> SlurmProject:
    """A training taken down with scancel."""
    project = ready_to_train(folder)
    running = project.start(*ONE_TRAINING)
    output("scancel", project.until_training(freeze=True))
    project.finish(running)
    return project


def out_of_time(folder: Path) -> tuple[SlurmProject, list[str]]:
    """A training on a GPU that hangs until its time is up; the project, and the GPU it was given.

    A minute is SLURM's shortest limit, and longer than a small training takes.
    """
    project = ready_to_train(folder)
    project.ask_for(RULE, "gpu: 1, runtime: 1 * attempt")
    running = project.start(*ONE_TRAINING)
    project.until_training(freeze=True)
    training = project.training_processes()
    devices = [environment_of(process)["CUDA_VISIBLE_DEVICES"] for process in training]
    project.finish(running)
    return project, devices


def two_gpus(folder: Path) -> SlurmProject:
    """A training on two GPUs that starts where each node has only one that is free."""
    project = ready_to_train(folder)
    project.ask_for(RULE, "gpu: 2")
    taken = [take_a_gpu(node) for node in slurm.NODES]
    running = project.start(f"{RUN}/trace.parquet")
    waiting = ["squeue", "--noheader", "--partition=gpu", "--states=PENDING", "--format=%Z %r"]
    wait_until(lambda: f"{folder} Resources" in output(*waiting), "the training in the queue")
    output("scancel", *taken)
    project.finish(running)
    return project


def take_a_gpu(node: str) -> str:
    """Let an unrelated job occupy a GPU of a node; return the job's number."""
    asked = ["--partition=gpu", "--gpus=1", f"--nodelist={node}", "--mem=100", "--time=10"]
    what = ["--output=/dev/null", "--wrap=sleep 600"]
    return output("sbatch", "--parsable", *asked, *what).strip()


def snakemake_killed(folder: Path) -> SlurmProject:
    """Snakemake killed while its job trains, and the same command given again at once."""
    project = ready_to_train(folder)
    running = project.start(*ONE_TRAINING)
    left_over = project.until_training(freeze=True)
    running.kill()
    running.wait()
    assert project.queue()[left_over] == "RUNNING"
    project.finish(project.start(*ONE_TRAINING))
    return project


@pytest.fixture(scope="module")
def side_by_side(cluster, finished, tmp_path_factory) -> dict[str, Future]:
    """What is under way at once: an experiment, faults, and a training that is undisturbed.

    The tour was run on this machine without SLURM before.
    """
    work = {
        "whole_experiment": (whole_experiment,),
        "out_of_time": (out_of_time,),
        "undisturbed_training": (undisturbed, *ONE_TRAINING),
        "cancelled": (cancelled,),
        "snakemake_killed": (snakemake_killed,),
        "two_gpus": (two_gpus,),
    }
    pool = ThreadPoolExecutor(4)
    return {
        name: pool.submit(function, tmp_path_factory.mktemp(name), *more)
        for name, (function, *more) in work.items()
    }


def test_a_whole_experiment(side_by_side, finished):
    """From grammars to the report, with the traces of a run without SLURM."""
    project = side_by_side["whole_experiment"].result()
    assert (project.folder / "results/report.html").exists()
    ours, theirs = traces(project), traces(finished)
    assert {Path(name).parts[4] for name in ours} == {"opt-1.3b-twin", "pythia-1b-twin"}
    assert ours.items() <= theirs.items()


def test_every_job_was_where_it_should_be(side_by_side):
    """Partition, GPUs, memory and time limit of every submission, as SLURM accounted them."""
    jobs = side_by_side["whole_experiment"].result().accounted()
    assert len(jobs) == 7
    assert {job["State"] for job in jobs} == {"COMPLETED"}
    on_gpu = [job for job in jobs if job["Comment"].startswith(f"rule_{RULE}_wildcards")]
    assert len(on_gpu) == 2
    for job in jobs:
        given = dict(part.split("=") for part in job["AllocTRES"].split(","))
        assert job["Partition"] == ("gpu" if job in on_gpu else "cpu"), job
        assert given.get("gres/gpu", "0") == ("1" if job in on_gpu else "0"), job
        assert given["node"] == given["cpu"] == "1", job
    # Members one after another: the memory of the largest, the time of all.
    asked = {job["Comment"]: (job["AllocTRES"], job["TimelimitRaw"]) for job in jobs}
    for start, of_largest, members in (("rule_data_L1_", 2000, 3), ("rule_report_", 8000, 3)):
        ((memory, minutes),) = [asked[comment] for comment in asked if comment.startswith(start)]
        assert f"mem={of_largest}M" in memory
        assert minutes == str(5 * members)


def test_a_cancelled_training(side_by_side):
    """It is tried again, and goes on from its checkpoint."""
    project = side_by_side["cancelled"].result()
    states = [job["State"].split()[0] for job in project.trainings()]
    assert states == ["CANCELLED", "COMPLETED"]
    assert resumed_from(project) > 0
    assert traces(project) == side_by_side["undisturbed_training"].result()


def test_a_training_that_runs_out_of_time(side_by_side):
    """Each attempt has a larger limit, and goes on from the checkpoint of the last."""
    project, _ = side_by_side["out_of_time"].result()
    *failed, last = project.trainings()
    assert failed
    assert {job["State"] for job in failed} == {"TIMEOUT"}
    assert last["State"] == "COMPLETED"
    limits = [int(job["TimelimitRaw"]) for job in (*failed, last)]
    assert limits == list(range(1, len(limits) + 1))
    assert resumed_from(project) > 0
    assert traces(project) == side_by_side["undisturbed_training"].result()


def test_a_training_sees_the_gpu_that_it_was_given(side_by_side):
    """SLURM's choice of a GPU arrives in the process that trains."""
    _, devices = side_by_side["out_of_time"].result()
    assert devices
    assert all(re.fullmatch("[01]", device) for device in devices), devices


def test_the_gpus_of_a_training_are_on_one_node(side_by_side):
    """Its processes find each other on one machine only, so it waits where others have none."""
    (job,) = side_by_side["two_gpus"].result().trainings()
    assert "gres/gpu=2" in job["AllocTRES"]
    assert "node=1" in job["AllocTRES"]


def test_a_training_on_two_gpus_starts_once(side_by_side):
    """The executor may start a job once for each GPU; the copies would train the same model."""
    project = side_by_side["two_gpus"].result()
    (log,) = (project.folder / "logs/slurm").glob(f"rule_{RULE}/**/*.log")
    started = [line for line in log.read_text().splitlines() if line.startswith("localrule ")]
    assert len(started) == 1, log.read_text()


def test_snakemake_killed_on_the_login_node(side_by_side):
    """The job that it left behind is cancelled, and taken up by the same command given again."""
    project = side_by_side["snakemake_killed"].result()
    assert "cancelling the jobs that it had submitted" in project.printed()
    states = [job["State"].split()[0] for job in project.trainings()]
    assert states == ["CANCELLED", "COMPLETED"]
    assert resumed_from(project) > 0
    assert traces(project) == side_by_side["undisturbed_training"].result()


def alone(side_by_side: dict[str, Future]) -> None:
    """Wait until nothing else runs that a fault of the whole cluster could disturb."""
    for future in side_by_side.values():
        future.exception()


def test_a_node_that_hangs(side_by_side, tmp_path):
    """Its job is requeued, and the node is used again when it is back."""
    alone(side_by_side)
    project = ready_to_train(tmp_path)
    running = project.start(*ONE_TRAINING)
    job = project.until_training(freeze=True)
    node = output("squeue", "--noheader", "--jobs", job, "--format", "%N").strip()
    slurm.stop_daemon(f"slurmd-{node}", signal.SIGKILL)
    try:
        wait_until(lambda: slurm.state_of(node).startswith("down"), f"{node} down")
    finally:
        slurm.start_node(node)
    wait_until(lambda: slurm.state_of(node) in ("idle", "mixed"), f"{node} back")
    project.finish(running)
    assert [job["State"] for job in project.trainings()] == ["NODE_FAIL", "COMPLETED"]
    assert resumed_from(project) > 0
    assert traces(project) == side_by_side["undisturbed_training"].result()


def test_a_controller_that_is_gone_for_a_while(side_by_side, tmp_path):
    """Jobs go on running, and Snakemake goes on when the controller is back."""
    alone(side_by_side)
    project = ready_to_train(tmp_path)
    running = project.start(*ONE_TRAINING)
    project.until_training()
    slurm.stop_daemon("slurmctld")
    try:
        time.sleep(20)
    finally:
        slurm.start_controller()
    project.finish(running)
    assert {job["State"] for job in project.trainings()} == {"COMPLETED"}
    assert traces(project) == side_by_side["undisturbed_training"].result()
