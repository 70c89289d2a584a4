"""What a wheel has besides the library: the workflow, for the command `palimpsest`."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
SHARE = "share/palimpsest"
FOLDERS = ("workflow", "config", "envs", "profiles")


def declared() -> set[Path] | None:
    """The files that git knows; None without git, as in a copy that is no clone.

    A clone also has what its user added: languages, records and models of their own.
    """
    if not (ROOT / ".git").exists():
        return None
    command = ["git", "-c", "safe.directory=*", "-C", str(ROOT), "ls-files", "-z", "--", *FOLDERS]
    try:
        done = subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(
            f"error: {ROOT}: git cannot list the files of this clone, so files of yours could be "
            f"packed ({error}); mend git, or copy the clone without its folder .git"
        ) from None
    return {ROOT / os.fsdecode(name) for name in done.stdout.split(b"\0") if name}


def files_of(folder: Path) -> Iterator[Path]:
    known = declared()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and (known is None or path in known):
            yield path


def workflow() -> list[tuple[str, list[str]]]:
    """The files of the workflow by the folder of the environment that they are installed in."""
    found: dict[str, list[str]] = {SHARE: ["Snakefile", "requirements.txt"]}
    for folder in FOLDERS:
        for path in files_of(ROOT / folder):
            file = path.relative_to(ROOT)
            found.setdefault(f"{SHARE}/{file.parent.as_posix()}", []).append(file.as_posix())
    return list(found.items())


setup(data_files=workflow())
