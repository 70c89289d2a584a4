"""Unlearning on records of a user's own: what is checked before any job starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError
from palimpsest.unlearning.interventions import DRAWN, FORGET

if TYPE_CHECKING:
    from palimpsest.corpora.records_corpus import RecordsCorpus


def mistakes(settings: Settings, languages: Mapping[str, list[str]]) -> Iterator[Mistake]:
    """Mistakes about records; `languages` are those of each key of the block."""
    block = settings.block("unlearning")
    for key, names in languages.items():
        for place, name in enumerate(names):
            if name not in settings.records:
                continue
            where, corpus = f"{key}[{place}]", settings.corpus(name)
            try:
                corpus.check_splits()
            except UserError as error:
                yield Mistake(where, str(error))
                continue
            if are_named(settings, name):
                yield from _named(block, where, name, corpus)
            else:
                yield from _drawn(block, where, name, corpus)
            yield from _unseen(settings, name, corpus)
    if block["groups"] == "record" and (strangers := _without_records(settings, languages)):
        key, name = strangers[0]
        yield Mistake(
            key,
            f"{name!r} is no corpus of records, and unlearning/groups: record are the groups of "
            "their file; set it to string, or name a corpus of the block corpora",
        )


def are_named(settings: Settings, name: str) -> bool:
    """Whether a language has records whose split says what is forgotten, so nothing is drawn."""
    return name in settings.records and bool(settings.corpus(name).of_split(FORGET))


def _named(block: Mapping, where: str, name: str, corpus: RecordsCorpus) -> Iterator[Mistake]:
    """Records of which the split says what is forgotten."""
    if block["forget"] != DRAWN:
        yield Mistake(
            "unlearning/forget",
            f"the records of {name} with the split {FORGET} are forgotten already; leave this key "
            "out, or the split",
        )
    if block["groups"] == "derivation":
        yield _no_derivations(name)
        return
    # Imported here because it is slow, and only records need it.
    from palimpsest.unlearning.forgetting_data import check_forget_set

    trained = [corpus.strings[record] for record in corpus.trained]
    try:
        names = corpus.groups(trained, block["groups"])
        check_forget_set(corpus.of_split(FORGET), names, name)
    except UserError as error:
        yield Mistake(where, str(error))
    n_trained = int(corpus.most_draws())
    if block["size"] != n_trained:
        yield Mistake(
            "unlearning/size",
            f"{block['size']} strings are not the training records of {name}, which are all "
            f"trained on because some have the split {FORGET}: they are {n_trained:,}, with "
            f"copies; set it to {n_trained}",
        )


def _drawn(block: Mapping, where: str, name: str, corpus: RecordsCorpus) -> Iterator[Mistake]:
    """Records of which some groups are drawn to be forgotten."""
    if block["groups"] == "derivation":
        yield _no_derivations(name)
    if block["groups"] != "record" or block["forget"] != DRAWN:
        return
    share, n_groups = block["share"], corpus.n_trained_groups()
    remedy = "add records of other groups, or set unlearning/groups to string"
    if n_groups < 2:
        yield Mistake(where, f"{name} has only one group of records to be trained on; {remedy}")
    elif not 0 < round(share * n_groups) < n_groups:
        yield Mistake(
            "unlearning/share",
            f"{share:g} of the {n_groups} groups of {name} is {round(share * n_groups)} groups, so "
            f"nothing would be {'retained' if share > 0.5 else 'forgotten'}; set it to "
            f"{1 / n_groups:.2g} for one group, {remedy}",
        )


def _no_derivations(name: str) -> Mistake:
    return Mistake(
        "unlearning/groups",
        f"derivation is for grammars, and {name} has records; set it to record, the groups of "
        "their file, or to string",
    )


def _unseen(settings: Settings, name: str, corpus: RecordsCorpus) -> Iterator[Mistake]:
    """Too few records that are not trained on, for the test and the validation strings."""
    block, n_test = settings.block("unlearning"), settings.config["datasets"]["test_size"]
    n_unseen = int(corpus.copies[corpus.unseen].sum())
    remedy = "give more records the split holdout"
    if corpus.is_trained is None:
        n_unseen = max(0, n_unseen - block["size"])
        remedy = "lower unlearning/size"
    if n_test + block["validation"] > n_unseen:
        yield Mistake(
            "unlearning/validation",
            f"{block['validation']} validation strings and {n_test} test strings "
            f"(datasets/test_size) are more than the {n_unseen:,} records of {name} that are not "
            f"trained on; lower one of the two, or {remedy}",
        )


def _without_records(
    settings: Settings, languages: Mapping[str, list[str]]
) -> list[tuple[str, str]]:
    """Key and name of the languages that are no records. The search is not asked for by default."""
    return [
        (f"{key}[{place}]", name)
        for key, names in languages.items()
        if key != "unlearning/search/languages"
        for place, name in enumerate(names)
        if name not in settings.records
    ]
