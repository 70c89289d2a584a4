"""Extensions: folders of a user's, or of installed packages, whose modules belong to the library.

An extension is laid over the library. Its file `unlearning/methods/noise.py` is the module
`palimpsest.unlearning.methods.noise`, and is found as the library's own files in that folder are.
"""

import functools
import importlib.machinery
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from pathlib import Path

from palimpsest.errors import UserError, refusing

LIBRARY = Path(__file__).parent
GROUP = "palimpsest.extensions"  # entry points of installed packages; each names a package
VARIABLE = "PALIMPSEST_EXTENSIONS"  # environment variable: the folders, for the jobs
OF_EVERY_EXTENSION = ("__init__.py", "README.md")
SECTION = "section.py"


def folders() -> list[Path]:
    """The folders of the extensions in use, in order."""
    return [Path(folder) for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]


def sections() -> list[str]:
    """The names of the sections that extensions have: folders with a `section.py`."""
    found = (path.parent.name for folder in folders() for path in folder.glob(f"*/{SECTION}"))
    return sorted(found)


def installed() -> Iterator[str]:
    """The folders of extensions in installed packages. Raises `UserError` for a wrong entry."""
    from importlib.metadata import entry_points  # slow, and only the main process asks

    for entry in entry_points(group=GROUP):
        spec = importlib.util.find_spec(entry.value)
        if spec is None or not spec.submodule_search_locations:
            raise UserError(
                f"the entry point {entry.name} of {GROUP} names {entry.value}, which is no "
                "package; mend or remove the installed package that has it"
            )
        yield next(iter(spec.submodule_search_locations))


def given_in(config: dict) -> list[str]:
    """The folders that a configuration names; [] for a value that the schema will refuse."""
    given = config.get("extensions")
    is_right = isinstance(given, list) and all(isinstance(folder, str) for folder in given)
    return given if is_right else []


def use(given: Iterable[str | Path]) -> None:
    """Lay folders over the library, in this process and in those that it starts.

    Call it before `palimpsest.sections` is imported. Raises `UserError` for a folder that is no
    extension, and for a file that would hide one of the library's or of another extension's.
    """
    chosen = list(dict.fromkeys(Path(os.path.abspath(folder)) for folder in given))
    taken: dict[Path, Path] = {}
    for folder in chosen:
        _check(folder, taken)
    if chosen and "palimpsest.sections" in sys.modules:
        raise UserError(f"extensions: {chosen[0]}: name it before anything else is imported")
    os.environ[VARIABLE] = os.pathsep.join(map(str, chosen))
    lay_over()


def _check(folder: Path, taken: dict[Path, Path]) -> None:
    if not folder.is_dir():
        raise UserError(
            f"extensions: {folder}: no such folder; give a folder of modules (docs/extensions.md)"
        )
    inner = [path.relative_to(folder) for path in folder.rglob("*.py")]
    if not any(len(path.parts) > 1 for path in inner):
        raise UserError(
            f"extensions: {folder}: has no module in a folder named as one of the library, such as "
            "unlearning/methods/noise.py (docs/extensions.md)"
        )
    for path in inner:
        if path.name in OF_EVERY_EXTENSION:
            continue
        if path.name == SECTION and (LIBRARY / path.parent).exists():
            raise UserError(
                f"extensions: {folder / path}: the library has a part of this name; give the "
                "section another one"
            )
        known = taken.setdefault(path, folder)
        is_ours = (LIBRARY / path).exists() or (LIBRARY / path.with_suffix("")).is_dir()
        if is_ours or known != folder:
            hidden = f"the library's {path}" if is_ours else known / path
            raise UserError(f"extensions: {folder / path}: would hide {hidden}; rename the file")


class Finder(MetaPathFinder):
    """Adds the folders of extensions to those of every package of the library."""

    def find_spec(self, name: str, path: Sequence[str] | None, target=None):
        if not name.startswith("palimpsest."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.submodule_search_locations is None:
            return spec
        _, *inner = name.split(".")
        known = list(spec.submodule_search_locations)
        more = [str(folder.joinpath(*inner)) for folder in folders()]
        spec.submodule_search_locations = [
            *known,
            *(folder for folder in more if os.path.isdir(folder) and folder not in known),
        ]
        return spec


def lay_over() -> None:
    """Let Python find the modules of the folders in the environment variable."""
    if not folders():
        return
    package = sys.modules["palimpsest"]
    package.__path__[:] = [
        *dict.fromkeys([*package.__path__, *(str(folder) for folder in folders())])
    ]
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
    for name, module in list(sys.modules.items()):
        if name.startswith("palimpsest.") and hasattr(module, "__path__"):
            spec = importlib.util.find_spec(name)
            module.__path__ = list(spec.submodule_search_locations)


class ErrorOfExtension(UserError):
    """An error in the code of an extension: a line with file and line. Its cause is the error."""


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Turn an error in the code of an extension into one line.

    The line names the innermost place in the extension, also of an error that the library raises
    further in. Any other error is raised unchanged.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        frames = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
        if isinstance(error, SyntaxError) and error.filename:
            frames.append((error.filename, error.lineno))
        own = [f for f in frames if any(Path(f[0]).is_relative_to(one) for one in folders())]
        if not own:
            raise
        file, line = own[-1]
        said = f"{file}:{line}: {type(error).__name__}: {error}"
        raise ErrorOfExtension(said) from error


class InOneLine:
    """An object whose attributes and methods end the process with one line for a user's error.

    Snakemake reads the experiment while it reads the rules and plans the jobs. The experiment then
    calls functions of sections, which may be an extension's.
    """

    def __init__(self, inner: object):
        self._inner = inner

    def __getattr__(self, name: str):
        with refusing(), errors_in_one_line():
            value = getattr(self._inner, name)
        if not inspect.ismethod(value):
            return value

        @functools.wraps(value)
        def call(*arguments, **named):
            with refusing(), errors_in_one_line():
                return value(*arguments, **named)

        return call
