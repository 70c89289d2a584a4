"""A stand-in for conda, for the tests: what Snakemake asks of conda, with pip and no solver.

    python tests/workflow/conda/stand_in.py BASE info --json
    python tests/workflow/conda/stand_in.py BASE env create --file FILE --prefix FOLDER

`lay_out` makes a base folder whose `bin` has a `conda`, which is this program, and an `activate`.
An environment is a `venv` of the Python that runs this, not of the one that the file names: that
one is nowhere to be had without conda. The pins of pip, and pip itself, are what the file says.
Jobs in these environments see nothing of the host's packages: `isolation.py` and `activate` see to
that, and so are stricter than conda. Whatever else is asked for is refused in one line.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import NoReturn

import yaml

HERE = Path(__file__).resolve().parent
VERSION = "24.7.1"  # the oldest that Snakemake accepts
ISOLATION = "host_isolation"
# What conda itself would install, each with one exact version
CONDA_PACKAGES = {"python", "pip"}
PIN = re.compile(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*")

CONDA = """\
#!/bin/sh
exec "{python}" "{program}" "{base}" "$@"
"""
# Snakemake's own environment stays in the path below conda's. Here it leaves, so that a program
# that an environment lacks is missed as well. A Python that is no venv shares its folder with the
# system's programs, and stays.
ACTIVATE = """\
if [ ! -x "$1/bin/python" ]; then
    echo "error: there is no environment in $1" >&2
    return 1
fi
export CONDA_PREFIX="$(cd "$1" && pwd)"
_searched=":$PATH:"
while [ -n "{host}" ] && [[ "$_searched" == *":{host}:"* ]]; do
    _searched="${{_searched/":{host}:"/:}}"
done
_searched="${{_searched#:}}"
export PATH="$CONDA_PREFIX/bin:${{_searched%:}}"
unset _searched
"""


class RefusedError(Exception):
    """The stand-in cannot do what is asked; the message says what."""


def lay_out(base: Path) -> Path:
    """Make the base folder of the stand-in; its folder of programs, for the path."""
    programs = base / "bin"
    programs.mkdir(parents=True)
    host = str(Path(sys.executable).parent) if sys.prefix != sys.base_prefix else ""
    conda = programs / "conda"
    conda.write_text(CONDA.format(python=sys.executable, program=Path(__file__), base=base))
    conda.chmod(0o755)
    (programs / "activate").write_text(ACTIVATE.format(host=host))
    return programs


def unusable() -> str | None:
    """Why no environment can be made here, in one line; None if one can."""
    asked = ["install", "--dry-run", "--ignore-installed", "--no-deps", "PyYAML"]
    done = _pip(Path(sys.executable), "--retries", "0", "--timeout", "15", *asked)
    if done.returncode == 0:
        return None
    return f"pip finds no packages to make environments of: {_last_line(done.stdout)}"


def create(file: Path, prefix: Path) -> None:
    """Make an environment from its file."""
    conda, pins = read(file)
    if prefix.exists():
        raise RefusedError(f"{prefix} exists already")
    python = ".".join(map(str, sys.version_info[:3]))
    print(f"a venv of Python {python}, the host's; {file} asks for {conda['python']}")
    venv.EnvBuilder(symlinks=True).create(prefix)
    done = _install(prefix / "bin/python", [f"pip=={conda['pip']}", *pins])
    if done.returncode:
        shutil.rmtree(prefix)
        raise RefusedError(f"pip cannot install what {file} pins: {_last_line(done.stdout)}")
    _isolate(prefix)


def read(file: Path) -> tuple[dict[str, str], list[str]]:
    """What an environment's file pins: conda's packages with their versions, and pip's pins."""
    content = yaml.safe_load(file.read_text())
    unknown = content.keys() - {"channels", "dependencies"}
    if unknown:
        raise RefusedError(f"{file}: unknown keys {', '.join(sorted(unknown))}")
    conda, pins = {}, []
    for entry in content["dependencies"]:
        if isinstance(entry, dict) and entry.keys() == {"pip"}:
            pins += entry["pip"]
            continue
        name, _, version = str(entry).partition("=")
        if name not in CONDA_PACKAGES:
            raise RefusedError(f"{file}: {entry} is a package of conda's; only pip's can be had")
        conda[name] = version
    if conda.keys() != CONDA_PACKAGES:
        raise RefusedError(f"{file}: {' and '.join(sorted(CONDA_PACKAGES))} need a version each")
    for pin in pins:
        if not PIN.fullmatch(pin):
            raise RefusedError(f"{file}: {pin} is not a package with one version")
    return conda, pins


def _isolate(prefix: Path) -> None:
    """Have every Python of an environment keep the host's packages from scripts."""
    (packages,) = prefix.glob("lib/python*/site-packages")
    shutil.copy(HERE / "isolation.py", packages / f"{ISOLATION}.py")
    (packages / f"{ISOLATION}.pth").write_text(f"import {ISOLATION}\n")


def _install(python: Path, pins: list[str]) -> subprocess.CompletedProcess:
    """Install packages for a Python: by uv where the host has it, which takes a tenth of the time.

    Modules are not compiled: most are never imported, and those that are get compiled then.
    """
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        return _pip(python, "install", "--no-compile", *pins)
    folder = os.environ.get("PIP_FIND_LINKS")  # which pip reads by itself
    more = ["--find-links", folder] if folder else []
    return _run([uv, "pip", "install", "--quiet", "--python", python, *more, *pins])


def _pip(python: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run the host's pip for a Python; `stdout` holds all that it printed."""
    pip = [sys.executable, "-m", "pip", "--python", python, "--no-input", "--quiet"]
    return _run([*pip, *arguments])


def _run(command: list) -> subprocess.CompletedProcess:
    return subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _last_line(printed: str) -> str:
    lines = [line for line in printed.splitlines() if not line.startswith("[notice]")]
    return lines[-1] if lines else "it says nothing"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise RefusedError(f"the stand-in for conda cannot do this: {message}")


def answer(base: str, words: list[str]) -> None:
    """Answer a call, given the words after `conda`."""
    if words == ["--version"]:
        print(f"conda {VERSION}")
    elif words == ["info", "--json"]:
        print(json.dumps({"conda_prefix": base, "platform": "linux-64"}))
    elif words == ["config", "--get", "channel_priority", "--json"]:
        print(json.dumps({"get": {"channel_priority": "strict"}}))
    elif words == ["clean", "-y", "--tarballs"]:
        print("nothing to clean: pip keeps its own cache")
    elif words[:2] == ["env", "create"]:
        parser = _Parser(prog="conda env create", add_help=False, allow_abbrev=False)
        parser.add_argument("--file", type=Path, required=True)
        parser.add_argument("--prefix", type=Path, required=True)
        for flag in ("--quiet", "--no-default-packages"):
            parser.add_argument(flag, action="store_true")
        given = parser.parse_args(words[2:])
        create(given.file, given.prefix)
    else:
        raise RefusedError(f"the stand-in for conda cannot do this: conda {' '.join(words)}")


if __name__ == "__main__":
    try:
        answer(sys.argv[1], sys.argv[2:])
    except RefusedError as reason:
        sys.exit(f"error: {reason}")
