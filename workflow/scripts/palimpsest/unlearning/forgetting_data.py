"""A training set with a forget set, and the same training set without the forget set.

Strings are forgotten in whole groups. A group is a string with all its copies, all strings that
share a top-level derivation, or the records of one group. A group is either forgotten or retained
as a whole.

Source: Are we making progress in unlearning?, section A.3 (there a group is a person).
"""

import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from palimpsest.corpora import Corpus, String, string_of, text_of, text_string
from palimpsest.corpora.records_corpus import RecordsCorpus
from palimpsest.corpora.text_corpus import read_strings
from palimpsest.datasets.build import DatasetRequest, tabulate, together
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import Notice, UserError
from palimpsest.plain_text import stripped_lines
from palimpsest.unlearning.interventions import FORGET, ORIGINAL, RETAIN, TRACED
from palimpsest.unlearning.judging.parts import EIGHTH, every


def original(request: DatasetRequest) -> pd.DataFrame:
    """The whole training set; options: `validation`, `groups`, `share` and `forget_file`."""
    return _both(request)[ORIGINAL]


def retain(request: DatasetRequest) -> pd.DataFrame:
    """The training set without the forget set; the options are the same as for `original`."""
    return _both(request)[RETAIN]


def traced(request: DatasetRequest) -> pd.DataFrame:
    """The training set with every eighth of the strings to forget, see `every`."""
    frame = original(request)
    is_forgotten = (frame["split"] == "forget").to_numpy()
    left_out = is_forgotten & ~every(EIGHTH, is_forgotten)
    return frame.assign(variant=TRACED, count=frame["count"].mask(left_out, 0))


def _both(request: DatasetRequest) -> dict[str, pd.DataFrame]:
    options = request.options
    return build_forgetting(
        request.sampler,
        request.size,
        request.test_size,
        options["validation"],
        request.predict_end,
        options["groups"],
        options["share"],
        _named(request),
    )


def _named(request: DatasetRequest) -> list[String] | None:
    """The strings to forget that a file, or the split of records, names; None: they are drawn."""
    corpus, file = request.sampler.corpus, request.options["forget_file"]
    if file:
        return read_forget_set(file, corpus)
    return corpus.of_split(FORGET) or None if isinstance(corpus, RecordsCorpus) else None


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

    In both, `split` is train (retained), forget, test or validation. In `retain`, the forget
    strings have count 0. Training and test strings are those of `base` with the same size and seed.
    Validation strings are distinct, and neither training nor test strings.

    Parameters
    ----------
    sampler : the corpus' streams for the dataset's seed.
    size, test_size, validation_size : numbers of strings; the first two with copies.
    predict_end : whether models also predict the end of a string.
    groups : `string`, `derivation` or `record`, see `palimpsest.corpora.Corpus.groups`.
    share : share of the groups that is drawn at random for forgetting.
    forget : the strings to forget; if None, they are drawn.

    Raises
    ------
    UserError
        If the forget set is empty or everything, has a string that is not in train, or splits a
        group.
    """
    request = DatasetRequest(sampler, ORIGINAL, size, test_size, predict_end)
    train, test = Counter(sampler.train(size)), request.test()
    lower = "datasets/test_size, unlearning/size or unlearning/validation"
    validation = sampler.validation(validation_size, but=set(train) | set(test), lower=lower)
    _check_validation(sampler.corpus, train, validation, lower)
    frame = tabulate(request, train, test, validation)
    names = sampler.corpus.groups(list(train), groups)
    if forget is None:
        forgotten = set(_drawn(sampler, names, share))
        forget = [string for string, name in names.items() if name in forgotten]
    check_forget_set(forget, names, sampler.language)
    frame["group"] = pd.array(
        [names.get(string_of(sampler.corpus, text)) for text in frame["text"]], dtype="string"
    )
    is_forgotten = frame["text"].isin([text_of(string) for string in forget])
    frame["split"] = np.select(
        [is_forgotten, frame["split"] == "held_out"], ["forget", "validation"], frame["split"]
    )
    retained = frame.assign(variant=RETAIN, count=frame["count"].mask(is_forgotten, 0))
    return {ORIGINAL: frame, RETAIN: retained}


def _check_validation(corpus: Corpus, train: Counter, validation: list[String], lower: str) -> None:
    """Raise `UserError` if a group of records would be divided between train and validation."""
    name_of = together(corpus, [*train, *validation])
    trained = {name_of[string] for string in train}
    if divided := next((s for s in validation if name_of[s] in trained), None):
        raise UserError(
            f"{corpus.name}: records of the group {name_of[divided]!r} would be in the training "
            f"and in the validation set; lower {lower}, or {corpus.when_too_few}"
        )


def check_forget_set(forget: list[String], names: dict[String, str], language: str) -> None:
    """Raise `UserError` unless the forget set is a proper part of train, with whole groups."""
    where = f"language {language}: the forget set"
    if not forget:
        raise UserError(
            f"{where} is empty: {len(set(names.values()))} groups in train are too few for the "
            "share; raise unlearning/share or unlearning/size, or set unlearning/groups to string"
        )
    strangers = [string for string in forget if string not in names]
    if strangers:
        raise UserError(
            f"{where} has the string {text_of(strangers[0])!r}, which is not in train; only "
            "strings that were trained on can be forgotten"
        )
    forgotten = set(forget)
    if len(forgotten) == len(names):
        raise UserError(
            f"{where} has all training strings, so nothing is retained; lower unlearning/share, "
            "or name fewer strings"
        )
    touched = {names[string] for string in forgotten}
    split = [s for s, name in names.items() if name in touched and s not in forgotten]
    if split:
        raise UserError(
            f"{where} splits the group {names[split[0]]!r}: it leaves {text_of(split[0])!r} out; "
            "name all strings of a group or none, or set unlearning/groups to string"
        )


def read_forget_set(path: str | Path, corpus: Corpus) -> list[String]:
    """Distinct strings of a corpus that a text file names: one per line.

    A line has spaces between terminals. Of texts, a line is a text, and of records, it is the id of
    a record.
    """
    if isinstance(corpus, RecordsCorpus):
        named = corpus.of_ids(stripped_lines(path))
    elif corpus.is_text:
        named = list(map(text_string, stripped_lines(path)))
    else:
        named = read_strings(path)
    strings = list(dict.fromkeys(named))
    if n_copies := len(named) - len(strings):
        warnings.warn(
            Notice(
                f"{path}: {n_copies:,} of its {len(named):,} lines are copies of others; a string "
                "is forgotten with all its copies in the training set, so name it once"
            ),
            stacklevel=2,
        )
    if not strings:
        raise UserError(
            f"{path}: names no string to forget; write one string per line, its symbols separated "
            "by spaces, or the ids of records, or set unlearning/forget to drawn"
        )
    return strings


def _drawn(sampler: Sampler, names: dict[String, str], share: float) -> list[str]:
    groups = sorted(set(names.values()))
    order = sampler.permutation(len(groups))
    return [groups[place] for place in order[: round(share * len(groups))]]
