"""A hash of the code that a rule uses, computed from the imports of the code.

A rule with a script reruns when code that the script uses changes, and only then. A changed
comment, docstring, layout or sentence in a glossary of columns does not change the hash. A change
in a function that the script does not use does not change the hash, either. A template counts for
the code that names the template in a string; both are in the same folder. If code
calls one of DISCOVERING for its package, all modules of the package count.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from palimpsest import extensions

SCRIPTS = Path(__file__).parents[1]
LIBRARY = __package__ or "palimpsest"
EVERYTHING = "*"
REMEMBERED = "__pycache__/fingerprints.json"  # in the folder of Python's own cache
TEMPLATE = ".j2"
DISCOVERING = ("declared_in", "figures_in")  # functions that import every module of a package
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# Calls whose text declares columns, and the sentences in this text: see `tables.kinds.Glossary`
GLOSSARIES = ("Glossary", "SHARED.extended")
SENTENCE = re.compile(r"(?<=: ).*(\n .*)*")
Location = tuple[str, str]  # a module and a name in it; EVERYTHING for the whole module


@cache
def of_code(*locations: str) -> str:
    """12 hexadecimal digits: a hash of the code at some locations and of all code that it uses.

    A location is a script ("make.py"), a name in a module ("palimpsest.claims:judge"), a whole
    module ("palimpsest.report") or a file next to a module ("palimpsest/report/report.html.j2").

    Raises `ValueError` for a location without code, because the hash of nothing would never change.
    """
    key = " ".join(locations)
    known = _remembered().get(key)
    if known is None or known["state"] != _state_of(known["files"]):
        known = _worked_out(*locations)
        _remember(key, known)
    return known["hash"]


@cache
def of_own_code(location: str) -> str:
    """As `of_code`, of the code that is in extensions, without what it uses of the library.

    Empty for code of the library. Jobs that ask or change trained models do not run again when the
    library changes, but they do when a user changes what they wrote themselves. A name that no
    statement of its module defines, such as that of a class in a function, means the whole module.
    """
    module, name = _location(location)
    if not _is_of_extension((module, name)):
        return ""
    is_defined = _definition(module, name) != Definition()
    return _hash_of(_used(location if is_defined else module, keeps=_is_of_extension))


def own_code(location: str) -> dict[str, str]:
    """The entry `own_code`, which what decides a result has for the code of an extension only."""
    code = of_own_code(location)
    return {"own_code": code} if code else {}


def location_of(thing: Callable) -> str:
    """The location of a class or a function."""
    return f"{thing.__module__}:{thing.__qualname__}"


def modules_of(*locations: str) -> set[str]:
    return {module for module, _ in _used(*locations) if not module.endswith((".py", TEMPLATE))}


def _worked_out(*locations: str) -> dict:
    """A fingerprint, the places of the files that it rests on, and the state of these files."""
    used = _used(*locations)
    paths = {_path_of(name) for name, _ in used}
    names = {name_of(path) for path in paths if path is not None}
    files = [place for place, name in enumerate(_files()) if name in names]
    return {"hash": _hash_of(used), "files": files, "state": _state_of(files)}


def _hash_of(used: dict[Location, Definition]) -> str:
    digest = hashlib.sha256()
    for location, definition in sorted(used.items()):
        words = "\0".join([*location, definition.text])
        digest.update(words.replace(str(SCRIPTS), "").encode())
    return digest.hexdigest()[:12]


def of_all_code() -> str:
    """12 hexadecimal digits that change with any byte of the scripts and the library."""
    return _state()[:12]


def code_files() -> list[Path]:
    """The files of the scripts and the library, in order.

    An installed library has no scripts: what is next to it is of other packages.
    """
    is_installed = any(SCRIPTS.glob("*.dist-info"))
    scripts = () if is_installed else SCRIPTS.glob("*.py")
    found = [*scripts, *(path for root in _roots() for path in root.rglob("*"))]
    return sorted(path for path in found if path.suffix in (".py", TEMPLATE))


def _roots() -> list[Path]:
    """The folders with modules of the library: its own, and those of extensions."""
    return [SCRIPTS / LIBRARY, *extensions.folders()]


def name_of(path: Path) -> str:
    """The path of a file of code within the folder of the scripts, also for an extension's file."""
    for root in extensions.folders():
        if path.is_relative_to(root):
            return f"{LIBRARY}/{path.relative_to(root).as_posix()}"
    return path.relative_to(SCRIPTS).as_posix()


