"""Runs of the study of leakage in a small language, without training: losses are drawn.

The grammar is so small that every string is known. The symbols below A, B and C differ, so that
every string has one derivation.
"""

from functools import cache

import numpy as np
import pandas as pd

from helpers.grammars import grammar_of
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.density.densities import density_tables, embeddings_of
from palimpsest.density.kinds import EMBEDDINGS
from palimpsest.density.leakage_tables import Results
from palimpsest.traces import Trace
from palimpsest.variants import LEAK_CONDITIONS, leak_of, leaked, without_production

ROOTS = {"A B C": 0.4, "B A": 0.3, "C A B": 0.2, "C B": 0.1}
PARTS = """
A -> X 'a' [0.6]
A -> 'a' X [0.4]
B -> Y 'b' [0.5]
B -> 'b' Y [0.5]
C -> Z 'c' [0.7]
C -> 'c' Z [0.3]
X -> 'd' X [0.4]
X -> 'e' X [0.3]
X -> 'd' [0.3]
Y -> 'f' Y [0.3]
Y -> 'g' Y [0.4]
Y -> 'f' [0.3]
Z -> 'h' Z [0.4]
Z -> 'i' Z [0.3]
Z -> 'h' [0.3]
"""
SIZE, OPTIONS = 60, {"tests": 24, "leaked": 6, "level": 1, "redrawn": 0.5}
FACTORIAL = [leaked(leak) for leak in LEAK_CONDITIONS]
LEFT_OUT = [without_production(number + 1) for number in range(len(ROOTS))]
MODEL, EPOCHS = "llama-3.2-1b-twin", np.array([0, 1, 2, 25])
KERNELS = {"gaussian": [0.1, 0.5], "exponential": [0.05]}
NEIGHBOURS, WIDTH = 5, 6
SHOWN = ("gaussian", 0.1)


def corpus_of(roots: dict[str, float], below: str = PARTS) -> GrammarCorpus:
    """The language whose start symbol has these rules."""
    rules = [f"S -> {rhs} [{chance}]" for rhs, chance in roots.items()]
    return GrammarCorpus(grammar_of("\n".join(rules) + below))


CORPUS = corpus_of(ROOTS)


def dataset(variant: str, seed=0, corpus=CORPUS, size=SIZE, **options) -> pd.DataFrame:
    """The dataset of a variant."""
    maker = "leaked" if leak_of(variant) else "without_production"
    return build(
        Sampler("toy", corpus, seed),
        variant,
        size,
        8,
        False,
        options={**OPTIONS, **options},
        made_by=f"palimpsest.density.leakage_data:{maker}",
    )


@cache
def results(variant: str, seed: int = 0) -> Results:
    """A run with drawn losses and hidden states, and its true densities."""
    strings = dataset(variant, seed)
    run = {"model": MODEL, "language": "toy", "size": SIZE, "seed": seed, "variant": variant}
    chance = np.random.default_rng([seed, *variant.encode()])
    n_tokens = strings["n_tokens"].to_numpy()
    shape = len(EPOCHS), len(strings)
    trace = Trace(
        run,
        EPOCHS,
        strings["string_id"].to_numpy(dtype=object),
        n_tokens,
        chance.uniform(0.5, 1.5, shape) * n_tokens,
        chance.integers(0, n_tokens + 1, shape),
        np.tile(n_tokens, (len(EPOCHS), 1)),
    )
    embeddings = embeddings_of(strings, hidden(strings, chance))
    tables = density_tables(MODEL, strings, embeddings, KERNELS, NEIGHBOURS)
    return Results(strings, trace, tables["density"], tables["neighbours"])


def hidden(strings: pd.DataFrame, chance: np.random.Generator) -> pd.DataFrame:
    """A table `embeddings` of drawn vectors of length 1, in another order than the strings."""
    vectors = chance.normal(size=(len(strings), WIDTH))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    about = strings[["language", "size", "seed", "variant", "string_id"]]
    table = about.assign(model=MODEL, vector=list(vectors.astype(np.float32)))
    return table.sample(frac=1, random_state=0)[EMBEDDINGS.names]


def trained_once(run: Results) -> list[str]:
    """The names of the training strings with one copy."""
    return run.strings.loc[run.strings["count"] == 1, "string_id"].tolist()
