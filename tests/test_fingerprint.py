"""Fingerprints: a hash changes with the code that a script uses, and with no other code."""

from pathlib import Path

import pytest

from palimpsest import fingerprint
from palimpsest.fingerprint import modules_of, of_code, of_own_code
from palimpsest.memorisation.studies import STUDIES
from palimpsest.sections import FIGURES, SECTIONS

# A small library in which every kind of use occurs once, and a script that uses it.
FILES = {
    "script.py": """
        '''The script.'''
        from fake.measures import measure
        from fake import report
        from fake.package import public

        report.render(measure(public()))
        """,
    "fake/__init__.py": "",
    "fake/measures.py": """
        from __future__ import annotations
        from fake import thresholds
        from fake.columns import columns
        from fake.heavy import Settings
        from fake.lazy import lazy_import
        from fake.libraries import shared

        late = lazy_import("fake.late")

        def measure(values: Settings) -> Settings:
            '''The measure.'''
            # A comment
            from fake.inner import inside
            found = helper(values) + inside(values) + late.wanted(values)
            return found + thresholds.USED + columns + shared.ONE

        def helper(values):
            return 1

        def unused(values):
            return 2
        """,
    "fake/thresholds.py": "USED = 1\nNEIGHBOUR = 2\n",
    "fake/columns.py": '''
        columns = SHARED.extended("""
        loss float: nats
            per token
        start float?: an epoch
        """)
        ''',
    "fake/heavy.py": "class Settings:\n    size = 1\n",
    "fake/lazy.py": "def lazy_import(name):\n    return name\n",
    "fake/libraries.py": "from fake.lazy import lazy_import\nshared = lazy_import('fake.shared')\n",
    "fake/shared.py": "ONE = 1\n",
    "fake/late.py": "def wanted(values):\n    return 1\n\ndef unwanted(values):\n    return 1\n",
    "fake/inner.py": "def inside(values):\n    return 1\n\ndef outside(values):\n    return 1\n",
    "fake/report/__init__.py": """
        PAGE = "page.html.j2"

        def render(values):
            return PAGE
        """,
    "fake/report/page.html.j2": "<p>{{ values }}</p>\n",
    "fake/report/other.html.j2": "<p>another</p>\n",
    "fake/package/__init__.py": """
        from fake.lazy import lazy_names

        MODULES = {"public": "behind", "other": "beside"}
        __getattr__ = lazy_names(__name__, MODULES)
        """,
    "fake/package/behind.py": "import fake.whole\n\ndef public():\n    return fake.whole\n",
    "fake/package/beside.py": "def other():\n    return 1\n",
    "fake/whole.py": "from fake.offered import OFFERED\n\ndef first():\n    return 1\n",
    "fake/offered.py": "OFFERED = 1\n",
    "all.py": "from fake.found import FOUND\nprint(FOUND)\n",
    "fake/found/__init__.py": """
        import pkgutil

        FOUND = declared_in(__name__, "FIGURE")
        """,
    "fake/found/one.py": "ONE = 1\n",
}


def dedented(text: str) -> str:
    lines = text.strip("\n").splitlines()
    indent = min((len(x) - len(x.lstrip()) for x in lines if x.strip()), default=0)
    return "\n".join(line[indent:] for line in lines) + "\n"


