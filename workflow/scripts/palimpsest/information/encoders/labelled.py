"""Labelled texts: read from a file, or drawn from a language; and what a run is trained on.

Source: the paper on information measures of neurons, appendices B.2, B.3 and B.6.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TextIO

import numpy as np
import pandas as pd

from palimpsest.corpora import read_corpus
from palimpsest.corpora.records import opened
from palimpsest.errors import UserError, nearest
from palimpsest.information.encoders.study import FEWEST_TESTS, GROUP, kind_of_records
from palimpsest.information.interventions import percent_marked, percent_shuffled
from palimpsest.information.kinds import LABELLED
from palimpsest.languages import Grammar
from palimpsest.making import makes
from palimpsest.tables.user_tables import table_in

MOST_COPIES = 0.05  # share of the texts of a file
MORE_DRAWS = (1, 2, 4, 8)  # times the number of texts that are needed


@makes(LABELLED)
def labelled(file: str, study: Mapping, log: TextIO) -> pd.DataFrame:
    """The table `labelled` of a study.

    Parameters
    ----------
    file : the records, or the grammar of the language
    study : what decides the texts, see `Study.texts`
    log : takes a line on copies that are left out

    Raises `UserError` if a record has no text or no label, if there are fewer than two labels, if
    labels and words differ, if a word is in a text, if more than a few per cent of the texts are
    copies, or if there are too few texts.
    """
    found = from_records(file, study) if study["records"] else from_language(file, study)
    table = _distinct(found, file, log)
    _check_words(table, file, study["words"])
    needed = study["size"] + FEWEST_TESTS
    if len(table) < needed:
        raise UserError(
            f"{file}: has {len(table):,} distinct texts, and {study['size']:,} are trained on and "
            f"{FEWEST_TESTS} or more evaluated; give {needed:,}, or lower size"
        )
    names = [hashlib.sha256(text.encode()).hexdigest()[:12] for text in table["text"]]
    return table.assign(string_id=names, word=table["label"].map(study["words"]))[LABELLED.names]


def from_records(path: str, study: Mapping) -> pd.DataFrame:
    """The texts, labels and groups of a file with one row for each record."""
    file = opened(path)
    kind, columns = kind_of_records(file.columns, study)
    has_groups = GROUP in kind.columns
    table = table_in(file, str(path), kind, columns)
    texts = table.names("text").by_row()
    if blank := [row for row, text in enumerate(texts) if not text.strip()]:
        raise table.wrong("text", blank[0], "has no words")
    groups = table.names("group").by_row() if has_groups else None
    return _table(texts, table.names("label").by_row(), groups)


def from_language(file: str, study: Mapping) -> pd.DataFrame:
    """Distinct texts of a language. The rule that derives a field tells the label or the group.

    A text with the field WORK that the non-terminal WORK-nurse derives has the label nurse.
    """
    grammar = read_corpus(file).grammar
    needed = study["size"] + study["tests"]
    for times in MORE_DRAWS:
        drawn = grammar.sample(times * needed, seed=0)
        texts = list(dict.fromkeys("".join(string) for string in drawn))[:needed]
        if len(texts) == needed:
            break
    names = [study["label"], *([study["group"]] if study["group"] else [])]
    values = np.array([_values(grammar, text, names) for text in texts], dtype=object)
    return _table(np.array(texts, dtype=object), *values.T)


def _table(texts: np.ndarray, labels: np.ndarray, groups: np.ndarray | None = None):
    return pd.DataFrame({"text": texts, "label": labels, "group": groups})


def _values(grammar: Grammar, text: str, fields: list[str]) -> list[str]:
    """What stands for each field in the names of the non-terminals that derive a text."""
    names = [node.symbol.name for node in grammar.derivation(text) if not node.symbol.terminal]
    found = []
    for name in fields:
        values = {each.removeprefix(f"{name}-") for each in names if each.startswith(f"{name}-")}
        if len(values) != 1:
            what = f"has {', '.join(sorted(values))}" if values else "has none"
            raise UserError(
                f"{grammar.name}: a text {what} of {name}: {text[:60]!r}; derive the field of each "
                f"text by one non-terminal, such as {name}-a, which then is the label a"
            )
        found.append(values.pop())
    return found


def _distinct(table: pd.DataFrame, file: str, log: TextIO) -> pd.DataFrame:
    """The first row of each text. Raises `UserError` if more than a few per cent are copies."""
    again = table["text"].duplicated()
    if (share := again.mean()) > MOST_COPIES:
        row = int(again.to_numpy().argmax())
        raise UserError(
            f"{file}: {share:.1%} of the texts are copies of an earlier one, the first is "
            f"{table['text'].iloc[row][:60]!r}; copies make mutual information too large: give "
            f"each text once (up to {MOST_COPIES:.0%} are left out)"
        )
    if again.any():
        print(f"{file}: {again.sum()} copies of earlier texts are left out", file=log)
    return table[~again].reset_index(drop=True)


def _check_words(table: pd.DataFrame, file: str, words: Mapping[str, str]) -> None:
    known = sorted(table["label"].unique())
    if len(known) < 2:
        raise UserError(
            f"{file}: all texts have the label {known[0]!r}; a classifier needs two labels or more"
        )
    for label in known:
        if label not in words:
            raise UserError(
                f"{file}: the label {label!r} has no word; name one in information/encoders/.../"
                f"words{nearest(label, list(words))}"
            )
    for label in words:
        if label not in known:
            raise UserError(
                f"{file}: no text has the label {label!r} of information/encoders/.../words; its "
                f"labels are {', '.join(known)}{nearest(label, known)}"
            )
    for word in words.values():
        alone = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
        has = table["text"].map(lambda text, alone=alone: bool(alone.search(text)))
        if has.any():
            raise UserError(
                f"{file}: the word {word!r} is in {has.sum():,} texts, such as "
                f"{table['text'][has].iloc[0][:60]!r}; choose one that is in none"
            )


class Trained(NamedTuple):
    """The texts of a run and the labels that it is trained on, str[size] each."""

    texts: np.ndarray
    labels: np.ndarray


def training_data(
    records: pd.DataFrame, variant: str, seed: int, size: int, label_noise: float
) -> Trained:
    """The training data of a run, the first texts of a random order.

    Variants of a seed have the same texts and random numbers, so that they differ in the dose
    alone. Where words are inserted, and in the run without words, a share `label_noise` of the
    labels are wrong; their words are random, so that as many labels at every alpha are told by
    their text alone.
    """
    rows = records.iloc[split(len(records), seed)[:size]]
    chance = np.random.default_rng([seed, size, 3])
    names = np.array(sorted(records["label"].unique()), dtype=object)
    order, drawn = chance.permutation(size), chance.integers(len(names), size=size)
    wrong, steps = chance.permutation(size), chance.integers(1, len(names), size=size)
    places = chance.random(size)
    right = pd.Index(names).get_indexer(rows["label"])
    if (beta := percent_shuffled(variant)) is not None:
        chosen = np.sort(order[: round(size * beta / 100)])
        labels = right.copy()
        labels[chosen] = right[chance.permutation(chosen)]
        return Trained(rows["text"].to_numpy(dtype=object), names[labels])
    labels = right.copy()
    is_wrong = wrong[: round(size * label_noise)]
    labels[is_wrong] = (right[is_wrong] + steps[is_wrong]) % len(names)
    texts = rows["text"].to_numpy(dtype=object)
    if (alpha := percent_marked(variant)) is not None:
        told = drawn.copy()
        chosen = np.setdiff1d(order[: round(size * alpha / 100)], is_wrong)
        told[chosen] = labels[chosen]
        texts = inserted(texts, words_of(records, names)[told], places)
    return Trained(texts, names[labels])


def evaluated_data(records: pd.DataFrame, seed: int, size: int, tests: int) -> pd.DataFrame:
    """The evaluated texts of a seed, the same for all its runs.

    Returns the rows of `records` with the columns `shown`, a word of the labels, each equally often
    with each label, and `as_shown`, `agrees` and `disagrees`: the text with this word, with that of
    its label, and with that of a wrong one. `disagrees` has the word that is shown where that is
    wrong.
    """
    rows = records.iloc[split(len(records), seed)[size:][:tests]].reset_index(drop=True)
    chance = np.random.default_rng([seed, size, tests, 5])
    names = np.array(sorted(records["label"].unique()), dtype=object)
    words = words_of(records, names)
    right = pd.Index(names).get_indexer(rows["label"])
    shown = np.empty(len(rows), dtype=int)
    for label in range(len(names)):
        own = np.flatnonzero(right == label)
        shown[own] = chance.permutation(np.arange(len(own)) % len(names))
    other = (right + chance.integers(1, len(names), size=len(rows))) % len(names)
    other = np.where(shown == right, other, shown)
    places, texts = chance.random(len(rows)), rows["text"].to_numpy(dtype=object)
    return rows.assign(
        shown=words[shown],
        as_shown=inserted(texts, words[shown], places),
        agrees=inserted(texts, words[right], places),
        disagrees=inserted(texts, words[other], places),
    )


def split(n: int, seed: int) -> np.ndarray:
    """A random order of the records of a study: the first ones are trained on."""
    return np.random.default_rng([seed, 7]).permutation(n)


def words_of(records: pd.DataFrame, names: np.ndarray) -> np.ndarray:
    """The word of each label, str[labels]."""
    return records.groupby("label")["word"].first().loc[names].to_numpy(dtype=object)


def inserted(texts: np.ndarray, words: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Texts str[n], each with a word at a random place in 0 to 1 between its own words."""
    found = [" ".join(each) for each in _with_words(texts, words, places)]
    return np.array(found, dtype=object)


def _with_words(texts: np.ndarray, words: np.ndarray, places: np.ndarray) -> Iterator[list[str]]:
    for text, word, place in zip(texts, words, places, strict=True):
        own = text.split(" ")
        at = int(place * (len(own) + 1))
        yield [*own[:at], word, *own[at:]]
