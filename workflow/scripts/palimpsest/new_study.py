"""What `palimpsest init` makes: a folder with a study of what a user has."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from palimpsest import paths, phase_stub
from palimpsest.errors import UserError
from palimpsest.languages import Grammar
from palimpsest.models import read_models
from palimpsest.models.folders import check_saved, is_folder, unknown_name
from palimpsest.models.table import NAME
from palimpsest.sections import NAMES
from palimpsest.tables.user_columns import IN_CONFIGURATION

STUDY = "study.yaml"
OWN = "mine"  # the name of what a study is given
LOGGED = "logged"  # the name of losses that a study is given
SET = "unlearning"  # the name of a set of models before and after unlearning
MODELS = "config/models.tsv"
SIZES, SAMPLED = (8, 16, 32, 64, 128, 256), 2000  # training strings of a study of a grammar
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
# Options that name a file, or several
FILES = ("records", "losses", "grammar", "panel", "corpus", "queries", "activations")
WITH_COLUMNS = ("records", "losses", "panel", "corpus")
# The columns of texts, and the keys of the configuration that name them
OF_TEXTS = {"text": "field", "response": "response"}
ASKED = ("model", "reference")
UNLEARNING = ("original", "retrained", "unlearned")
DOORS = (
    "--grammar my.pcfg",
    "--records notes.jsonl --columns trained=in_training --model my-model/",
    "--losses losses.csv",
    "--records questions.jsonl --original full/ --retrained retain/ --unlearned npo/",
    "--panel panel.csv",
    "--corpus corpus.jsonl --queries queries.jsonl",
    "--activations layers.npz",
    "--method my_phase.py",
)
# By the beginning of a key of the study: the option that it comes from; * is any one name
OPTIONS: Mapping[str, str] = {
    f"corpora/{OWN}": "records",
    "records/corpora": "records",
    "records/losses": "losses",
    "records/checkpoints/*/corpus": "records",
    "records/checkpoints/*/reference": "reference",
    "records/checkpoints/*": "model",
    f"audit/checkpoints/{SET}/corpus": "records",
    f"audit/checkpoints/{SET}/original": "original",
    f"audit/checkpoints/{SET}/retrained": "retrained",
    f"audit/checkpoints/{SET}": "unlearned",
    "profiles/panels": "panel",
    f"density/texts/{OWN}/queries": "queries",
    f"density/texts/{OWN}/field": "columns",
    "density": "corpus",
    "information": "activations",
    "unlearning": "method",
    "languages": "grammar",
    "models": "grammar",
    "sizes": "grammar",
    "memorisation": "grammar",
}
TRUTHS = {"true", "false", "yes", "no"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `palimpsest init`."""
    parser.add_argument("folder", type=Path, nargs="?", help="the new folder")
    parser.add_argument("--records", type=Path, help="a file of records")
    parser.add_argument(
        "--model", help="with --records: a model to ask, a folder or a name on the hub"
    )
    parser.add_argument("--reference", help="with --model: a model trained on other data")
    parser.add_argument("--losses", type=Path, help="a table of losses: id, checkpoint and loss")
    what = ("before unlearning", "trained without the forget set", "after unlearning")
    for role, models in zip(UNLEARNING, what, strict=True):
        parser.add_argument(
            f"--{role}", nargs="+", metavar="DIR", help=f"with --records: models {models}"
        )
    parser.add_argument(
        "--columns",
        nargs="+",
        default=[],
        metavar="KEY=COLUMN",
        help="names of the columns of the records, losses, panel or texts, such as "
        "trained=in_training",
    )
    parser.add_argument("--grammar", type=Path, help="a .pcfg file")
    parser.add_argument("--panel", type=Path, help="a table of unit, time, cohort and outcome")
    parser.add_argument("--corpus", type=Path, help="texts, a file or a folder of .txt files")
    parser.add_argument("--queries", type=Path, help="with --corpus: texts to compare with it")
    parser.add_argument(
        "--activations",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="activations of models, each a .npz, .safetensors or .parquet file of layers",
    )
    parser.add_argument(
        "--method",
        type=Path,
        metavar="FILE.py",
        help="a phase of unlearning of your own; a stub that runs if there is no such file",
    )


