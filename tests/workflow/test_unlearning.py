"""Unlearning as a workflow: methods of a user's own, kills, forget sets from files, repetition."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from helpers.edits import changed, commented, edited
from helpers.projects import ROOT, TOUR, Project, refused, wait_until, workers
from palimpsest import tables
from palimpsest.corpora import read_corpus
from palimpsest.sections import KINDS
from palimpsest.unlearning.interventions import ORIGINAL, RETAIN
from palimpsest.unlearning.methods import read_methods

PROBLEM = "results/unlearning/forgetting/opt-1.3b-twin/L1/n16-seed0"
FINETUNE = f"{PROBLEM}/unlearned/finetune/runs-0-3"
APPLIED = f"{FINETUNE}/unlearned.parquet"
DATASET = "results/datasets/L1/n16-seed0/{}/strings.parquet"
STATE = "results/.state"
LIBRARY = "workflow/scripts/palimpsest"
SCORED = [f"{PROBLEM}/{name}.parquet" for name in ("scores", "metrics", "memorisation")]
METHODS = ("none", "finetune", "gradient-ascent", "retrain")
RUNS = ("runs-0-3", "runs-4-7")


def test_everything_of_the_unlearning_is_one_target(project):
    """From nothing, `unlearning` lists every job of the tour's unlearning and no other."""
    jobs = project.jobs("unlearning")
    assert jobs == {
        "unlearning": 1,
        "dataset_forgetting": 1,
        "train_replicates": 3,  # original, retrained, and as many for the ideal
        "unlearn": 2,  # eight unlearnings, at most six a job; a job applies every method
        "measure_forgetting": 1,
        "measure_other_metrics": 1,
        "measure_forgotten_memorisation": 1,
        "figure": 14,
        "total": 24,
    }


