"""The configuration: checked before any job starts, and what it asks for.

Only light modules are imported: Snakemake reads this while it builds its graph of jobs.
"""

import math
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import jsonschema
import yaml

from palimpsest.errors import UserError, nearest
from palimpsest.languages import Grammar, GrammarWarning
from palimpsest.models import read_models, resolve
from palimpsest.models.table import NAME
from palimpsest.models.tokens import check_local
from palimpsest.planning.fit import changes_that_fit
from palimpsest.planning.memory import GB
from palimpsest.planning.plan import Planner
from palimpsest.unlearning.study import UnlearningStudy
from palimpsest.variants import LEAVE_ONE_OUT

MOST_VALUES, MOST_DEPTH = 10_000, 8  # of a configuration; the schema's own depth is 4
STUDIES = (
    "disagreement",
    "exact",
    "tradeoff",
    "frequency",
    "deduplication",
    "training_size",
    "model_size",
)


@dataclass(frozen=True)
class RunGroup:
    """A model on a variant of a language's dataset of one size; there is one run per seed."""

    model: str
    language: str
    size: int
    variant: str = "base"


class Study:
    """A checked configuration, with answers to what the workflow has to make."""

    def __init__(
        self,
        config: dict,
        files: list[str],
        schema: str | Path,
        command_line: dict | None = None,
    ):
        """Check the configuration.

        `files` are what it was read from, later ones winning, and `command_line` what was set
        there, which wins over all.

        A study that is set to null is taken out of it.

        Raises `UserError` naming file, key, value, what is allowed and, where it can, the nearest
        right spelling.
        """
        self.config = config
        self.files = files
        self.command_line = command_line or {}
        self._check_schema(schema)
        for study in [name for name, settings in config["studies"].items() if settings is None]:
            del config["studies"][study]
        self._check_paths()
        if not os.path.isfile(config["models_table"]):
            raise self._error("models_table", f"no such file: {config['models_table']}")
        self.models = read_models(config["models_table"])
        for key, names in self._named("models"):
            for place, name in enumerate(names):
                self._check_model(f"{key}[{place}]", name)
        for key, names in self._named("languages"):
            for place, name in enumerate(names):
                self._check_language(f"{key}[{place}]", name)
        for language, counterpart in config["datasets"]["high_entropy_counterpart"].items():
            key = f"datasets/high_entropy_counterpart/{language}"
            self._check_language(key, language)
            self._check_language(key, counterpart)
        self._check_sizes()
        self._check_seeds()
        self._check_left_out()
        self._check_terminals()
        self._check_training()
        self._check_engine()
        self._check_unlearning()
        self._check_memory()

    # What there is to do

    @cached_property
    def seeds(self) -> list[int]:
        """The seeds of every run."""
        return self.config["seeds"]

    def seeds_of(self, variant: str) -> list[int]:
        """The seeds of the runs of a variant: all, or those of which strings are left out."""
        if variant != LEAVE_ONE_OUT:
            return self.seeds
        return self.config["studies"].get("exact", {"seeds": self.seeds})["seeds"]

    def studies(self) -> list[str]:
        """The studies to run, in the report's order."""
        return [study for study in STUDIES if study in self.config["studies"]]

    def study_languages(self, study: str) -> list[str]:
        """The languages of a study, none if it is left out; each has its table and its figure."""
        return self._choice(study, "languages") if study in self.config["studies"] else []

    def study_groups(self, study: str, language: str) -> list[RunGroup]:
        """The runs, over all seeds, that a study reads on one language (disagreement apart)."""
        settings = self.config["studies"][study]
        sizes = settings.get("sizes") or [settings["size"]]
        variants = self._variants(study, language)
        return [
            RunGroup(model, language, size, variant)
            for model in self._choice(study, "models")
            for size in sizes
            for variant in variants
        ]

    def target_groups(self, language: str) -> list[RunGroup]:
        """The models that are retrained with and without each target of a language."""
        if language not in self.study_languages("disagreement"):
            return []
        size = self.config["studies"]["disagreement"]["size"]
        return [RunGroup(m, language, size) for m in self._choice("disagreement", "models")]

    def left_out_groups(self, language: str) -> list[RunGroup]:
        """The models that are retrained without each training string of a language."""
        if language not in self.study_languages("exact"):
            return []
        size = self.config["studies"]["exact"]["size"]
        return [RunGroup(m, language, size, LEAVE_ONE_OUT) for m in self._choice("exact", "models")]

    @cached_property
    def roles(self) -> list[str]:
        """The target strings' roles: s0, s1, ..."""
        disagreement = self.config["studies"].get("disagreement", {"targets": 1})
        return [f"s{rank}" for rank in range(disagreement["targets"])]

    @cached_property
    def measured_groups(self) -> list[RunGroup]:
        """Every group whose memorisation is tabulated: the grid and the studies' additions."""
        grid = [
            RunGroup(model, language, size)
            for model in self.config["models"]
            for language in self.config["languages"]
            for size in self.config["sizes"]
        ]
        added = [
            group
            for study in self.studies()
            if study != "disagreement"
            for language in self.study_languages(study)
            for group in self.study_groups(study, language)
        ]
        return list(dict.fromkeys([*grid, *added]))

    @cached_property
    def trained_groups(self) -> list[RunGroup]:
        """Every group that is trained: the measured ones, and those that are retrained."""
        retrained = [
            RunGroup(group.model, group.language, group.size, f"{kind}-{role}")
            for language in self.all_languages
            for group in self.target_groups(language)
            for role in self.roles
            for kind in ("with", "without")
        ]
        left_out = [
            group for language in self.all_languages for group in self.left_out_groups(language)
        ]
        return [*self.measured_groups, *retrained, *left_out]

    @cached_property
    def dataset_groups(self) -> list[RunGroup]:
        """Every group with datasets of its own: strings are left out of those that are there."""
        return [group for group in self.trained_groups if group.variant != LEAVE_ONE_OUT]

    @cached_property
    def twin_jobs(self) -> dict[tuple[str, ...], list[RunGroup]]:
        """The jobs that train twins, by their variants.

        A job trains all seeds and variants of one model, language and size; it is named by the
        group of its base dataset.
        """
        variants: dict[RunGroup, list[str]] = {}
        for group in self.trained_groups:
            if resolve(group.model, self.models)[1] == "twin":
                whole = RunGroup(group.model, group.language, group.size)
                variants.setdefault(whole, []).append(group.variant)
        jobs: dict[tuple[str, ...], list[RunGroup]] = {}
        for whole, names in variants.items():
            jobs.setdefault(tuple(dict.fromkeys(names)), []).append(whole)
        return jobs

    @cached_property
    def all_languages(self) -> list[str]:
        """The languages of the grid and of the studies."""
        names = [name for key, names in self._named("languages") for name in names]
        return list(dict.fromkeys(names))

    def engine(self, model: str) -> str:
        """The engine that trains a model: that of its name or else of its scale."""
        engines = self.config["engine"]
        return engines.get(model, engines[resolve(model, self.models)[1]])

    def training(self, model: str) -> dict:
        """The section `training` as it holds for a model.

        What `training_by_model` says of it wins. A twin is trained by one process, and its
        optimiser fits beside it.
        """
        if resolve(model, self.models)[1] == "twin":
            return {**self.config["training"], "processes": 1, "offload_optimizer": "none"}
        return {**self.config["training"], **self.config["training_by_model"].get(model, {})}

    @cached_property
    def planner(self) -> Planner:
        """What the study's runs need."""
        return Planner(self)

    @cached_property
    def unlearning(self) -> UnlearningStudy | None:
        """What models can be made to forget, if that is asked for."""
        section = self.config["unlearning"]
        return None if section is None else UnlearningStudy(section, self)

    def grammar(self, language: str) -> Grammar:
        """The grammar of a language, whether the configuration names the language or not."""
        if language not in self._grammars:
            self._grammars[language] = self._grammar(language)
        return self._grammars[language]

    def grammar_file(self, language: str) -> str:
        """The grammar file of a language."""
        return str(Path(self.config["languages_folder"]) / f"{language}.pcfg")

    def counterpart(self, language: str) -> str | None:
        """The high-entropy counterpart of a language, if it has one."""
        return self.config["datasets"]["high_entropy_counterpart"].get(language)

    def _variants(self, study: str, language: str) -> list[str]:
        if study != "deduplication":
            return ["base"]
        return ["base", "dedup"] + (["dedup-matched"] if self.counterpart(language) else [])

    def _choice(self, study: str, what: str) -> list[str]:
        chosen = self.config["studies"][study][what]
        return self.config[what] if chosen == "all" else chosen

    # Checks

    def _check_schema(self, schema: str | Path) -> None:
        rules = yaml.safe_load(Path(schema).read_text())
        self._check_values()
        validator = jsonschema.Draft202012Validator(rules)
        errors = sorted(validator.iter_errors(self.config), key=lambda e: [str(p) for p in e.path])
        if errors:
            path = errors[0].absolute_path
            raise self._error(_join(path), _explain(errors[0]), [*path, *_stranger(errors[0])])

    def _check_values(self) -> None:
        """Values that the schema cannot be held against; a few aliases in YAML make billions."""
        for count, (key, value) in enumerate(_leaves(self.config)):
            if count == MOST_VALUES:
                raise self._error(key, f"a configuration has at most {MOST_VALUES:,} values")
            if isinstance(value, (dict, list)):
                raise self._error(key, "is a block within blocks; none of them goes as deep")
            if isinstance(value, float) and not math.isfinite(value):
                raise self._error(key, f"{value} is not a finite number")

    def _check_paths(self) -> None:
        """A path becomes an input of rules, in which braces would be wildcards."""
        for key in ("models_table", "languages_folder"):
            path = self.config[key]
            if not path.isprintable() or set("{}") & set(path):
                raise self._error(
                    key,
                    f"{path!r} is not allowed; must be a path without braces and without "
                    "characters that cannot be printed",
                )

    def _check_model(self, key: str, name: str) -> None:
        try:
            resolve(name, self.models)
        except KeyError as error:
            remedy = f"; or add a row to {self.config['models_table']}"
            raise self._error(key, f"{error.args[0]}{remedy}") from None

    def _check_language(self, key: str, name: str) -> None:
        folder = Path(self.config["languages_folder"])
        if not os.path.isdir(folder):
            raise self._error("languages_folder", f"no such folder: {folder}")
        known = sorted(path.stem for path in folder.glob("*.pcfg"))
        if name not in known:
            raise self._error(
                key,
                f"unknown language {name!r}; known: {', '.join(known)}{nearest(name, known)}. "
                f"Add a grammar as {folder}/{name if NAME.fullmatch(name) else 'NAME'}.pcfg",
            )
        if not NAME.fullmatch(name):
            raise self._error(
                key,
                f"{_shown(name)} is not a name; allowed are letters, digits, '.', '_' and '-', at "
                "most 100; rename the grammar's file",
            )

    def _check_sizes(self) -> None:
        """No training size may exceed the number of strings that a finite language has."""
        for key, sizes, languages in self._sizes():
            for language in languages:
                most = self._grammars[language].n_derivations()
                too_large = [size for size in sizes if size > most]
                if too_large:
                    raise self._error(
                        key,
                        f"{too_large[0]} strings cannot be drawn for training from {language}, "
                        f"which has at most {most:,.0f}; lower it or choose a richer language",
                    )

    def _sizes(self) -> Iterator[tuple[str, list[int], list[str]]]:
        """The sizes of the grid and of each study, with their key and their languages."""
        yield "sizes", self.config["sizes"], self.config["languages"]
        for study, settings in self.config["studies"].items():
            several = "sizes" in settings
            key = f"studies/{study}/{'sizes' if several else 'size'}"
            sizes = settings["sizes"] if several else [settings["size"]]
            yield key, sizes, self.study_languages(study)
        if self.config["unlearning"] is not None:
            section = self.config["unlearning"]
            yield "unlearning/size", [section["size"]], section["languages"]

    @cached_property
    def _grammars(self) -> dict[str, Grammar]:
        return {language: self._grammar(language) for language in self.all_languages}

    def _check_left_out(self) -> None:
        """Nobody retrains a full model without every single string."""
        if "exact" not in self.config["studies"]:
            return
        for place, model in enumerate(self._choice("exact", "models")):
            if resolve(model, self.models)[1] == "full":
                raise self._error(
                    f"studies/exact/models[{place}]",
                    f"{model!r} would be trained once per training string, which is out of reach "
                    f"for a full model; name its twin: {model}-twin",
                )

    def _check_seeds(self) -> None:
        """A study of its own seeds compares with the runs of these seeds, so there must be some."""
        for place, seed in enumerate(self.seeds_of(LEAVE_ONE_OUT)):
            if seed not in self.seeds:
                known = ", ".join(map(str, self.seeds))
                raise self._error(
                    f"studies/exact/seeds[{place}]", f"{seed} is not among the seeds: {known}"
                )

    def _check_terminals(self) -> None:
        """Terminals that a model in a local folder cannot take as one token each."""
        for model in dict.fromkeys(group.model for group in self.trained_groups):
            row, scale = resolve(model, self.models)
            tokenizer = Path(row.id) / "tokenizer.json"
            if scale == "full" and tokenizer.is_file():
                for language in self.all_languages:
                    check_local(row, tokenizer, self._grammars[language].terminals)

    def _grammar(self, language: str) -> Grammar:
        """The grammar of a language, fit for datasets, which write strings as words in a line."""
        with warnings.catch_warnings():
            # The job that reads the grammar for good puts its warnings into its log.
            warnings.simplefilter("ignore", GrammarWarning)
            grammar = Grammar.from_file(self.grammar_file(language))
        for terminal in grammar.terminals:
            if len(terminal.split()) != 1:
                raise UserError(
                    f"{grammar.name}: the terminal {terminal!r} is empty or has white space in it; "
                    "a terminal of a dataset is one word"
                )
        return grammar

    def _check_training(self) -> None:
        for model in self.config["training_by_model"]:
            key = f"training_by_model/{model}"
            self._check_model(key, model)
            if resolve(model, self.models)[1] == "twin":
                raise self._error(
                    key, "twins are trained by one process, which any machine holds; leave it out"
                )
        self._check_offload("training", self.config["training"])
        for model in self.config["training_by_model"]:
            self._check_offload(f"training_by_model/{model}", self.training(model))

    def _check_offload(self, section: str, training: dict) -> None:
        if training["offload_optimizer"] == "cpu" and training["zero_stage"] == 0:
            raise self._error(
                f"{section}/offload_optimizer",
                f"cpu needs {section}/zero_stage to be 1, 2 or 3; it is 0",
            )

    def _check_memory(self) -> None:
        """Full models that no GPU of this study holds."""
        longest: dict[str, str] = {}
        for group in self.trained_groups:
            if resolve(group.model, self.models)[1] == "full":
                languages = group.language, longest.get(group.model, group.language)
                longest[group.model] = max(languages, key=lambda name: self.planner.tokens(name)[1])
        for model, language in longest.items():
            self._check_fit(model, language)

    def _check_fit(self, model: str, language: str) -> None:
        has = self.config["hardware"]["gpu_memory_gb"]
        needs = self.planner.gpu_peak(model, language)
        if needs <= has * GB:
            return
        settings = self.planner.settings(model)
        asked = self.planner.shape(model, language), settings, self.planner.tokens(language)[1]
        changes = changes_that_fit(*asked, has)
        where = f"training_by_model/{model}"
        remedy = " or ".join(f"{where}: {_braces(change)}" for change in changes)
        own = self.config["training_by_model"].get(model)
        key = "hardware/gpu_memory_gb"
        if changes:
            first = next(iter(changes[0]))
            set_here = own is not None and first in own
            key = f"{where}/{first}" if set_here else f"training/{first}" if own is None else where
        gpus = f"{settings.processes} GPU{'s' if settings.processes > 1 else ''}"
        offloaded = ", the optimiser offloaded," if settings.offloaded else ""
        raise self._error(
            key,
            f"{model} needs {needs / GB:,.0f} GB on each GPU with ZeRO {settings.zero_stage}"
            f"{offloaded} on {gpus}, and hardware/gpu_memory_gb is {has:g}; "
            + (f"it fits with {remedy}" if changes else "no settings fit; leave the model out"),
        )

    def _check_unlearning(self) -> None:
        if self.unlearning is None:
            return
        for key, mistake in self.unlearning.mistakes():
            raise self._error(f"unlearning/{key}", mistake)
        for model in self.config["unlearning"]["models"]:
            if self.engine(model) == "deepspeed" and self.training(model)["zero_stage"] == 3:
                own = self.config["training_by_model"].get(model, {})
                where = f"training_by_model/{model}" if "zero_stage" in own else "training"
                raise self._error(
                    f"{where}/zero_stage",
                    f"{model} cannot unlearn with ZeRO 3, which leaves no process a whole weight; "
                    "set it to 2 (of one full model: in training_by_model), with "
                    "offload_optimizer: cpu if memory is short",
                )

    def _check_engine(self) -> None:
        for model in self.config["engine"].keys() - {"twin", "full"}:
            key = f"engine/{model}"
            self._check_model(key, model)
            if self.engine(model) == "fleet" and resolve(model, self.models)[1] == "full":
                raise self._error(
                    key, f"fleet trains twins only; set deepspeed, or name the twin {model}-twin"
                )

    def _named(self, what: str) -> Iterator[tuple[str, list[str]]]:
        """The lists of models or of languages in the configuration, each with its key."""
        yield what, self.config[what]
        for study in self.config["studies"]:
            if self.config["studies"][study][what] != "all":
                yield f"studies/{study}/{what}", self.config["studies"][study][what]
        if self.config["unlearning"] is not None:
            yield f"unlearning/{what}", self.config["unlearning"][what]

    def _error(self, key: str, what: str, place: list | None = None) -> UserError:
        """An error about a key, with where it stands; `place` is another key to look for."""
        source = self._source(key if place is None else _join(place))
        return UserError(f"{source}: {key + ': ' if key else ''}{what}")

    def _source(self, key: str) -> str:
        """Where the key was last set or, if it is set nowhere, the nearest key above it."""
        read = [("--config", self.command_line)]
        read += [(file, _load(file)) for file in reversed(self.files)]
        steps = key.split("[")[0].split("/")
        for depth in range(len(steps), 0, -1):
            for name, settings in read:
                if _has(settings, steps[:depth]):
                    return name
        return self.files[-1] if self.files else "--config"