def init(given: argparse.Namespace) -> None:
    """Make a folder with a configuration of its own and a Snakefile that uses the workflow.

    Raises `UserError` if the folder has something in it, if an option is wrong, or if the study
    cannot be planned; then nothing is left of it. The message names the option.
    """
    take_folder(given)
    folder = given.folder
    was_there = folder.exists()
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: is not empty; name a new folder")
    source = project()
    check(given, source)
    study = configuration(given, folder)
    for name in COPIED:
        shutil.copytree(source / name, folder / name, ignore=shutil.ignore_patterns("schemas"))
    if given.grammar:
        shutil.copy(given.grammar, folder / "config/languages" / f"{given.grammar.stem}.pcfg")
    if given.method:
        made = folder / phase_stub.PLACE / given.method.name
        made.parent.mkdir(parents=True)
        made.write_text(phase_stub.text_of(given.method))
        what = "copied from" if given.method.exists() else "a stub: no such file as"
        print(f"{made}: {what} {given.method}; write your phase here (docs/methods.md)")
    (folder / "Snakefile").write_text(SNAKEFILE.format(workflow=str(source / "Snakefile")))
    is_default = study.keys() == {"title"}
    written = yaml.safe_dump(study, sort_keys=False, default_flow_style=None)
    (folder / STUDY).write_text((of_default() if is_default else "") + written)
    if given.records:
        with of_option("records"):
            hint = of_truths(given.records, columns(given.columns))
        if hint:
            print(hint)
    if not is_default and (refused := refusal(folder)):
        shutil.rmtree(folder)
        if was_there:
            folder.mkdir()
        raise UserError(in_options(refused, given))
    if is_default:
        print(
            f"{folder}: without an option, it is the whole default experiment: palimpsest plan "
            f"says what that costs; {STUDY} names the options of smaller studies"
        )
    if given.model and not given.reference:
        print(
            f"{folder}: without a reference model there is only the loss attack, which takes "
            "records that are easy for every model for memorised; --reference names another "
            "model, such as the one before fine-tuning"
        )
    print(f"{folder}: made; next: cd {shlex.quote(str(folder))} && palimpsest run")


def take_folder(given: argparse.Namespace) -> None:
    """Take the folder that follows the values of --columns; `UserError` without a folder."""
    if given.folder is None and given.columns and "=" not in given.columns[-1]:
        given.folder = Path(given.columns.pop())
    if given.folder is None:
        raise UserError(
            "the new folder is missing; name it first, because options with several values take "
            "all words that follow: palimpsest init my-study ..."
        )


def check(given: argparse.Namespace, source: Path) -> None:
    """Raise `UserError` for options that are wrong, or that need others."""
    if given.model and not given.records:
        raise UserError("--model: needs --records, the records that it is asked about")
    if given.reference and not given.model:
        raise UserError("--reference: needs --model, the model that it is compared with")
    roles = [role for role in UNLEARNING if getattr(given, role)]
    if roles and (
        missing := [name for name in (*UNLEARNING, "records") if not getattr(given, name)]
    ):
        raise UserError(
            f"--{roles[0]}: needs {' and '.join(f'--{name}' for name in missing)}, too "
            "(docs/checkpoints.md)"
        )
    if roles and given.model:
        raise UserError(
            "--model: is another question than --original, --retrained and --unlearned; make a "
            "study of each"
        )
    if given.columns and sum(getattr(given, name) is not None for name in WITH_COLUMNS) != 1:
        raise UserError(
            "--columns: needs one of --records, --losses, --panel and --corpus, whose columns it "
            "names"
        )
    for one, other in (("corpus", "queries"), ("queries", "corpus")):
        if getattr(given, one) and not getattr(given, other):
            raise UserError(f"--{one}: needs --{other}, too (docs/density.md)")
    for name, file in files_of(given):
        if not file.exists():
            raise UserError(f"--{name}: {file}: no such file")
    names = [file.stem for file in given.activations or ()]
    if again := [name for name in names if names.count(name) > 1]:
        raise UserError(f"--activations: two files are named {again[0]}; rename one of them")
    if given.corpus and (unknown := columns(given.columns).keys() - OF_TEXTS.keys()):
        raise UserError(
            f"--columns: {min(unknown)} is no column of texts; choose from {', '.join(OF_TEXTS)}"
        )
    if given.method:
        with of_option("method"):
            phase_stub.phase_in(given.method)
    for name, model in models_of(given):
        with of_option(name):
            check_model(model, source / MODELS)


