"""Building a dataset: a training multiset in one of its variants, with a test set beside it.

Source: Learning Without Memorizing Considered Infeasible, sections 3.2 and 4, appendix G.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.datasets.strings import string_id, text
from palimpsest.errors import UserError
from palimpsest.languages import Grammar

String = tuple[str, ...]
TRAIN, TEST, COUNTERPART, VALIDATION, FORGET = range(5)
WITH_OR_WITHOUT = re.compile(r"(with|without)-(s\d+)")


@dataclass(frozen=True)
class Sampler:
    """Independent strings of a language, or of its high-entropy counterpart, for one seed.

    `derivations` remembers the log probability of the derivation that each string of the language
    was first drawn by.
    """

    language: str
    grammar: Grammar
    seed: int
    counterpart: Grammar | None = None
    derivations: dict[String, float] = field(default_factory=dict)

    def train(self, n: int, but: String | None = None) -> list[String]:
        """The first `n` strings of the training stream; `but` is passed over."""
        return _first(self._draw_train, n, lambda seen, s: s != but, self.language)

    def test(self, n: int) -> list[String]:
        """`n` strings of the test stream, which does not depend on the training size."""
        return self._draw(n, TEST)

    def validation(self, n: int, but: set[String]) -> list[String]:
        """`n` distinct strings that are none of the given ones."""
        draw = partial(self._draw, purpose=VALIDATION)
        return _first(draw, n, lambda seen, s: s not in seen and s not in but, self.language)

    def permutation(self, n: int) -> np.ndarray:
        """A random order int[n], from which what is to be forgotten is taken."""
        return np.random.default_rng(self._stream(FORGET)).permutation(n)

    def distinct_of_counterpart(self, n: int) -> list[String]:
        """`n` distinct strings of the high-entropy counterpart."""
        if self.counterpart is None:
            raise UserError(
                f"language {self.language}: the variant dedup-matched needs its high-entropy "
                "counterpart; name one in datasets/high_entropy_counterpart"
            )
        stream = self._stream(COUNTERPART)
        draw = partial(self.counterpart.sample, seed=stream)
        return _first(draw, n, lambda seen, s: s not in seen, self.language)

    def _draw_train(self, n: int) -> list[String]:
        return self._draw(n, TRAIN)

    def _draw(self, n: int, purpose: int) -> list[String]:
        """Draw strings of the language and remember their derivations."""
        sampled = self.grammar.sample_encoded(n, self._stream(purpose))
        strings = self.grammar.decode(sampled)
        for string, log_prob in zip(strings, sampled.derivation_log_prob, strict=True):
            self.derivations.setdefault(string, log_prob)
        return strings

    def _stream(self, purpose: int) -> int:
        """A seed for one purpose, so that train and test are independent."""
        return int(np.random.SeedSequence([self.seed, purpose]).generate_state(1)[0])


def _first(draw: Callable[[int], list[String]], n: int, wanted, language: str) -> list[String]:
    """The first `n` strings of a stream that are wanted, given those taken so far.

    `draw(m)` gives the stream's first `m` strings.

    Raises `UserError` if 100 times as many draws do not hold `n`.
    """
    draws = n
    while draws <= 100 * n:
        taken: list[String] = []
        seen: set[String] = set()
        for string in draw(draws):
            if wanted(seen, string):
                taken.append(string)
                seen.add(string)
            if len(taken) == n:
                return taken
        draws *= 10
    raise UserError(
        f"language {language}: {draws // 10:,} draws hold only {len(taken):,} of the {n:,} strings "
        "needed; the language is too small: lower the train size or choose a richer language"
    )


def training_multiset(
    sampler: Sampler, variant: str, size: int, targets: pd.DataFrame | None
) -> Counter:
    """The training multiset of a variant: each distinct string with its count.

    base            `size` independent strings
    with-s0         D = D' and the target s0, as often as it would be expected among `size`
    without-s0      D', sampled without the target, `size` strings less the target's copies
    dedup           each distinct string of base once
    dedup-matched   as many distinct strings of the high-entropy counterpart (the paper's dedup*)
    """
    if variant == "base":
        return Counter(sampler.train(size))
    if variant == "dedup":
        return Counter(dict.fromkeys(sampler.train(size), 1))
    if variant == "dedup-matched":
        return Counter(sampler.distinct_of_counterpart(len(set(sampler.train(size)))))
    kind, role = WITH_OR_WITHOUT.fullmatch(variant).groups()
    target = _target(targets, role, sampler.language)
    copies = target_counts(targets, size)[role]
    if copies >= size:
        raise UserError(
            f"language {sampler.language}, size {size}: {copies} copies of the target {role} leave "
            "no room for other strings; raise the train size or ask for fewer "
            "targets (memorisation/studies/disagreement/targets)"
        )
    multiset = Counter(sampler.train(size - copies, but=target))
    if kind == "with":
        multiset[target] = copies
    return multiset


def target_counts(targets: pd.DataFrame, size: int) -> dict[str, int]:
    """How often each target occurs in the data with it: expected among `size`, and decreasing.

    An expected count is rounded, at least 1, and at least one more than the next target's, so that
    the targets' frequencies differ at small sizes too.
    """
    counts: dict[str, int] = {}
    least = 1
    for role, log_prob in zip(targets["role"][::-1], targets["log_prob"][::-1], strict=True):
        counts[role] = max(least, round(size * float(np.exp(log_prob))))
        least = counts[role] + 1
    return counts


def _target(targets: pd.DataFrame, role: str, language: str) -> String:
    """The target string of a role."""
    texts = targets.loc[targets["role"] == role, "text"]
    if texts.empty:
        raise UserError(
            f"language {language}: no target {role!r}; known: {', '.join(targets['role'])}; "
            "ask for more (memorisation/studies/disagreement/targets)"
        )
    return tuple(texts.iloc[0].split(" "))


def build(
    sampler: Sampler,
    variant: str,
    size: int,
    test_size: int,
    predict_end: bool,
    targets: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """A dataset as a table of kind `strings`: its distinct strings, train first, then test.

    Probabilities and the Bayes-optimal loss are those of the language that the training strings are
    of, which for dedup-matched is the high-entropy counterpart: what a model learns from it is that
    language, and the test strings, the same as the base's, are strings of it too.

    A string of the test set that is in train too has split `train` and `test_count` above 0. A
    target that is neither in train nor in test has split `held_out`: it is measured all the same.

    Parameters
    ----------
    sampler : the language's streams for the dataset's seed.
    variant, size : see `training_multiset`.
    test_size : strings of the test set, independent draws.
    predict_end : whether models also predict the end of a string; it decides the tokens counted
        and the Bayes-optimal loss.
    targets : table of kind `targets`; needed for the variants with-* and without-*.
    """
    train = training_multiset(sampler, variant, size, targets)
    roles = {}
    if targets is not None:
        pairs = zip(targets["text"], targets["role"], strict=True)
        roles = {tuple(line.split(" ")): role for line, role in pairs}
    in_question = [s for s, role in roles.items() if variant.endswith(f"-{role}")]
    test = Counter(sampler.test(test_size))
    frame = tabulate(sampler, variant, size, train, test, in_question, predict_end)
    strings = [tuple(line.split(" ")) for line in frame["text"]]
    frame["role"] = pd.array([roles.get(s) for s in strings], dtype="string")
    return frame


def tabulate(
    sampler: Sampler,
    variant: str,
    size: int,
    train: Counter,
    test: Counter,
    held_out: list[String],
    predict_end: bool,
) -> pd.DataFrame:
    """A table of kind `strings`, of some multisets of strings; `held_out` are only measured."""
    strings = list(dict.fromkeys([*train, *test, *held_out]))
    frame = pd.DataFrame(
        {
            "language": sampler.language,
            "size": size,
            "seed": sampler.seed,
            "variant": variant,
            "string_id": [string_id(s) for s in strings],
            "text": [text(s) for s in strings],
            "n_tokens": [len(s) + predict_end for s in strings],
            "count": [train[s] for s in strings],
            "test_count": [test[s] for s in strings],
            "role": pd.array([None] * len(strings), dtype="string"),
            "group": pd.array([None] * len(strings), dtype="string"),
        }
    )
    frame["split"] = _splits(frame, held_out, strings)
    matched = variant == "dedup-matched"
    derivations = {} if matched else sampler.derivations
    frame["derivation_log_prob"] = [derivations.get(s, np.nan) for s in strings]
    learned = sampler.counterpart if matched else sampler.grammar
    probabilities = _probabilities(learned, strings, predict_end)
    outside = frame.loc[~np.isfinite(probabilities["log_prob"]), "text"]
    if len(outside):
        raise UserError(
            f"language {sampler.language}: its string {outside.iloc[0]!r} is not one of "
            f"{learned.name}; name another counterpart in "
            f"datasets/high_entropy_counterpart/{sampler.language}, one that has all its strings"
        )
    return frame.join(probabilities)


def _splits(frame: pd.DataFrame, in_question: list[String], strings: list[String]) -> np.ndarray:
    """Train where it is trained on; held_out for a left-out target, even if the test set has it."""
    left_out = np.array([s in in_question for s in strings])
    return np.select([frame["count"] > 0, left_out], ["train", "held_out"], default="test")


def _probabilities(grammar: Grammar, strings: list[String], predict_end: bool) -> pd.DataFrame:
    """Exact log probabilities and the Bayes-optimal loss under a language.

    Where the end is not predicted, the best possible loss is that of the string as a prefix.
    """
    log_prob = grammar.log_probability(strings)
    lengths = np.array([len(s) for s in strings])
    if predict_end:
        optimal_loss = -log_prob / (lengths + 1)
    else:
        optimal_loss = -grammar.log_prefix_probability(strings) / lengths
    return pd.DataFrame({"log_prob": log_prob, "optimal_loss": optimal_loss})
