"""Folders of a user's that are laid over the library."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import palimpsest
from helpers.projects import Project
from palimpsest import extensions, fingerprint
from palimpsest.errors import UserError
from palimpsest.jobs.command import ending_in_one_line
from palimpsest.jobs.query import query_named
from palimpsest.lazy_import import named
from palimpsest.script_job import script_job
from palimpsest.unlearning.claims import CLAIMS

SCRIPTS = Path(__file__).parents[1] / "workflow/scripts"
PHASE = """
from palimpsest.unlearning.methods import FORGET, Training, phase

@phase("patience")
class Patience(Training):
    over = FORGET
"""
FIGURE = """
from palimpsest.figures.figure import Figure
from palimpsest.memorisation.kinds import STARTS

FIGURE = Figure(__name__, 999, "tradeoff", "A title", "A caption.", (STARTS,))

def {name}(starts):
    return starts
"""
CLAIM = """
from palimpsest.claims import RETRAINING, Claim, above, statistic
from palimpsest.estimates import Estimate

QUESTIONS = {"mine": "Is it so?"}

@statistic("unlearning_tests", "a number", evidence=RETRAINING)
def of_mine(tests):
    return Estimate()

CLAIMS = [Claim("mine", "It is so.", of_mine, above(0))]
"""
SHOWN = """
from palimpsest import extensions
extensions.use({folders})
with extensions.errors_in_one_line():
    from palimpsest import fingerprint, sections
    from palimpsest.unlearning.methods import registered
    print("patience" in registered(), "starts_of_mine" in sections.FIGURES)
    print(*(fingerprint.name_of(path) for path in fingerprint.code_files()))
    print(fingerprint.of_code("palimpsest.memorisation.figures.starts_of_mine:starts_of_mine"))
"""


def written(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def shown(*folders):
    """What a process of its own finds with some extensions."""
    code = SHOWN.format(folders=[str(folder) for folder in folders])
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )


@pytest.fixture
def mine(tmp_path):
    files = {
        "unlearning/methods/patience.py": PHASE,
        "memorisation/figures/starts_of_mine.py": FIGURE.format(name="starts_of_mine"),
    }
    return written(tmp_path / "mine", files)


def test_a_phase_and_a_figure_are_found_by_their_place(mine):
    """Fingerprints and archives of the code know their files, wherever the folder is."""
    found, files, code = shown(mine).stdout.splitlines()
    assert found == "True True"
    assert "palimpsest/unlearning/methods/patience.py" in files.split()
    figure = mine / "memorisation/figures/starts_of_mine.py"
    figure.write_text(figure.read_text().replace("return starts", "return starts.copy()"))
    assert shown(mine).stdout.splitlines()[-1] != code


def test_a_claim_follows_those_of_its_section(tmp_path):
    """So does its question; and the fingerprint of the claims knows its code."""
    folder = written(tmp_path, {"unlearning/claims/mine.py": CLAIM})
    code = f"""
