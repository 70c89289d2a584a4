"""Panels that are made from the checkpoints of a model: what the configuration says of them.

Source: Causal Estimation of Memorisation Profiles, section 6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from palimpsest.configuration.checks import id_of, missing_folder
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.named_files import errors_of
from palimpsest.configuration.settings import Settings
from palimpsest.models.folders import is_folder
from palimpsest.tables.user_columns import check_columns

MODEL, CHECKPOINTS, TOKENS, STEPS, TEXTS = "model", "checkpoints", "tokens", "steps", "texts"
BATCHES, INSTANCES, VALIDATION, SEED = "batches", "instances", "validation", "seed"
KEYS = (MODEL, CHECKPOINTS, TOKENS, STEPS, TEXTS, BATCHES, INSTANCES, VALIDATION, SEED)
# The step in the name of a checkpoint: step1000, checkpoint-500, step1000-tokens2B, 1000
STEP = re.compile(r"(?:step|checkpoint|iter)[-_]?(\d+)|(\d+)$", re.IGNORECASE)


@dataclass(frozen=True)
class Measured:
    """Checkpoints of a model, and the strings that are measured under each of them.

    `checkpoints` are folders or names on the hub, by their step. The strings are rows of the file
    `tokens`, which are trained on at the `steps` of another file; or those of the table `texts`.
    Between two checkpoints, `batches` steps are drawn, `instances` strings of each step, and
    `validation` strings that are never trained on; None is all.
    """

    checkpoints: Mapping[str, str] = field(default_factory=dict)
    tokens: str | None = None
    steps: str | None = None
    texts: str | None = None
    batches: int | None = None
    instances: int | None = None
    validation: int | None = None
    seed: int = 0

    @property
    def times(self) -> list[float]:
        return [float(step) for step in self.checkpoints]

    @property
    def draws(self) -> dict:
        return {name: getattr(self, name) for name in (BATCHES, INSTANCES, VALIDATION, SEED)}


def measured(block: Mapping) -> Measured:
    """The checkpoints of a panel's block. A checkpoint without a step in its name is left out."""
    found = {step_of(name): whole(block.get(MODEL), name) for name in block[CHECKPOINTS]}
    known = {str(step): found[step] for step in sorted(found.keys() - {None})}
    others = {key: block[key] for key in KEYS[2:] if key in block}
    return Measured(known, **others)


def n_tokens(asked: Measured) -> float | None:
    """The most tokens that each checkpoint is asked about; None for texts, which no job has read.

    Some of the drawn strings may not be there, and then there are fewer.
    """
    if asked.tokens is None:
        return None
    from palimpsest.profiles.panel_rows import read_tokens  # slow to import

    n_rows, width = read_tokens(asked.tokens).shape
    if None in (asked.batches, asked.instances, asked.validation):
        return n_rows * width
    drawn = (len(asked.checkpoints) - 1) * asked.batches * asked.instances + asked.validation
    return min(n_rows, drawn) * width


def whole(model: str | None, name: str) -> str:
    """The folder of a checkpoint, or its name on the hub, with its revision."""
    return name if model is None else f"{model}@{name}"


def step_of(name: str) -> int | None:
    """The step in a revision or in the last part of a path; None if there is none."""
    found = STEP.search(PurePath(name.rpartition("@")[2]).name)
    return int(found[1] or found[2]) if found else None


def with_ids(settings: Settings, block: Mapping) -> dict:
    """The block with the id of its model, which may be a name of the table of models."""
    if MODEL not in block:
        names = [id_of(settings, name) for name in block[CHECKPOINTS]]
        return {**block, CHECKPOINTS: names}
    return {**block, MODEL: id_of(settings, block[MODEL]).partition("@")[0]}


def mistakes(settings: Settings, key: str, block: Mapping) -> Iterator[Mistake]:
    """Checkpoints without a step, twice, or in no folder; strings without a step, or twice."""
    names = block[CHECKPOINTS]
    seen: dict[int, str] = {}
    for place, name in enumerate(names):
        at, step = f"{key}/{CHECKPOINTS}[{place}]", step_of(name)
        if step is None:
            yield Mistake(
                at,
                f"{name} has no step in its name; name a revision or folder such as step1000 or "
                "checkpoint-1000",
            )
        elif step in seen:
            yield Mistake(at, f"{name} and {seen[step]} are both of step {step}; name one of them")
        else:
            seen[step] = name
        if MODEL not in block:
            yield from missing_folder(settings, at, name)
    if MODEL in block and is_folder(id_of(settings, block[MODEL])):
        yield Mistake(
            f"{key}/{MODEL}",
            f"{block[MODEL]} is a folder, which has no revisions; name the folders of the "
            f"checkpoints in {CHECKPOINTS}, without the key {MODEL}",
        )
    if (TOKENS in block) == (TEXTS in block):
        yield Mistake(
            key, f"one of the keys {TOKENS!r} and {TEXTS!r} must be there: the strings to measure"
        )
    elif TOKENS in block and STEPS not in block:
        yield Mistake(key, f"the key {STEPS!r} is missing: the step of each row of {TOKENS}")
    elif TEXTS in block and STEPS in block:
        yield Mistake(f"{key}/{STEPS}", f"is of {TOKENS}; a table of {TEXTS} has a column step")
    wrong = list(_files(key, block, (TOKENS, STEPS, TEXTS)))
    yield from wrong or _heads(key, block)


def _heads(key: str, block: Mapping) -> Iterator[Mistake]:
    """Files without what they must have; only their heads are read."""
    from palimpsest.profiles.panel_rows import STRINGS, check_steps, read_tokens  # slow to import

    if TOKENS in block:
        yield from errors_of(f"{key}/{TOKENS}", read_tokens, block[TOKENS])
    if STEPS in block:
        yield from errors_of(f"{key}/{STEPS}", check_steps, block[STEPS])
    if TEXTS in block:
        yield from errors_of(f"{key}/{TEXTS}", check_columns, block[TEXTS], STRINGS)


def _files(key: str, block: Mapping, names: Sequence[str]) -> Iterator[Mistake]:
    for name in names:
        if name in block and not Path(block[name]).is_file():
            yield Mistake(f"{key}/{name}", f"no such file: {block[name]}")
    if TOKENS in block and Path(block[TOKENS]).suffix != ".npy":
        yield Mistake(
            f"{key}/{TOKENS}",
            f"{block[TOKENS]} is not a .npy file; save the rows of tokens with numpy.save",
        )
