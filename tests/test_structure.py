"""The shape of the house: who imports whom, and how large a file may be."""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

from palimpsest.sections import NAMES, SECTIONS

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "workflow/scripts/palimpsest"
# From left to right: a room imports only rooms to its left. Rooms of a line import no other of it.
ROOMS = [
    ["snakemake_3744", "snakemake_3808", "snakemake_4166"],
    ["commands", "errors", "launch", "lazy_import", "paths"],
    ["extensions"],
    ["fingerprint"],
    ["allowed"],
    [
        "conformal",
        "interventions",
        "number_format",
        "plain_text",
        "short_repr",
        "statistics",
    ],
    ["arguments", "estimates", "regimes", "tables"],
    ["languages", "locks", "making", "manifests", "models", "requests", "script_job"],
    ["corpora", "pretrained"],
    ["configuration"],
    ["cards", "claims", "code_archive", "devices", "ends", "recovery", "renamed_results", "traces"],
    ["figures", "slurm", "token_losses", "training_rules"],
    ["section"],
    ["planning"],
    ["datasets", "report"],
    ["training"],
    ["jobs"],
    *([name] for name in NAMES),  # a section may use the ones before it
    ["sections"],
    ["experiment", "results"],
    ["phase_stub", "reference"],
    ["new_study"],
    ["command_line"],
]


@cache
def modules():
    """The file of every module of the library, by its name."""
    found = {}
    for path in LIBRARY.rglob("*.py"):
        parts = ("palimpsest", *path.relative_to(LIBRARY).with_suffix("").parts)
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


@cache
def imports(module):
    """The modules of the library that a module imports, anywhere in it, for types as well."""
    found = set()
    for node in ast.walk(ast.parse(modules()[module].read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: a relative import hides where it leads"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules() else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_import":
            found.add(getattr(node.args[0], "value", ""))
    return {name for name in found if name in modules() and name != module}


def room(module):
    """The part of the library that a module is in; of the package itself, its name."""
    return module.split(".")[1] if "." in module else module


def everything_behind(module):
    """The modules that a module needs, directly or through others."""
    seen, todo = set(), [module]
    while todo:
        for name in imports(todo.pop()) - seen:
            seen.add(name)
            todo.append(name)
    return seen


def test_every_room_has_its_place():
    """A new room is put where it belongs."""
    placed = [name for line in ROOMS for name in line]
    assert sorted(placed) == sorted({room(name) for name in modules()} - {"palimpsest"})


def test_a_room_imports_only_rooms_to_its_left():
    """Nothing runs back up, and no two rooms import each other."""
    place = {name: number for number, line in enumerate(ROOMS) for name in line}
    place["palimpsest"] = -1
    backwards = [
        f"{module} imports {other}"
        for module in modules()
        for other in sorted(imports(module))
        if room(module) != room(other) and place[room(other)] >= place[room(module)]
        if module != "palimpsest"
    ]
    assert not backwards


def test_no_module_imports_itself_through_others():
    """This also holds inside a room."""
    assert not [module for module in modules() if module in everything_behind(module)]


def test_sections_are_named_in_one_file():
    """Among the modules that sections share, only `sections.py` imports the sections.

    `records` shares nothing: it applies the measures of a section to a user's own losses.
    """
    names = {section.name for section in SECTIONS}
    own = {*names, "sections", "records"}
    shared = {module for module in modules() if room(module) not in own}
    known = [
        f"{module} imports {other}"
        for module in sorted(shared)
        for other in sorted(imports(module))
        if room(other) in names
    ]
    assert not known


# What binds a name in a rule file: for the files that come after it, or within a function.
BINDS = re.compile(r"^(?:def (\w+)|(\w+) =|from \S+ import (.+))", re.MULTILINE)
IMPORT = re.compile(r"^from \S+ import .+$", re.MULTILINE)
BINDS_WITHIN = re.compile(r"\bfor ([\w, *]+) in|def \w+\((.*)\)|^ +([\w, *]+) = ", re.MULTILINE)


def bound(pattern, texts):
    """The names that are bound in some rule files."""
    found = (match for text in texts for match in pattern.findall(text))
    return {
        name.split(" as ")[-1].strip("* ") for match in found for name in "".join(match).split(",")
    }


def test_no_rule_that_sections_share_needs_a_section():
    """A name that only a section's rules define is in no rule file but the section's own."""
    rules = ROOT / "workflow/rules"
    files = {path: path.read_text() for path in (*rules.glob("*.smk"), *rules.glob("*/*.smk"))}
    sections = {section.name for section in SECTIONS}
    shared = {path: text for path, text in files.items() if path.stem not in sections}
    own = bound(BINDS, (text for path, text in files.items() if path not in shared))
    assert {"unlearning_jobs", "STUDIES"} <= own
    for path, text in shared.items():
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        used = {token.string for token in tokens if token.type == tokenize.NAME}
        known = bound(BINDS, shared.values()) | bound(BINDS_WITHIN, [text])
        assert not (own - known) & used, path


def test_no_two_rule_files_bind_one_name():
    """The second would redefine the name, and the functions of the first would use it."""
    meanings = {}
    for path in sorted((ROOT / "workflow/rules").rglob("*.smk")):
        text = path.read_text()
        imports = {line: bound(BINDS, [line]) for line in IMPORT.findall(text)}
        own = bound(BINDS, [IMPORT.sub("", text)])
        for name in own | set().union(*imports.values()):
            lines = {line.split(" import ")[0] for line in imports if name in imports[line]}
            meanings.setdefault(name, set()).update({path.name} if name in own else lines)
    assert not {name: places for name, places in meanings.items() if len(places) > 1}


def test_a_rule_made_from_a_local_rule_is_local():
    """Snakemake does not take `localrule` over, and would submit the job to a cluster."""
    texts = (path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    rules = [
        rule for text in texts for rule in re.split(r"^ *(?=rule |use rule )", text, flags=re.M)
    ]
    is_local = {rule.split(":")[0]: "localrule: True" in rule for rule in rules}
    made = [name for name in is_local if name.startswith("use rule")]
    assert "use rule stale_state as remove_stale_state with" in made
    for name in made:
        assert is_local[name] == is_local[f"rule {name.split()[2]}"], name


def test_no_file_is_too_long_to_be_read():
    """A file of the library has at most 700 lines."""
    lines = {path: len(path.read_text().splitlines()) for path in LIBRARY.rglob("*.py")}
    assert not {path.relative_to(LIBRARY).as_posix(): n for path, n in lines.items() if n > 700}


@pytest.mark.parametrize(("file", "most"), [("Snakefile", 60), ("workflow/rules/common.smk", 150)])
def test_the_workflow_can_be_taken_in_at_a_glance(file, most):
    """The Snakefile is a table of contents, and what all rules share is little."""
    assert len((ROOT / file).read_text().splitlines()) <= most
