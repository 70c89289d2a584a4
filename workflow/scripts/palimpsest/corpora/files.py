"""Files of corpora: a grammar ends with .pcfg, a text with .txt, records with .parquet."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from palimpsest.corpora.corpus import Corpus
from palimpsest.corpora.grammar_corpus import GrammarCorpus
from palimpsest.corpora.text_corpus import TextCorpus
from palimpsest.corpora.text_grammar_corpus import TextGrammarCorpus
from palimpsest.errors import UserError
from palimpsest.languages import Grammar
from palimpsest.models.table import NAME, NAMES_ARE

if TYPE_CHECKING:
    from palimpsest.corpora.records import Records
    from palimpsest.corpora.records_corpus import RecordsCorpus

RESULTS = "results/"
SUFFIXES = GRAMMAR, TEXT = ".pcfg", ".txt"
RECORDS = ".parquet"  # a table of kind `corpus`, made from the records of a user


def read_corpus(path: str | Path) -> Corpus:
    """The corpus of a file.

    Raises `UserError` if the file cannot be read, or is not what its ending says.
    """
    suffix = Path(path).suffix
    if suffix == GRAMMAR:
        return corpus_of_grammar(Grammar.from_file(path))
    if suffix == TEXT:
        return TextCorpus.from_file(path)
    if suffix == RECORDS:
        from palimpsest.corpora.records import records_of_table

        return _corpus_of_records(str(path), records_of_table(path))
    known = " or ".join(SUFFIXES)
    raise UserError(f"{path}: is not the file of a corpus; its name must end with {known}")


def corpus_of_grammar(grammar: Grammar) -> GrammarCorpus | TextGrammarCorpus:
    """The corpus of a grammar: of symbols, or of texts if the grammar says so."""
    return TextGrammarCorpus(grammar) if grammar.is_text else GrammarCorpus(grammar)


def read_records_corpus(path: str | Path, names: Mapping[str, str]) -> Corpus:
    """The corpus of a user's file of records, as the configuration names its columns and form.

    Raises `UserError` if the file cannot be read.
    """
    # Tables are slow to import, and Snakemake reads this file.
    from palimpsest.corpora.records import read_as_named

    return _corpus_of_records(str(path), read_as_named(path, names))


def _corpus_of_records(name: str, records: Records) -> RecordsCorpus:
    from palimpsest.corpora.questions_corpus import QuestionsCorpus
    from palimpsest.corpora.records_corpus import RecordsCorpus

    corpus = RecordsCorpus if records.subjects is None else QuestionsCorpus
    return corpus(name, records)


def read_grammar(path: str | Path) -> Grammar:
    """The grammar of a corpus, for what needs its rules.

    Raises `UserError` if the corpus is a text, or the file cannot be read.
    """
    if Path(path).suffix in (TEXT, RECORDS):
        raise UserError(f"{path}: is a text; a sample, targets and entropies need a grammar")
    return corpus_of_grammar(Grammar.from_file(path)).grammar


def corpus_names(folder: str | Path) -> list[str]:
    return sorted({path.stem for path in Path(folder).glob("*") if path.suffix in SUFFIXES})


def check_names(folder: str | Path, targets: Iterable[str]) -> None:
    """Raise `UserError` if a path that is a Snakemake target needs a file with an unusable name.

    Letters with accents have two forms in file names; both are the same letter here.
    """
    asked = [unicodedata.normalize("NFC", path) for path in targets if path.startswith(RESULTS)]
    for name in corpus_names(folder):
        composed = unicodedata.normalize("NFC", name)
        if not NAME.fullmatch(name) and any(composed in target for target in asked):
            raise UserError(
                f"{folder}: {name!r} is not the name of a language; allowed are {NAMES_ARE}; "
                "rename its file"
            )


def find_corpus(folder: str | Path, name: str) -> str:
    """The file of a corpus, by its name; if no file exists, the path of a grammar.

    Raises `UserError` if a grammar and a text have the same name.
    """
    paths = [Path(folder) / f"{name}{suffix}" for suffix in SUFFIXES]
    there = [path for path in paths if path.is_file()]
    if len(there) > 1:
        raise UserError(
            f"{there[0]} and {there[1]} have the same name; rename or delete one of them"
        )
    return str(there[0] if there else paths[0])
