"""Corpora: the sources of strings. A corpus is a grammar or a user's text."""

from palimpsest.corpora.corpus import Corpus, String, text_of
from palimpsest.corpora.files import corpus_names, find_corpus, read_corpus
from palimpsest.corpora.grammar_corpus import GrammarCorpus
from palimpsest.corpora.text_corpus import TextCorpus

__all__ = [
    "Corpus",
    "GrammarCorpus",
    "String",
    "TextCorpus",
    "corpus_names",
    "find_corpus",
    "read_corpus",
    "text_of",
]
