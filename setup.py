"""What a wheel has besides the library: the workflow, for the command `palimpsest`."""

from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
SHARE = "share/palimpsest"
FOLDERS = ("workflow", "config", "envs", "profiles")


def workflow() -> list[tuple[str, list[str]]]:
    """The files of the workflow by the folder of the environment that they are installed in."""
    found: dict[str, list[str]] = {SHARE: ["Snakefile", "requirements.txt"]}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                file = path.relative_to(ROOT)
                found.setdefault(f"{SHARE}/{file.parent.as_posix()}", []).append(file.as_posix())
    return list(found.items())


setup(data_files=workflow())
