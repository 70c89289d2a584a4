"""Modules, and names of packages, that are imported when they are first used."""

import contextlib
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType

# The extra of the package `palimpsest` that brings a module; without one, its module is missing.
EXTRAS = {
    **dict.fromkeys(("faiss", "mixedlm"), "density"),
    **dict.fromkeys(("presidio_analyzer", "spacy"), "private"),
    **dict.fromkeys(("matplotlib", "jinja2", "markupsafe", "pygments"), "figures"),
    **dict.fromkeys(
        ("torch", "transformers", "tokenizers", "accelerate", "deepspeed", "peft", "psutil"),
        "training",
    ),
    **dict.fromkeys(("nltk", "sentence_transformers"), "training"),
    "snakemake": "workflow",
}


@contextlib.contextmanager
def naming_extra() -> Iterator[None]:
    """Say how to install what an import in this context lacks, if an extra brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise _with_extra(error) from None


def _with_extra(error: ModuleNotFoundError) -> ModuleNotFoundError:
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return error
    remedy = f"pip install 'palimpsest[{EXTRAS[module]}]'"
    return ModuleNotFoundError(f"{module} is not installed; {remedy}", name=module)


class _Lazy(ModuleType):
    """A placeholder for a module that is imported when one of its attributes is used.

    The placeholder is not in `sys.modules`, because other libraries look there to find out whether
    a module is in use.
    """

    def __getattr__(self, name: str):
        try:
            return getattr(importlib.import_module(self.__name__), name)
        except ModuleNotFoundError as error:
            raise _with_extra(error) from None


def lazy_import(name: str) -> ModuleType:
    """The module with this name, or a placeholder that imports the module on first use.

    Use `torch = lazy_import("torch")` in modules that Snakemake reads before it builds its graph of
    jobs: at that time, no module that loads slowly should be imported.
    """
    return sys.modules.get(name) or _Lazy(name)


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """A package's `__getattr__`: each public name is imported from its module on first use.

    `modules` maps a public name to the module of the package that defines the name, or to the whole
    name of a module of another package.
    """

    def __getattr__(name: str):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        whole = modules[name].startswith(f"{package.partition('.')[0]}.")
        module = modules[name] if whole else f"{package}.{modules[name]}"
        with naming_extra():
            return getattr(importlib.import_module(module), name)

    return __getattr__


def listing(package: str, names: Iterable[str]) -> Callable[[], list[str]]:
    """A package's `__dir__`: its public names, so that `help` shows the functions and their texts.

    Where torch is not installed, names that need what is missing are left out.
    """

    def __dir__() -> list[str]:
        whole = sys.modules[package]
        if importlib.util.find_spec("torch") is not None:
            return sorted(names)
        return sorted(name for name in names if _is_there(whole, name))

    return __dir__


def _is_there(module: ModuleType, name: str) -> bool:
    try:
        getattr(module, name)
    except ModuleNotFoundError:
        return False
    return True


def declared_in(package: str, name: str) -> list:
    """The objects with a name, such as "FIGURE", of all modules of a package that have one.

    The list is empty if there is no such package.
    """
    spec = importlib.util.find_spec(package)
    modules = pkgutil.iter_modules(spec.submodule_search_locations if spec else [])
    found = [importlib.import_module(f"{package}.{module.name}") for module in modules]
    return [getattr(module, name) for module in found if hasattr(module, name)]


def named(location: str | None):
    """The object at a location, written "module:name"; an empty tuple if the location is None."""
    if location is None:
        return ()
    module, name = location.split(":")
    return getattr(importlib.import_module(module), name)
