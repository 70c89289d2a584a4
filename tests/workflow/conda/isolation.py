"""Take the host's packages away from a script of Snakemake's before its first line is run.

Snakemake puts a preamble in front of every script. The preamble appends the host's `sys.path`,
because the object `snakemake` is of Snakemake's classes, and leaves it there. A package that the
environment lacks would come from the host in silence.

Every Python of an environment imports this when it starts. The preamble finds Snakemake. At the
first import after the preamble, what the preamble appended leaves `sys.path` again, but for the
folder of the script, and what was imported from there leaves `sys.modules`, but for Snakemake. From
then on it is as if the host had no other package, for every way to import, and in every child.
"""

import builtins
import importlib
import os
import sys

SNAKEMAKE = "snakemake"
# What the object `snakemake` imports when it is asked for something
USED_LATE = ("snakemake.io", "snakemake.common")

plain_import = builtins.__import__
own_path: list[str] = []


def watching_import(name, globals=None, locals=None, fromlist=(), level=0):
    """Import as usual, and look at what the main module imports."""
    if globals and globals.get("__name__") == "__main__":
        look_at(globals)
    return plain_import(name, globals, locals, fromlist, level)


def look_at(main: dict) -> None:
    """Note what the environment has before the preamble, and isolate the script after it."""
    if not own_path:
        own_path.extend(sys.path)
    if "__real_file__" in main:  # the last that the preamble does
        builtins.__import__ = plain_import
        scripts = os.path.dirname(os.path.realpath(main["__file__"]))
        take_away([entry for entry in sys.path if not is_kept(entry, scripts)])


def is_kept(entry: str, scripts: str) -> bool:
    """Whether a script may import from an entry of the path."""
    return entry in own_path or os.path.realpath(entry) == scripts


def take_away(gone: list[str]) -> None:
    """Take entries out of the path, and out of what is imported whatever is from there."""
    if not gone:
        return
    for name in USED_LATE:
        importlib.import_module(name)
    entries = list(sys.path)
    sys.path[:] = [entry for entry in entries if entry not in gone]
    for name, module in list(sys.modules.items()):
        is_snakemake = name.split(".")[0] == SNAKEMAKE
        if not is_snakemake and any(
            entry_of(place, entries) in gone for place in places_of(module)
        ):
            del sys.modules[name]


def places_of(module) -> list[str]:
    """Where a module is from: its file, or the folders of a package that has none."""
    file = getattr(module, "__file__", None)
    return [file] if file else list(getattr(module, "__path__", []))


def entry_of(place: str, entries: list[str]) -> str | None:
    """The entry of the path that a file is from: one may lie in another."""
    around = [entry for entry in entries if place.startswith(os.path.join(entry, ""))]
    return max(around, key=len, default=None)


builtins.__import__ = watching_import
