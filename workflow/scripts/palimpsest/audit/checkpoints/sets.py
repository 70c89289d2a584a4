"""Sets of checkpoints that the configuration names, and the mistakes in them."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from palimpsest.audit.checkpoints import kinds
from palimpsest.audit.checkpoints.kinds import FORGET, ORIGINAL, RETRAINED, ROLES, UNLEARNED
from palimpsest.audit.checkpoints.weights import same_weights
from palimpsest.configuration.checks import id_of, missing_folder, unknown_records
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError
from palimpsest.models.folders import is_folder
from palimpsest.models.table import NAME, NAMES_ARE

RATE = 1e-5  # of relearning, as of TOFU's fine-tuning
MOST = 200  # tokens of an answer, as TOFU
NEEDED = {
    ORIGINAL: "a model before it unlearned",
    RETRAINED: "a model that was trained without the forget records",
    UNLEARNED: "a model that unlearned",
}


@dataclass(frozen=True)
class CheckpointSet:
    """The checkpoints of a set by role, each a folder or a name on the hub, by its name."""

    corpus: str
    models: Mapping[str, Mapping[str, str]]

    @property
    def names(self) -> list[str]:
        return [name for role in ROLES for name in self.models[role]]


@dataclass(frozen=True)
class Asked:
    """A checkpoint that is asked about the records of a corpus, and how; see `CheckpointJob`."""

    corpus: str
    model: str
    template: str | None = None
    chat: str | None = None
    most: int = MOST
    bits: int | None = None
    relearn_steps: int = 0
    relearn_rate: float = RATE


def sets(settings: Settings) -> dict[str, CheckpointSet]:
    """The sets of the block, by name. A name of the table of models stands for its id."""
    blocks = settings.block("audit")["checkpoints"]
    listed = {
        name: {role: [_whole(settings, model) for model in one.get(role, [])] for role in ROLES}
        for name, one in blocks.items()
    }
    names = short_names([model for one in listed.values() for role in ROLES for model in one[role]])
    return {
        name: CheckpointSet(
            blocks[name]["corpus"],
            {
                role: {names[model] + _ending(blocks[name]): model for model in models}
                for role, models in one.items()
            },
        )
        for name, one in listed.items()
    }


def _ending(block: Mapping) -> str:
    """What stands behind the names of models that are changed before they are asked."""
    relearned = f"-relearned{block['relearn_steps']}" if "relearn_steps" in block else ""
    return relearned + (f"-{block['bits']}bit" if "bits" in block else "")


def _whole(settings: Settings, model: str) -> str:
    """A model as it is asked for; one folder is always written in one way."""
    found = id_of(settings, model)
    return os.path.normpath(found) if is_folder(found) else found


def short_names(models: Sequence[str]) -> dict[str, str]:
    """A name for each model: the last parts of its path, as many as tell it from the others.

    For example, `npo` and `seed1-ga` for `out/npo`, `out/seed0/ga` and `out/seed1/ga`.
    """
    models = list(dict.fromkeys(models))
    most = max((len(PurePath(model).parts) for model in models), default=0)
    found: dict[str, str] = {}
    for n in range(1, most + 1):
        names = {model: _name(PurePath(model).parts[-n:]) for model in models if model not in found}
        taken = [*names.values(), *found.values()]
        found |= {model: name for model, name in names.items() if taken.count(name) == 1}
    rest = (model for model in models if model not in found)
    return found | {model: f"model-{place}" for place, model in enumerate(rest, 1)}


def _name(parts: Sequence[str]) -> str:
    """Parts of a path as one name, of the characters that names may have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(parts)).strip("-._") or "model"


def checkpoints(settings: Settings) -> dict[tuple[str, str], Asked]:
    """The checkpoints of all sets by the names of corpus and checkpoint; each is asked once."""
    return {key: asked for _, key, asked in _asked(settings)}