@pytest.fixture
def library(tmp_path, monkeypatch) -> Path:
    """The small library whose fingerprints are computed."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(dedented(text))
    monkeypatch.setattr(fingerprint, "SCRIPTS", tmp_path)
    monkeypatch.setattr(fingerprint, "LIBRARY", "fake")
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    """Forget what has been read of files that change now."""
    for name in (
        "of_code",
        "of_own_code",
        "_files",
        "_state",
        "_remembered",
        "_definition",
        "_source",
        "_file",
    ):
        getattr(fingerprint, name).cache_clear()


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new))


def changes(library: Path, file: str, old: str, new: str, location: str = "script.py") -> bool:
    """Whether an edit of a file changes the hash of a location."""
    before = of_code(location)
    edited(library / file, old, new)
    forget()
    return of_code(location) != before


USED = {
    "the script": ("script.py", "render(m", "render(1 + m"),
    "a function": ("fake/measures.py", "inside(values) +", "2 * inside(values) +"),
    "a function that it uses": ("fake/measures.py", "return 1", "return 3"),
    "a default of a parameter": ("fake/measures.py", "helper(values):", "helper(values=0):"),
    "an annotation, as it is written": ("fake/measures.py", "-> Settings", "-> list"),
    "a constant of a module": ("fake/thresholds.py", "USED = 1", "USED = 3"),
    "a type of a column": ("fake/columns.py", "loss float", "loss int"),
    "whether a column may be null": ("fake/columns.py", "float?", "float"),
    "another column": ("fake/columns.py", "an epoch\n", "an epoch\nscore float: in [0, 1]\n"),
    "a function of a lazily imported module": (
        "fake/late.py", "def wanted(values):\n    return 1", "def wanted(values):\n    return 3"
    ),
    "a module that another one imports lazily for all": ("fake/shared.py", "1", "3"),
    "what is imported inside a function": (
        "fake/inner.py", "def inside(values):\n    return 1", "def inside(values):\n    return 3"
    ),
    "a name that a package imports lazily": (
        "fake/package/behind.py", "return fake.whole", "return [fake.whole]"
    ),
    "a package": ("fake/report/__init__.py", "return PAGE", "return [PAGE]"),
    "a template that is named": ("fake/report/page.html.j2", "<p>", "<p >"),
    "a module that is used as a whole": ("fake/whole.py", "return 1", "return 3"),
    "what a module does when it is imported": ("fake/thresholds.py", "N", "print()\nN"),
}  # fmt: skip
NOT_USED = {
    "a comment": ("fake/measures.py", "# A comment", "# Another comment"),
    "a docstring": ("fake/measures.py", "'''The measure.'''", "'''What measures.'''"),
    "the docstring of a module": ("script.py", "'''The script.'''", ""),
    "the layout": ("fake/measures.py", "return 1", "return (\n        1\n    )"),
    "a sentence on a column": ("fake/columns.py", "nats", "bits"),
    "the next line of a sentence": ("fake/columns.py", "per token", "per string"),
    "another function": ("fake/measures.py", "return 2", "return 3"),
    "a new function": ("fake/measures.py", "def unused", "def new():\n    pass\n\ndef unused"),
    "a constant's neighbour": ("fake/thresholds.py", "NEIGHBOUR = 2", "NEIGHBOUR = 3"),
    "another function of a lazily imported module": (
        "fake/late.py", "unwanted(values):\n    return 1", "unwanted(values):\n    return 3"
    ),
    "what stands beside an import inside a function": (
        "fake/inner.py", "outside(values):\n    return 1", "outside(values):\n    return 3"
    ),
    "another name of a package": ("fake/package/beside.py", "return 1", "return 3"),
    "another template": ("fake/report/other.html.j2", "<p>", "<p >"),
    "what a module that is used as a whole imports and does not use": (
        "fake/offered.py",
        "1",
        "3",
    ),
    "what annotations alone name": ("fake/heavy.py", "size = 1", "size = 3"),
}  # fmt: skip


@pytest.mark.parametrize("what", USED)
def test_code_that_is_used_changes_the_hash(library, what):
    """Directly, or by what is used; at the top of a file, in a function, or imported late."""
    assert changes(library, *USED[what])


@pytest.mark.parametrize("what", NOT_USED)
def test_other_code_changes_no_hash(library, what):
    """Text without effect on the machine, and code that is not used."""
    assert not changes(library, *NOT_USED[what])


def test_annotations_that_are_evaluated_count(library):
    """They do not count if a file postpones them, as most files do."""
    edited(library / "fake/measures.py", "from __future__ import annotations\n", "")
    forget()
    assert changes(library, *NOT_USED["what annotations alone name"])


def test_a_package_that_looks_for_its_modules_counts_all_of_them(library):
    """A changed one, and a new one."""
    assert changes(library, "fake/found/one.py", "1", "3", location="all.py")
    before = of_code("all.py")
    (library / "fake/found/two.py").write_text("TWO = 2\n")
    forget()
    assert of_code("all.py") != before


def test_a_package_offers_what_it_imports(library):
    """So imported code counts if the package is used as a whole."""
    (library / "fake/whole").mkdir()
    (library / "fake/whole.py").rename(library / "fake/whole/__init__.py")
    forget()
    assert changes(library, "fake/offered.py", "1", "3")


def test_a_place_is_a_script_a_name_a_module_or_a_file(library):
    """A name counts alone, a module whole; several locations count together."""
    named, whole = "fake.thresholds:USED", "fake.thresholds"
    page = "fake/report/page.html.j2"
    hashes = {of_code(*locations) for locations in ([named], [whole], [page], [named, page])}
    assert len(hashes) == 4
    before = of_code(named), of_code(whole)
    edited(library / "fake/thresholds.py", "NEIGHBOUR = 2", "NEIGHBOUR = 3")
    forget()
    assert of_code(named) == before[0]
    assert of_code(whole) != before[1]


def test_a_hash_does_not_depend_on_where_the_project_is(library, tmp_path_factory, monkeypatch):
    """A study that is moved reruns nothing."""
    before = of_code("script.py")
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "scripts"
    library.rename(elsewhere)
    monkeypatch.setattr(fingerprint, "SCRIPTS", elsewhere)
    forget()
    assert of_code("script.py") == before


def test_a_hash_is_worked_out_once(library, monkeypatch):
    """Another process finds the hash if no file has changed. A broken store does no harm."""
    before = of_code("script.py")
    forget()
    with monkeypatch.context() as patched:
        patched.setattr(fingerprint, "_used", None)
        assert of_code("script.py") == before
    kept = library / "fake" / fingerprint.REMEMBERED
    for broken in ("{", '{"state": "of an older version", "hashes": {}}'):
        kept.write_text(broken)
        forget()
        assert of_code("script.py") == before
    kept.unlink()
    kept.mkdir()
    forget()
    assert of_code("script.py") == before


def test_an_edit_leaves_the_hashes_of_other_code_as_they_are(library, monkeypatch):
    """Only what uses the edited file is worked out again; after a new file, everything is."""
    apart, whole = of_code("fake.shared"), of_code("script.py")
    edited(library / "fake/inner.py", "return 1\n\n", "return 3\n\n")
    forget()
    with monkeypatch.context() as patched:
        patched.setattr(fingerprint, "_used", None)
        assert of_code("fake.shared") == apart
        with pytest.raises(TypeError):
            of_code("script.py")
    assert of_code("script.py") != whole
    (library / "fake/new.py").write_text("")
    forget()
    monkeypatch.setattr(fingerprint, "_used", None)
    with pytest.raises(TypeError):
        of_code("fake.shared")


def test_the_modules_behind_a_script_are_named(library):
    """With modules of other libraries; without modules used only in annotations or not at all."""
    edited(
        library / "fake/inner.py",
        "def inside(values):\n",
        "def inside(values):\n    import x\n    x.y()\n",
    )
    forget()
    names = ("columns", "measures", "inner", "late", "libraries", "package", "package.behind")
    more = ("report", "shared", "thresholds", "whole")
    expected = {"x", *(f"fake.{name}" for name in (*names, *more))}
    assert modules_of("script.py") == expected


# Of the real library


def test_a_rule_hangs_on_no_more_of_the_library_than_it_uses():
    """Tables, figures and reports do not use code that trains or builds the graph of jobs."""
    functions = ["results:figure", "results:claims", "results:report"]
    functions += [
        "memorisation.runs:memorisation_tables",
        "unlearning.evaluate.evaluation:forgetting",
    ]
    functions += [
        "unlearning.evaluate.evaluation:other_metrics",
        "unlearning.evaluate.evaluation:residual_tables",
    ]
    locations = ["make.py", *(f"palimpsest.{function}" for function in functions)]
    parts = {module.split(".")[1] for module in modules_of(*locations) if "palimpsest." in module}
    assert not parts & {"configuration", "planning", "training", "experiment", "models"}


def test_the_table_of_a_study_hangs_on_no_other_study():
    """Its rule takes a study by its name."""
    for study in STUDIES.values():
        behind = modules_of("make.py", study.location)
        assert {m for m in behind if ".studies." in m} == {type(study).__module__}


def test_a_figure_hangs_on_what_draws_it():
    """A figure also depends on the style, which all figures share."""
    for figure in FIGURES.values():
        assert {figure.draw.split(":")[0], "palimpsest.figures.style"} <= modules_of(*figure.code)


@pytest.mark.parametrize("part", ["claims", "report", "kinds"])
def test_the_places_of_the_sections_lead_to_their_code(part):
    """Each location uses other modules of the library too."""
    for section in SECTIONS:
        location = section.location(part)
        if location is not None:
            module = location.partition(":")[0]
            assert any(m.startswith("palimpsest") for m in modules_of(location) - {module})


@pytest.mark.parametrize(
    "location", ["palimpsest.claim:judge", "palimpsest.claims:judged", "palimpsest.claims.judge"]
)
def test_a_place_without_code_is_refused(location):
    """A misspelt location would have no code, and its rule would never rerun."""
    with pytest.raises(ValueError, match=f"{location}: there is no such code"):
        modules_of(location)


OF_USER = {
    "fake/methods/noise.py": """
        from fake.measures import helper
        from fake.helping import scale
        from .near import shift

        @phase("noise")
        class Noise:
            def run(self):
                return scale(1) + shift(1) + helper(1)

        def make():
            class Made:
                size = 1
            return Made

        for size in (1, 2):
            @phase(f"noise-{size}")
            class Repeated:
                size = size

        def other():
            return 1
        """,
    "fake/methods/near.py": "def shift(n):\n    return n\n",
    "fake/helping.py": "def scale(n):\n    return n\n\ndef unused(n):\n    return n\n",
}


@pytest.fixture
def mine(library, tmp_path_factory, monkeypatch) -> Path:
    """An extension that is laid over the small library."""
    folder = tmp_path_factory.mktemp("mine")
    for name, text in OF_USER.items():
        path = folder / Path(name).relative_to("fake")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedented(text))
    monkeypatch.setattr(fingerprint.extensions, "folders", lambda: [folder])
    return folder


def own_changes(location: str, path: Path, old: str, new: str) -> bool:
    before = of_own_code(location)
    edited(path, old, new)
    forget()
    return of_own_code(location) != before


NOISE = "fake.methods.noise:Noise"


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("methods/noise.py", "scale(1) +", "scale(2) +", True),
        ("methods/near.py", "return n", "return 2 * n", True),
        ("helping.py", "scale(n):\n    return n", "scale(n):\n    return 2 * n", True),
        ("helping.py", "unused(n):\n    return n", "unused(n):\n    return 2 * n", False),
        ("methods/noise.py", "other():\n    return 1", "other():\n    return 2", False),
        ("methods/noise.py", "class Noise:", "class Noise:  # a comment", False),
    ],
)
def test_own_code_is_what_a_user_wrote_for_it(mine, file, old, new, changed):
    """It follows imports, relative ones too, within the user's folder."""
    assert own_changes(NOISE, mine / file, old, new) == changed


def test_own_code_does_not_change_with_the_library(mine, library):
    """Models are not unlearned anew because the project has a new version."""
    assert not own_changes(NOISE, library / "fake/measures.py", "return 1", "return 3")
    assert of_own_code("fake.measures:helper") == ""


@pytest.mark.parametrize("name", ["make.<locals>.Made", "Repeated"])
def test_own_code_without_a_definition_of_its_own_is_its_module(mine, name):
    """A class in a function, or one that a loop makes, would have a hash that never changes."""
    file = mine / "methods/noise.py"
    assert own_changes(f"fake.methods.noise:{name}", file, "size = 1", "size = 3")
    assert own_changes(f"fake.methods.noise:{name}", file, "(1, 2)", "(1, 3)")
