"""The plan of a study: written and shown before anything runs, and refused where nothing fits."""

import pytest

from helpers.experiments import DEFAULT, PAPER, experiment
from helpers.projects import ROOT
from palimpsest import paths, tables
from palimpsest.planning.duration import asked_for
from palimpsest.regimes import LEAVE_ONE_OUT
from palimpsest.sections import KINDS

PROBLEM = "results/unlearning/forgetting/opt-1.3b-twin/L1/n16-seed0"

# The rule of the paper's only twin
LEAVING_OUT = "train_twins_on_base_and_leave_one_out_and_leave_one_out_again"


def planned(project, **options):
    """The plan of a study, as it is written and as it is shown."""
    done = project.snakemake("plan", "--quiet", "all", **options)
    assert done.returncode == 0, done.stdout
    return tables.read(project.folder / "results/plan.parquet", KINDS["plan"]), done.stdout


def test_a_bill_is_no_reason_to_print(project):
    """Made a second time, the plan says that a parameter has changed, and no bill with it."""
    planned(project)
    done = project.snakemake("plan")
    (reason,) = (line for line in done.stdout.splitlines() if "reason:" in line)
    assert "Params have changed" in reason
    assert len(reason) < 300


def test_a_plan_is_made_before_anything_else(project):
    """No dataset is built and no model trained for it."""
    assert project.jobs("plan") == {"plan": 1, "total": 1}
    plan, shown = planned(project)
    files = [p for p in (project.folder / "results").rglob("*") if p.is_file()]
    assert [path.name for path in files] == ["plan.parquet"]
    assert not plan["done"].any()
    assert set(plan["basis"]) == {"assumed"}
    assert plan["gpu_memory_gb"].isna().all()
    left_out = plan[plan["variant"] == LEAVE_ONE_OUT]
    assert left_out["trainings"].tolist() == [4]
    assert (plan["hours"] > 0).all()
    for model in plan["model"].unique():
        assert f"\n{model} " in shown
    assert "Nothing is measured yet" in shown


@pytest.mark.parametrize("target", ["tradeoff", "results/figures/tradeoff-L2.svg"])
def test_a_plan_of_a_target_has_the_runs_that_snakemake_would_train(project, target):
    """A figure of one language needs fewer than its study. No run is trained for the plan."""
    listed = project.snakemake(target, "--summary").stdout.splitlines()
    traces = (paths.values_in(paths.TRACE, line.split("\t")[0]) for line in listed)
    trained = {tuple(map(str, found.values())) for found in traces if found}
    done = project.snakemake("plan", target, "--until", "plan", "--quiet", "all")
    assert done.stdout.count(f"What {target} needs:") == 1
    plan = tables.read(project.folder / "results/plan.parquet", KINDS["plan"])
    keys = ["variant", "recipe", "model", "language", "size", "seed"]
    billed = {tuple(map(str, row)) for row in plan[keys].itertuples(index=False)}
    assert trained
    assert billed == trained
    assert not (project.folder / "results/runs").exists()


def test_the_papers_study_is_planned_and_fits(project):
    """Each run of 18 models, and of twins, in a folder in which nothing has been made."""
    plan, shown = planned(project, configfiles=("config/paper.yaml",))
    assert plan["model"].nunique() == 18 + 8
    grid = plan[plan["variant"] == "base"].groupby(["language", "size"])["model"].nunique()
    assert (grid.drop("L4-skewed", level="language", errors="ignore") >= 18).all()
    full = plan[~plan["model"].str.endswith("-twin")]
    assert (full["gpus"] == 2).all()
    assert full["gpu_memory_gb"].between(10, 80).all()
    assert full.groupby("model")["gpu_hours"].sum().idxmin() == "qwen2.5-0.5b"
    lines = shown.splitlines()
    table = lines[: next(i for i, line in enumerate(lines) if line.startswith("all "))]
    assert len({len(line) for line in table if line.startswith("---")}) == 1
    assert max(map(len, lines)) <= 104
    page = (ROOT / "docs/plan.md").read_text()
    quoted = page[page.index("\nmodel ") :].partition("```")[0].split("\n")
    assert len(quoted) > 8
    assert set(quoted) - {"", "..."} <= set(lines)


