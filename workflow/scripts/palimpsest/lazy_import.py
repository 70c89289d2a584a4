"""Modules, and names of packages, that are imported when they are first used."""

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType


class _Lazy(ModuleType):
    """Stands for a module that is imported when something is asked of it.

    It is no entry of `sys.modules`, where other libraries look whether a module is in use.
    """

    def __getattr__(self, name: str):
        return getattr(importlib.import_module(self.__name__), name)


def lazy_import(name: str) -> ModuleType:
    """The module of a name, or what imports it on first use.

    `torch = lazy_import("torch")` stands in modules that Snakemake reads while it builds its graph
    of jobs, when nothing heavy is to be imported.
    """
    return sys.modules.get(name) or _Lazy(name)


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """A package's `__getattr__`: each public name is imported from its module on first use.

    `modules` maps a public name to the module, below the package, that defines the name.
    """

    def __getattr__(name: str):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return __getattr__


def named(place: str | None):
    """What stands at a place, "module:name"; an empty tuple for no place."""
    if place is None:
        return ()
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)