def as_yaml(tree):
    """Values given on the command line, the texts in them read as YAML: '3' is 3, 'null' none."""
    if isinstance(tree, dict):
        return {name: as_yaml(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [as_yaml(value) for value in tree]
    if not isinstance(tree, str):
        return tree
    try:
        return yaml.safe_load(tree)
    except yaml.YAMLError:
        return tree


def _braces(block: dict) -> str:
    """A block of keys in one line, as YAML has it."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in block.items()) + "}"


def _load(file: str) -> dict:
    return yaml.safe_load(Path(file).read_text()) or {}


def _has(tree, steps: list[str]) -> bool:
    for step in steps:
        if not isinstance(tree, dict) or step not in tree:
            return False
        tree = tree[step]
    return True


def _leaves(tree, path: tuple = ()) -> Iterator[tuple[str, object]]:
    """Every leaf of the configuration with its key; what lies too deep is a leaf itself."""
    if isinstance(tree, dict) and len(path) < MOST_DEPTH:
        for name, value in tree.items():
            yield from _leaves(value, (*path, name))
    elif isinstance(tree, list) and len(path) < MOST_DEPTH:
        for place, value in enumerate(tree):
            yield from _leaves(value, (*path, place))
    else:
        yield _join(path), tree


def _join(path) -> str:
    """A key as users write it: training/epochs, languages[2]."""
    key = ""
    for step in path:
        key += f"[{step}]" if isinstance(step, int) else f"/{step}" if key else str(step)
    return key


def _stranger(error: jsonschema.ValidationError) -> list[str]:
    """The unknown key that an error is about, if it is about one."""
    if error.validator != "additionalProperties":
        return []
    known = error.schema.get("properties", {})
    return [next(name for name in error.instance if name not in known)]


def _explain(error: jsonschema.ValidationError) -> str:
    """What is wrong with a value and what is allowed, in one line."""
    value, rules = error.instance, error.schema
    if error.validator == "additionalProperties":
        known = list(rules.get("properties", {}))
        (stranger,) = _stranger(error)
        return f"unknown key {stranger!r}; known: {', '.join(known)}{nearest(stranger, known)}"
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in value)
        return f"the key {missing!r} is missing"
    if error.validator == "uniqueItems":
        return f"{value!r} lists something twice; each may stand once"
    return f"{_shown(value)} is not allowed; must be {allowed(rules)}{_hint(value, rules)}"


def _shown(value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _hint(value, rules: dict) -> str:
    if "enum" in rules:
        return nearest(value, rules["enum"])
    if isinstance(value, str) and rules.get("type") in ("number", "integer"):
        try:
            number = yaml.safe_dump(float(value)).split()[0]
            return f" (YAML reads it as text; write {number})"
        except ValueError:
            return ""
    return ""


def allowed(rules: dict) -> str:
    """What a schema allows, in words."""
    if "enum" in rules:
        return "one of " + ", ".join(map(str, rules["enum"]))
    if "const" in rules:
        return repr(rules["const"])
    if "oneOf" in rules:
        return " or ".join(allowed(rule) for rule in rules["oneOf"])
    kind = rules.get("type")
    if kind == ["object", "null"]:
        return "a block of keys, or null"
    if kind == "array":
        return f"a list of at least {rules.get('minItems', 0)}, each {allowed(rules['items'])}"
    words = {
        "integer": "a whole number",
        "number": "a number",
        "string": "a text",
        "boolean": "true or false",
        "object": "a block of keys",
    }[kind]
    bounds = [
        (f"from {rules['minimum']}" if "minimum" in rules else ""),
        (f"above {rules['exclusiveMinimum']}" if "exclusiveMinimum" in rules else ""),
        (f"to {rules['maximum']}" if "maximum" in rules else ""),
        (f"below {rules['exclusiveMaximum']}" if "exclusiveMaximum" in rules else ""),
    ]
    return " ".join([words, *filter(None, bounds)])