def _asked(settings: Settings) -> Iterator[tuple[str, tuple[str, str], Asked]]:
    """The set, the names of corpus and checkpoint, and what is asked, of each place in a set."""
    for name, one in sets(settings).items():
        block = settings.block("audit")["checkpoints"][name]
        how = {
            "template": block.get("template"),
            "chat": json.dumps(block["chat"]) if "chat" in block else None,
            "most": block.get("answer_tokens", MOST),
            "bits": block.get("bits"),
            "relearn_steps": block.get("relearn_steps", 0),
            "relearn_rate": block.get("relearn_rate", RATE),
        }
        for models in one.models.values():
            for checkpoint, model in models.items():
                yield name, (one.corpus, checkpoint), Asked(one.corpus, model, **how)


def outputs(settings: Settings) -> Iterator[str]:
    for corpus, name in checkpoints(settings):
        yield from (kind.path.format(language=corpus, model=name) for kind in kinds.OF_MODELS)
    for name, one in sets(settings).items():
        for kind in (*kinds.OF_SETS, kinds.OPEN_UNLEARNING):
            yield kind.path.format(language=one.corpus, model=name)


def mistakes(settings: Settings) -> Iterator[Mistake]:
    block = settings.block("audit")
    for name, one in block["checkpoints"].items():
        found = [*_of_set(settings, f"audit/checkpoints/{name}", name, one)]
        yield from found or _of_weights(settings, f"audit/checkpoints/{name}", one)
    seen: dict[tuple[str, str], tuple[str, Asked]] = {}
    for name, key, asked in _asked(settings):
        other, known = seen.setdefault(key, (name, asked))
        if known != asked:
            yield Mistake(
                f"audit/checkpoints/{name}",
                f"asks {asked.model} otherwise than {other} does: give both the same template, "
                "chat, answer_tokens and relearn_rate",
            )


def _of_set(settings: Settings, key: str, name: str, one: Mapping) -> Iterator[Mistake]:
    if not NAME.fullmatch(name):
        yield Mistake(key, f"is not a name; allowed are {NAMES_ARE}")
    if name in settings.block("audit")["targets"]:
        yield Mistake(key, "is the name of a target, too; give it another one")
    yield from unknown_records(settings, f"{key}/corpus", one["corpus"])
    if one["corpus"] in settings.records:
        yield from _of_records(settings, f"{key}/corpus", one["corpus"])
    for role in ROLES:
        if not one.get(role):
            yield Mistake(
                f"{key}/{role}",
                f"has no model; name the folder of {NEEDED[role]} (docs/checkpoints.md)",
            )
        for place, model in enumerate(one.get(role, [])):
            yield from missing_folder(settings, f"{key}/{role}[{place}]", model)


def _of_records(settings: Settings, key: str, name: str) -> Iterator[Mistake]:
    try:
        splits = settings.corpus(name).records.splits
    except UserError as error:
        yield Mistake(key, str(error))
        return
    if splits is None or FORGET not in splits:
        yield Mistake(
            key,
            f"no record of {name} is in the split forget; give the records that were to be "
            "forgotten this split, and others retain or holdout, in a column split",
        )


def _of_weights(settings: Settings, key: str, one: Mapping) -> Iterator[Mistake]:
    """Models that are named twice, or whose files have the same weights."""
    keys = {}
    for role in ROLES:
        for place, model in enumerate(one.get(role, [])):
            at = f"{key}/{role}[{place}]"
            whole = _whole(settings, model)
            if whole in keys:
                yield Mistake(at, f"{model} stands in {keys[whole]}, too; name each model once")
            keys.setdefault(whole, at)
    folders = [model for model in keys if is_folder(model) and Path(model).is_dir()]
    for first, second in itertools.combinations(folders, 2):
        if same_weights(first, second):
            yield Mistake(
                keys[second],
                f"{second} has the same weights as {first}, byte for byte; they are one model "
                "under two names: name another one",
            )
