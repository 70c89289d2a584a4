"""The losses of changed strings, which some attacks compare with the loss of the string.

The changes are those of the section audit. Of a formal language, a neighbour has other symbols in
the places of some, and so the same number of tokens, and there is no lower case.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

import numpy as np

from palimpsest import tables
from palimpsest.audit.versions import (
    BREAK,
    LOWERCASE,
    NEIGHBOURS,
    PREFIXED,
    SYMBOL,
    WORD,
    Versions,
    versions,
)
from palimpsest.datasets.kinds import STRINGS
from palimpsest.jobs.bench import Bench
from palimpsest.models.build import limits
from palimpsest.models.trained import Models
from palimpsest.training.batches import TokenisedStrings, encode

log = logging.getLogger("palimpsest")

NLL = 0  # of what is measured


class ChangedStrings:
    """The changed training strings of a dataset.

    Parameters
    ----------
    neighbours : changed strings for each string
    prefixes : unseen strings before a string; fewer if the model does not take so many tokens
    """

    def __init__(self, bench: Bench, neighbours: int, prefixes: int):
        self._bench, self._dataset, run = bench, bench.run.dataset, bench.run
        self._texts = tables.read(self._dataset, STRINGS)["text"].tolist()
        self._is_text = run.corpus.is_text
        letters = [run.corpus.prompts.get(text, 0) for text in self._texts]
        self._given = self._texts, letters, bench.material.counts == 0
        self._how = {
            "neighbours": neighbours,
            "seed": bench.material.seed,
            "word": WORD if self._is_text else SYMBOL,
            "after_prefix": BREAK if self._is_text else " ",
        }
        self._n_prefixes = prefixes
        self._most = limits(run.row, run.scale).positions or np.inf

    def columns(self, models: Models | None = None) -> dict[str, list]:
        """Columns of the table `last_pass`, under the first of some models; of none, nothing."""
        found: dict[str, list] = {}
        for name in (LOWERCASE, NEIGHBOURS, PREFIXED):
            begin, losses = time.process_time(), None
            if models is not None and (self._is_text or name != LOWERCASE):
                losses = self._losses(name, models)
            n = len(self._texts)
            found[name] = [np.empty(0, np.float32)] * n if losses is None else list(losses)
            seconds = np.nan if losses is None else time.process_time() - begin
            found[f"{name}_seconds"] = [seconds] * n
        return found

    def _losses(self, name: str, models: Models) -> np.ndarray:
        """float32[strings, n]: nats per token; NaN where nothing is changed or too long."""
        n = self._how["neighbours"] if name == NEIGHBOURS else 1
        losses = np.full((len(self._texts), n), np.nan, dtype=np.float32)
        made = self._prefixed() if name == PREFIXED else self._made(name)
        if made is None:
            return losses
        made = _of_rows(made, np.flatnonzero(self._bench.material.counts > 0))
        encoded = self._encoded(made)
        chosen = np.flatnonzero(encoded.lengths <= self._most)
        nll = np.full(len(encoded.lengths), np.nan)
        measured = self._bench.measure_strings(models, encoded, chosen)[0, NLL]
        nll[chosen] = measured[chosen]
        losses[made.rows] = (nll / encoded.n_tokens).reshape(-1, made.n)
        if name == NEIGHBOURS:
            texts = np.array(self._texts, dtype=object)[made.rows, None]
            is_same = np.reshape(np.array(made.texts, dtype=object), (-1, made.n)) == texts
            losses[made.rows[is_same.all(axis=1)]] = np.nan
        return losses

    def _made(self, name: str, prefixes: int = 0) -> Versions | None:
        return versions([name], *self._given, prefixes=prefixes, **self._how).get(name)

    def _prefixed(self) -> Versions | None:
        """Strings after as many prefixes as the model takes; None if it takes none."""
        if self._made(PREFIXED, 1) is None:
            log.warning("%s: has no unseen strings for ReCaLL, which has no value", self._dataset)
            return None
        for n in range(self._n_prefixes, -1, -1):
            made = self._made(PREFIXED, n)
            if made is None or self._encoded(made).lengths.max() <= self._most:
                break
        if n < self._n_prefixes:
            log.warning(
                "%s: %s unseen strings before each string are more than the %s tokens of %s; "
                "ReCaLL has %s",
                *(self._dataset, self._n_prefixes, self._most, self._bench.run.model),
                n or "no value",
            )
        return made

    def _encoded(self, made: Versions) -> TokenisedStrings:
        """The tokens; those before the string itself are read, and not predicted."""
        material = self._bench.material
        how = self._bench.run.recipe.predict_end
        if self._is_text:
            return encode(made.texts, material.token_ids, how, made.prompts)
        encoded = encode(made.texts, material.token_ids, how)
        own = np.repeat(material.encoded.n_tokens[made.rows], made.n)
        return replace(encoded, contexts=encoded.lengths - own)


def _of_rows(made: Versions, rows: np.ndarray) -> Versions:
    """The versions of some records."""
    kept = np.flatnonzero(np.isin(made.rows, rows))
    places = (kept[:, None] * made.n + np.arange(made.n)).ravel()
    texts, prompts = ([values[place] for place in places] for values in (made.texts, made.prompts))
    return Versions(texts, prompts, made.rows[kept], made.n)
