"""The command `palimpsest`: what Snakemake is given, the studies that it makes, and the wheel."""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest
import yaml

import palimpsest
from helpers.commands import printed_by
from palimpsest import paths
from palimpsest.command_line import VERBS, main, parser
from palimpsest.errors import UserError
from palimpsest.languages import load
from palimpsest.new_study import STUDY, name_of, of_truths, project, take_folder
from palimpsest.phase_stub import text_of

ROOT = Path(__file__).parents[1]
PANEL = ROOT / "config/panels/example.csv"
RECORDS = ROOT / "config/records/people.jsonl"


@pytest.fixture
def given(monkeypatch):
    """The command that would be run, without the Python before it."""
    commands = []
    monkeypatch.setattr(os, "execv", lambda python, words: commands.append(words[2:]))
    return commands


def refused(*words):
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, words)))
    return str(ended.value)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("plan", "snakemake plan --cores 1 --quiet reason"),
        ("run", "snakemake --cores all"),
        ("run tradeoff report --cores 3", "snakemake tradeoff report --cores 3"),
        ("panel --dry-run --jobs 3 -c1", "snakemake profiles --dry-run --jobs 3 -c1"),
        ("records", "snakemake records --cores all"),
        (
            "records --verdict conformal --config seeds=[0]",
            "snakemake records --config records={verdict: conformal} seeds=[0] --cores all",
        ),
    ],
)
def test_what_snakemake_is_given(words, expected, given, tmp_path, monkeypatch, capsys):
    """Without a Snakefile, that of the workflow; with a study, its file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").touch()
    main(words.split())
    assert " ".join(given[0]) == f"{expected} --snakefile {ROOT}/Snakefile"
    (tmp_path / "Snakefile").touch()
    for name in (STUDY, "other.yaml"):
        (tmp_path / name).write_text("title: mine")
    main(words.split())
    assert " ".join(given[1]) == f"{expected} --configfile {STUDY}"
    assert capsys.readouterr().out.splitlines()[1] == f"$ {shlex.join(given[1])}"
    main([*words.split(), "--configfile", "other.yaml"])
    assert STUDY not in given[2]


CATS = """
S -> 'the' N V 'the' N
N -> 'cat' [0.4] | 'dog' [0.3] | 'hen' [0.3]
V -> 'saw' [0.4] | 'bit' [0.2] | 'fed' [0.2] | 'lost' [0.2]
"""
LOSSES = "".join(f"{n},1,{n / 9}\n" for n in range(9))
QUESTIONS = "".join(f"{('forget', 'retain')[n % 2]},Who?,I am {n}.\n" for n in range(40))


def a_model(folder):
    """The files of a model whose weights are its name."""
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_text(folder.name)


NOTES = [f"{n % 2 == 0},the number {n} is written here\n" for n in range(60)]


def test_every_word_is_a_target():
    targets = (ROOT / "docs/targets.md").read_text()
    assert all(f"`{target}`" in targets for target in VERBS.values() if target)


def planned(folder, *targets):
    """A dry run of a study, by the checkout's Snakemake."""
    done = subprocess.run(
        [sys.executable, "-m", "palimpsest.command_line", "run", *targets, "-n"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow/scripts")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_studies_of_each_input_can_be_planned(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("model", "full", "retain", "npo"):
        a_model(tmp_path / name)
    (tmp_path / "losses.csv").write_text("key,checkpoint,loss\n" + LOSSES)
    (tmp_path / "asked.csv").write_text("split,prompt,text\n" + QUESTIONS)
    unlearning = ["--original", "full/", "--retrained", "retain", "--unlearned", "npo"]
    grammar = tmp_path / "cats.pcfg"
    grammar.write_text(CATS)
    (tmp_path / "notes.csv").write_text("in_training,text\n" + "".join(NOTES))
    named = ["--columns", "trained=in_training"]
    (tmp_path / "steps.csv").write_text(PANEL.read_text().replace("time", "step", 1))
    (tmp_path / "documents").mkdir()
    for n in range(12):
        (tmp_path / f"documents/{n}.txt").write_text(f"words of text {n}")
    (tmp_path / "q.csv").write_text("body\nwords of text 3\n")
    for name in ("one", "two"):
        np.savez(tmp_path / f"{name}.npz", layer=np.ones((9, 2)))
    for name, flags in {
        "named": ["--records", "notes.csv", *named, "--model", "model/"],
        "records": ["--records", RECORDS],
        "asked": ["--records", RECORDS, "--model", "model", "--reference", "someone/model"],
        "grammar": ["--grammar", grammar],
        "panel": ["--panel", "steps.csv", "--columns", "time=step"],
        "losses": ["--losses", "losses.csv", "--columns", "id=key"],
        "unlearned": ["--records", "asked.csv", *unlearning],
        "texts": ["--corpus", "documents", "--queries", "q.csv", "--columns", "text=body"],
        "layers": ["--activations", "one.npz", "two.npz"],
        "stub": ["--method", "my_phase.py"],
    }.items():
        main(["init", name, *map(str, flags)])
    assert "answer_records" in planned(tmp_path / "losses")
    assert "write_report" in planned(tmp_path / "panel")
    asked = yaml.safe_load((tmp_path / "asked" / STUDY).read_text())
    (one,) = asked["records"]["checkpoints"].values()
    assert one == {"corpus": "mine", "model": "../model", "reference": "someone/model"}
    assert name_of("model/") == "model"
    assert name_of("someone/my model@v1") == "my-model-v1"
    named = yaml.safe_load((tmp_path / "named" / STUDY).read_text())["records"]["checkpoints"]
    assert list(named) == ["model"]
    said = [line for line in capsys.readouterr().out.splitlines() if "loss attack" in line]
    assert len(said) == 1
    assert said[0].startswith("named: without a reference model")
    assert "--reference" in said[0]
    assert asked["density"] is None
    panel = yaml.safe_load((tmp_path / "panel" / STUDY).read_text())["profiles"]["panels"]["mine"]
    assert panel == {"file": "../steps.csv", "time": "step"}
    density = yaml.safe_load((tmp_path / "texts" / STUDY).read_text())["density"]
    text = {"corpus": "../documents", "queries": "../q.csv", "field": "body"}
    assert density == {"leakage": None, "support": None, "texts": {"mine": text}}
    layers = yaml.safe_load((tmp_path / "layers" / STUDY).read_text())["information"]
    assert layers["activations"] == {"one": "../one.npz", "two": "../two.npz"}
    assert "unlearn" in planned(tmp_path / "stub", "unlearning")
    copy = tmp_path / "grammar/config/languages/cats.pcfg"
    assert copy.read_bytes() == grammar.read_bytes()
    # Of 36 strings, a third
    made = yaml.safe_load((tmp_path / "grammar" / STUDY).read_text())
    assert (made["sizes"], made["models"]) == ([8], ["opt-1.3b-twin"])  # as the door has


def test_a_study_without_an_input_is_the_default_one_and_says_so(tmp_path, monkeypatch, capsys):
    """Its file names the options of smaller studies, and all of them are options."""
    monkeypatch.chdir(tmp_path)
    main(["init", "plain"])
    written = Path("plain", STUDY).read_text()
    assert yaml.safe_load(written) == {"title": "plain"}
    assert "plain: without an option, it is the whole default" in capsys.readouterr().out
    doors = [line[2:].split() for line in written.splitlines() if "palimpsest init" in line]
    assert len(doors) == 8
    for _, *words in doors:
        assert parser().parse_args(words).folder == Path("my-study")


@pytest.mark.parametrize(
    ("head", "columns", "is_said"),
    [
        ("id,in_training,text", {}, True),
        ("id,in_training,text", {"trained": "in_training"}, False),
        ("id,trained,text", {}, False),
        ("id,copies,text", {}, False),
    ],
)
def test_a_column_of_truths_is_pointed_out(head, columns, is_said, tmp_path):
    name = head.split(",")[1]
    value = (lambda n: n + 1) if name == "copies" else (lambda n: n % 2 == 0)
    rows = [f"{n},{value(n)},the number {n}" for n in range(9)]
    (tmp_path / "notes.csv").write_text("\n".join([head, *rows]))
    objects = [{"id": str(n), name: value(n), "text": "the number"} for n in range(9)]
    (tmp_path / "notes.jsonl").write_text("\n".join(map(json.dumps, objects)))
    for file in ("notes.csv", "notes.jsonl"):
        said = of_truths(tmp_path / file, columns)
        assert ("add --columns trained=in_training" in said) == is_said
        assert bool(said) == is_said


def test_a_folder_after_the_columns_is_the_folder():
    words = ["init", "--panel", "p.csv", "--columns", "unit=doc", "time=step", "pz"]
    given = parser().parse_args(words)
    take_folder(given)
    assert (given.folder, given.columns) == (Path("pz"), ["unit=doc", "time=step"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("init full", "full: is not empty; name a new folder"),
        ("init new --panel none.csv", "--panel: none.csv: no such file"),
        (
            "init --records full/file",
            "the new folder is missing; name it first, because options with several values take "
            "all words that follow: palimpsest init my-study ...",
        ),
        (
            "init new --records full/file --model smollm-135m-instruct",
            "--model: smollm-135m-instruct: no such folder, and no name in config/models.tsv (did "
            "you mean 'smollm2-135m-instruct'?); a name on the Hugging Face hub is OWNER/NAME",
        ),
        (
            "init new --records full/file --model full",
            "--model: full: is no model: it has no config.json and no tokenizer (tokenizer.json, "
            "or a vocabulary with tokenizer_config.json) and no *.safetensors; the folder must "
            "hold config.json, the tokenizer and *.safetensors, as model.save_pretrained and "
            "tokenizer.save_pretrained leave them",
        ),
        (
            "init new --records full/file --reference a/b",
            "--reference: needs --model, the model that it is compared with",
        ),
        (
            "init new --original full/ --unlearned full/",
            "--original: needs --retrained and --records, too (docs/checkpoints.md)",
        ),
        ("init new --model a/b", "--model: needs --records, the records that it is asked about"),
        ("init new --records full/file --model none/", "--model: none/: no such folder"),
        (
            "init new --records full/file --columns text",
            "--columns: text is no pair such as text=body",
        ),
        (
            "init new --columns text=body",
            "--columns: needs one of --records, --losses, --panel and --corpus, whose columns it "
            "names",
        ),
        ("init new --corpus full/file", "--corpus: needs --queries, too (docs/density.md)"),
        ("init new --queries full/file", "--queries: needs --corpus, too (docs/density.md)"),
        (
            "init new --corpus full/file --queries none.csv",
            "--queries: none.csv: no such file",
        ),
        (
            "init new --corpus full/file --queries full/file --columns id=a",
            "--columns: id is no column of texts; choose from text, response",
        ),
        ("init new --activations none.npz", "--activations: none.npz: no such file"),
        (
            "init new --activations full/file full/file",
            "--activations: two files are named file; rename one of them",
        ),
        (
            "init new --method full/file",
            "--method: full/file: is no name of a module; take letters, digits and _ , such as "
            "my_phase.py",
        ),
        (
            "init new --method finetune.py",
            "--method: finetune.py: the library has a file of this name; rename yours",
        ),
        *(
            (
                word,
                "study.yaml: there is no study in this folder; go to its folder, or make one: "
                f"palimpsest init my-study {options} (palimpsest init --help)",
            )
            for word, options in {
                "run": "--records FILE",
                "records": "--records FILE",
                "panel": "--panel FILE",
                "audit": "--records FILE --original DIR --retrained DIR --unlearned DIR",
            }.items()
        ),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    assert refused(*words.split()) == f"error: {said}"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = (", "mine.py:1: SyntaxError: "),
        ("x = 1", "mine.py: has no phase, a class with the decorator @phase"),
        ("# \0", "mine.py:1: has a byte of 0"),
    ],
)
def test_a_file_without_a_phase_is_one_line(code, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(code)
    assert refused("init", "new", "--method", "mine.py").startswith(f"error: --method: {said}")
    assert not (tmp_path / "new").exists()


def test_a_phase_of_ones_own_that_fails_is_one_line_of_its_option(tmp_path, monkeypatch):
    """Snakemake reads it: the line names the copy, which is gone again."""
    monkeypatch.chdir(tmp_path)
    code = text_of(Path("mine.py")).replace('@phase("mine")', '@phase("finetune")')
    (tmp_path / "mine.py").write_text(code)
    said = refused("init", "new", "--method", "mine.py")
    assert re.match(r"error: --method: \S*/unlearning/methods/mine.py:\d+: ValueError: ", said)
    assert not (tmp_path / "new").exists()


def test_the_stub_is_the_example_of_the_page():
    """Which another test applies to models; its names and words are its own."""

    def body(code):
        (own,) = (node for node in ast.parse(code).body if isinstance(node, ast.ClassDef))
        functions = [node for node in own.body if isinstance(node, ast.FunctionDef)]
        parts = [*own.body, *(part for each in functions for part in each.body)]
        kept = [part for part in parts if not isinstance(part, ast.Expr | ast.FunctionDef)]
        return [ast.dump(part) for part in kept]

    page = (ROOT / "docs/methods.md").read_text()
    (shown,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    stub = text_of(Path("my_phase.py"))
    assert '@phase("my-phase")\nclass MyPhase(Training):' in stub
    assert body(stub) == body(shown)
    assert len(body(shown)) == 5


def test_a_study_that_cannot_be_planned_is_not_made(tmp_path, monkeypatch):
    """The line is that of the dry run: here, of a file without a column."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "steps.csv").write_text(PANEL.read_text().replace("time", "step", 1))
    (tmp_path / "there").mkdir()
    for folder in ("new", "there"):
        said = refused("init", folder, "--panel", "steps.csv")
        assert said.startswith("error: --panel: steps.csv:1: has no column 'time' (did you mean")
        assert said.endswith("or name yours: --columns unit=document time=step")
        assert "\n" not in said
    assert not (tmp_path / "new").exists()
    assert not list((tmp_path / "there").iterdir())


def test_a_doctor_says_what_there_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert refused("doctor") == "0"
    said = capsys.readouterr().out
    assert "snakemake 9" in said
    assert f"workflow: {ROOT}" in said
    assert " cores, " in said


def test_a_missing_workflow_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "__file__", str(tmp_path / "a/b/c/d.py"))
    with pytest.raises(UserError, match="the workflow is not in it; install palimpsest again"):
        project()
    with pytest.raises(UserError, match="no language is installed; install palimpsest again"):
        load("L3")


@pytest.mark.slow
def test_a_wheel_has_the_workflow(tmp_path):
    """From the wheel to a report of a panel, without the checkout."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "--quiet", ROOT, source], check=True)
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, source]
    subprocess.run(build, check=True)
    venv.create(tmp_path / "empty")
    python = tmp_path / "empty/bin/python"
    packages = next((tmp_path / "empty/lib").glob("python*/site-packages"))
    (packages / "others.pth").write_text(str(Path(yaml.__file__).parents[1]))
    (wheel,) = tmp_path.glob("palimpsest-*.whl")
    subprocess.run([*pip, "--python", python, "install", "--no-deps", wheel], check=True)
    command = tmp_path / "empty/bin/palimpsest"
    study = tmp_path / "study"
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    for words in (["init", study, "--panel", PANEL], ["run", "--quiet"]):
        folder = study if study.exists() else tmp_path
        subprocess.run([command, *words], cwd=folder, env=plain, check=True)
    assert (study / "results/report/profiles.html").is_file()
    code = "from palimpsest.languages import load; print(load('L3').n_rules)"
    done = subprocess.run([python, "-c", code], env=plain, capture_output=True, text=True)
    assert done.stdout.strip() == str(load("L3").n_rules), done.stderr
    share = tmp_path / "empty/share/palimpsest"
    for kind in ("workflow/**/*.smk", "config/**/*.pcfg", "config/schemas/*.yaml", "envs/*.yaml"):
        installed = {path.relative_to(share) for path in share.glob(kind)}
        assert installed
        assert installed == {path.relative_to(source) for path in source.glob(kind)}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("plan exact", "snakemake plan exact --cores 1 --quiet reason --until plan"),
        (
            "plan results/headline.csv -c2",
            "snakemake plan results/headline.csv -c2 --quiet reason --until plan",
        ),
        ("plan --config seeds=[0]", "snakemake plan --config seeds=[0] --cores 1 --quiet reason"),
        ("run plan exact", "snakemake plan exact --cores all"),
    ],
)
def test_a_plan_of_targets_makes_none_of_them(words, expected, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").touch()
    (tmp_path / "Snakefile").touch()
    main(words.split())
    assert " ".join(given[0]) == expected


def test_the_environment_of_a_clone_has_the_command(tmp_path):
    """It runs the clone's own library, through links and by its name alone."""
    clone = tmp_path / "clone"
    (clone / ".venv/bin").mkdir(parents=True)
    (clone / "workflow/scripts/palimpsest").mkdir(parents=True)
    (clone / "workflow/scripts/palimpsest/command_line.py").write_text(
        "import sys; print(__file__, *sys.argv[1:])"
    )
    shutil.copy(ROOT / "envs/palimpsest", clone / ".venv/bin")
    (clone / ".venv/bin/python").symlink_to(sys.executable)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/.venv").symlink_to(clone / ".venv")  # an environment that two clones share
    shutil.copytree(clone / "workflow", tmp_path / "other/workflow")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/palimpsest").symlink_to(clone / ".venv/bin/palimpsest")

    def library_of(command, *folders) -> Path:
        path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
        done = subprocess.run(
            [command, "run", "a b"],
            env={"PATH": path},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.stdout.endswith("command_line.py run a b\n"), done.stderr
        return Path(done.stdout.split(" run ")[0]).parents[3]

    assert library_of(clone / ".venv/bin/palimpsest") == clone
    assert library_of(tmp_path / "other/.venv/bin/palimpsest") == tmp_path / "other"
    assert library_of("palimpsest", clone / ".venv/bin") == clone
    assert library_of(tmp_path / "bin/palimpsest") == clone
    assert library_of("clone/.venv/bin/palimpsest") == clone
    assert "install -m 755 envs/palimpsest $(BIN)/palimpsest" in (ROOT / "Makefile").read_text()


def test_the_environment_of_a_clone_has_the_library(tmp_path):
    """As the Makefile lays it: a path from the environment's packages to the clone's library."""
    packages = tmp_path / ".venv/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    (line,) = (ROOT / "envs/palimpsest.pth").read_text().splitlines()
    assert (packages / line).resolve() == tmp_path / "workflow/scripts"
    assert "install -m 644 envs/palimpsest.pth " in (ROOT / "Makefile").read_text()


def test_the_package_names_its_public_parts():
    """In `help`, in `dir`, and without an import of each."""
    code = "import palimpsest; print(palimpsest.records.answers.__name__, *palimpsest.__all__)"
    assert printed_by(code) == ["answers", *palimpsest.__all__]
    assert all(f"\n    {name} " in palimpsest.__doc__ for name in palimpsest.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'recordz'"):
        palimpsest.recordz  # noqa: B018


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "my.yaml: no such file; it was given with --configfile"),
        ("seeds: [1]\na: {b: 1\n", "my.yaml:3: expected ',' or '}', but got '<stream end>'; "),
        ("a:\n\tb: 1\n", "my.yaml:2: found character '\\t' that cannot start any token; "),
        ("", "my.yaml: must hold keys and their values; "),
    ],
)
@pytest.mark.parametrize("verb", VERBS)
def test_a_broken_configfile_is_one_line_in_any_folder(
    verb, content, said, given, tmp_path, monkeypatch
):
    """Before Snakemake is started, whose own error names no file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").touch()
    if content is not None:
        (tmp_path / "my.yaml").write_text(content)
    line = refused(verb, "--configfile", "my.yaml")
    assert line.startswith(f"error: {said}")
    assert "\n" not in line
    assert not given