def test_a_finished_study_is_measured_and_nothing_is_left(finished):
    """The plan of the finished study, which was made after it."""
    plan = tables.read(finished.folder / "results/plan.parquet", KINDS["plan"])
    assert plan["done"].all()
    assert set(plan["basis"]) == {"measured"}
    models = plan.set_index("variant")["trainings"]
    assert (models["original"], models["retain"]) == (4, 2 * 4)
    assert models["unlearned"] == 4 + 4 + 2 * 8  # the two ends and two methods


def test_a_plan_that_is_asked_for_is_made_anew(copy_of_finished):
    """Finished results are not inputs of the plan."""
    run = copy_of_finished.folder / "results/runs/base/default/opt-1.3b-twin/L2/n16-seed0"
    (run / "trace.parquet").unlink()
    plan, shown = planned(copy_of_finished)
    assert (~plan["done"]).sum() == 1
    assert "Measured by finished runs: " in shown
    (copy_of_finished.folder / PROBLEM / "unlearned/finetune/runs-4-7/manifest.json").unlink()
    plan, _ = planned(copy_of_finished)
    assert set(plan.loc[~plan["done"], "variant"]) == {"base", "unlearned"}


@pytest.mark.parametrize("target", ["all", "plan", "languages", "results/report.html"])
def test_what_cannot_fit_is_refused_for_every_target(project, target):
    """One line with the change that makes it fit, and no job started."""
    done = project.snakemake(target, "--config", "models=[llama-2-13b]")
    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
    assert "llama-2-13b needs 279 GB on each GPU with ZeRO 0 on 1 GPU" in line
    assert "training_by_model/llama-2-13b: {zero_stage: 3, processes: 4}" in line
    assert "Traceback" not in done.stdout
    assert not (project.folder / "results").exists()


def test_jobs_ask_for_what_is_planned(project):
    """GPUs, memory and minutes of a full model and of a twin, in a dry run with eight GPUs."""
    targets = [
        "results/runs/base/default/llama-2-13b/L6/n1024-seed0/trace.parquet",
        "results/runs/leave-one-out/default/mistral-7b-v0.3-twin/L2/n256-seed0/trace.parquet",
    ]
    given = ["--dry-run", *targets, "--resources", "gpu=8"]
    done = project.snakemake(*given, configfiles=("config/paper.yaml",))
    assert done.returncode == 0, done.stdout
    asked = {}
    for job in done.stdout.split("\nrule ")[1:]:
        lines = [line for line in job.splitlines() if line.strip().startswith("resources: ")]
        words = [word.split("=") for word in lines[0].split(": ")[1].split(", ")]
        asked[job.split(":")[0]] = dict(words)
    full, twin = asked["train_full_on_base"], asked[LEAVING_OUT]
    assert full["gpu"] == "2"
    assert int(full["mem_mb"]) > 300_000
    paper = experiment(DEFAULT, PAPER)
    three_seeds = paper.planner.job_seconds("llama-2-13b", "L6", 1024, 3)
    assert int(full["runtime"]) == asked_for(three_seeds, 1, paper.planner.most_seconds)
    assert twin["gpu"] == "1"
    assert twin["mem_mb"] == "4000"
    assert int(twin["runtime"]) >= 600


def test_one_models_settings_concern_that_model_alone(project):
    """The command of another model, and so its trace, does not change."""
    paths = [
        f"results/runs/base/default/{m}/L1/n16-seed0/trace.parquet"
        for m in ("opt-1.3b", "opt-2.7b")
    ]

    def commands(*settings):
        done = project.snakemake(
            "--dry-run", "--printshellcmds", *paths, *settings, configfiles=("config/paper.yaml",)
        )
        assert done.returncode == 0, done.stdout
        found = [line for line in done.stdout.splitlines() if "finetune.py" in line]
        return {model: next(c for c in found if f"--model {model} " in c) for model in MODELS}

    MODELS = ("opt-1.3b", "opt-2.7b")
    before = commands()
    after = commands("--config", "training_by_model={opt-2.7b: {zero_stage: 3}}")
    assert before["opt-1.3b"] == after["opt-1.3b"]
    assert "--zero-stage 2" in before["opt-2.7b"]
    assert "--zero-stage 3" in after["opt-2.7b"]