from palimpsest import extensions
extensions.use(["{folder}"])
from palimpsest import fingerprint, sections
section = next(one for one in sections.SECTIONS if one.name == "unlearning")
from palimpsest.unlearning.claims import QUESTIONS
print(len(section.load("claims")), section.load("claims")[-1].claim, list(QUESTIONS)[-1])
print(fingerprint.of_code(section.location("claims")))
"""
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}

    def shown_now():
        given = [sys.executable, "-c", code]
        done = subprocess.run(given, env=environment, capture_output=True, text=True)
        assert not done.returncode, done.stderr
        return done.stdout.splitlines()

    found, before = shown_now()
    assert found == f"{len(CLAIMS) + 1} It is so. mine"
    mine = folder / "unlearning/claims/mine.py"
    mine.write_text(CLAIM.replace("return Estimate()", "return Estimate((), 1.0)"))
    assert shown_now()[1] != before


def test_helpers_of_an_extension_are_modules_of_the_library(tmp_path):
    """A package of the extension's own needs no `__init__.py`."""
    folder = written(tmp_path, {"helping/inner/values.py": "VALUE = 3"})
    code = f"""
from palimpsest import extensions
import palimpsest.memorisation
extensions.use(["{folder}"])
from palimpsest.helping.inner.values import VALUE
print(VALUE, len(palimpsest.memorisation.__path__))
"""
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    given = [sys.executable, "-c", code]
    done = subprocess.run(given, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["3", "1"], done.stderr


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no such folder"),
        ({"notes.txt": ""}, "has no module in a folder named as one of the library"),
        ({"single.py": ""}, "has no module in a folder named as one of the library"),
        ({"memorisation/kinds.py": ""}, "would hide the library's memorisation/kinds.py"),
        ({"memorisation/studies.py": ""}, "would hide the library's memorisation/studies.py"),
        ({"datasets/section.py": ""}, "the library has a part of this name"),
    ],
)
def test_a_folder_that_is_no_extension_is_refused(tmp_path, files, said):
    """The message is one line, and it names the file."""
    folder = written(tmp_path / "mine", files)
    with pytest.raises(UserError, match=said) as caught:
        extensions.use([folder])
    assert str(folder) in str(caught.value)


def test_two_extensions_may_not_have_the_same_file(tmp_path):
    one, other = (
        written(tmp_path / name, {"unlearning/methods/patience.py": ""}) for name in ("a", "b")
    )
    with pytest.raises(UserError, match=f"would hide {one}"):
        extensions.use([one, other])


def test_extensions_are_named_before_the_sections_are_read(mine):
    """Later, only some of their parts would be found."""
    import palimpsest.sections  # noqa: F401

    with pytest.raises(UserError, match="name it before anything else is imported"):
        extensions.use([mine])


@pytest.mark.workflow
@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("memorisation/figures/broken.py", "FIGURE = 1 / 0", "broken.py:1: ZeroDivisionError"),
        ("memorisation/figures/broken.py", "FIGURE = (", "broken.py:1: SyntaxError"),
        (
            "unlearning/figures/tradeoff.py",
            FIGURE.format(name="tradeoff"),
            "tradeoff: two figures or kinds have this name",
        ),
        (
            "unlearning/methods/again.py",
            PHASE.replace("patience", "gradient-ascent"),
            "again.py:4: ValueError: palimpsest.unlearning.methods.again: the phase",
        ),
        ("odd/section.py", "SECTION = 3", "odd/section.py: SECTION is no Section named odd"),
    ],
)
def test_an_error_in_an_extension_is_one_line(tmp_path, name, text, said):
    """It names the file and the line."""
    project = Project.fresh(tmp_path)
    written(tmp_path / "mine", {name: text})
    done = project.snakemake("--dry-run", "--config", "extensions=[mine]")
    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("error:")]
    assert said in line
    assert "Traceback" not in done.stdout


@pytest.mark.workflow
@pytest.mark.parametrize("function", ["requests", "outputs", "mistakes"])
def test_an_error_in_a_function_of_an_own_section_is_one_line(tmp_path, function):
    """Snakemake calls these functions while it builds its graph of jobs."""
    project = Project.fresh(tmp_path)
    shutil.copytree(Path(__file__).parent / "workflow/toy_section", tmp_path / "mine")
    section = tmp_path / "mine/repetition/section.py"
    text = section.read_text()
    start = text.index(f"def {function}(")
    body = text.index('"""\n', text.index('"""', start) + 3) + 4
    section.write_text(f"{text[:body]}    settings.nothing\n{text[body:]}")
    line = text[:body].count("\n") + 1
    block = "{model: opt-1.3b-twin, languages: [L1], size: 24}"
    given = ("--config", "extensions=[mine]", f"repetition={block}")
    done = project.snakemake("--dry-run", *given, "--", "repetition")
    assert done.returncode == 1
    (said,) = [line for line in done.stdout.splitlines() if "Error" in line]
    assert said.startswith(f"error: {section}:{line}: AttributeError: ")


