"""Local folders with models: whether all files are there."""

import json
from collections.abc import Mapping
from pathlib import Path

from palimpsest.errors import UserError, nearest
from palimpsest.models.table import Model

# Without its vocabulary, some tokenizers of transformers load without an error, with no tokens.
VOCABULARIES = ("*.model", "vocab.json", "vocab.txt", "tekken.json", "*.tiktoken")
Part = tuple[str, tuple[str, ...]]  # of a model: a name, and files; one of the files must exist
TOKENIZER: Part = (
    "tokenizer (tokenizer.json, or a vocabulary with tokenizer_config.json)",
    ("tokenizer.json", *VOCABULARIES),
)
SAVE_AGAIN = "save the model and its tokenizer again with save_pretrained"
PICKLED = ("pytorch_model*.bin", "*.pt", "*.pth", "*.ckpt")


def is_folder(id: str) -> bool:
    """Whether an `id` names a local folder, existing or not; an id of the hub is `owner/name`."""
    is_path = id.startswith((".", "/", "~")) or id.endswith("/") or id.count("/") > 1
    return Path(id).is_dir() or is_path


def unknown_name(model: str, known: Mapping[str, Model], table: str | Path) -> str:
    """Why a name is no model, neither a folder nor of the table or the hub; "" if it may be one."""
    if "/" in model or model in known or is_folder(model):
        return ""
    return (
        f"{model}: no such folder, and no name in {table}{nearest(model, known)}; a name on the "
        "Hugging Face hub is OWNER/NAME"
    )


def read_json(path: str | Path) -> dict:
    """The JSON object in a file of a model's folder; `UserError` if it holds anything else."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read as JSON: {error}; {SAVE_AGAIN}") from None
    if not isinstance(found, dict):
        raise UserError(f"{path}: must hold one JSON object, {{...}}; {SAVE_AGAIN}")
    return found


def check_folder(row: Model) -> None:
    """Raise `UserError` if a model's folder lacks its configuration, tokenizer or weights."""
    _check(f"{row.model}: cannot load {row.id}", Path(row.id), _parts(Path(row.id)))


def check_saved(folder: str) -> None:
    """As `check_folder`, for a folder that is in no table."""
    _check(f"{folder}: is no model", Path(folder), _parts(Path(folder)))


def check_tokenizer(folder: str) -> None:
    """Raise `UserError` if a folder has no tokenizer, of which transformers says nothing clear."""
    _check(f"{folder}: cannot be loaded", Path(folder), [TOKENIZER])


def _check(said: str, folder: Path, parts: list[Part]) -> None:
    missing = [what for what, patterns in parts if not _has(folder, patterns)]
    if missing:
        raise UserError(
            f"{said}: it has no {' and no '.join(missing)}; the folder must hold config.json, the "
            "tokenizer and *.safetensors, as model.save_pretrained and tokenizer.save_pretrained "
            "leave them"
        )


def _parts(folder: Path) -> list[Part]:
    weights = "*.safetensors"
    if _has(folder, PICKLED):
        weights += " (pickled weights are not read, because they can run any code)"
    return [
        ("config.json", ("config.json",)),
        TOKENIZER,
        (weights, ("*.safetensors",)),
    ]


def _has(folder: Path, patterns: tuple[str, ...]) -> bool:
    return any(any(folder.glob(pattern)) for pattern in patterns)
