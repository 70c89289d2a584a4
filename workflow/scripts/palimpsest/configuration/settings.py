"""The settings of an experiment: a checked configuration, with its models and corpora.

The sections decide which runs are trained with these settings.
"""

import contextlib
import os
import warnings
from collections.abc import Iterable
from functools import cached_property

from palimpsest.configuration.named_files import NamedFile, named_files
from palimpsest.corpora import Corpus, find_corpus, read_corpus, read_records_corpus
from palimpsest.errors import Notice, UserError, nearest
from palimpsest.languages import GrammarWarning
from palimpsest.models import Model, read_models, resolve
from palimpsest.models.adapters import NONE
from palimpsest.paths import CORPUS_OF_RECORDS
from palimpsest.requests import DEFAULT

GRID = "grid"  # in a study: the recipe of the grid's runs


class Settings:
    """The values of a configuration that the schema allows.

    `config` is the whole configuration; a section reads its own block with `block`. `given` is the
    configuration with the blocks that an experiment refuses, too. With `is_job`, the table that was
    made of a user's records is read instead of the user's file, which takes longer; if it is there.
    """

    def __init__(self, config: dict, given: dict | None = None, is_job: bool = False):
        self.config = config
        self.given = config if given is None else given
        self.is_job = is_job
        self._corpora: dict[str, Corpus] = {}

    def without(self, blocks: Iterable[str]) -> "Settings":
        """The same settings with some blocks set to null, such as memorisation/studies/exact."""
        config = self.config
        for block in blocks:
            config = _without(config, block.split("/"))
        settings = Settings(config, self.given, self.is_job)
        settings._corpora = self._corpora  # which no such block changes
        return settings

    def block(self, section: str) -> dict | None:
        """A section's block; None if the configuration sets it to null, or it is refused."""
        return self.config[section]

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        return tuple(self.config["seeds"])

    @cached_property
    def models(self) -> dict[str, Model]:
        return read_models(self.config["models_table"])

    def is_twin(self, model: str) -> bool:
        return resolve(model, self.models)[1] == "twin"

    def engine(self, model: str) -> str:
        """The engine that trains a model: set for its name, or else for twins or full models."""
        engines = self.config["engine"]
        return engines.get(model, engines[resolve(model, self.models)[1]])

    def recipe(self, name: str) -> dict:
        """The values of a recipe; the keys that it leaves out are those of `default`.

        Raises `UserError` if there is no recipe of this name.
        """
        recipes = self.config["recipes"]
        if name not in recipes:
            raise UserError(f"recipes: {unknown_recipe(name, recipes)}")
        return {**recipes[DEFAULT], **recipes[name]}

    def training(self, model: str, recipe: str = DEFAULT) -> dict:
        """The values of a recipe for a model.

        The keys in `training_by_model` override those of every recipe. A twin is always trained
        by one process, without offloading. Without an adapter, the keys of adapters are left out,
        so that a change of them reruns nothing.
        """
        training = self.recipe(recipe)
        if self.is_twin(model):
            training |= {"processes": 1, "offload_optimizer": "none"}
        else:
            training |= self.config["training_by_model"].get(model, {})
        if training["adapter"] == NONE:
            return {key: value for key, value in training.items() if "adapter" not in key}
        targets = training["adapter_targets"]
        named = targets if isinstance(targets, str) else ",".join(targets)
        return {**training, "adapter_targets": named}

    def key_of(self, key: str, model: str, recipe: str) -> str:
        """The place in the configuration of a value of a recipe for a model."""
        by_model = self.config["training_by_model"].get(model, {})
        if key in by_model and not self.is_twin(model):
            return f"training_by_model/{model}/{key}"
        name = recipe if key in self.config["recipes"][recipe] else DEFAULT
        return f"recipes/{name}/{key}"

    def corpus(self, name: str) -> Corpus:
        """A corpus by its name, even if the configuration does not name it."""
        if name not in self._corpora:
            # Warnings are ignored here, because the job that reads the corpus logs them.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", GrammarWarning)
                warnings.simplefilter("ignore", Notice)
                self._corpora[name] = self._read_corpus(name)
        return self._corpora[name]

    def _read_corpus(self, name: str) -> Corpus:
        file = self.corpus_file(name)
        if name not in self.records:
            return read_corpus(file)
        if self.is_job and os.path.isfile(file):
            # The job that makes the table anew may find one that cannot be read any more.
            with contextlib.suppress(UserError):
                return read_corpus(file)
        given = self.records[name]
        return read_records_corpus(given.file, given.columns)

    @cached_property
    def records(self) -> dict[str, NamedFile]:
        """The files of records that the configuration names."""
        return named_files(self.config["corpora"])

    def corpus_file(self, name: str) -> str:
        """The file from which jobs read a corpus; that of records is made from the user's file."""
        if name in self.records:
            return CORPUS_OF_RECORDS.format(language=name)
        return find_corpus(self.config["languages_folder"], name)

    def counterpart(self, language: str) -> str | None:
        return self.config["datasets"]["high_entropy_counterpart"].get(language)


def unknown_recipe(name: str, recipes: Iterable[str]) -> str:
    known = list(recipes)
    return (
        f"unknown recipe {name!r}; known: {', '.join(known)}{nearest(name, known)}. Define it in "
        "the block recipes"
    )


def _without(tree: dict | None, steps: list[str]) -> dict | None:
    first, *rest = steps
    if not tree or first not in tree:
        return tree
    return {**tree, first: _without(tree[first], rest) if rest else None}
