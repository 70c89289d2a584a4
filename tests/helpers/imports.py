"""Which packages a rule imports, read from the source of what it runs."""

import ast
import importlib.metadata
import sys
from functools import cache
from pathlib import Path

from packaging.utils import canonicalize_name

from helpers.commands import SCRIPTS
from helpers.rules import rules, script_of
from palimpsest.fingerprint import modules_of
from palimpsest.memorisation.studies import STUDIES
from palimpsest.sections import FIGURES, SECTIONS

# What Python code is run by name: the parts of the sections that a rule loads.
LOADED = {
    "figure": [figure.draw for figure in FIGURES.values()],
    "claims": [place for section in SECTIONS if (place := section.location("claims"))],
    "write_report": [
        section.location("report") or section.location("claims") for section in SECTIONS
    ],
    "study": [study.location for study in STUDIES.values()],
}
# What these modules import by name, whenever they are imported.
ALWAYS = {
    "palimpsest.sections": [f"palimpsest.{section.name}.section" for section in SECTIONS],
    "palimpsest.memorisation.studies": [type(study).__module__ for study in STUDIES.values()],
}


def file_of(module):
    """The file of a module of the library, or of a script given by its path."""
    if module.endswith(".py"):
        return Path(module)
    path = SCRIPTS / Path(*module.split("."))
    return next((f for f in (path.with_suffix(".py"), path / "__init__.py") if f.is_file()), None)


@cache
def imported_at_once(module):
    """What a module imports when it is imported itself: modules of the library, and others."""
    found = set()
    for node in ast.parse(file_of(module).read_text()).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def third_parties(rule):
    """Distributions that a rule imports, at once or when some of its code is used."""
    script, params = script_of(rule), dict(rules()[rule].params.items())
    named = [params[name] for name in ("make", "query") if isinstance(params.get(name), str)]
    loaded = [*LOADED.get(rule, []), *named]
    used = modules_of(script.name, *loaded)
    late = [module for module in used if module.split(".")[0] == "palimpsest" and file_of(module)]
    todo, seen = [str(script), *(place.split(":")[0] for place in loaded), *late], set(late)
    while todo:
        module = todo.pop()
        for name in imported_at_once(module):
            used.add(name)
            parents = [name.rsplit(".", step)[0] for step in range(name.count(".") + 1)]
            for each in parents:
                if each.split(".")[0] == "palimpsest" and file_of(each) and each not in seen:
                    seen.add(each)
                    todo.append(each)
                    todo += ALWAYS.get(each, [])
    names = {name.split(".")[0] for name in used} - set(sys.stdlib_module_names) - {"palimpsest"}
    distributions = importlib.metadata.packages_distributions()
    # What is not installed here is called as it is imported.
    return {canonicalize_name(distributions.get(name, [name])[0]) for name in names}
