"""A train set with a part to forget, and the same set without it.

What is forgotten are whole groups: a string with all its copies, or all strings that share a
top-level derivation. A group is never split between what is forgotten and what is retained.

Source: Are we making progress in unlearning?, section A.3 (there a group is a person).
"""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from palimpsest.datasets.build import Sampler, String, tabulate
from palimpsest.datasets.strings import text
from palimpsest.errors import UserError
from palimpsest.languages import Grammar
from palimpsest.variants import ORIGINAL, RETAIN


def build_forgetting(
    sampler: Sampler,
    size: int,
    test_size: int,
    validation_size: int,
    predict_end: bool,
    groups: str,
    share: float,
    forget: list[String] | None = None,
) -> dict[str, pd.DataFrame]:
    """The variants `original` and `retain` as tables of kind `strings`, with equal rows.

    `split` is train (retained), forget, test or validation in both; in `retain` the forget strings
    have count 0. The train and test strings are those of `base` with the same size and seed;
    validation strings are distinct and in neither.

    Parameters
    ----------
    sampler : the language's streams for the dataset's seed.
    size, test_size, validation_size : strings; of train and test copies counted.
    predict_end : whether models also predict the end of a string.
    groups : `string` or `derivation`, see `group_names`.
    share : of the groups, to be drawn for forgetting.
    forget : the strings to forget instead of drawn ones.

    Raises
    ------
    UserError
        If the forget set is empty or everything, has a string that is not in train, or splits a
        group.
    """
    train, test = Counter(sampler.train(size)), Counter(sampler.test(test_size))
    validation = sampler.validation(validation_size, but=set(train) | set(test))
    frame = tabulate(sampler, ORIGINAL, size, train, test, validation, predict_end)
    names = group_names(list(train), sampler.grammar, groups)
    if forget is None:
        forgotten = set(_drawn(sampler, names, share))
        forget = [string for string, name in names.items() if name in forgotten]
    check_forget_set(forget, names, sampler.language)
    frame["group"] = pd.array(
        [names.get(tuple(line.split(" "))) for line in frame["text"]], dtype="string"
    )
    is_forgotten = frame["text"].isin([text(string) for string in forget])
    frame["split"] = np.select(
        [is_forgotten, frame["split"] == "held_out"], ["forget", "validation"], frame["split"]
    )
    retained = frame.assign(variant=RETAIN, count=frame["count"].mask(is_forgotten, 0))
    return {ORIGINAL: frame, RETAIN: retained}


def group_names(strings: list[String], grammar: Grammar, groups: str) -> dict[String, str]:
    """The name of each string's group.

    string       each distinct string is a group of its own, with all its copies
    derivation   strings whose most probable derivation begins with the same rule, the first of the
                 derivation that leaves a choice; it is named by the rule's right-hand side
    """
    if groups == "string":
        return {string: text(string) for string in strings}
    left, choices = _first_choice(grammar)
    if not choices:
        return dict.fromkeys(strings, left)
    log_probs = np.stack(
        [_with_only(grammar, left, rule).log_probability(strings) for rule in choices]
    )
    weights = np.log([rule.probability for rule in choices])[:, None]
    best = (log_probs + weights).argmax(axis=0)
    return {
        string: " ".join(symbol.name for symbol in choices[place].rhs)
        for string, place in zip(strings, best, strict=True)
    }


def check_forget_set(forget: list[String], names: dict[String, str], language: str) -> None:
    """A forget set is some of the train set, but not all, and holds whole groups."""
    where = f"language {language}: the forget set"
    if not forget:
        raise UserError(
            f"{where} is empty: {len(set(names.values()))} groups in train are too few for the "
            "share; raise unlearning/share or unlearning/size, or set unlearning/groups to string"
        )
    strangers = [string for string in forget if string not in names]
    if strangers:
        raise UserError(
            f"{where} has the string {text(strangers[0])!r}, which is not in train; only what was "
            "trained on can be forgotten"
        )
    forgotten = set(forget)
    if len(forgotten) == len(names):
        raise UserError(
            f"{where} is everything that was trained on, so nothing is retained; lower "
            "unlearning/share, or name fewer strings"
        )
    touched = {names[string] for string in forgotten}
    split = [s for s, name in names.items() if name in touched and s not in forgotten]
    if split:
        raise UserError(
            f"{where} splits the group {names[split[0]]!r}: it leaves {text(split[0])!r} out; name "
            "all strings of a group or none, or set unlearning/groups to string"
        )


def read_forget_set(path: str | Path) -> list[String]:
    """The strings of a text file, one a line, the terminals separated by spaces."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    strings = list(dict.fromkeys(tuple(line.split()) for line in lines if line.strip()))
    if not strings:
        raise UserError(
            f"{path}: names no string to forget; write one a line, its symbols separated by "
            "spaces, or set unlearning/forget to drawn"
        )
    return strings


def _drawn(sampler: Sampler, names: dict[String, str], share: float) -> list[str]:
    """A share of the groups, rounded to whole ones, drawn at random."""
    groups = sorted(set(names.values()))
    order = sampler.permutation(len(groups))
    return [groups[place] for place in order[: round(share * len(groups))]]


def _first_choice(grammar: Grammar):
    """The first non-terminal, from the start on, that has several rules; and these rules."""
    left, seen = grammar.start, set()
    while left not in seen:
        seen.add(left)
        rules = [rule for rule in grammar.rules if rule.lhs == left]
        if len(rules) > 1:
            return left, rules
        if len(rules[0].rhs) != 1 or rules[0].rhs[0].terminal:
            break
        left = rules[0].rhs[0].name
    return left, []


def _with_only(grammar: Grammar, left: str, rule) -> Grammar:
    """The grammar in which a non-terminal has but one rule."""
    others = tuple(other for other in grammar.rules if other.lhs != left)
    return Grammar(grammar.name, grammar.start, (*others, rule._replace(probability=1.0)))