@pytest.mark.workflow
@pytest.mark.parametrize("hook", ["facts", "derived", "unfinished", "headline"])
def test_an_error_in_another_hook_of_an_own_section_is_one_line(tmp_path, hook):
    """Snakemake calls some of them while it reads the rules, and others while it plans jobs."""
    project = Project.fresh(tmp_path)
    folder = tmp_path / "mine/repetition"
    shutil.copytree(Path(__file__).parent / "workflow/toy_section/repetition", folder)
    if hook == "headline":
        (file := folder / "headline.py").write_text(
            "import palimpsest\n\nrows = palimpsest.nothing"
        )
        line = 3
    else:
        file = folder / "section.py"
        text = file.read_text().replace("SECTION = Section(", f"SECTION = Section({hook}=broken,")
        above, below = text.split("SECTION =")
        text = f"{above}def broken(settings):\n    return settings.nothing\n\n\nSECTION ={below}"
        file.write_text(text)
        line = above.count("\n") + 2
    block = "{model: opt-1.3b-twin, languages: [L1], size: 24}"
    given = ("--config", "extensions=[mine]", f"repetition={block}")
    target = {"derived": "plan", "unfinished": "stale_state"}.get(hook, "repetition")
    done = project.snakemake(target, "--dry-run", *given)
    assert done.returncode == 1
    (said,) = [line for line in done.stdout.splitlines() if "Error" in line]
    assert said.startswith(f"error: {file}:{line}: AttributeError: ")
    assert "Traceback" not in done.stdout


@pytest.mark.workflow
@pytest.mark.parametrize("given", ["mine", "[1]", "[no_such_folder]"])
def test_wrong_values_of_the_key_are_refused(tmp_path, given):
    done = Project.fresh(tmp_path).snakemake("--dry-run", "--config", f"extensions={given}")
    assert done.returncode == 1
    assert "error: " in done.stdout
    assert "extensions" in done.stdout
    assert "Traceback" not in done.stdout


def test_an_installed_package_is_found_by_its_entry_point(tmp_path):
    """It brings a folder, like the key `extensions`."""
    written(
        tmp_path,
        {
            "my_package/__init__.py": "",
            "my_package/parts/__init__.py": "",
            "my_package/parts/unlearning/methods/patience.py": PHASE,
            "my_package-1.0.dist-info/METADATA": "Name: my_package\nVersion: 1.0\n",
            "my_package-1.0.dist-info/entry_points.txt": (
                "[palimpsest.extensions]\nmine = my_package.parts\n"
            ),
        },
    )
    code = """
from palimpsest import extensions
extensions.use(extensions.installed())
from palimpsest.unlearning.methods import registered
print("patience" in registered())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SCRIPTS), str(tmp_path)])}
    given = [sys.executable, "-c", code]
    done = subprocess.run(given, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["True"], done.stderr


METHODS = """
from palimpsest import extensions
extensions.use({folders})
with extensions.errors_in_one_line():
    import json
    from palimpsest.unlearning.methods import methods_of
    own = {{"erase": "patience", "share": 0.1, "rate": 1}}
    theirs = {{"repair": "finetune", "share": 0.1, "rate": 1}}
    repeated = {{"repeat": 2, "phases": [own, theirs]}}
    made = methods_of({{
        "mine": {{"phases": [repeated], "grid": {{"1.1.rate": [1, 2]}}}},
        "theirs": {{"phases": [theirs]}},
    }})
    again = methods_of({{"mine": {{"phases": made["mine"].written}}}})
    assert again["mine"].written == made["mine"].written
    points = {{name: point.written for name, point in made["mine"].points().items()}}
    print(json.dumps([made["mine"].written, points, made["mine"].repair_alone.written]))
    print(json.dumps(made["theirs"].written))
    print([placed.phase.name for placed in again["mine"].placed])