@cache
def _files() -> dict[str, str]:
    """A hash of each file of code, by its name."""
    return {name_of(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in code_files()}


@cache
def _state() -> str:
    """A hash of all files of code and of their names."""
    return _state_of(range(len(_files())))


def _state_of(places: Iterable[int]) -> str:
    """A hash of some files of code, by their places, and of the names of all."""
    names, hashes = list(_files()), list(_files().values())
    words = [*names, *(hashes[place] for place in places)]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


@cache
def _remembered() -> dict[str, dict]:
    """What earlier processes worked out; it holds while the files that it rests on are the same.

    To work out all of them takes two seconds. If a file is new or gone, nothing holds: an import
    may mean another file.
    """
    with suppress(OSError, ValueError, KeyError):
        remembered = json.loads((SCRIPTS / LIBRARY / REMEMBERED).read_text())
        if remembered["names"] == list(_files()):
            return remembered["found"]
    return {}


def _remember(key: str, found: dict) -> None:
    """Keep a fingerprint for the next process, if the folder is writable."""
    _remembered()[key] = found
    path = SCRIPTS / LIBRARY / REMEMBERED
    temporary = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        temporary.write_text(json.dumps({"names": list(_files()), "found": _remembered()}))
        temporary.replace(path)


def _is_of_extension(location: Location) -> bool:
    path = _path_of(location[0])
    return path is not None and any(map(path.is_relative_to, extensions.folders()))


def _used(
    *locations: str, keeps: Callable[[Location], bool] = lambda location: True
) -> dict[Location, Definition]:
    """The definitions at some locations, and all that they use, directly or indirectly.

    Locations that are not kept are left out, with what only they use.
    """
    found: dict[Location, Definition] = {}
    todo = [_location(text) for text in locations]
    for text, location in zip(locations, todo, strict=True):
        if _definition(*location) == Definition():
            raise ValueError(f"{text}: there is no such code")
    while todo:
        location = todo.pop()
        if location not in found and keeps(location):
            found[location] = _definition(*location)
            todo += found[location].uses
    return found


def _location(text: str) -> Location:
    if text.endswith(".py") or "/" in text:
        return str(SCRIPTS / text), EVERYTHING
    module, _, name = text.partition(":")
    return module, name or EVERYTHING


@dataclass(frozen=True)
class Definition:
    """The code of a name, without comments and docstrings, and the locations that the code uses."""

    text: str = ""
    uses: tuple[Location, ...] = ()


@cache
def _definition(module: str, name: str) -> Definition:
    if module.endswith(TEMPLATE):
        return Definition(Path(module).read_text())
    source = _source(module)
    if source is None:
        return Definition()
    if name == EVERYTHING:
        return source.define(source.statements)
    if name in source.definitions:
        # Statements that run when the module is imported count for each of its names.
        return source.define([*source.definitions[name], *source.actions])
    if name in source.imports:
        return Definition(uses=source.imports[name])
    if name in source.modules:
        return Definition(uses=((source.modules[name], EVERYTHING),))
    if name in source.lazy_names:
        return Definition(uses=((f"{module}.{source.lazy_names[name]}", name),))
    if _file(f"{module}.{name}"):
        return Definition(uses=((f"{module}.{name}", EVERYTHING),))
    return Definition()


@cache
def _source(module: str) -> Source | None:
    path = _file(module)
    return None if path is None else Source(module, _parsed(path))


def _path_of(module: str) -> Path | None:
    """The file of a module, a script or a template."""
    return Path(module) if module.endswith(TEMPLATE) else _file(module)


@cache
def _file(module: str) -> Path | None:
    """The file of a module of the library or of a script's path; None for any other module."""
    if module.endswith(".py"):
        return Path(module)
    first, *inner = module.split(".")
    if first != LIBRARY:
        return None
    paths = [root.joinpath(*inner) for root in _roots()]
    files = (file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py"))
    return next((file for file in files if file.is_file()), None)


@dataclass
class Source:
    """A module's statements, by the names that they define."""

    module: str
    tree: ast.Module
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    actions: list[ast.stmt] = field(default_factory=list)
    imports: dict[str, tuple[Location, ...]] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        for statement in self.tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                self._bind(statement)
            elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.definitions.setdefault(statement.name, []).append(statement)
            elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
                self._assign(statement)
            elif not isinstance(statement, ast.Pass):
                self.actions.append(statement)

    @property
    def statements(self) -> list[ast.stmt]:
        """All statements of the module, without imports: an import counts where its name is used.

        So does a lazy one. The imports of a package's `__init__.py` do count, because the package
        offers these names.
        """
        if _file(self.module).name == "__init__.py":
            return list(self.tree.body)
        return [one for one in self.tree.body if not _is_import(one)]

    @property
    def postpones(self) -> bool:
        """Whether annotations are never evaluated; their names then do not count as used."""
        return self.imports.get("annotations") == (("__future__", "annotations"),)

    @cached_property
    def lazy_names(self) -> dict[str, str]:
        if "__getattr__" not in self.definitions:
            return {}
        (table,) = self.definitions["MODULES"]
        return ast.literal_eval(table.value)

    def define(self, statements: list[ast.stmt]) -> Definition:
        uses: dict[Location, None] = {}
        for statement in statements:
            uses |= dict.fromkeys(self._uses(statement))
        return Definition("\n".join(map(ast.dump, statements)), tuple(uses))

    def _assign(self, statement: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        module = _lazily_imported(statement.value)
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for node in (node for target in targets for node in ast.walk(target)):
            if isinstance(node, ast.Name):
                if module is not None:
                    self.modules[node.id] = module
                else:
                    self.definitions.setdefault(node.id, []).append(statement)

    def _bind(self, statement: ast.Import | ast.ImportFrom) -> None:
        imports, modules = self._bound(statement)
        for name, locations in imports.items():
            self.imports[name] = (*self.imports.get(name, ()), *locations)
        self.modules |= modules

    def _bound(
        self, statement: ast.Import | ast.ImportFrom
    ) -> tuple[dict[str, tuple[Location, ...]], dict[str, str]]:
        if not getattr(statement, "level", 0):
            return _bound(statement, getattr(statement, "module", ""))
        is_package = _file(self.module).name == "__init__.py"
        above = self.module.split(".")[: is_package - statement.level or None]
        return _bound(statement, ".".join([*above, *filter(None, [statement.module])]))

    def _uses(self, statement: ast.stmt) -> Iterator[Location]:
        """The locations that a statement refers to, in this module and in others."""
        imports, modules = dict(self.imports), dict(self.modules)
        nodes = list(_evaluated(statement) if self.postpones else ast.walk(statement))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                inner = self._bound(node)
                imports |= inner[0]
                modules |= inner[1]
                yield from (location for locations in inner[0].values() for location in locations)
        attributes = {
            id(node.value): node.attr
            for node in nodes
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
        for node in nodes:
            yield from self._templates(node)
            if not isinstance(node, ast.Name):
                continue
            if node.id in DISCOVERING:
                yield from self._submodules()
            if node.id in modules:
                yield modules[node.id], attributes.get(id(node), EVERYTHING)
            elif node.id in imports:
                yield from imports[node.id]
            elif node.id in self.definitions:
                yield self.module, node.id

    def _templates(self, node: ast.AST) -> Iterator[Location]:
        """The template that a string names, such as "report.html.j2", in the module's folder."""
        if isinstance(node, ast.Constant) and str(node.value).endswith(TEMPLATE):
            path = _file(self.module).with_name(node.value)
            if path.is_file():
                yield str(path), EVERYTHING

    def _submodules(self) -> Iterator[Location]:
        _, *inner = self.module.split(".")
        for root in _roots():
            for path in sorted(root.joinpath(*inner).glob("[!_]*.py")):
                yield f"{self.module}.{path.stem}", EVERYTHING


def _bound(
    statement: ast.Import | ast.ImportFrom, source: str
) -> tuple[dict[str, tuple[Location, ...]], dict[str, str]]:
    """The names that an import binds: first those of objects in other modules, then of modules.

    `source` is the module that names are imported from.
    """
    imports, modules = {}, {}
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            if alias.asname or "." not in alias.name:
                modules[alias.asname or alias.name] = alias.name
            else:
                # `import a.b` binds only the name `a`; a use of `a` counts as a use of `a.b`.
                first = alias.name.partition(".")[0]
                imports[first] = (*imports.get(first, ()), (alias.name, EVERYTHING))
        return imports, modules
    for alias in statement.names:
        bound, inner = alias.asname or alias.name, f"{source}.{alias.name}"
        if _file(inner):
            modules[bound] = inner
        else:
            imports[bound] = ((source, alias.name),)
    return imports, modules


def _lazily_imported(value: ast.expr | None) -> str | None:
    """The module in `lazy_import("module")`; None for any other expression."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "lazy_import":
        return ast.literal_eval(value.args[0])
    return None


def _is_import(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        return _lazily_imported(statement.value) is not None
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement, without the nodes in its annotations."""
    yield node
    for name, inner in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for child in inner if isinstance(inner, list) else [inner]:
                if isinstance(child, ast.AST):
                    yield from _evaluated(child)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_glossary(node: ast.AST) -> bool:
    is_call = isinstance(node, ast.Call) and ast.unparse(node.func) in GLOSSARIES
    return is_call and isinstance(node.args[0], ast.Constant)


def _parsed(path: Path) -> ast.Module:
    """A file's syntax tree without docstrings, and without the sentences of glossaries."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and node.body and _is_docstring(node.body[0]):
            node.body = node.body[1:] or [ast.Pass()]
        elif _is_glossary(node):
            node.args[0].value = SENTENCE.sub("", node.args[0].value)
    return tree
