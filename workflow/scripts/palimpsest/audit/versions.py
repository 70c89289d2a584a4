"""Changed texts that some attacks compare a text with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from palimpsest.audit.attacks.attack import LOWERCASE, NEIGHBOURS, PREFIXED
from palimpsest.models.checkpoints import Checkpoint

TEXT = "text"  # the version of a text that is unchanged


@dataclass(frozen=True)
class Versions:
    """Texts with the number of their first letters that are only read; `n` for each record."""

    texts: list[str]
    prompts: list[int]
    n: int = 1


def versions(
    names: Sequence[str],
    checkpoint: Checkpoint,
    texts: Sequence[str],
    prompts: Sequence[int],
    unseen: np.ndarray,
    *,
    neighbours: int,
    prefixes: int,
    seed: int = 0,
) -> dict[str, Versions]:
    """The versions with some names, of all texts.

    Parameters
    ----------
    texts : str[records], each after its prompt
    prompts : the number of the first letters of each text that are its prompt
    unseen : bool[records], records that the model was not trained on; prefixes are of them
    neighbours : changed texts for each record
    prefixes : records before a text in the version `prefixed`
    """
    make = {
        LOWERCASE: lambda: Versions([text.lower() for text in texts], list(prompts)),
    }
    return {name: make[name]() for name in names if name in make}


__all__ = ["LOWERCASE", "NEIGHBOURS", "PREFIXED", "TEXT", "Versions", "versions"]
