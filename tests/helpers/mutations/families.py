"""The families of inputs, and the public functions that read them.

If a reader is renamed, only this file changes.
"""

import json
import math
from pathlib import Path

import numpy as np

from helpers.mutations import configurations, grammars, panels, texts
from helpers.mutations.judge import Family
from palimpsest.corpora import read_corpus
from palimpsest.density.segments import read_texts
from palimpsest.profiles.panel import read_panel


def panel(path: Path) -> bytes:
    """A panel by meaning: the outcomes of units, and the places of their cohorts in the times.

    Neither the units of time nor the order of rows is in it.
    """
    found = read_panel(path)
    places = np.searchsorted(found.times, found.cohorts)
    never = ~np.isfinite(np.asarray(found.cohorts, dtype=float))
    return panels.canonical(
        [None if out else int(place) for place, out in zip(places, never, strict=True)],
        found.outcome.tolist(),
    )


def text_corpus(path: Path) -> bytes:
    """The strings of a text corpus, in order."""
    return json.dumps([list(string) for string in read_corpus(path).strings]).encode()


def grammar(path: Path) -> bytes:
    """The terminals of a grammar, and the log probabilities of some strings to 12 digits."""
    corpus = read_corpus(path)
    log_probs = corpus.log_probability(grammars.STRINGS)
    shown = [f"{value:.12g}" if math.isfinite(value) else "-inf" for value in log_probs]
    return json.dumps([sorted(corpus.alphabet.terminals), shown]).encode()


def density_text(path: Path) -> bytes:
    """The texts of a file of documents, in order."""
    return json.dumps(list(read_texts(path))).encode()


PANELS = Family("panels", panel, panels.draw)
TEXT_CORPORA = Family("text corpora", text_corpus, texts.draw_corpus)
GRAMMARS = Family("grammars", grammar, grammars.draw)
DENSITY_TEXTS = Family("density texts", density_text, texts.draw_documents)
CONFIGURATIONS = Family("configurations", configurations.read, configurations.draw)
FAMILIES = (CONFIGURATIONS, PANELS, TEXT_CORPORA, GRAMMARS, DENSITY_TEXTS)
