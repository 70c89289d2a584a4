"""Checks of the keys that all sections share, and checks for sections to use.

Each check yields mistakes. A check in `of_values` may assume that the checks before it in this
function found no mistake.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import jsonschema

from palimpsest.configuration.messages import Mistake, explained, joined, shown, stranger_of
from palimpsest.configuration.named_files import NamedFile, unusable_files
from palimpsest.configuration.settings import GRID, Settings, unknown_recipe
from palimpsest.configuration.sources import Sources
from palimpsest.corpora import corpus_names, find_corpus
from palimpsest.errors import UserError, nearest, searched
from palimpsest.interventions import BASE
from palimpsest.models import Model, resolve
from palimpsest.models.adapters import MATRICES, unknown_target
from palimpsest.models.folders import check_folder, is_folder, unknown_name
from palimpsest.models.limits import check_positions, known_positions
from palimpsest.models.table import NAME, NAMES_ARE
from palimpsest.models.tokens import check_local
from palimpsest.pretrained.catalogue import CATALOGUE, made_in
from palimpsest.requests import DEFAULT, Runs
from palimpsest.tables.user_files import TEXTS

ADAPTER = "adapter"
MOST_VALUES, MOST_DEPTH = 10_000, 12  # of a configuration; phases of methods are the deepest


def _is_whole(checker: object, value: object) -> bool:
    """Whether a value is a whole number as written: 4.0 would be so in the names of files."""
    return isinstance(value, int) and not isinstance(value, bool)


Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_whole),
)


def of_schema(config: dict, schema: dict) -> Iterator[Mistake]:
    """Values that cannot be checked with a schema, then the first error by the schema."""
    yield from _hostile(config)
    errors = sorted(Validator(schema).iter_errors(config), key=lambda e: [str(p) for p in e.path])
    for error in errors[:1]:
        path = error.absolute_path
        yield Mistake(joined(path), explained(error, schema), joined([*path, *stranger_of(error)]))


def of_values(settings: Settings) -> Iterator[Mistake]:
    yield from _paths(settings)
    table, folder = settings.config["models_table"], settings.config["languages_folder"]
    if not os.path.isfile(table):
        remedy = "give a table of models (docs/models.md)"
        yield Mistake("models_table", f"no such file: {table}; {remedy}")
    if not os.path.isdir(folder):
        remedy = "give a folder of languages (docs/languages.md)"
        yield Mistake("languages_folder", f"no such folder: {folder}; {remedy}")
    yield from _records(settings, folder)
    if claims := settings.config["claims"]:
        yield from no_table_of_power(claims["power_table"])
    for pair in settings.config["datasets"]["high_entropy_counterpart"].items():
        for language in pair:
            key = f"datasets/high_entropy_counterpart/{pair[0]}"
            yield from unknown_language(settings, key, language)
    yield from _recipes(settings)
    yield from _training(settings)
    yield from _engine(settings)


def _records(settings: Settings, folder: str) -> Iterator[Mistake]:
    """Records that are not there, or that have the name of a language."""
    yield from unusable_files(
        "corpora", settings.records, "a table of records", TEXTS, True, _check_records
    )
    for name in corpus_names(folder):
        if name in settings.records:
            yield Mistake(
                f"corpora/{name}",
                f"{find_corpus(folder, name)} has this name; give the records another one",
            )


def _check_records(named: NamedFile) -> None:
    from palimpsest.corpora.records import check_head  # tables are slow to import

    check_head(named.file, named.columns)


def no_table_of_power(file: str) -> Iterator[Mistake]:
    if not os.path.isfile(file):
        remedy = "give such a table, or claims: null to test all claims"
        yield Mistake("claims/power_table", f"no such file: {file}; {remedy}")


# Checks that sections use, too


def unknown_models(settings: Settings, key: str, names: Iterable[str]) -> Iterator[Mistake]:
    for place, name in enumerate(names):
        yield from unknown_model(settings, f"{key}[{place}]", name)


def unknown_model(settings: Settings, key: str, name: str) -> Iterator[Mistake]:
    try:
        resolve(name, settings.models)
    except KeyError as error:
        remedy = f"; or add a row to {settings.config['models_table']}"
        yield Mistake(key, f"{error.args[0]}{remedy}", because="models_table")


def unknown_languages(settings: Settings, key: str, names: Iterable[str]) -> Iterator[Mistake]:
    for place, name in enumerate(names):
        yield from unknown_language(settings, f"{key}[{place}]", name)


def unknown_language(settings: Settings, key: str, name: str) -> Iterator[Mistake]:
    folder = Path(settings.config["languages_folder"])
    known = [*corpus_names(folder), *settings.records]
    if name not in known:
        stem = re.sub(r"\.(pcfg|txt)$", "", name)
        near = f" (write {stem})" if stem in known else nearest(name, known)
        yield Mistake(
            key,
            f"unknown language {name!r}; known: {', '.join(known)}{near}. "
            f"Add a grammar as {folder}/{name if NAME.fullmatch(name) else 'NAME'}.pcfg, a "
            "text as .txt, or records of your own in the block corpora",
            because="languages_folder",
        )
    elif not NAME.fullmatch(name):
        yield Mistake(
            key,
            f"{shown(name)} is not a name; allowed are {NAMES_ARE}; rename its file",
        )


def trained_for_each_string(
    settings: Settings, key: str, models: Iterable[str]
) -> Iterator[Mistake]:
    """Full models among those that are to be trained once for every training string."""
    for place, model in enumerate(models):
        if not settings.is_twin(model):
            yield Mistake(
                f"{key}[{place}]",
                f"{model!r} would be trained once per training string, which is out of reach for a "
                f"full model; name its twin: {model}-twin",
            )


def too_many_strings(
    settings: Settings,
    key: str,
    sizes: Iterable[int],
    languages: Iterable[str],
    with_copies: bool = False,
) -> Iterator[Mistake]:
    """Training sizes above the number of strings of a finite language, a text or records.

    The training strings are distinct, unless they may be copies (`with_copies`).
    """
    for language in languages:
        corpus = settings.corpus(language)
        try:
            most = corpus.most_draws() if with_copies else corpus.n_strings()
        except UserError as error:
            yield Mistake(key, str(error))
            continue
        too_large = [size for size in sizes if size > most]
        if too_large:
            yield Mistake(
                key,
                f"{too_large[0]} strings cannot be drawn for training from {language}, "
                f"which has at most {most:,.0f}; lower it or {corpus.when_too_few}",
            )


def without_probabilities(
    settings: Settings, key: str, languages: Iterable[str], why: str
) -> Iterator[Mistake]:
    """Texts in a list of languages that must have probabilities; `why` names what needs them."""
    for place, language in enumerate(languages):
        if not settings.corpus(language).has_probabilities:
            yield Mistake(
                f"{key}[{place}]",
                f"{language!r} is a text ({settings.corpus_file(language)}), whose strings have no "
                f"known probabilities; {why} needs them: name a language that has a grammar",
            )


def texts(settings: Settings, key: str, languages: Iterable[str], why: str) -> Iterator[Mistake]:
    """Languages of text in a list whose languages must have symbols; `why` says what needs them."""
    for place, language in enumerate(languages):
        if settings.corpus(language).is_text:
            yield Mistake(
                f"{key}[{place}]",
                f"{language!r} is a language of text, which a tokenizer cuts; {why} needs symbols "
                "that are one token each: name another language",
            )


def symbols(settings: Settings, key: str, languages: Iterable[str], why: str) -> Iterator[Mistake]:
    """Languages of symbols in a list whose languages must be text; `why` says what needs text."""
    for place, language in enumerate(languages):
        if not settings.corpus(language).is_text:
            yield Mistake(
                f"{key}[{place}]",
                f"{language!r} is a language of symbols, and {why} needs texts: name a corpus of "
                "the block corpora",
            )


def of_one_study(
    settings: Settings, key: str, asked: dict, needed: int, why: str
) -> Iterator[Mistake]:
    """Mistakes in a block with a model or models, one size, and languages that need a grammar.

    `needed` is the number of strings to draw from each language. `why` names what needs the
    probabilities.
    """
    if "models" in asked:
        yield from unknown_models(settings, f"{key}/models", asked["models"])
    else:
        yield from unknown_model(settings, f"{key}/model", asked["model"])
    yield from unknown_languages(settings, f"{key}/languages", asked["languages"])
    yield from without_probabilities(settings, f"{key}/languages", asked["languages"], why)
    yield from texts(settings, f"{key}/languages", asked["languages"], why)
    yield from too_many_strings(settings, f"{key}/size", [needed], asked["languages"])


def split_terminals(settings: Settings, models: Iterable[str], languages: Iterable[str]) -> None:
    """Raise `UserError` if a model in a local folder cannot take a terminal as one token."""
    languages = list(languages)
    for model in dict.fromkeys(models):
        row, scale = resolve(model, settings.models)
        tokenizer = Path(row.id) / "tokenizer.json"
        if scale == "full" and tokenizer.is_file():
            corpora = [settings.corpus(name) for name in languages]
            symbols = (corpus.alphabet.terminals for corpus in corpora if not corpus.is_text)
            check_local(row, tokenizer, symbols)


def long_strings(settings: Settings, requests: Iterable[Runs]) -> None:
    """Raise `UserError` if the strings of a corpus are too long for a model.

    Of a text, the longest line decides. Of a grammar, the error means that strings which are too
    long are so frequent that the datasets almost surely have one; the job that trains refuses rarer
    ones.
    """
    requests = list(requests)
    more = 1 + settings.config["datasets"]["predict_end"]  # tokens: a start, and an end
    for model, name in dict.fromkeys((runs.model, runs.corpus) for runs in requests):
        corpus = settings.corpus(name)
        most = known_positions(*resolve(model, settings.models))
        if corpus.is_text:
            continue  # only the job that trains knows the tokens
        if not corpus.has_probabilities:
            what = f"the longest line of {corpus.name}"
            check_positions(model, what, corpus.longest() + more, most, corpus.when_too_long)
            continue
        drawn = [runs for runs in requests if (runs.model, runs.corpus) == (model, name)]
        n_strings = sum(_independent_strings(settings, runs) for runs in drawn)
        if most is not None and corpus.has_longer(most - more, n_strings):
            raise UserError(
                f"{model}: strings of {corpus.name} have more tokens than the model takes, which "
                f"is at most {most:,} with the start token; {corpus.when_too_long(most)}"
            )


def _independent_strings(settings: Settings, runs: Runs) -> int:
    """Number of independent strings of the corpus that are surely in the datasets of some runs."""
    n_training = runs.size if runs.variant == BASE else 0
    return len(runs.seeds) * (settings.config["datasets"]["test_size"] + n_training)


def incomplete_folders(settings: Settings, models: Iterable[str]) -> None:
    """Raise `UserError` if the local folder of a model is not there, or lacks some of its files.

    The folders of pretrained models are exempt, because a job makes them.
    """
    for model in dict.fromkeys(models):
        row, scale = resolve(model, settings.models)
        if scale == "full" and is_folder(row.id) and not made_in(row.id):
            if not Path(row.id).is_dir():
                raise UserError(_no_such_folder(settings, row))
            check_folder(row)


def _no_such_folder(settings: Settings, row: Model) -> str:
    made = [known.folder for known in CATALOGUE.values()]
    return (
        f"{settings.config['models_table']}: {row.model}: id: no such folder: {row.id}; folders "
        f"that are made from packages: {', '.join(made)}{nearest(row.id, made)}{searched(row.id)}"
    )


def adapters(settings: Settings, requests: Iterable[Runs]) -> Iterator[Mistake]:
    """Adapters of twins, and adapters on matrices that an architecture does not have."""
    for model, recipe in dict.fromkeys((runs.model, runs.recipe) for runs in requests):
        training = settings.training(model, recipe)
        if ADAPTER not in training:
            continue
        if settings.is_twin(model):
            yield Mistake(
                settings.key_of(ADAPTER, model, recipe),
                f"{training[ADAPTER]} is for full models, and {model} is a twin, all of whose "
                "weights are trained; set it to none here, and in training_by_model for each full "
                "model that is to have adapters",
            )
            continue
        row, _ = resolve(model, settings.models)
        known = MATRICES.get(row.model_type)
        wrong = known and unknown_target(training["adapter_targets"].split(","), known)
        if wrong:
            key = settings.key_of("adapter_targets", model, recipe)
            yield Mistake(key, f"{model}: {wrong}")


# Checks of the keys that all sections share


def _hostile(config: dict) -> Iterator[Mistake]:
    """Values that cannot be checked with the schema: too many, too deep, or not finite.

    A few aliases in YAML can make billions of values.
    """
    for count, (key, value) in enumerate(_leaves(config)):
        if count == MOST_VALUES:
            yield Mistake(key, f"a configuration has at most {MOST_VALUES:,} values")
            return
        if isinstance(value, (dict, list)):
            yield Mistake(key, "is a block inside too many other blocks; no key is this deep")
        if isinstance(value, float) and not math.isfinite(value):
            yield Mistake(key, f"{value} is not a finite number")


def _paths(settings: Settings) -> Iterator[Mistake]:
    """Braces in paths: a path becomes an input of rules, where braces would mean wildcards."""
    for key in ("models_table", "languages_folder"):
        path = settings.config[key]
        if not path.isprintable() or set("{}") & set(path):
            yield Mistake(
                key,
                f"{path!r} is not allowed; must be a path without braces and without "
                "characters that cannot be printed",
            )


def _training(settings: Settings) -> Iterator[Mistake]:
    by_model = settings.config["training_by_model"]
    for model in by_model:
        key = f"training_by_model/{model}"
        yield from unknown_model(settings, key, model)
        if settings.is_twin(model):
            yield Mistake(
                key,
                "a twin is trained by one process, which fits on any machine; leave this key out",
            )
    for recipe in settings.config["recipes"]:
        yield from _offload(f"recipes/{recipe}", settings.recipe(recipe))
        for model in by_model:
            yield from _offload(f"training_by_model/{model}", settings.training(model, recipe))


def _offload(block: str, training: dict) -> Iterator[Mistake]:
    if training["offload_optimizer"] == "cpu" and training["zero_stage"] == 0:
        yield Mistake(
            f"{block}/offload_optimizer",
            f"cpu needs {block}/zero_stage to be 1, 2 or 3; it is 0",
        )


def _recipes(settings: Settings) -> Iterator[Mistake]:
    known = settings.config["recipes"]
    for key, name in recipes_named(settings.config):
        if name not in (*known, GRID):
            yield Mistake(key, unknown_recipe(name, known))


def unnamed_recipes(settings: Settings, sources: Sources) -> Iterator[str]:
    """A line for each recipe that nothing names, unless it is from the first file."""
    named = {name for _, name in recipes_named(settings.config)}
    for name in settings.config["recipes"].keys() - named - {DEFAULT}:
        key = f"recipes/{name}"
        if sources.place(key) > 0:
            yield (
                f"{sources.of(key)}: {key}: nothing names this recipe, so no model is trained by "
                "it; name it in the key `recipe` of a section, or leave it out"
            )


def recipes_named(block: dict, above: tuple = ()) -> Iterator[tuple[str, str]]:
    """Every key of a configuration that names a recipe, and the name.

    These are the keys `recipe`, and keys that end with `_recipe`.
    """
    for key, value in block.items():
        if isinstance(value, dict):
            yield from recipes_named(value, (*above, key))
        elif (key == "recipe" or key.endswith("_recipe")) and isinstance(value, str):
            yield joined((*above, key)), value


def _engine(settings: Settings) -> Iterator[Mistake]:
    for model in sorted(settings.config["engine"].keys() - {"twin", "full"}):
        key = f"engine/{model}"
        yield from unknown_model(settings, key, model)
        if settings.engine(model) == "fleet" and not settings.is_twin(model):
            yield Mistake(
                key, f"fleet trains twins only; set deepspeed, or name the twin {model}-twin"
            )


def _leaves(tree, path: tuple = ()) -> Iterator[tuple[str, object]]:
    """Every leaf of the configuration with its key; a block that is too deep counts as a leaf."""
    if isinstance(tree, dict) and len(path) < MOST_DEPTH:
        for name, value in tree.items():
            yield from _leaves(value, (*path, name))
    elif isinstance(tree, list) and len(path) < MOST_DEPTH:
        for place, value in enumerate(tree):
            yield from _leaves(value, (*path, place))
    else:
        yield joined(path), tree


MAIN = "main"  # the branch of a model on the hub, if none is named


def id_of(settings: Settings, model: str) -> str:
    """The id of a model that is only asked; a name of the table of models stands for its id.

    A revision of the table that is not `main` follows after an `@`.
    """
    if model not in settings.models:
        return model
    row = settings.models[model]
    return row.id if is_folder(row.id) or row.revision == MAIN else f"{row.id}@{row.revision}"


def missing_folder(settings: Settings, key: str, model: str) -> Iterator[Mistake]:
    """A model that is only asked, in a folder that is not there and that is made from no package.

    `model` is a folder, a name of the table of models, or a name on the hub.
    """
    found = id_of(settings, model)
    if is_folder(found) and not made_in(found) and not Path(found).is_dir():
        yield Mistake(
            key,
            f"no such folder: {found}; give one as save_pretrained leaves it, a name of "
            f"{settings.config['models_table']}, or a name on the Hugging Face hub"
            f"{searched(found)}",
        )
    elif wrong := unknown_name(model, settings.models, settings.config["models_table"]):
        yield Mistake(key, wrong)


def is_one_model(settings: Settings, *models: str) -> bool:
    """Whether all these models that are only asked are one: the same folder, or the same id."""
    ids = [id_of(settings, model) for model in models]
    return len({os.path.realpath(found) if is_folder(found) else found for found in ids}) == 1


def unknown_records(settings: Settings, key: str, name: str) -> Iterator[Mistake]:
    known = settings.records
    if name not in known:
        listed = ", ".join(known) or "none"
        yield Mistake(
            key,
            f"{name!r} is not in the block corpora, which has {listed}{nearest(name, known)}; add "
            "it there with the file of the records",
            because="corpora",
        )
