"""Modules that are imported when they are first used."""

import importlib
import sys
from types import ModuleType


class _Lazy(ModuleType):
    """Stands for a module that is imported when something is asked of it.

    It is no entry of `sys.modules`, where other libraries look whether a module is in use.
    """

    def __getattr__(self, name: str):
        return getattr(importlib.import_module(self.__name__), name)


def lazily(name: str) -> ModuleType:
    """The module of a name, or what imports it on first use.

    `torch = lazily("torch")` stands in modules that Snakemake reads while it builds its graph of
    jobs, when nothing heavy is to be imported.
    """
    return sys.modules.get(name) or _Lazy(name)
