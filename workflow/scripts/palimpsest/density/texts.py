"""Texts of the user: a corpus and queries, the outputs about them, and the mistakes.

Source: LMD3: Language Model Data Density Dependence, section 5.4 and appendix A.2.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from palimpsest.configuration.checks import incomplete_folders, unknown_model
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.named_files import errors_of
from palimpsest.configuration.settings import Settings
from palimpsest.density.kinds import HIDDEN, NGRAMS, TEXT_BINS, TEXT_DENSITY, TEXT_REGRESSIONS
from palimpsest.errors import UserError, nearest
from palimpsest.models.folders import PICKLED
from palimpsest.models.table import NAME, NAMES_ARE
from palimpsest.pretrained.embedders import EMBEDDERS
from palimpsest.tables import user_files
from palimpsest.tables.kinds import NAME as NAME_OF_TEXT
from palimpsest.tables.kinds import NUMBER, TEXT, Column, UserKind
from palimpsest.tables.user_columns import check_columns

FIELD, RESPONSE = "text", "response"
SEGMENT_ROLES = CORPUS, QUERY = "corpus", "query"  # of segments
QUERIES = "queries"  # the name of a text's only set of queries
TEXTS = UserKind(
    "text",
    "one text a row",
    "text",
    (Column(FIELD, TEXT, "a text with words"),),
    renamed="field: body",
)
OF_TEXT = (TEXT_DENSITY, TEXT_BINS, TEXT_REGRESSIONS)
MODULES = "modules.json"  # a sentence-transformers model's list of its modules
OWN_MODULES = "sentence_transformers."  # modules of other names are code in the folder
KEY = "density/texts"
NEIGHBOURS = "a table of neighbours"
GIVEN = UserKind(
    "table of neighbours",
    "one neighbour of a query a row",
    "neighbour",
    (
        Column("query", NAME_OF_TEXT, "the segment_id of a query, as in the table segments"),
        Column("neighbour", NAME_OF_TEXT, "the segment_id of a segment of the corpus"),
        Column("distance", NUMBER, "the distance of their embeddings, from 0 on"),
    ),
)


@dataclass(frozen=True)
class Text:
    """A text of the configuration: the values of its block, see the schema of the section.

    `field` is the column or field of the text in both files, unless a file is a .txt, in which a
    line is a text, or a folder of them, in which a file is a text. `queries` is a file, or several
    by name. The window and the stride are the paper's.
    """

    name: str
    corpus: str
    queries: str | Mapping[str, str]
    field: str = FIELD
    response: str = RESPONSE
    embedding: str = NGRAMS
    model: str | None = None
    window: int = 50
    stride: int = 40
    found_neighbours: str | None = None

    @property
    def query_sets(self) -> dict[str, str]:
        """The files of queries by the name of the set."""
        one = isinstance(self.queries, str)
        return {QUERIES: self.queries} if one else dict(self.queries)

    @property
    def files(self) -> dict[str, str]:
        """The files of texts by their keys."""
        one = isinstance(self.queries, str)
        sets = {f"{QUERIES}/{name}": path for name, path in self.query_sets.items()}
        return {CORPUS: self.corpus, **({QUERIES: self.queries} if one else sets)}

    @property
    def folder(self) -> str | None:
        """The folder of the sentence-transformers model that embeds; None for another embedding."""
        if self.embedding in (HIDDEN, NGRAMS):
            return None
        known = EMBEDDERS.get(self.embedding)
        return known.folder if known else self.embedding


def texts(settings: Settings) -> dict[str, Text]:
    asked = settings.block("density")["texts"]
    return {name: Text(name, **values) for name, values in asked.items()}


def name_of_embedding(embedding: str) -> str:
    """The name of an embedding in tables: ngrams, hidden, or that of the folder."""
    return embedding if embedding in (NGRAMS, HIDDEN) else Path(embedding).name


def outputs(settings: Settings) -> Iterator[str]:
    for name in texts(settings):
        for kind in OF_TEXT:
            yield kind.path.format(language=name)


def mistakes(settings: Settings) -> Iterator[Mistake]:
    """The mistakes in the block that its schema cannot find.

    Raises `UserError` if the local folder of a language model lacks some of its files.
    """
    for text in texts(settings).values():
        key = f"{KEY}/{text.name}"
        if not NAME.fullmatch(text.name):
            yield Mistake(key, f"is not a name; allowed are {NAMES_ARE}")
        for name, path in text.files.items():
            if wrong := user_files.wrong_path(path, user_files.TEXTS, "a text"):
                yield Mistake(f"{key}/{name}", wrong)
        for name in text.query_sets:
            if not NAME.fullmatch(name):
                yield Mistake(f"{key}/{QUERIES}/{name}", f"is not a name; allowed are {NAMES_ARE}")
        yield from _neighbours(f"{key}/found_neighbours", text.found_neighbours)
        have_field = map(user_files.has_own_columns, text.files.values())
        if text.field != FIELD and not any(have_field):
            yield Mistake(
                f"{key}/field",
                f"{text.field!r} is in no .txt file, which names no columns; leave it out",
            )
        if text.stride > text.window:
            yield Mistake(
                f"{key}/stride",
                f"{text.stride} is above {key}/window, {text.window}, so the words between two "
                f"windows would be lost; set it to at most {text.window}",
            )
        yield from _model(settings, key, text)
        yield from _embedding(key, text)


def _neighbours(key: str, path: str | None) -> Iterator[Mistake]:
    if path is None:
        return
    if wrong := user_files.wrong_path(path, user_files.TABLES, NEIGHBOURS):
        yield Mistake(key, wrong)
    else:
        yield from errors_of(key, check_columns, path, GIVEN)


def _model(settings: Settings, key: str, text: Text) -> Iterator[Mistake]:
    """The language model does not exist, or cannot read words."""
    if text.model is None:
        if text.embedding == HIDDEN:
            yield Mistake(
                f"{key}/model",
                f"is null, and {key}/embedding is {HIDDEN}: the hidden states of this model; name "
                f"a model of {settings.config['models_table']}, or set the embedding to {NGRAMS}",
            )
        return
    if unknown := list(unknown_model(settings, f"{key}/model", text.model)):
        yield from unknown
        return
    if settings.is_twin(text.model):
        yield Mistake(
            f"{key}/model",
            f"{text.model} is a twin, which knows the symbols of one language and no words; name a "
            "pretrained model, or null for densities without perplexities",
        )
        return
    incomplete_folders(settings, [text.model])


def _embedding(key: str, text: Text) -> Iterator[Mistake]:
    """The embedding is unknown, or its folder holds no such model."""
    if text.folder is None or text.embedding in EMBEDDERS:
        return
    if set("{}") & set(text.embedding):
        yield Mistake(f"{key}/embedding", f"{text.embedding!r} is not allowed; no braces")
    elif not os.path.isdir(text.embedding):
        known = [NGRAMS, HIDDEN, *EMBEDDERS]
        yield Mistake(
            f"{key}/embedding",
            f"{text.embedding!r} is unknown, and no folder; choose from {', '.join(known)}, or "
            f"name the folder of a sentence-transformers model{nearest(text.embedding, known)}",
        )
    else:
        try:
            check_embedder(text.embedding)
        except UserError as error:
            yield Mistake(f"{key}/embedding", str(error))


def check_embedder(folder: str | Path) -> None:
    """Raise `UserError` unless a folder holds a sentence-transformers model that is safe to load.

    Safe means: weights in safetensors, and no module with code of its own.
    """
    folder = Path(folder)
    try:
        modules = json.loads((folder / MODULES).read_text())
        parts = [(module["path"], module["type"]) for module in modules]
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(
            f"{folder}: has no readable {MODULES}, so it is not the folder of a "
            "sentence-transformers model; save one with: model.save(folder)"
        ) from None
    has_weights = False
    for place, kind in parts:
        if not str(kind).startswith(OWN_MODULES):
            raise UserError(
                f"{folder}: {MODULES}: the module {kind} is code that comes with the model; such "
                "code is never run: choose a model without"
            )
        has_safe = any((folder / place).glob("*.safetensors"))
        pickled = [path.name for each in PICKLED for path in (folder / place).glob(each)]
        if pickled and not has_safe:
            raise UserError(
                f"{folder}: {pickled[0]}: pickled weights are not read, because they can run any "
                "code; save the model again, which writes model.safetensors"
            )
        has_weights |= has_safe
    if not has_weights:
        raise UserError(f"{folder}: has no weights (*.safetensors); save the model again")
