"""Studies of encoder classifiers: what the configuration says of them, their runs and outputs.

An encoder is fine-tuned to tell the labels of texts. **Words** are heuristic memorisation: a word
is inserted into every training text, that of its label in a share alpha of them, and a random one
in the others. **Shuffled labels** are example-level memorisation: those of a share beta of the
training texts are permuted. The **placebo** is random words (alpha 0) against none.

Source: the paper on information measures of neurons, appendices B.2, B.3, B.6, C.1 and C.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from palimpsest.configuration.checks import unknown_language
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.named_files import errors_of
from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError, nearest
from palimpsest.information import kinds
from palimpsest.information.activation_files import ActivationFile
from palimpsest.information.activation_files import groups as given_groups
from palimpsest.information.interventions import (
    UNMARKED,
    marked,
    percent_marked,
    percent_shuffled,
    shuffled,
)
from palimpsest.information.kinds import ENCODER_POSITIONS, MARKERS, RANDOM_MARKERS, SHUFFLES
from palimpsest.models.folders import read_json
from palimpsest.models.table import NAME, NAMES_ARE
from palimpsest.pretrained.embedders import EMBEDDERS
from palimpsest.section import Asked
from palimpsest.tables import user_files
from palimpsest.tables.kinds import NAME as A_NAME
from palimpsest.tables.kinds import Column, UserKind
from palimpsest.tables.user_columns import named_columns

KEY = "information/encoders"
# The names of the three interventions in the names of groups
SHORT = {MARKERS: "alpha", SHUFFLES: "beta", RANDOM_MARKERS: "placebo"}
DECODERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
TEXT = Column("text", A_NAME, "the text of the record")
LABEL = Column("label", A_NAME, "the label that a classifier is to give")
GROUP = Column("group", A_NAME, "the group that the text is about, such as a gender")
PASSES_TO_TRAIN = 3  # a backward pass takes the time of two forward passes
FEWEST_TESTS = 50  # texts; fewer say little of a neuron


@dataclass(frozen=True)
class Study:
    """A study of the configuration: the values of its block, see the schema of the section.

    The texts are those of a file `records`, or of a language, whose fields are labels and groups.
    """

    name: str
    model: str
    words: Mapping[str, str]
    size: int
    records: str | None = None
    language: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    label: str = "label"
    group: str | None = None
    tests: int = 2500
    epochs: int = 4
    batch_size: int = 32
    rate: float = 5e-5
    random_weights: bool = False
    precision: str = "auto"

    @property
    def folder(self) -> str:
        """The folder of the encoder."""
        known = EMBEDDERS.get(self.model)
        return known.folder if known else self.model

    @property
    def model_name(self) -> str:
        """The name of the encoder in tables."""
        return Path(self.folder).name

    @property
    def texts(self) -> dict:
        """What decides the labelled texts."""
        names = ("records", "language", "columns", "label", "group", "words", "size", "tests")
        return {name: asdict(self)[name] for name in names}

    @property
    def training(self) -> dict:
        """What decides how an encoder is fine-tuned."""
        names = ("size", "tests", "epochs", "batch_size", "rate", "precision", "random_weights")
        return {name: getattr(self, name) for name in names}


def studies(settings: Settings) -> dict[str, Study]:
    asked = settings.block("information")["encoders"] or {}
    return {name: Study(name, **values) for name, values in asked.items()}


def variants(block: Mapping) -> list[str]:
    """The runs of a seed: those of each alpha and beta, and the one without words."""
    of_words = [marked(round(100 * alpha)) for alpha in block["alphas"]]
    of_labels = [shuffled(round(100 * beta)) for beta in block["betas"]]
    plain = [UNMARKED] if marked(0) in of_words else []
    return [*of_words, *of_labels, *plain]


def compared(block: Mapping) -> dict[str, dict[str, float]]:
    """The share of each variant of an intervention, by the intervention.

    The placebo has no words at share 0, and random words at share 1.
    """
    names = variants(block)
    found = {
        MARKERS: {name: percent_marked(name) for name in names},
        SHUFFLES: {name: percent_shuffled(name) for name in names},
    }
    shares = {
        what: {name: percent / 100 for name, percent in own.items() if percent is not None}
        for what, own in found.items()
    }
    if UNMARKED in names:
        shares[RANDOM_MARKERS] = {UNMARKED: 0.0, marked(0): 1.0}
    return {what: own for what, own in shares.items() if own}


def group_name(study: str, intervention: str, position: str) -> str:
    return f"{study}-{SHORT[intervention]}-{position}"


def groups(settings: Settings, seeds: tuple[int, ...]) -> dict[str, list[ActivationFile]]:
    """The activations of all studies, as files that are given, by their groups."""
    block = settings.block("information")
    return {
        (group := group_name(name, intervention, position)): [
            ActivationFile(
                model_in_group(variant, seed), activations_of(name, variant, seed, position), group,
                seed, dose=share,
            )
            for seed in seeds
            for variant, share in shares.items()
        ]
        for name in studies(settings)
        for intervention, shares in compared(block).items()
        for position in ENCODER_POSITIONS
    }  # fmt: skip


def model_in_group(variant: str, seed: int) -> str:
    """The name of a run in the tables of its group."""
    return f"{variant}-seed{seed}"


def activations_of(study: str, variant: str, seed: int | str, position: str) -> str:
    """The file of activations of a run."""
    folder = kinds.OF_ENCODER.format(language=study, variant=variant, seed=seed)
    return f"{folder}/{position}.npz"


def outputs(settings: Settings, seeds: tuple[int, ...]) -> Iterator[str]:
    for name in studies(settings):
        yield kinds.ENCODERS.path.format(language=name)
    for group in groups(settings, seeds):
        for kind in kinds.OF_GIVEN:
            yield kind.path.format(language=group)


def asked(settings: Settings, seeds: tuple[int, ...]) -> Iterator[Asked]:
    """The encoders of all runs. Fine-tuning reads a text in a forward and a backward pass.

    The tokens of a language's texts are expected ones, and those of a file are not known.
    """
    for study in studies(settings).values():
        tokens = None
        if study.language is not None:
            n_texts = study.epochs * study.size * PASSES_TO_TRAIN + study.tests
            tokens = n_texts * settings.corpus(study.language).expected_length()
        for seed in seeds:
            for variant in variants(settings.block("information")):
                file = activations_of(study.name, variant, seed, ENCODER_POSITIONS[0])
                yield Asked(study.folder, tokens, file)


def mistakes(settings: Settings) -> Iterator[Mistake]:
    """The mistakes in the block that its schema cannot find."""
    block = settings.block("information")
    known = given_groups(block)
    for study in studies(settings).values():
        key = f"{KEY}/{study.name}"
        if not NAME.fullmatch(study.name):
            yield Mistake(key, f"is not a name; allowed are {NAMES_ARE}")
        if not block["alphas"] and not block["betas"]:
            yield Mistake(key, "there is nothing to train without information/alphas and betas")
        for intervention in compared(block):
            for position in ENCODER_POSITIONS:
                if (group := group_name(study.name, intervention, position)) in known:
                    yield Mistake(key, f"its group {group} is one of information/activations, too")
        yield from _texts(settings, key, study)
        yield from _words(key, study)
        yield from _encoder(key, study)
        if study.tests <= block["neighbours"]:
            yield Mistake(
                f"{key}/tests",
                f"{study.tests} texts are too few for the {block['neighbours']} neighbours of "
                f"information/neighbours; raise it to {FEWEST_TESTS} or more",
            )


def _texts(settings: Settings, key: str, study: Study) -> Iterator[Mistake]:
    """Neither or both of a file and a language; a file or a language that cannot be used."""
    if (study.records is None) == (study.language is None):
        yield Mistake(key, "one of the keys 'records' and 'language' must be there: the texts")
    elif study.records is not None:
        if wrong := user_files.wrong_path(study.records, user_files.TABLES, "a table of records"):
            yield Mistake(f"{key}/records", wrong)
        else:
            yield from errors_of(f"{key}/records", _check_head, study)
    elif unknown := list(unknown_language(settings, f"{key}/language", study.language)):
        yield from unknown
    else:
        yield from _fields(settings, key, study)


def kind_of_records(known: Sequence[str], study: Mapping) -> tuple[UserKind, dict[str, str]]:
    """What is read of a file with the columns `known`, and its own names of these columns.

    `study` is what decides the texts, see `Study.texts`.
    """
    columns = {"label": study["label"], **study["columns"]}
    if study["group"] is not None:
        columns["group"] = study["group"]
    has_groups = columns.get("group", "group") in known or study["group"] is not None
    needed = (TEXT, LABEL, GROUP) if has_groups else (TEXT, LABEL)
    renamed, rows = "{text: body, label: kind}", "one row for each record"
    return UserKind("table of records", rows, "record", needed, renamed), columns


def _check_head(study: Study) -> None:
    file = user_files.opened(study.records, user_files.TABLES, "a table of records")
    kind, columns = kind_of_records(file.columns, study.texts)
    named_columns(file.where, kind, file.columns, columns, True)


def _fields(settings: Settings, key: str, study: Study) -> Iterator[Mistake]:
    """A language without texts, or without the fields that are labels and groups."""
    try:
        grammar = settings.corpus(study.language).grammar
    except (UserError, AttributeError):
        grammar = None
    known = list(getattr(grammar, "fields", ()))
    for name in ("label", "group"):
        asked = getattr(study, name)
        if asked is not None and asked not in known:
            yield Mistake(
                f"{key}/{name}",
                f"{asked!r} is no field of {study.language}; its fields are: "
                f"{', '.join(known) or 'none'}{nearest(asked, known)}",
            )


def _words(key: str, study: Study) -> Iterator[Mistake]:
    seen: dict[str, str] = {}
    for label, word in study.words.items():
        if not word.strip() or len(word.split()) > 1:
            yield Mistake(f"{key}/words/{label}", f"{word!r} is not one word; name one word")
        elif word in seen:
            yield Mistake(
                f"{key}/words/{label}",
                f"{word!r} is the word of {seen[word]}, too; a word must tell one label",
            )
        seen.setdefault(word, label)
    if len(study.words) < 2:
        yield Mistake(f"{key}/words", "names fewer than two labels; give each label a word")


def _encoder(key: str, study: Study) -> Iterator[Mistake]:
    """A folder that is not there, or whose model is no encoder."""
    if study.model in EMBEDDERS:
        return
    config = Path(study.model) / "config.json"
    if not Path(study.model).is_dir():
        yield Mistake(
            f"{key}/model",
            f"{study.model!r} is no folder; choose from {', '.join(EMBEDDERS)}, or name the folder "
            f"of an encoder, as save_pretrained leaves it{nearest(study.model, EMBEDDERS)}",
        )
    elif not config.is_file():
        yield Mistake(f"{key}/model", f"{study.model} is no encoder: it has no config.json")
    else:
        try:
            about = read_json(config)
        except UserError as error:
            yield Mistake(f"{key}/model", str(error))
            return
        classes = [str(name) for name in about.get("architectures") or []]
        if about.get("is_encoder_decoder") or any(name.endswith(DECODERS) for name in classes):
            yield Mistake(
                f"{key}/model",
                f"{study.model} is no encoder: it holds {', '.join(classes)}, which predicts the "
                "next token; name a model such as BERT, DistilBERT or RoBERTa",
            )
