"""What an attack is: a score of each text that is higher if the text was trained on, it claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # torch loads slowly
    from palimpsest.audit.passes import Pass

# What an attack may need beside the texts' own pass under the target
REFERENCE = "reference"  # the pass of another model over the same texts
LOWERCASE, NEIGHBOURS, PREFIXED = "lowercase", "neighbours", "prefixed"  # passes of changed texts


@dataclass(frozen=True)
class Given:
    """What is known of some texts.

    Parameters
    ----------
    texts : str[texts]
    target : the pass of the audited model over the texts
    reference : that of a reference model, or None
    changed : passes of the target over changed texts, by `LOWERCASE` and `PREFIXED` one text for
        each text, in order; by `NEIGHBOURS` the same number of neighbours for each text, text after
        text
    """

    texts: Sequence[str]
    target: Pass
    reference: Pass | None = None
    changed: Mapping[str, Pass] = field(default_factory=dict)

    @property
    def n_bytes(self) -> np.ndarray:
        return np.array([len(text.encode()) for text in self.texts])


@dataclass(frozen=True)
class Attack:
    """One attack: a file in this folder ends with `ATTACK = Attack(...)`.

    Parameters
    ----------
    name : in tables and in the configuration
    title : in figures and in the report
    source : the paper that describes it
    score : float64[texts], higher for texts that it takes for members of the training data
    needs : what it needs beside the texts' own pass
    """

    name: str
    title: str
    source: str
    score: Callable[[Given], np.ndarray]
    needs: tuple[str, ...] = ()