"""


def test_the_code_of_an_own_phase_belongs_to_its_methods(mine):
    """It is in what jobs are asked, and so in what decides whether their tables are right."""

    def methods():
        environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
        given = [sys.executable, "-c", METHODS.format(folders=[str(mine)])]
        done = subprocess.run(given, env=environment, capture_output=True, text=True)
        assert not done.returncode, done.stderr
        return done.stdout.splitlines()

    before, phase_file = methods(), mine / "unlearning/methods/patience.py"
    assert before[2] == "['patience', 'finetune', 'patience', 'finetune']"
    phase_file.write_text(PHASE + "# a comment\n")
    assert methods() == before
    phase_file.write_text(PHASE + "    paired_set = FORGET\n")
    own, theirs, _ = methods()
    assert theirs == before[1]
    for now, then in zip(json.loads(own)[:2], json.loads(before[0])[:2], strict=True):
        assert now != then
    assert json.loads(own)[2] == json.loads(before[0])[2], "the repair phase is the library's"
    assert "own code" not in theirs


@pytest.fixture
def own_query(tmp_path, monkeypatch):
    """A module of an extension with a query and a function that fails, imported."""
    text = """
from types import SimpleNamespace
from palimpsest.jobs.query import Query, Question

def questions(n_models, values):
    return [Question("mine", dict(values), n_models, print)]

def ask():
    return 1

def fails(values):
    return sorted(values).nothing

ask.query = Query("records", (), questions)
"""
    folder = written(tmp_path / "mine", {"asking_of_mine/parts.py": text})
    monkeypatch.setenv(extensions.VARIABLE, str(folder))
    monkeypatch.setattr(palimpsest, "__path__", [*palimpsest.__path__, str(folder)])
    fingerprint._file.cache_clear()
    yield folder / "asking_of_mine/parts.py"
    for name in [name for name in sys.modules if name.startswith("palimpsest.asking_of_mine")]:
        del sys.modules[name]
    fingerprint._file.cache_clear()


def test_the_code_of_an_own_query_decides_its_tables(own_query):
    """A query of the library has none: its tables stay when the library changes."""
    place = "palimpsest.asking_of_mine.parts:ask"
    (asked,) = query_named(place).asked("strings", ["weights"], {"n": 1}, None)
    assert asked.about == {"n": 1, **fingerprint.own_code(place)}
    assert len(asked.about["own_code"]) == 12
    library = query_named("palimpsest.profiles.final_models:answers")
    (asked,) = library.asked("strings", ["weights"], {}, None)
    assert asked.about == {}


WHERE = r"parts\.py:12: AttributeError: 'list' object has no attribute 'nothing'"


def test_an_error_in_own_code_ends_a_command_in_one_line(own_query, capsys):
    """Its traceback is in the log, before the line; the library's own defects keep theirs."""
    fails = named("palimpsest.asking_of_mine.parts:fails")
    with pytest.raises(SystemExit, match=f"^error: .*{WHERE}$"), ending_in_one_line():
        fails([])
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "return sorted(values).nothing" in shown
    with pytest.raises(AttributeError), ending_in_one_line():
        [].nothing  # noqa: B018


def test_the_line_names_own_code_where_the_library_fails(own_query, capsys):
    """For example because it was given something else than it takes."""
    fails = named("palimpsest.asking_of_mine.parts:fails")
    said = r"^error: .*parts\.py:12: TypeError: 'int' object is not iterable$"
    with pytest.raises(SystemExit, match=said), ending_in_one_line():
        fails(3)


def test_an_error_in_own_code_ends_a_script_in_one_line(own_query, tmp_path, capsys):
    job = SimpleNamespace(log=[tmp_path / "log"])
    with pytest.raises(SystemExit) as ended, script_job(job):
        named("palimpsest.asking_of_mine.parts:fails")([])
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(f"^error: .*{WHERE}$", line)
    log = (tmp_path / "log").read_text()
    assert "Traceback" in log
    assert log.endswith(f"{line}\n")