def files_of(given: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """Each file that was given, after its option."""
    for name in FILES:
        files = getattr(given, name) or []
        for file in [files] if isinstance(files, Path) else files:
            yield name, file


def models_of(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Each model that was given, after its option."""
    for name in (*ASKED, *UNLEARNING):
        models = getattr(given, name) or []
        for model in [models] if isinstance(models, str) else models:
            yield name, model


def check_model(model: str, table: Path) -> None:
    """Raise `UserError` unless it is a folder with a model, or a name that may be one."""
    if os.path.isdir(model):
        check_saved(model)
    elif is_folder(model):
        raise UserError(f"{model}: no such folder")
    elif wrong := unknown_name(model, read_models(table), MODELS):
        raise UserError(wrong)


def configuration(given: argparse.Namespace, folder: Path) -> dict:
    """What differs from the default configuration; sections without an input are left out."""
    study: dict = {"title": folder.resolve().name}
    asked: dict = {}
    named = columns(given.columns)

    def in_study(file: Path) -> dict | str:
        path = os.path.relpath(file.resolve(), folder.resolve())
        return {"file": path, **named} if named else path

    if given.records:
        study["corpora"] = {OWN: in_study(given.records)}
        if given.unlearned:
            models = {role: [at(folder, m) for m in getattr(given, role)] for role in UNLEARNING}
            asked["audit"] = {"checkpoints": {SET: {"corpus": OWN, **models}}}
        elif given.model:
            roles = {role: getattr(given, role) for role in ASKED}
            one = {"corpus": OWN} | {role: at(folder, name) for role, name in roles.items() if name}
            asked["records"] = {"checkpoints": {name_of(given.model): one}}
        else:
            asked["records"] = {"corpora": [OWN], "models": ["llama-3.2-1b-twin"]}
    if given.losses:
        asked.setdefault("records", {})["losses"] = {LOGGED: in_study(given.losses)}
    if given.grammar:
        study["languages"] = [given.grammar.stem]
        with of_option("grammar"):
            size = largest_size(given.grammar)
        study |= {"models": ["opt-1.3b-twin"], "sizes": [size]}
        asked["memorisation"] = {"studies": {"only": ["tradeoff"], "tradeoff": {"size": size}}}
    if given.panel:
        nothing = dict.fromkeys(("exact", "notions", "dilution"))
        asked["profiles"] = {"models": [], **nothing, "panels": {OWN: in_study(given.panel)}}
    if given.corpus:
        fields = {OF_TEXTS[name]: column for name, column in named.items()}
        files = {name: at(folder, getattr(given, name)) for name in ("corpus", "queries")}
        nothing = dict.fromkeys(("leakage", "support"))
        asked["density"] = {**nothing, "texts": {OWN: {**files, **fields}}}
    if given.activations:
        files = {file.stem: at(folder, file) for file in given.activations}
        asked["information"] = {"models": [], "activations": files}
    if given.method:
        study["extensions"] = [phase_stub.FOLDER]
        with of_option("method"):
            phases = phase_stub.phases_with(phase_stub.phase_in(given.method))
        asked["unlearning"] = {
            "models": ["opt-1.3b-twin"],
            "seeds": [1, 2],
            "n": 16,
            "own_methods": {OWN: {"phases": phases}},
            "methods": [OWN, "finetune"],
        }
    if not asked:
        return study
    return study | {name: asked.get(name) for name in NAMES}


def of_default() -> str:
    """The first lines of a study without an input."""
    lines = (
        "This is the whole default experiment, config/config.yaml. For one question, make a study",
        "with what you have (more: docs/doors.md):",
        *(f"  palimpsest init my-study {door}" for door in DOORS),
    )
    return "".join(f"# {line}\n" for line in lines)


def columns(given: Sequence[str]) -> dict[str, str]:
    """The keys of a corpus or panel and the columns of its file, from words such as "text=body"."""
    pairs = [word.partition("=") for word in given]
    for word, (key, is_pair, column) in zip(given, pairs, strict=True):
        if not (key and is_pair and column):
            raise UserError(f"--columns: {word} is no pair such as text=body")
    return {key: column for key, _, column in pairs}


def of_truths(file: Path, named: Mapping[str, str]) -> str:
    """A line on columns of true and false, if nothing says which records were trained on."""
    from palimpsest.corpora import records  # tables are slow to import

    head = records.opened(file)
    known = {column.name for column in (*records.NEEDED, *records.OPTIONAL)}
    if {records.TRAINED, records.SPLIT} & {*head.columns, *named}:
        return ""
    others = [name for name in head.columns if name not in {*known, *named.values()}]
    rows = next(iter(head.read(others)), None) if others else None
    found = [name for name in others if rows is not None and _are_truths(rows.cells[name])]
    if not found:
        return ""
    return (
        f"{file}: {' and '.join(map(repr, found))}: true or false. If that says which records the "
        f"model was trained on, add --columns trained={shlex.quote(found[0])}; without it, some "
        "records are taken at random as never trained on"
    )


def _are_truths(cells: Sequence) -> bool:
    values = [cell.as_py() if hasattr(cell, "as_py") else cell for cell in cells]
    there = [value for value in values if value is not None]
    return bool(there) and all(
        isinstance(value, bool) or (isinstance(value, str) and value.strip().casefold() in TRUTHS)
        for value in there
    )


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


def name_of(model: str) -> str:
    """The name of a model in a study: that of its folder, or the last part of its name on the hub.

    Letters that a name may not have become hyphens.
    """
    last = Path(model).resolve().name if os.path.isdir(model) else model.rstrip("/").split("/")[-1]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-._")
    return name if NAME.fullmatch(name) else "model"


def at(folder: Path, file: str | Path) -> str:
    """A file or folder as seen from the study; a name of a model on the hub as it is."""
    if not os.path.exists(file):
        return str(file)
    return os.path.relpath(Path(file).resolve(), folder.resolve())


@contextlib.contextmanager
def of_option(name: str) -> Iterator[None]:
    """Put an option before the message of an error."""
    try:
        yield
    except UserError as error:
        raise UserError(f"--{name}: {error}") from None


def in_options(refused: str, given: argparse.Namespace) -> str:
    """What a dry run says of a study, in the words of the command line that was to make it."""
    file, _, said = refused.partition(": ")
    key, _, text = said.partition(": ")
    parts = key.split("/")
    option = next(
        (
            one
            for start, one in OPTIONS.items()
            if fnmatchcase("/".join(parts[: start.count("/") + 1]), f"{start}*")
        ),
        None,
    )
    if given.method and str(given.folder / phase_stub.PLACE) in refused:
        return f"--method: {refused}"
    if file != STUDY or option is None:
        return refused
    if text.startswith("unknown key"):
        option = "columns"
    for _, path in files_of(given):
        text = text.replace(at(given.folder, path), str(path))
    for _, model in models_of(given):
        text = text.replace(at(given.folder, model), model)
    yours = re.compile(rf"{re.escape(IN_CONFIGURATION)}\{{(.*?)\}}")
    return f"--{option}: {yours.sub(_as_flag, text)}"


def _as_flag(found: re.Match) -> str:
    """The remedy of the configuration, {file: mine.csv, unit: document}, as a flag."""
    pairs = (pair.split(": ") for pair in found[1].split(", "))
    return "name yours: --columns " + " ".join(f"{k}={v}" for k, v in pairs if k != "file")


def project() -> Path:
    """The folder of the workflow; `UserError` if it is not installed."""
    if (folder := paths.workflow()) is None:
        raise UserError(
            f"{sys.prefix}: the workflow is not in it; install palimpsest again with pip"
        )
    return folder


def refusal(folder: Path) -> str:
    """What a dry run of the study in a folder says if it cannot be planned, otherwise ""."""
    words = [sys.executable, "-m", *DRY_RUN]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if not done.returncode:
        return ""
    # Snakemake says first which profile it uses.
    ours = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return ours[-1].removeprefix("error: ") if ours else done.stderr.strip()
