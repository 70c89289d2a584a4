"""Scores of texts by attacks on membership, from what models say of the texts' tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from palimpsest.arguments import Texts, Truths, WrongKind, takes
from palimpsest.audit.membership import ATTACKS, Given
from palimpsest.audit.membership.attack import (
    CHANGED,
    POPULATION,
    REFERENCE,
    RETRAINED,
    SAME_TOKENS,
    Retrained,
)
from palimpsest.audit.passes import PASS, Pass


@takes(texts=Texts("texts"), target=PASS, unseen=Truths("texts"))
def attacks(
    texts: Sequence[str],
    target: Pass,
    *,
    references: Mapping[str, Pass] | None = None,
    changed: Mapping[str, Pass] | None = None,
    unseen: np.ndarray | None = None,
    retrained: Retrained | None = None,
    names: Sequence[str] | None = None,
) -> pd.DataFrame:
    """The scores of texts by attacks on membership, higher for those that are taken for members.

    Attacks that need what is not given have no column.

    Parameters
    ----------
    texts : str[texts]
    target : what the audited model says of their tokens, see `passed`
    references : the same of other models, by their names
    changed : what the target says of changed texts, by the version, see `versions`
    unseen : bool[texts], texts that the target is known not to have been trained on
    retrained : losses of the texts under the target, and under four or more models of other seeds
        that were trained without the text
    names : the attacks, all by default

    Returns a row per text and a column per attack; one that needs a reference has a column for each
    reference, with a slash and its name.
    """
    if len(target.n_tokens) != len(texts):
        raise WrongKind(
            f"target: is about {len(target.n_tokens):,} texts, and texts has {len(texts):,}; give "
            "what audit.passed(checkpoint, texts) returns for these texts"
        )
    unseen = np.zeros(len(texts), dtype=bool) if unseen is None else unseen
    given = Given(texts, target, changed=changed or {}, population=unseen, retrained=retrained)
    scores = {}
    for name in ATTACKS if names is None else names:
        for reference, full in _given(given, references or {}, ATTACKS[name].needs):
            scores[f"{name}{reference}"] = ATTACKS[name].score(full)
    return pd.DataFrame(scores, index=range(len(texts)))


def _given(
    given: Given, references: Mapping[str, Pass], needs: Sequence[str]
) -> Iterator[tuple[str, Given]]:
    """What an attack is given, with the name of the reference; nothing without what it needs."""
    if any(need in CHANGED and need not in given.changed for need in needs):
        return
    if POPULATION in needs and not given.population.any():
        return
    if RETRAINED in needs and given.retrained is None:
        return
    if REFERENCE not in needs:
        yield "", given
        return
    for name, reference in references.items():
        if SAME_TOKENS not in needs or np.array_equal(reference.end, given.target.end):
            yield f"/{name}", replace(given, reference=reference)
