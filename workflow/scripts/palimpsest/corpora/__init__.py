"""Corpora: the sources of strings. A corpus is a grammar, a user's text, or a user's records."""

from palimpsest.corpora.corpus import Corpus, String, predicted, string_of, text_of, text_string
from palimpsest.corpora.files import corpus_names, find_corpus, read_corpus, read_records_corpus
from palimpsest.corpora.grammar_corpus import GrammarCorpus
from palimpsest.corpora.text_corpus import TextCorpus
from palimpsest.corpora.text_grammar_corpus import TextGrammarCorpus

__all__ = [
    "Corpus",
    "GrammarCorpus",
    "String",
    "TextCorpus",
    "TextGrammarCorpus",
    "corpus_names",
    "find_corpus",
    "predicted",
    "read_corpus",
    "read_records_corpus",
    "string_of",
    "text_of",
    "text_string",
]
