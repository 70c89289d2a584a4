"""Records of a user's own as a corpus: texts, which a model's tokenizer cuts."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from palimpsest.corpora.corpus import (
    BYTES_OF_TOKEN,
    FOLD,
    TRAIN,
    String,
    groups_by_string,
    stream,
    text_of,
    text_string,
)
from palimpsest.corpora.orders import order_of_groups
from palimpsest.corpora.records import Records
from palimpsest.errors import UserError, nearest
from palimpsest.models.alphabets import Alphabet, byte_level_tokenizer

TRAINED_SPLITS = ("train", "forget", "retain")


class RecordsCorpus:
    """Records as a corpus. See `palimpsest.corpora.Corpus` for the methods.

    A string is the text of a record. Records of one group, and records with one text, are on the
    same side of every random order. Records that are said to be trained on, by a split or by
    `trained`, are the training strings, and the others all other strings. A record with n copies is
    drawn n times in a row.
    """

    has_probabilities = False
    is_text = True
    when_too_few = "add records"

    def __init__(self, name: str, records: Records):
        self.name, self.records = name, records
        self.strings = [text_string(text) for text in records.whole_texts]
        letters: dict[str, int] = {}
        rows = zip(records.ids, records.whole_texts, records.prompt_letters, strict=True)
        for record, text, n in rows:
            if letters.setdefault(text, n) != n:
                raise UserError(
                    f"{name}: the prompt of the record {record!r} ends elsewhere than in another "
                    "record with the same whole text; leave one of them out"
                )
        self.prompts = {text: n for text, n in letters.items() if n}

    @cached_property
    def alphabet(self) -> Alphabet:
        """The tokenizer of twins is trained on all records, once each, whoever is trained on them.

        A tokenizer of the training records alone would cut these into fewer tokens than others, so
        that a model that memorised nothing would seem to know them better.
        """
        texts = map(text_of, dict.fromkeys(self.strings))
        return Alphabet(tokenizer=byte_level_tokenizer(texts))

    @cached_property
    def is_trained(self) -> np.ndarray | None:
        """bool[records]: whether a record is to be trained on; None if nothing says so.

        Raises `UserError` if split and `trained` of a record contradict each other.
        """
        splits, trained = self.records.splits, self.records.trained
        if splits is None:
            return trained
        of_split = np.isin(splits, TRAINED_SPLITS)
        if trained is not None and (differs := of_split != trained).any():
            place = int(differs.argmax())
            said = "trained on" if trained[place] else "not trained on"
            raise UserError(
                f"{self.name}: the record {self.records.ids[place]!r} is of the split "
                f"{splits[place]} and {said}; mend the row, or leave one of the two columns out"
            )
        return of_split

    @cached_property
    def trained(self) -> np.ndarray:
        """int[records]: the records that may be trained on, in the order of the file.

        Raises `UserError` if there is none.
        """
        if self.is_trained is None:
            return np.arange(len(self.strings))
        if not self.is_trained.any():
            raise UserError(
                f"{self.name}: nothing can be trained on these records, because all have the split "
                f"test or holdout; give some the split {', '.join(TRAINED_SPLITS[:-1])} or "
                f"{TRAINED_SPLITS[-1]}, or leave the splits out"
            )
        return np.flatnonzero(self.is_trained)

    @cached_property
    def unseen(self) -> np.ndarray:
        """int[records]: the records that are never trained on; all, if nothing says which."""
        if self.is_trained is None:
            return np.arange(len(self.strings))
        return np.flatnonzero(~self.is_trained)

    def draw(self, n: int, seed: int, purpose: int = TRAIN) -> tuple[list[String], np.ndarray]:
        """Training takes records from the start of a random order, other purposes from its end."""
        of_side = self.trained if purpose == TRAIN else self.unseen
        order = order_of_groups(self.together, seed)
        order = order if purpose == TRAIN else order[::-1]
        order = order[np.isin(order, of_side)]
        drawn = [self.strings[place] for place in np.repeat(order, self.copies[order])][:n]
        return drawn, np.full(len(drawn), np.nan)

    @cached_property
    def copies(self) -> np.ndarray:
        """int[records]: how often a record is in the training data, if it is in it."""
        copies = self.records.copies
        return np.ones(len(self.strings), dtype=int) if copies is None else copies

    @cached_property
    def together(self) -> np.ndarray:
        """str[records]: the name of a group that must be on one side, which may join others."""
        joined = _joined(self.records.groups, self.records.whole_texts)
        return np.array(joined, dtype=object)

    def sides(self, seed: int, holdout: float) -> np.ndarray:
        """bool[records]: whether a record is to be trained on.

        If the file does not say it, a share `holdout` of the groups is not, drawn by the seed.
        """
        if self.is_trained is not None:
            return self.is_trained
        return np.isin(self.together, self._shuffled(seed)[: self.n_trained_groups(holdout)])

    def n_trained_groups(self, holdout: float = 0.0) -> int:
        """Number of groups with a record to be trained on, see `sides`."""
        if self.is_trained is not None:
            return len(set(self.together[self.trained]))
        n_groups = len(set(self.together))
        return n_groups - round(holdout * n_groups)

    def folds(self, seed: int, n: int, is_trained: np.ndarray) -> np.ndarray:
        """int[records]: the fold of each record, from 0; groups stay together.

        Folds have about equally many groups with records to be trained on, bool[records], and about
        equally many others. Without such a group in its fold, a record that is never trained on
        would be compared with a model that lacks nothing.
        """
        trained = set(self.together[is_trained])
        shuffled = self._shuffled(stream(seed, FOLD))
        trained_first = sorted(shuffled, key=lambda group: group not in trained)
        fold_of = {group: place % n for place, group in enumerate(trained_first)}
        return np.array([fold_of[group] for group in self.together])

    def _shuffled(self, seed: int) -> list[str]:
        """The names of the groups in a random order."""
        return list(dict.fromkeys(self.together[order_of_groups(self.together, seed)]))

    def of_split(self, split: str) -> list[String]:
        """The distinct strings of a split, in the order of the file."""
        if self.records.splits is None:
            return []
        places = np.flatnonzero(self.records.splits == split)
        return list(dict.fromkeys(self.strings[place] for place in places))

    def of_ids(self, ids: Sequence[str]) -> list[String]:
        """The strings of the records with these ids. Raises `UserError` if there is no such id."""
        string_of_id = dict(zip(self.records.ids, self.strings, strict=True))
        if stranger := next((id for id in ids if id not in string_of_id), None):
            raise UserError(
                f"{self.name}: no record has the id {stranger!r}{nearest(stranger, string_of_id)}"
            )
        return [string_of_id[id] for id in ids]

    def check_splits(self) -> None:
        """Raise `UserError` if a text is to be trained on and not, or forgotten and retained."""
        if self.is_trained is not None:
            self.check_apart(self.is_trained, "trained on")
        if self.records.splits is not None:
            self.check_apart(self.records.splits == "forget", "forgotten")

    def check_apart(self, is_first: np.ndarray, done: str) -> None:
        """Raise `UserError` if a text is on both sides, of which the first is to be `done`."""
        ids = self.records.ids
        name_of = {self.strings[place]: ids[place] for place in np.flatnonzero(is_first)}
        for place in np.flatnonzero(~is_first):
            if (twin := name_of.get(self.strings[place])) is not None:
                raise UserError(
                    f"{self.name}: the record {ids[place]!r} is not to be {done} and has the text "
                    f"of {twin!r}, which is; give both the same split, or leave one out"
                )

    def log_probability(self, strings: Sequence[String]) -> np.ndarray:
        return np.full(len(strings), np.nan)

    def optimal_loss(self, strings: Sequence[String], predict_end: bool) -> np.ndarray:
        return np.full(len(strings), np.nan)

    def groups(self, strings: Sequence[String], by: str) -> dict[String, str]:
        if by == "string":
            return groups_by_string(strings)
        if by == "record":
            group_of = dict(zip(self.strings, self.together, strict=True))
            return {string: str(group_of[string]) for string in strings}
        raise UserError(f"{self.name}: records have no groups by {by}; allowed are record, string")

    def n_strings(self) -> float:
        return len({self.strings[place] for place in self.trained})

    def most_draws(self) -> float:
        return int(self.copies[self.trained].sum())

    @cached_property
    def _tokens(self) -> np.ndarray:
        """A rough number of tokens of each record, int[records]."""
        n_bytes = np.array([len(text_of(string).encode()) for string in self.strings])
        return n_bytes // BYTES_OF_TOKEN + 1

    def expected_length(self) -> float:
        return float(self._tokens.mean())

    def longest(self) -> float:
        return int(self._tokens.max())

    def when_too_long(self, most: int) -> str:
        longest = int(self._tokens.argmax())
        return (
            f"cut the record {self.records.ids[longest]!r} of {self.name}, or all, into windows: "
            "the key window of the corpus"
        )


def _joined(groups: Sequence[str], texts: Sequence[str]) -> list[str]:
    """The group of each record, where groups that share a text have the name of one of them."""
    joins = {group: group for group in groups}

    def name(group: str) -> str:
        while joins[group] != group:
            joins[group] = group = joins[joins[group]]
        return group

    group_of: dict[str, str] = {}
    for group, text in zip(groups, texts, strict=True):
        joins[name(group)] = name(group_of.setdefault(text, group))
    return [name(group) for group in groups]
