"""The settings of an experiment: a checked configuration, and what it says of models and corpora.

What there is to do with them, sections say.
"""

import warnings
from functools import cached_property

from palimpsest.corpora import Corpus, find_corpus, read_corpus
from palimpsest.languages import GrammarWarning
from palimpsest.models import Model, read_models, resolve


class Settings:
    """Values of a configuration that has the keys of the schema.

    `config` is the whole configuration; a section reads its own block of it with `block`.
    """

    def __init__(self, config: dict):
        self.config = config
        self._corpora: dict[str, Corpus] = {}

    def block(self, section: str) -> dict | None:
        """A section's block; None if the configuration leaves the section out."""
        return self.config[section]

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of every run."""
        return tuple(self.config["seeds"])

    @cached_property
    def models(self) -> dict[str, Model]:
        """The table of models."""
        return read_models(self.config["models_table"])

    def is_twin(self, model: str) -> bool:
        """Whether a name stands for a twin."""
        return resolve(model, self.models)[1] == "twin"

    def engine(self, model: str) -> str:
        """The engine that trains a model: that of its name or else of its scale."""
        engines = self.config["engine"]
        return engines.get(model, engines[resolve(model, self.models)[1]])

    def training(self, model: str) -> dict:
        """The block `training` as it holds for a model.

        What `training_by_model` says of it wins. A twin is trained by one process, and its
        optimiser fits beside it.
        """
        if self.is_twin(model):
            return {**self.config["training"], "processes": 1, "offload_optimizer": "none"}
        return {**self.config["training"], **self.config["training_by_model"].get(model, {})}

    def corpus(self, name: str) -> Corpus:
        """A corpus by its name, whether the configuration names it or not."""
        if name not in self._corpora:
            # The job that reads a grammar for good puts its warnings into its log.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", GrammarWarning)
                self._corpora[name] = read_corpus(self.corpus_file(name))
        return self._corpora[name]

    def corpus_file(self, name: str) -> str:
        """The file of a corpus: a grammar or a text."""
        return find_corpus(self.config["languages_folder"], name)

    def counterpart(self, language: str) -> str | None:
        """The high-entropy counterpart of a language, if it has one."""
        return self.config["datasets"]["high_entropy_counterpart"].get(language)
