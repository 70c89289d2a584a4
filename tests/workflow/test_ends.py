"""How a command ends: the files to open, what another configuration left, misspelt targets."""

import shutil

import pytest

from helpers.projects import Project, refused

OF_A_LANGUAGE = (
    *(f"{name}.parquet" for name in ("grammar", "derivation", "sample", "targets")),
    "summary.json",
)
SUMMARY, PLAN = "results/languages/L2/summary.json", "results/plan.parquet"


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    """A project in which the files of one language look as if they were made."""
    project = Project.fresh(tmp_path_factory.mktemp("ends"))
    for name in OF_A_LANGUAGE:
        path = (project.folder / SUMMARY).with_name(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"PAR1")
    return project


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("tradeof", "tradeof: no rule makes this target (did you mean 'tradeoff'?)"),
        (
            "results/languages/L9/summary.json",
            "config/languages/L9.pcfg: no such file, and no rule makes it (did you mean 'config/",
        ),
        (
            "results/runs/base/default/opt-1.3b-twn/L1/n16-seed0/trace.parquet",
            "(did you mean 'opt-1.3b-twin'?)",
        ),
        (
            "results/figures/record_shares-mine.svg",
            "records: has no 'mine'; it has: ",
        ),
        ("all_figures", "all_figures: no rule makes this target (did you mean 'figures'?)"),
        ("figure", "figure: is a rule for many files, such as results/figures/{figure}-{language}"),
    ],
)
def test_a_misspelt_target_gets_near_names(project, target, said):
    """In one line, whether it is a rule, a file, or a name in the path of a file."""
    done = project.snakemake("--dry-run", target)
    assert said in refused(done)
    assert "Exception" not in done.stdout


PANEL = "unit,time,cohort,outcome\na,0,1,0.5\na,1,1,0.7\nb,0,1,0.1\nc,0,,0.3\nc,1,,0.4\n"


@pytest.mark.parametrize("others", [0, 1])
def test_a_job_that_refuses_its_input_says_one_line(tmp_path, others):
    """The line is the last one if other jobs have written since; nothing is said of commands."""
    project = Project.fresh(tmp_path / "project")
    (project.folder / "mine.csv").write_text(PANEL)
    targets = ["results/figures/panel_profile-mine.svg"]
    targets += ["results/languages/L1/summary.json"] * others
    done = project.snakemake(
        "--keep-going", *targets, "--config", "profiles={panels: {mine: mine.csv}}"
    )
    line = refused(done)
    assert line.startswith("error: mine.csv:4: unit 'b' has no outcome at time '1'; ")
    for word in ("Exception", "Error", "at least one job"):
        assert word not in done.stdout


def test_a_job_that_fails_otherwise_is_shown_as_snakemake_shows_it(tmp_path):
    """Its command, its exit status and its log help to find out why.

    The log of an earlier command, in which the job refused its input, is no reason.
    """
    project = Project.fresh(tmp_path / "project")
    old = project.folder / "logs/language/L1.log"
    old.parent.mkdir(parents=True)
    old.write_text("error: of an earlier command\n")
    script = project.folder / "workflow/scripts/make.py"
    script.write_text("raise SystemExit(7)\n")
    done = project.snakemake("results/languages/L1/summary.json")
    assert done.returncode == 1
    for word in ("exit status 7", "Error in rule", "At least one job did not complete"):
        assert word in done.stdout


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--config", "seeds=[0]", "report"], "--config: 'report' is no key=value; give a target"),
        (
            ["--configfile", "config/tour.yaml", "report"],
            "report: no such file; it was given with --configfile; give a target first",
        ),
    ],
)
def test_a_target_that_a_flag_takes_for_its_value(project, flags, said):
    """The line says where to put the target."""
    assert said in refused(project.snakemake("--dry-run", *flags, configfiles=()))


@pytest.mark.parametrize(
    ("is_named", "arguments"),
    [
        (True, [PLAN, "--quiet"]),
        (True, [SUMMARY, "--quiet"]),
        (False, [SUMMARY, "--quiet", "all"]),
        (False, [SUMMARY, "--dry-run"]),
        (False, [PLAN, "--dry-run"]),
        (False, [SUMMARY, "--summary"]),
    ],
    ids=str,
)
def test_the_end_names_the_files_to_open(project, is_named, arguments):
    """Also if they are there already, and with `--quiet`; not if the command makes nothing."""
    done = project.snakemake(*arguments)
    assert done.returncode == 0, done.stdout
    assert (f"to open: {arguments[0]}" in done.stdout.splitlines()) == is_named


def made_by_another(project: Project) -> dict[str, bytes]:
    """Files as another configuration leaves them: a figure twice, a table, and a run."""
    files = (
        "figures/tradeoff-L8.svg",
        "figures/tradeoff-L8.png",
        "studies/tradeoff/L8.parquet",
        "runs/base/default/opt-1.3b-twin/L8/n16-seed0/manifest.json",
    )
    for file in files:
        path = project.folder / "results" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.encode() + b"PAR1")
    return {f"results/{file}": (project.folder / "results" / file).read_bytes() for file in files}


def test_leftovers_are_named_and_set_apart(project, tmp_path):
    """They are moved, never deleted or overwritten; runs and a user's own files stay."""
    shutil.copytree(project.folder, tmp_path / "copy")
    project = Project(tmp_path / "copy")
    of_the_user = project.folder / "results/figures/notes.svg"
    left = made_by_another(project)
    of_the_user.write_text("mine")
    printed = project.snakemake(SUMMARY).stdout
    (line,) = [each for each in printed.splitlines() if each.startswith("not of this")]
    assert line == (
        "not of this configuration: 3 figures and tables in results, such as "
        "results/figures/tradeoff-L8.png; to move them aside: snakemake --cores 1 "
        "set_leftovers_apart --configfile config/tour.yaml grid.yaml"
    )
    before = project.contents()
    done = project.snakemake("set_leftovers_apart")
    assert done.returncode == 0, done.stdout
    assert "moved 3 figures and tables to results/apart/1" in done.stdout
    assert "left in place: 1 runs of other configurations" in done.stdout
    after = project.contents()
    for file, content in left.items():
        if "/runs/" not in file:
            assert after.pop(file.replace("results", "results/apart/1")) == content
            del before[file]
    assert after == before


def test_nothing_that_the_configuration_makes_is_a_leftover(project, tmp_path):
    """All files of all targets look as if they were made: none of them is set apart."""
    shutil.copytree(project.folder, tmp_path / "copy")
    project = Project(tmp_path / "copy")
    done = project.snakemake("--dry-run", "--forceall", "all", "unlearning_tuning")
    assert done.returncode == 0, done.stdout
    made = {
        file
        for line in done.stdout.splitlines()
        if line.startswith("    output: ")
        for file in line.removeprefix("    output: ").split(", ")
    }
    assert sum("results/figures/" in file for file in made) > 50
    for file in made:
        path = project.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"PAR1")
    done = project.snakemake("set_leftovers_apart")
    assert "no figure or table of another configuration" in done.stdout, done.stdout
    assert "left in place" not in done.stdout
