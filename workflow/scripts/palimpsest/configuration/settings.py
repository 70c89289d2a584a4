"""The settings of an experiment: a checked configuration, and what it says of models and languages.

What there is to do with them, sections say.
"""

import warnings
from functools import cached_property
from pathlib import Path

from palimpsest.errors import UserError
from palimpsest.languages import Grammar, GrammarWarning
from palimpsest.models import Model, read_models, resolve


class Settings:
    """Values of a configuration that has the keys of the schema.

    `config` is the whole configuration; a section reads its own block of it with `block`.
    """

    def __init__(self, config: dict):
        self.config = config
        self._grammars: dict[str, Grammar] = {}

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

    def grammar(self, language: str) -> Grammar:
        """The grammar of a language, whether the configuration names the language or not.

        It must be fit for datasets, which write strings as words in a line.
        """
        if language not in self._grammars:
            self._grammars[language] = _read_grammar(self.grammar_file(language))
        return self._grammars[language]

    def grammar_file(self, language: str) -> str:
        """The grammar file of a language."""
        return str(Path(self.config["languages_folder"]) / f"{language}.pcfg")

    def counterpart(self, language: str) -> str | None:
        """The high-entropy counterpart of a language, if it has one."""
        return self.config["datasets"]["high_entropy_counterpart"].get(language)


def _read_grammar(path: str) -> Grammar:
    with warnings.catch_warnings():
        # The job that reads the grammar for good puts its warnings into its log.
        warnings.simplefilter("ignore", GrammarWarning)
        grammar = Grammar.from_file(path)
    for terminal in grammar.terminals:
        if len(terminal.split()) != 1:
            raise UserError(
                f"{grammar.name}: the terminal {terminal!r} is empty or has white space in it; "
                "a terminal of a dataset is one word"
            )
    return grammar
