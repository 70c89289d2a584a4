"""What an attack is: a score of each text that is higher if the text was trained on, it claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from palimpsest.short_repr import ShortRepr

if TYPE_CHECKING:  # torch loads slowly
    from palimpsest.audit.passes import Pass

# What an attack may need beside the texts' own pass under the target
REFERENCE = "reference"  # the pass of another model over the same texts
SAME_TOKENS = "same tokens"  # a reference that cuts the texts as the target does
POPULATION = "population"  # texts that are known not to be members
RETRAINED = "retrained"  # losses under models of other seeds, trained without the text
# Passes of changed texts
LOWERCASE, NEIGHBOURS, PREFIXED, SECRETS = "lowercase", "neighbours", "prefixed", "secrets"
CHANGED = (LOWERCASE, NEIGHBOURS, PREFIXED, SECRETS)


class Retrained(NamedTuple):
    """Losses under a model, and under models of other seeds that were trained without the text.

    In nats per token: float[texts] and float[models, texts].
    """

    loss: np.ndarray
    without: np.ndarray


@dataclass(frozen=True, repr=False)
class Given(ShortRepr):
    """What is known of some texts.

    Parameters
    ----------
    texts : str[texts]
    target : the pass of the audited model over the texts
    reference : that of a reference model, or None
    changed : passes of the target over changed texts, by `LOWERCASE` and `PREFIXED` one text for
        each text, in order; by `NEIGHBOURS` and `SECRETS` the same number for each text, text
        after text
    population : bool[texts], texts that are known not to be members, or None
    retrained : losses of the texts with and without training on them, or None
    """

    texts: Sequence[str]
    target: Pass
    reference: Pass | None = None
    changed: Mapping[str, Pass] = field(default_factory=dict)
    population: np.ndarray | None = None
    retrained: Retrained | None = None

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


def losses(found: Pass) -> np.ndarray:
    """float64[texts]: nats per token."""
    return found.nll / found.n_tokens


def lowest_mean(of_texts: Sequence[np.ndarray], share: float) -> np.ndarray:
    """float64[texts]: the mean of the lowest values of each text, a share of them; at least one."""
    means = []
    for values in of_texts:
        n = max(1, int(share * len(values)))
        means.append(np.partition(values, n - 1)[:n].mean())
    return np.array(means)
