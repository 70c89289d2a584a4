"""The commands of Snakemake that messages and pages print, for the same experiment.

Without the files of `--configfile`, such a command would be of another experiment.
"""

import os
import shlex
from collections.abc import Iterable

VARIABLE = "PALIMPSEST_CONFIGFILES"  # environment variable: the files in words, for the jobs


def use(configfiles: Iterable[str]) -> None:
    """Let all commands name the files that were given with `--configfile`."""
    os.environ[VARIABLE] = shlex.join(map(os.path.relpath, configfiles))


def configfiles() -> str:
    """The files in the words of a shell; empty without any."""
    return os.environ.get(VARIABLE, "")


def snakemake(*words: str | os.PathLike, cores: int | str = 1) -> str:
    """A command with some targets and flags. The files are last, because the flag takes several."""
    command = shlex.join(map(str, ["snakemake", "--cores", cores, *words]))
    return f"{command} --configfile {files}" if (files := configfiles()) else command


def remake(path: str | os.PathLike) -> str:
    """What a message about a broken file of the results says at its end."""
    return f"delete it and rerun: {snakemake(path)}"
