"""The command `palimpsest`, which calls Snakemake and prints each command that it runs."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from palimpsest import __version__
from palimpsest.configuration.given_files import refuse_broken_files
from palimpsest.errors import UserError, refusing
from palimpsest.launch import asked_targets
from palimpsest.new_study import DRY_RUN, STUDY, add_options, init, project, refusal

# By the word of the command: the target of Snakemake, or None for those that are given
VERBS: Mapping[str, str | None] = {
    "plan": "plan",
    "run": None,
    "report": "report",
    "records": "records",
    "panel": "profiles",
    "audit": "audit",
}
# By the word: the options of a study that it asks about; others take any
OPTIONS_OF: Mapping[str, str] = {
    "records": "--records FILE",
    "panel": "--panel FILE",
    "audit": "--records FILE --original DIR --retrained DIR --unlearned DIR",
}
PACKAGES = ("snakemake", "torch", "transformers", "deepspeed", "pandas", "pyarrow", "matplotlib")


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what a command line asks for; what follows a verb is Snakemake's."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    with refusing():
        if words and words[0] in VERBS and not {"-h", "--help"} & {*words}:
            run(words[0], words[1:])
            return
        given = parser().parse_args(words)
        if given.command == "init":
            init(given)
        else:
            sys.exit(doctor())


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="palimpsest", description=__doc__)
    made.add_argument("--version", action="version", version=f"palimpsest {__version__}")
    commands = made.add_subparsers(dest="command", required=True)
    new = commands.add_parser("init", help="make a folder with a study")
    add_options(new)
    for name, target in VERBS.items():
        what = f"snakemake {target or '[targets]'}, with {STUDY} if there is one"
        if name == "records":
            what += " (--verdict conformal: intervals for records that no training left out)"
        commands.add_parser(name, help=f"{what}; what follows is handed on")
    commands.add_parser(
        "doctor", help="what this machine has, and whether the study can be planned"
    )
    return made


def run(name: str, given: Sequence[str]) -> None:
    """Become the command of Snakemake; `given` is what follows its name."""
    target = VERBS[name]
    if name == "records":
        given = with_verdict(given)
    words = ["snakemake", *([target] if target else []), *given]
    if not any(word.startswith(("--cores", "-c")) for word in given):
        words += ["--cores", "1" if name == "plan" else "all"]
    if name == "plan" and "--quiet" not in given:
        words += ["--quiet", "reason"]  # a changed plan is a reason, and long
    if not os.path.exists(Path("config/config.yaml")):
        raise UserError(
            f"{STUDY}: there is no study in this folder; go to its folder, or make one: palimpsest "
            f"init my-study {OPTIONS_OF.get(name, OPTIONS_OF['records'])} (palimpsest init --help)"
        )
    if not os.path.exists("Snakefile"):
        words += ["--snakefile", str(project() / "Snakefile")]
    if os.path.exists(STUDY) and "--configfile" not in given:
        words += ["--configfile", STUDY]
    if name == "plan" and (asked_targets(words[1:]) or set()) > {target}:
        words += ["--until", target]  # the other targets are billed, and not made
    refuse_broken_files(words[1:])  # as a line; Snakemake's own error has none for most of them
    print("$", shlex.join(words), flush=True)
    os.execv(sys.executable, [sys.executable, "-m", *words])


def with_verdict(given: Sequence[str]) -> list[str]:
    """The flag `--verdict conformal` as Snakemake takes it: a value of the configuration."""
    words = list(given)
    if "--verdict" not in words:
        return words
    place = words.index("--verdict")
    if place + 1 == len(words):
        raise UserError("--verdict: needs a word, conformal or measures")
    value = f"records={{verdict: {words[place + 1]}}}"
    del words[place : place + 2]
    if "--config" in words:
        words.insert(words.index("--config") + 1, value)
        return words
    return [*words, "--config", value]


def doctor() -> int:
    """Print what this machine has; the status is that of a dry run, if there is a study."""
    from palimpsest import devices

    print(f"palimpsest {__version__}, Python {sys.version.split()[0]}, {sys.executable}")
    for name in PACKAGES:
        try:
            print(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            print(f"{name}: not installed; pip install 'palimpsest[workflow]'")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    free = shutil.disk_usage(".").free / 2**30
    print(
        f"{len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB memory, {free:.0f} GiB free disk"
    )
    print(f"{len(devices.visible())} GPUs")
    print(f"workflow: {project()}")
    if not os.path.exists(STUDY):
        return 0
    print("$", shlex.join(DRY_RUN), flush=True)
    refused = refusal(Path())
    print(f"error: {refused}" if refused else "the study can be planned")
    return int(bool(refused))


if __name__ == "__main__":
    main()
