"""Building a dataset: one variant of a training multiset, and a test set.

Source: Learning Without Memorizing Considered Infeasible, sections 3.2 and 4, appendix G.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from palimpsest.corpora import Corpus, String, predicted, read_corpus, text_of
from palimpsest.corpora.records_corpus import RecordsCorpus
from palimpsest.datasets.interventions import INTERVENTIONS
from palimpsest.datasets.kinds import STRINGS, TARGETS
from palimpsest.datasets.sampling import Sampler
from palimpsest.datasets.strings import string_id
from palimpsest.errors import Notice, UserError
from palimpsest.interventions import maker
from palimpsest.lazy_import import named
from palimpsest.making import makes, reads


@dataclass(frozen=True)
class DatasetRequest:
    """The arguments of a function that makes a variant.

    Parameters
    ----------
    sampler : the corpus' streams for the dataset's seed
    variant : the variant's name
    size : number of training strings, with copies
    test_size : number of strings in the test set, drawn independently
    predict_end : whether models also predict the end of a string; this affects the number of tokens
        and the Bayes-optimal loss
    targets : table of kind `targets`, for variants with or without a target
    options : values that only this variant needs
    """

    sampler: Sampler
    variant: str
    size: int
    test_size: int
    predict_end: bool
    targets: pd.DataFrame | None = None
    options: Mapping = field(default_factory=dict)

    def test(self) -> Counter:
        """The test set, which is the same for every variant and size."""
        return Counter(self.sampler.test(self.test_size))

    def unseen(self) -> list[String]:
        """Strings set apart from the training strings: `test_size` draws, with copies."""
        return self.sampler.unseen(self.test_size)


@reads(corpus=read_corpus, counterpart=read_corpus, targets=TARGETS)
@makes(STRINGS)
def datasets(
    corpus: Corpus,
    language: str,
    seed: int,
    *,
    wanted: Iterable[Mapping],
    split: str,
    test_size: int,
    predict_end: bool,
    counterpart: Corpus | None = None,
    targets: pd.DataFrame | None = None,
    forget: str | None = None,
    options: Mapping | None = None,
) -> Iterator[pd.DataFrame]:
    """Yield datasets of one language and seed.

    Parameters
    ----------
    wanted : `variant`, `size` and `made_by` of each dataset, see `build`
    counterpart, split : see `Sampler`
    forget : file of the strings to forget
    others : see `build`
    """
    sampler = Sampler(language, corpus, seed, counterpart, split)
    options = {**(options or {}), "forget_file": forget}
    for one in wanted:
        yield build(
            sampler,
            test_size=test_size,
            predict_end=predict_end,
            targets=targets,
            options=options,
            **one,
        )


def build(
    sampler: Sampler,
    variant: str,
    size: int,
    test_size: int,
    predict_end: bool,
    targets: pd.DataFrame | None = None,
    options: Mapping | None = None,
    made_by: str | None = None,
) -> pd.DataFrame:
    """A dataset as a table of kind `strings`: its distinct strings, first train, then test.

    A string in both the training set and the test set has split `train`, and `test_count` above 0.
    With the split `disjoint`, the strings set apart follow.

    Parameters
    ----------
    made_by : names the function that makes the variant; if None, it is found by the variant's name
    others : see `DatasetRequest`
    """
    make: Callable[[DatasetRequest], pd.DataFrame] = named(made_by or maker(INTERVENTIONS, variant))
    return make(
        DatasetRequest(sampler, variant, size, test_size, predict_end, targets, options or {})
    )


def tabulate(
    request: DatasetRequest,
    train: Counter,
    test: Counter | None = None,
    held_out: list[String] | None = None,
    learned: Corpus | None = None,
    roles: Mapping[String, str] | None = None,
    cohorts: Mapping[String, int] | None = None,
    is_leaked: bool = False,
) -> pd.DataFrame:
    """A table of kind `strings`, made from multisets of strings.

    Parameters
    ----------
    request : the arguments of the dataset
    train : the training strings
    test : the test strings; if None, those of the sampler's test stream
    held_out : strings that are only measured; they have split `held_out`
    learned : the corpus of the training strings, whose probabilities are in the table; if None, the
        sampler's corpus
    roles : s0, s1, ... for the target strings
    cohorts : the macro-batch, from 1, of each training string of a stream
    is_leaked : test strings are trained on by intention, so nothing is said of them

    Raises `UserError` if a string has probability 0 in `learned`, and as `_check_sides`.
    """
    test = request.test() if test is None else test
    held_out, roles, cohorts = held_out or [], roles or {}, cohorts or {}
    strings = list(dict.fromkeys([*train, *test, *held_out, *request.unseen()]))
    n_strings = len(strings)
    sampler = request.sampler
    derivations = sampler.derivations if learned is None else {}
    learned = learned or sampler.corpus
    frame = pd.DataFrame(
        {
            "language": sampler.language,
            "size": request.size,
            "seed": sampler.seed,
            "variant": request.variant,
            "string_id": [string_id(s) for s in strings],
            "text": [text_of(s) for s in strings],
            "n_tokens": [predicted(learned, s, request.predict_end) for s in strings],
            "count": [train[s] for s in strings],
            "test_count": [test[s] for s in strings],
            "role": pd.array([roles.get(s) for s in strings], dtype="string"),
            "group": pd.array([None] * n_strings, dtype="string"),
            "cohort": pd.array([cohorts.get(s) for s in strings], dtype="Int64"),
            "split": _splits(strings, train, test, held_out),
            "derivation_log_prob": [derivations.get(s, np.nan) for s in strings],
            "log_prob": learned.log_probability(strings),
            "optimal_loss": learned.optimal_loss(strings, request.predict_end),
        }
    )
    if not sampler.corpus.has_probabilities and not is_leaked:
        _check_sides(request, train, test)
    outside = frame.loc[frame["log_prob"] == -np.inf, "text"]
    if len(outside):
        raise UserError(
            f"language {sampler.language}: its string {outside.iloc[0]!r} is not a string of "
            f"{learned.name}; name another counterpart in "
            f"datasets/high_entropy_counterpart/{sampler.language}, one with all strings of the "
            "language"
        )
    return frame


def _check_sides(request: DatasetRequest, train: Counter, test: Counter) -> None:
    """Warn of strings that are in the training and in the test set: there are too few strings.

    Raises `UserError` if what belongs together would be divided between the two, see `together`.
    """
    corpus, size, test_size = request.sampler.corpus, request.size, request.test_size
    name_of = together(corpus, [*train, *test])
    trained = {name_of[string] for string in train}
    on_both = [string for string in test if name_of[string] in trained]
    if not on_both:
        return
    shared = [string for string in on_both if train[string]]
    n_lines = int(corpus.most_draws())
    are_enough = size + test_size <= n_lines
    if not are_enough and shared == on_both:
        warnings.warn(
            Notice(
                f"{corpus.name}: {sum(test[s] for s in shared):,} of {test_size:,} test strings "
                f"are also trained on, because {n_lines:,} lines are too few for {size:,} training "
                f"and {test_size:,} test strings; lower datasets/test_size or "
                f"{corpus.when_too_few}"
            ),
            stacklevel=2,
        )
        return
    divided = next((string for string in on_both if not train[string]), on_both[0])
    members = [string for string, name in name_of.items() if name == name_of[divided]]
    lower = {"the train size": size - sum(train[string] for string in members)}
    if are_enough:
        lower["datasets/test_size"] = test_size - sum(test[string] for string in members)
    remedies = [f"lower {key} to {value}" for key, value in lower.items() if value > 0]
    what = f"copies of {text_of(divided)!r}"
    if len(members) > 1:
        what = f"records of the group {name_of[divided]!r}"
    raise UserError(
        f"{corpus.name}: {what} would be in the training and in the test set, whose sizes take all "
        f"other lines; {' or '.join([*remedies, corpus.when_too_few])}"
    )


def together(corpus: Corpus, strings: Iterable[String]) -> dict[String, str]:
    """The name of what must be on one side of a random division, for each string.

    This is a string with its copies, and of records a group, unless the file says who is on which
    side.
    """
    is_drawn = isinstance(corpus, RecordsCorpus) and corpus.is_trained is None
    return corpus.groups(list(strings), "record" if is_drawn else "string")


def _splits(
    strings: list[String], train: Counter, test: Counter, held_out: list[String]
) -> np.ndarray:
    """The split of each string; a left-out target is `held_out` even if it is in the test set."""
    wanted = set(held_out)
    trained = np.array([train[s] > 0 for s in strings])
    left_out = np.array([s in wanted for s in strings])
    tested = np.array([test[s] > 0 for s in strings])
    return np.select([trained, left_out, tested], ["train", "held_out", "test"], default="stand_in")
