"""Speed of the languages room on one core, compared with a named peer in the same run.

python tests/benchmarks/bench_languages.py

Every benchmark is a function that returns rows of the table.
"""

import os

os.environ.update(NUMBA_NUM_THREADS="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import math
import random
import sys
import time
import warnings
from pathlib import Path

import nltk
import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from rows import at_least, main  # noqa: E402

from palimpsest.languages import Grammar, GrammarWarning, field_losses  # noqa: E402
from palimpsest.languages.notation import Symbol  # noqa: E402

NLTK_SECONDS = 20.0
TINY = 0.01  # part of the strings and seconds of a run that only shows that all works


def language(name):
    """One of the languages that come with Palimpsest, without a warning of its unreachable rule."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        return Grammar.from_file(ROOT / f"config/languages/{name}.pcfg")


def sampling(part, name="L3"):
    """Strings sampled per second, against a recursive sampler in plain Python.

    NLTK has no sampler: its `generate` lists all derivations one after the other.
    """
    grammar = language(name)
    grammar.sample_encoded(10, seed=0)  # compile
    n, n_decoded, n_peer = (int(part * count) for count in (500_000, 50_000, 5_000))
    ours = best_rate(n, lambda: grammar.sample_encoded(n, seed=1))
    decoded = best_rate(n_decoded, lambda: grammar.sample(n_decoded, seed=1))
    peer_sample = recursive_sampler(grammar)
    peer = best_rate(n_peer, lambda: [peer_sample() for _ in range(n_peer)])
    return [
        row(f"sample {name}, encoded", ours, peer, target=500_000),
        row(f"sample {name}, as tuples", decoded, peer, target_ratio=1),
    ]


def log_probability(part, name="L3"):
    """Strings scored per second, against NLTK's InsideChartParser on the same strings."""
    grammar = language(name)
    strings, peer_scores, seconds = nltk_scores(grammar, part * NLTK_SECONDS)
    scores = grammar.log_probability(strings)
    np.testing.assert_allclose(scores, peer_scores, rtol=1e-9)
    peer = len(strings) / seconds
    same = min(timed(lambda: grammar.log_probability(strings)) for _ in range(20))
    many = grammar.sample(int(part * 20_000), seed=2)
    ours = best_rate(len(many), lambda: grammar.log_probability(many))
    title = f"score {name}, {len(strings)} strings NLTK managed in {seconds:.0f} s"
    return [
        row(title, len(strings) / same, peer, target_ratio=200),
        row(f"score {name}, {len(many):,} strings", ours, peer, target=2_000),
    ]


def long_strings(part, name="L1"):
    """Scoring and prefix scoring of the longest strings (72 symbols); NLTK as above."""
    grammar = language(name)
    strings, peer_scores, seconds = nltk_scores(grammar, part * NLTK_SECONDS / 4)
    np.testing.assert_allclose(grammar.log_probability(strings), peer_scores, rtol=1e-9)
    peer = len(strings) / seconds
    many = grammar.sample_encoded(int(part * 20_000), seed=2)
    whole = best_rate(len(many), lambda: grammar.log_probability(many))
    prefix = best_rate(len(many), lambda: grammar.log_prefix_probability(many))
    return [
        row(f"score {name}, {len(many):,} strings", whole, peer, target=2_000),
        row(f"score {name} as prefixes", prefix, peer, target=2_000),
    ]


def texts(part, name="people"):
    """Texts of some 90 characters, sampled as pieces, and scored over all ways to cut them.

    NLTK as above: it scores whole texts, of the same grammar of characters.
    """
    grammar = language(name)
    of_characters = grammar.of_characters()
    grammar.sample_encoded(10, seed=0)  # compile
    n = int(part * 200_000)
    sampled = best_rate(n, lambda: grammar.sample_encoded(n, seed=1))
    written = best_rate(n, lambda: ["".join(string) for string in grammar.sample(n, seed=1)])
    peer_sample = recursive_sampler(grammar)
    n_peer = int(part * 5_000)
    by_peer = best_rate(n_peer, lambda: [peer_sample() for _ in range(n_peer)])
    strings, peer_scores, seconds = nltk_scores(of_characters, part * NLTK_SECONDS / 4)
    np.testing.assert_allclose(of_characters.log_probability(strings), peer_scores, rtol=1e-9)
    peer = len(strings) / seconds
    many = of_characters.sample(int(part * 20_000), seed=2)
    scored = best_rate(len(many), lambda: of_characters.log_probability(many))
    halves = [text[: len(text) // 2] for text in many]
    of_halves = best_rate(len(many), lambda: of_characters.log_prefix_probability(halves))
    some = ["".join(text) for text in many[: int(part * 2_000)]]
    with_fields = best_rate(len(some), lambda: field_losses(grammar, some))
    return [
        row(f"sample texts on {name}, as pieces, encoded", sampled, by_peer, target=200_000),
        row(f"sample texts on {name}, written out", written, by_peer, target=200_000),
        row(f"score {len(many):,} texts on {name}", scored, peer, target=2_000),
        row("score the first halves of the texts", of_halves, peer, target=2_000),
        row(f"find and score the fields of {len(some):,} texts", with_fields, peer, target=200),
    ]


BENCHMARKS = [sampling, log_probability, long_strings, texts]


def row(name, ours, peer, **target):
    """One line of the table; the target is either a rate of our own, or a ratio to the peer's."""
    return at_least(name, ours, peer, "strings/s", **target)


def timed(work):
    """Seconds that one call takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def best_rate(count, work, repeats=3):
    """Items per second, in the best of a few calls: other work on the machine only slows."""
    return count / min(timed(work) for _ in range(repeats))


def recursive_sampler(grammar):
    """The sampler one would write first: expand a symbol, then each of its children."""
    rules = {}
    for rule in grammar.rules:
        rights, weights = rules.setdefault(rule.lhs, ([], []))
        rights.append(rule.rhs)
        weights.append(rule.probability)
    chance = random.Random(0)

    def expand(symbol):
        if symbol.terminal:
            return [symbol.name]
        rights, weights = rules[symbol.name]
        (rhs,) = chance.choices(rights, weights)
        return [terminal for child in rhs for terminal in expand(child)]

    start = Symbol(grammar.start, terminal=False)
    return lambda: tuple(expand(start))


def nltk_scores(grammar, budget):
    """Strings in the order sampled, NLTK's log probabilities (over all parses), and its seconds."""
    rules = "\n".join([f"%start {grammar.start}", *map(str, grammar.rules)])
    parser = nltk.parse.InsideChartParser(nltk.PCFG.fromstring(rules))
    strings, scores, seconds = [], [], 0.0
    for string in grammar.sample(1_000, seed=1):
        begin = time.perf_counter()
        scores.append(math.log(sum(tree.prob() for tree in parser.parse(list(string)))))
        seconds += time.perf_counter() - begin
        strings.append(string)
        if seconds > budget:
            break
    return strings, scores, seconds


def rows(tiny):
    """All rows of this benchmark, each as soon as it is measured."""
    for benchmark in BENCHMARKS:
        yield from benchmark(TINY if tiny else 1)


if __name__ == "__main__":
    sys.exit(main(rows))
