"""The command `palimpsest`, which calls Snakemake and prints each command that it runs."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from palimpsest import __version__, paths
from palimpsest.errors import UserError, refusing
from palimpsest.languages import Grammar
from palimpsest.launch import asked_targets
from palimpsest.sections import NAMES

STUDY = "study.yaml"
OWN = "mine"  # the name of what a study is given
SIZES, SAMPLED = (8, 16, 32, 64, 128, 256), 2000  # training strings of a study of a grammar
# By the word of the command: the target of Snakemake, or None for those that are given
VERBS: Mapping[str, str | None] = {
    "plan": "plan",
    "run": None,
    "report": "report",
    "records": "records",
    "panel": "profiles",
    "audit": "audit",
}
DRY_RUN = ("snakemake", "--dry-run", "--quiet", "all", "--cores", "1", "--configfile", STUDY)
COPIED = ("config", "profiles")
SNAKEFILE = """# The workflow is that of the installed Palimpsest.
include: {workflow!r}


# Without a target, all that the workflow makes. Snakemake takes no default target from an include.
rule everything:
    default_target: True
    input:
        rules.all.input,
    localrule: True
"""
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
    new.add_argument("folder", type=Path)
    new.add_argument("--records", type=Path, help="a file of records")
    new.add_argument(
        "--model", help="with --records: a model to ask, a folder or a name on the hub"
    )
    new.add_argument("--reference", help="with --model: a model trained on other data")
    new.add_argument(
        "--columns",
        nargs="+",
        default=[],
        metavar="KEY=COLUMN",
        help="names of the columns of the records or the panel, such as trained=in_training",
    )
    new.add_argument("--grammar", type=Path, help="a .pcfg file")
    new.add_argument("--panel", type=Path, help="a table of unit, time, cohort and outcome")
    for name, target in VERBS.items():
        what = f"snakemake {target or '[targets]'}, with {STUDY} if there is one"
        if name == "records":
            what += " (--verdict conformal: intervals for records that no training left out)"
        commands.add_parser(name, help=f"{what}; what follows is handed on")
    commands.add_parser(
        "doctor", help="what this machine has, and whether the study can be planned"
    )
    return made


def project() -> Path:
    """The folder of the workflow; `UserError` if it is not installed."""
    if (folder := paths.workflow()) is None:
        raise UserError(
            f"{sys.prefix}: the workflow is not in it; install palimpsest again with pip"
        )
    return folder


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
            f"{STUDY}: there is no study in this folder; make one, such as with: palimpsest init "
            "my-study, or go to its folder"
        )
    if not os.path.exists("Snakefile"):
        words += ["--snakefile", str(project() / "Snakefile")]
    if os.path.exists(STUDY) and "--configfile" not in given:
        words += ["--configfile", STUDY]
    if name == "plan" and (asked_targets(words[1:]) or set()) > {target}:
        words += ["--until", target]  # the other targets are billed, and not made
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


def init(given: argparse.Namespace) -> None:
    """Make a folder with a configuration of its own and a Snakefile that uses the workflow.

    Raises `UserError` if the folder has something in it, if a file is missing, or if the study
    cannot be planned; then nothing is left of it.
    """
    folder = given.folder
    was_there = folder.exists()
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: is not empty; name a new folder")
    if given.model and not given.records:
        raise UserError("--model: needs --records, the records that it is asked about")
    if given.columns and bool(given.records) == bool(given.panel):
        raise UserError("--columns: needs either --records or --panel, whose columns it names")
    for model in filter(None, (given.model, given.reference)):
        if (model[0] in "./" or model[-1] == "/") and not os.path.isdir(model):
            raise UserError(f"{model}: no such folder")
    for file in filter(None, (given.records, given.grammar, given.panel)):
        if not file.exists():
            raise UserError(f"{file}: no such file")
    study = configuration(given, folder)
    source = project()
    for name in COPIED:
        shutil.copytree(source / name, folder / name, ignore=shutil.ignore_patterns("schemas"))
    if given.grammar:
        shutil.copy(given.grammar, folder / "config/languages" / f"{given.grammar.stem}.pcfg")
    (folder / "Snakefile").write_text(SNAKEFILE.format(workflow=str(source / "Snakefile")))
    (folder / STUDY).write_text(yaml.safe_dump(study, sort_keys=False, default_flow_style=None))
    if study.keys() > {"title"} and (refused := refusal(folder)):
        shutil.rmtree(folder)
        if was_there:
            folder.mkdir()
        raise UserError(refused)
    print(f"{folder}: made; next: cd {shlex.quote(str(folder))} && palimpsest run")


def configuration(given: argparse.Namespace, folder: Path) -> dict:
    """What differs from the default configuration; sections without an input are left out."""
    study: dict = {"title": folder.resolve().name}
    asked = {}
    if given.records:
        file = os.path.relpath(given.records.resolve(), folder.resolve())
        study["corpora"] = {OWN: {"file": file, **columns(given.columns)}}
        if given.model:
            roles = {"model": given.model, "reference": given.reference}
            one = {"corpus": OWN} | {role: at(folder, name) for role, name in roles.items() if name}
            asked["records"] = {"checkpoints": {"tuned": one}}
        else:
            asked["records"] = {"corpora": [OWN], "models": ["llama-3.2-1b-twin"]}
    if given.grammar:
        study["languages"] = [given.grammar.stem]
        size = largest_size(given.grammar)
        study["sizes"] = [size]
        asked["memorisation"] = {"studies": {"only": ["tradeoff"], "tradeoff": {"size": size}}}
    if given.panel:
        file = os.path.relpath(given.panel.resolve(), folder.resolve())
        nothing = dict.fromkeys(("exact", "notions", "dilution"))
        panel = {"file": file, **columns(given.columns)} if given.columns else file
        asked["profiles"] = {"models": [], **nothing, "panels": {OWN: panel}}
    if not asked:
        return study
    return study | {name: asked.get(name) for name in NAMES}


def columns(given: Sequence[str]) -> dict[str, str]:
    """The keys of a corpus or panel and the columns of its file, from words such as "text=body"."""
    pairs = [word.partition("=") for word in given]
    for word, (key, is_pair, column) in zip(given, pairs, strict=True):
        if not (key and is_pair and column):
            raise UserError(f"--columns: {word} is no pair such as text=body")
    return {key: column for key, _, column in pairs}


def largest_size(grammar: Path) -> int:
    """The largest of some numbers of training strings for which a language is rich enough.

    A third of its strings, as far as a sample shows them, are trained on. Raises `UserError` for a
    grammar that cannot be read, or that has fewer than 24 strings.
    """
    sample = Grammar.from_file(grammar).sample(SAMPLED, seed=0)
    most = len(set(sample)) // 3
    if most < min(SIZES):
        raise UserError(
            f"{grammar}: has few strings, {len(set(sample))} in a sample of {SAMPLED:,}; a study "
            f"needs {3 * min(SIZES)} or more"
        )
    return max(size for size in SIZES if size <= most)


def at(folder: Path, model: str) -> str:
    """A model's folder as seen from the study; a name on the hub as it is."""
    return (
        os.path.relpath(Path(model).resolve(), folder.resolve()) if os.path.isdir(model) else model
    )


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


def refusal(folder: Path) -> str:
    """What a dry run of the study in a folder says if it cannot be planned, otherwise ""."""
    words = [sys.executable, "-m", *DRY_RUN]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if not done.returncode:
        return ""
    # Snakemake says first which profile it uses.
    ours = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return ours[-1].removeprefix("error: ") if ours else done.stderr.strip()


if __name__ == "__main__":
    main()
