"""The table of models, `config/models.tsv`, and the meaning of models' names.

A name in the table is the pretrained model (scale `full`). The name followed by `-twin` is a small
model of the same architecture with random initial weights (scale `twin`), which needs no download.
"""

import math
import re
from dataclasses import dataclass, fields
from pathlib import Path

from palimpsest.errors import UserError, nearest
from palimpsest.tables.user_files import delimited
from palimpsest.tables.user_values import number_in

TWIN = "-twin"
# A twin's initial weights depend on its name as well as on its shape.
TWIN_DECISIVE = ("model", "model_type", "twin_hidden", "twin_layers", "twin_heads")
FULL_DECISIVE = ("model", "id", "revision", "model_type")
LARGEST = {"twin_hidden": 65536, "twin_layers": 1024, "twin_heads": 1024}
WHOLE = re.compile(r"\s*\+?[0-9]+\s*", re.ASCII)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # a part of paths
NAMES_ARE = "letters, digits, '.', '_' and '-' of ASCII, a letter or digit first, at most 100"


@dataclass(frozen=True)
class Model:
    """One row of the table of models.

    `id` is a name on the Hugging Face hub, or a local folder. `parameters`, `layers`, `hidden` (the
    width) and `vocabulary` are those of the full model; its memory and time are estimated from
    them. The columns `twin_*` describe the twin: width, depth, attention heads and learning rate.
    """

    model: str
    family: str
    id: str
    revision: str
    model_type: str
    parameters: int
    layers: int
    hidden: int
    vocabulary: int
    learning_rate: float
    twin_hidden: int
    twin_layers: int
    twin_heads: int
    twin_learning_rate: float

    def decisive(self, scale: str) -> dict[str, str | int]:
        """The columns that affect the traces of a scale, without the learning rate.

        The learning rate is part of the recipe. A correction of any other column must not retrain
        a model.
        """
        names = TWIN_DECISIVE if scale == "twin" else FULL_DECISIVE
        return {name: getattr(self, name) for name in names}


def read_models(path: str | Path) -> dict[str, Model]:
    """Read the table of models; raises `UserError` with file, line and column."""
    columns = [field.name for field in fields(Model)]
    rows = delimited(path, "\t", quoted=False)
    _, header = next(rows, (1, []))
    if header != columns:
        raise UserError(
            f"{path}:1: the header must be, separated by tabs: {' '.join(columns)}; "
            f"it is: {' '.join(header or ['empty'])}"
        )
    models = {}
    for line, cells in rows:
        where = f"{path}:{line}"
        model = _parse_row(where, cells)
        if model.model in models:
            raise UserError(f"{where}: the model {model.model!r} is listed twice; names are unique")
        models[model.model] = model
    if not models:
        raise UserError(
            f"{path}: lists no model; add a row, such as a row of the paper's 18 models"
        )
    return models


def _parse_row(where: str, cells: list[str]) -> Model:
    """Each cell is checked and converted to its column's type."""
    columns = fields(Model)
    if len(cells) != len(columns):
        raise UserError(f"{where}: a row has {len(columns)} cells separated by tabs")
    model = Model(
        *(_parse_cell(where, f.name, f.type, cell) for f, cell in zip(columns, cells, strict=True))
    )
    if not NAME.fullmatch(model.model) or model.model.endswith(TWIN):
        raise UserError(
            f"{where}: model: {model.model!r} is not a name; allowed are {NAMES_ARE}, "
            f"and no {TWIN!r} at the end (that names the twin of a row)"
        )
    if model.twin_hidden % (2 * model.twin_heads):
        raise UserError(
            f"{where}: twin_hidden: {model.twin_hidden} must be a multiple of twice twin_heads "
            f"({model.twin_heads}), so that each head has an even width"
        )
    return model


def _parse_cell(where: str, column: str, kind: type, text: str) -> str | int | float:
    """A cell as `kind`; numbers must be positive and finite, texts not empty."""
    if kind is str:
        if not text.strip():
            raise UserError(f"{where}: {column}: must not be empty")
        return text
    try:
        number = number_in(text) if kind is float or WHOLE.fullmatch(text) else math.nan
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf):
        what = "a whole number" if kind is int else "a number"
        raise UserError(f"{where}: {column}: {text!r} must be {what} above 0")
    if number > LARGEST.get(column, number):
        raise UserError(f"{where}: {column}: {text!r} must be at most {LARGEST[column]}")
    return int(text) if kind is int else number


def resolve(name: str, models: dict[str, Model]) -> tuple[Model, str]:
    """The row and the scale (`full` or `twin`) of a model's name; KeyError if it is unknown."""
    row = name.removesuffix(TWIN)
    if row not in models:
        known = [known + suffix for known in models for suffix in ("", TWIN)]
        raise KeyError(f"unknown model {name!r}; known: {', '.join(models)}{nearest(name, known)}")
    return models[row], "twin" if name.endswith(TWIN) else "full"


def learning_rate(name: str, models: dict[str, Model]) -> float:
    row, scale = resolve(name, models)
    return row.twin_learning_rate if scale == "twin" else row.learning_rate
