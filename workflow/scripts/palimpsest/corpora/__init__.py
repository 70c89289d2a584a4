"""Corpora: the sources of strings. A corpus is a grammar, a user's text, or a user's records."""

from palimpsest.corpora.corpus import Corpus, String, predicted, text_of, text_string
from palimpsest.corpora.files import corpus_names, find_corpus, read_corpus, read_records_corpus
from palimpsest.corpora.grammar_corpus import GrammarCorpus
from palimpsest.corpora.text_corpus import TextCorpus

__all__ = [
    "Corpus",
    "GrammarCorpus",
    "String",
    "TextCorpus",
    "corpus_names",
    "find_corpus",
    "predicted",
    "read_corpus",
    "read_records_corpus",
    "text_of",
    "text_string",
]