def test_a_method_of_ones_own_is_one_file_and_two_lines(copy_of_finished):
    """The page's example: it is scored, drawn and reported, and no old model changes."""
    folder = copy_of_finished.folder
    page = (ROOT / "docs/methods.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (folder / LIBRARY / "unlearning/methods/mine.py").write_text(code)
    (name,) = re.findall(r'@phase\("(.*)"\)', code)
    entry = f"mine:\n  phases:\n    - {{erase: {name}, share: 0.5, rate: 0.1, ceiling: 1.0}}"
    commented("small_methods.yaml", entry)(folder)
    edited(TOUR, "methods: [", "methods: [mine, ")(folder)
    before = copy_of_finished.contents()
    done = copy_of_finished.snakemake()
    assert done.returncode == 0, done.stdout
    after = copy_of_finished.contents()
    made = [path for path in before if "/unlearned/" in path or "/replicates/" in path]
    assert made
    assert all(before[path] == after[path] for path in made)
    scores = tables.read(folder / f"{PROBLEM}/scores.parquet", KINDS["unlearning_scores"])
    assert list(scores["method"].unique()) == [
        "none",
        "mine",
        "finetune",
        "gradient-ascent",
        "retrain",
    ]
    figure = (folder / "results/figures/unlearning_scores-L1.svg").read_text()
    assert "mine" in figure
    report = (folder / "results/report.html").read_text()
    assert re.search(r"<t[dh][^>]*>(<[^>]*>)*mine<", report)


def test_a_changed_method_is_the_only_one_that_is_applied_again(copy_of_finished):
    """The files of the other methods stay as they are, to the byte, with their manifests."""
    folder = copy_of_finished.folder

    def files(method):
        found = sorted((folder / PROBLEM / "unlearned" / method).rglob("*.*"))
        assert len(found) == 8  # of two jobs
        return {path: path.read_bytes() for path in found}

    before = {method: files(method) for method in METHODS}
    edited("small_methods.yaml", "rate: 0.1}", "rate: 0.3}")(folder)
    targets = [f"{PROBLEM}/unlearned/finetune/{runs}/manifest.json" for runs in RUNS]
    done = copy_of_finished.snakemake(*targets)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("rule unlearn:") == 2
    after = {method: files(method) for method in METHODS}
    assert [method for method in METHODS if after[method] != before[method]] == ["gradient-ascent"]
    predictions = [path for path in before["gradient-ascent"] if path.stem == "unlearned"]
    assert len(predictions) == 2
    for path in predictions:
        assert after["gradient-ascent"][path] != before["gradient-ascent"][path]


# The search for settings

TUNED = "results/unlearning/tuned.yaml"


def test_settings_are_searched_on_demand_and_nothing_else_changes(copy_of_finished):
    """Its target trains its own problem; the file of methods can be given as a table."""
    folder = copy_of_finished.folder
    before = copy_of_finished.contents()
    jobs = copy_of_finished.jobs("unlearning_tuning")
    assert jobs == {
        "unlearning_tuning": 1,
        "dataset_forgetting": 1,
        "train_replicates": 2,
        "search_settings": 1,
        "choose_settings": 1,
        "draw_settings": 1,
        "total": 7,
    }
    done = copy_of_finished.snakemake("unlearning_tuning")
    assert done.returncode == 0, done.stdout
    after = copy_of_finished.contents()
    assert {path: after[path] for path in before} == before
    table = tables.read(folder / KINDS["unlearning_tuning"].path, KINDS["unlearning_tuning"])
    assert sorted(table["point"]) == ["gradient-ascent.1", "gradient-ascent.2"]
    assert table["chosen"].tolist() == [True, False]
    (chosen,) = table.loc[table["chosen"], "settings"]
    (phase,) = read_methods(folder / TUNED)["gradient-ascent"].phases
    assert phase.rate == json.loads(chosen)["1.rate"]
    # The state of a search that is asked for is not stale, and a finished search has none.
    assert stale(copy_of_finished) == []
    dry = copy_of_finished.snakemake("--dry-run", "unlearning_tuning")
    assert "Nothing to be done" in dry.stdout


def test_metrics_are_judged_on_demand(project):
    """With models of its own, of which some are trained on an eighth of the forget strings."""
    judge = "{seeds: [7, 8], n: 19, study: 4, methods: [finetune], relearn: 2}"
    asked = f"unlearning={{judge: {judge}, runs_per_job: 19}}"
    assert project.jobs("unlearning_judged", "--config", asked) == {
        "unlearning_judged": 1,
        "dataset_forgetting": 2,
        "dataset_traced_forgetting": 2,
        "train_replicates": 8,  # of each problem, two of retrained models
        "probe_models": 2,
        "judge_metrics": 1,
        "total": 16,
    }


# Kills

QUICK = "{repair: finetune, share: 0.5, rate: 0.5}"
SLOW = "{repeat: 200, phases: [{repair: finetune, share: 0.005, rate: 0.1}]}"  # a step or more each


def slow(project: Project, together: int) -> None:
    """Let `finetune` take longer, on a given number of models at a time."""
    edited("small_methods.yaml", QUICK, SLOW)(project.folder)
    in_waves_of(project, together)


def in_waves_of(project: Project, together: int) -> None:
    """Let a thread of the CPU hold a given number of models."""
    path = project.folder / LIBRARY / "training/fleet/memory.py"
    text, found = re.subn(
        r"(?m)^FASTEST_ON_CPU = \d+", f"FASTEST_ON_CPU = {together}", path.read_text()
    )
    assert found == 1
    path.write_text(text)


def _job_of(about: Path) -> str | None:
    """What the job of a state does: the name of a method."""
    return json.loads(about.read_text()).get("job")


def waves(project: Project, method: str = "finetune") -> list[Path]:
    """The tables about models to which an unfinished job has already applied a method.

    The stages are the last of the three tables that a job saves about some models.
    """
    about = (project.folder / STATE).glob("*/about.json")
    folders = [path.parent for path in about if _job_of(path) == method]
    last = sorted(path for folder in folders for path in folder.glob("[0-9]*stages.parquet"))
    return [
        path.with_name(path.name.replace("unlearning_stages", "unlearned_models")) for path in last
    ]


def stale(project: Project, *more: str) -> list[str]:
    """The printed lines about states that are not requested."""
    done = project.snakemake("stale_state", *more)
    assert done.returncode == 0, done.stdout
    return [line for line in done.stdout.splitlines() if line.startswith(STATE)]


def unlearned(project: Project) -> tuple[bytes, pd.DataFrame]:
    """The two tables of a job: what its models predict, byte by byte, and what is said of them."""
    models = tables.read(project.folder / FINETUNE / "models.parquet", KINDS["unlearned_models"])
    return (project.folder / APPLIED).read_bytes(), models


def fresh_copy(finished: Project, folder: Path) -> Project:
    """A copy of the finished study that may be changed."""
    shutil.copytree(finished.folder, folder)
    return Project(folder)


@pytest.fixture(scope="module")
def undisturbed(finished, tmp_path_factory) -> Project:
    """A slow unlearning that nothing disturbs."""
    project = fresh_copy(finished, tmp_path_factory.mktemp("undisturbed") / "copy")
    slow(project, 8)
    done = project.snakemake(APPLIED)
    assert done.returncode == 0, done.stdout
    return project


@pytest.mark.parametrize("afterwards", [1, 2])
def test_a_killed_unlearning_goes_on(finished, undisturbed, tmp_path, afterwards):
    """The models that it had finished are taken as they are, also if more then fit at a time."""
    killed = fresh_copy(finished, tmp_path / "copy")
    slow(killed, 1)
    with killed.running(APPLIED) as process:
        wait_until(lambda: waves(killed))
        for worker in workers(process, "query.py"):
            worker.kill()
        assert process.wait(300) != 0
    kept = pd.concat(tables.read(path, KINDS["unlearned_models"]) for path in waves(killed))
    assert 0 < len(kept) < 4
    if afterwards == 1:
        assert stale(killed) == []
        lines = stale(killed, "--config", "unlearning={relearn: {steps: 3}}")
        # Until the whole job is done, the finished methods' tables are kept as well.
        n_parts = {**dict.fromkeys(METHODS, 1), "finetune": len(kept)}
        assert len(lines) == len(METHODS)
        for method, n in n_parts.items():
            about = f"opt-1.3b-twin, {DATASET.format(ORIGINAL)}, unlearning, {method}"
            (line,) = (line for line in lines if line.endswith(about))
            assert f"{3 * n} tables saved" in line
    in_waves_of(killed, afterwards)
    done = killed.snakemake(APPLIED)
    assert done.returncode == 0, done.stdout
    (predicted, models), (expected, of_models) = unlearned(killed), unlearned(undisturbed)
    assert predicted == expected
    pd.testing.assert_frame_equal(models.drop(columns="seconds"), of_models.drop(columns="seconds"))
    if afterwards == 1:
        assert models["seconds"][: len(kept)].tolist() == kept["seconds"].tolist()
    assert not waves(killed)


# What is to be forgotten


@pytest.fixture(scope="module")
def strings(finished) -> pd.DataFrame:
    """The train strings of the tour, each with its group by derivation."""
    table = tables.read(finished.folder / DATASET.format(ORIGINAL), KINDS["strings"])
    table = table[table["count"] > 0].reset_index(drop=True)
    corpus = read_corpus(ROOT / "config/languages/L1.pcfg")
    names = corpus.groups([tuple(line.split()) for line in table["text"]], "derivation")
    return table.assign(derivation=list(names.values()))


def test_a_forget_set_from_a_file(project, strings):
    """Exactly the file's strings are forgotten, whatever the share says."""
    chosen = strings["text"][[2, 5]].tolist()
    (project.folder / "forget.txt").write_text("\n".join(chosen) + "\n")
    done = project.snakemake(DATASET.format(RETAIN), "--config", "unlearning={forget: forget.txt}")
    assert done.returncode == 0, done.stdout
    for variant in (ORIGINAL, RETAIN):
        table = tables.read(project.folder / DATASET.format(variant), KINDS["strings"])
        assert set(table.loc[table["split"] == "forget", "text"]) == set(chosen)
    assert (table.loc[table["text"].isin(chosen), "count"] == 0).all()


@pytest.mark.parametrize(
    ("which", "groups", "message"),
    [
        ("none", "string", "forget.txt: names no string to forget; write one string per line"),
        ("all", "string", "the forget set has all training strings"),
        ("stranger", "string", "the forget set has the string '1 1 1 1', which is not in train"),
        ("one of a group", "derivation", "the forget set splits the group"),
    ],
)
def test_a_forget_set_that_cannot_be(project, strings, which, groups, message):
    """It is refused in one line, and nothing is made."""
    several = strings["derivation"].duplicated(keep=False)
    lines = {
        "none": ["", " "],
        "all": strings["text"],
        "stranger": ["1 1 1 1"],
        "one of a group": strings["text"][several][:1],
    }[which]
    (project.folder / "forget.txt").write_text("\n".join(lines))
    settings = f"unlearning={{forget: forget.txt, groups: {groups}}}"
    line = refused(project.snakemake(DATASET.format(RETAIN), "--config", settings))
    assert message in line
    assert not list(project.folder.glob(DATASET.format("*")))


# The same again


def test_the_same_evaluation_gives_the_same_tables(copy_of_finished):
    """Random draws of an evaluation depend only on the seed, to the byte."""
    before = copy_of_finished.contents()
    for path in copy_of_finished.folder.glob(f"{PROBLEM}/*.parquet"):
        path.unlink()
    done = copy_of_finished.snakemake(*SCORED)
    assert done.returncode == 0, done.stdout
    assert copy_of_finished.contents() == before


def test_unlearning_that_is_asked_for_again_leaves_everything_as_it_was(copy_of_finished):
    """Its datasets come out alike, so its jobs run and touch no table; then all is done."""
    changed(f"{LIBRARY}/unlearning/forgetting_data.py")(copy_of_finished.folder)
    before = copy_of_finished.contents()
    done = copy_of_finished.snakemake(APPLIED)
    assert done.returncode == 0, done.stdout
    for rule in ("dataset_forgetting", "train_replicates", "unlearn"):
        assert f"rule {rule}:" in done.stdout
    assert copy_of_finished.contents() == before
    assert "Nothing to be done" in copy_of_finished.snakemake("--dry-run", APPLIED).stdout
