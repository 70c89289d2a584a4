"""The permanent name of a string, and the sample and target strings of a language."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from palimpsest.allowed import shown
from palimpsest.arguments import WrongKind
from palimpsest.corpora import text_of
from palimpsest.errors import UserError
from palimpsest.languages import Grammar

LONG = 1_000  # symbols; shorter strings take less than a second
SECONDS_BETWEEN_LINES = 15
ROUNDING = 1e-9  # log probabilities that differ by less are equal


def string_id(string: Sequence[str]) -> str:
    """A string's name: 12 hexadecimal digits of its text's SHA-256; the same in every dataset."""
    try:
        text = text_of(string)
    except TypeError:
        raise WrongKind(
            f"string: is {shown(string)} and must be a text or a tuple of texts"
        ) from None
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def distinct_sample(grammar: Grammar, language: str, n: int, seed: int) -> pd.DataFrame:
    """The distinct strings of a sample of `n`, as a table of kind `language_sample`."""
    sampled = grammar.sample_encoded(n, seed)
    frame = pd.DataFrame(
        {
            "language": language,
            "string": grammar.decode(sampled),
            "length": sampled.lengths,
            "derivation_log_prob": sampled.derivation_log_prob,
        }
    )
    frame["text"] = [text_in(grammar, string) for string in frame["string"]]
    counts = frame["text"].value_counts()
    frame = frame.drop_duplicates("text", ignore_index=True)
    frame["string_id"] = [string_id((text,)) for text in frame["text"]]
    frame["count"] = counts.loc[frame["text"]].to_numpy()
    exact, strings = in_exact_symbols(grammar, frame["string"])
    frame["log_prob"] = _log_probabilities(exact, language, strings)
    return frame


def text_in(grammar: Grammar, string: Sequence[str]) -> str:
    """The text of a string of a grammar, whose symbols may be pieces of text."""
    return "".join(string) if grammar.is_text else text_of(string)


def in_exact_symbols(
    grammar: Grammar, strings: Iterable[Sequence[str]]
) -> tuple[Grammar, list[tuple[str, ...]]]:
    """A grammar whose probabilities are those of texts, and the strings in its symbols.

    Pieces of text may be cut in several ways, so the symbols of a text are its characters.
    """
    if not grammar.is_text:
        return grammar, list(strings)
    return grammar.of_characters(), [tuple("".join(string)) for string in strings]


def _log_probabilities(grammar: Grammar, language: str, strings: list) -> np.ndarray:
    """Log probabilities of strings. Prints what takes long, and how far the work is."""
    lengths = np.array([len(string) for string in strings])
    long = np.flatnonzero(lengths > LONG)
    if not len(long):
        return grammar.log_probability(strings)
    print(
        f"language {language}: {len(long):,} of {len(strings):,} sampled strings have more than "
        f"{LONG:,} symbols (up to {lengths.max():,}); under an ambiguous grammar, the exact "
        "probability of one of 5,000 symbols takes minutes, and the time grows with the cube",
        flush=True,
    )
    scores = np.empty(len(strings))
    short = np.flatnonzero(lengths <= LONG)
    scores[short] = grammar.log_probability([strings[place] for place in short])
    shown = time.monotonic()
    for done, place in enumerate(long, start=1):
        scores[place] = grammar.log_probability([strings[place]])[0]
        if time.monotonic() - shown > SECONDS_BETWEEN_LINES:
            shown = time.monotonic()
            print(f"language {language}: {done:,} of {len(long):,} long strings done", flush=True)
    return scores


def target_strings(sample: pd.DataFrame, n_targets: int) -> pd.DataFrame:
    """Target strings, sorted by decreasing probability, as a table of kind `targets`.

    One target is the most probable string of the sample. Another one is a typical string: its log
    probability is near the sample's mean, which is minus the entropy. The others are as near as
    possible to even steps between, in log probability. No two targets are equally probable, unless
    the sample has too few probabilities for this. If several strings are equally near, the first by
    `string_id` is taken.

    Source: Learning Without Memorizing Considered Infeasible, section 3.2 (three strings of
    decreasing frequency; the paper does not say how they were chosen).
    """
    if len(sample) < n_targets:
        raise UserError(
            f"language {sample.loc[0, 'language']}: a sample has only {len(sample)} distinct "
            f"strings, too few for {n_targets} targets; ask for "
            "fewer (memorisation/studies/disagreement/targets)"
        )
    ranked = sample.sort_values(["log_prob", "string_id"], ascending=[False, True])
    best = ranked["log_prob"].iloc[0]
    typical = np.average(sample["log_prob"], weights=sample["count"])
    distinct = ranked[-np.diff(ranked["log_prob"], prepend=np.inf) > ROUNDING]
    left = (distinct if len(distinct) >= n_targets else ranked).reset_index(drop=True)
    first, *between, last = np.linspace(best, typical, max(2, n_targets))
    chosen = []
    for goal in (first, last, *between)[:n_targets]:
        distance = (left["log_prob"] - goal).abs()
        # Rounding must not decide between strings of equal probability.
        pick = distance[distance <= distance.min() + ROUNDING].index[0]
        chosen.append(left.loc[pick])
        left = left.drop(pick)
    targets = pd.DataFrame(chosen).sort_values("log_prob", ascending=False, kind="stable")
    targets["role"] = [f"s{rank}" for rank in range(n_targets)]
    return targets[["language", "role", "string_id", "text", "log_prob"]].reset_index(drop=True)


def summarise(grammar: Grammar, language: str, sample: pd.DataFrame) -> dict:
    """A summary of a language: sizes, entropies, expected length, ambiguity."""
    surprise = np.repeat(-sample["log_prob"].to_numpy(), sample["count"])
    n_derivations = grammar.n_derivations()
    return {
        "language": language,
        "n_rules": grammar.n_rules,
        "n_terminals": len(grammar.terminals),
        "n_derivations": n_derivations if np.isfinite(n_derivations) else None,
        "derivation_entropy": grammar.derivation_entropy(),
        "entropy": float(surprise.mean()),
        "entropy_standard_error": float(surprise.std(ddof=1) / np.sqrt(len(surprise))),
        "expected_length": grammar.expected_length(),
        "ambiguous": bool((sample["log_prob"] > sample["derivation_log_prob"] + 1e-9).any()),
        "sample_size": len(surprise),
    }
