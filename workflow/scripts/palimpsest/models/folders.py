"""Local folders with models: whether all files are there."""

import json
from pathlib import Path

from palimpsest.errors import UserError
from palimpsest.models.table import Model

# Without its vocabulary, some tokenizers of transformers load without an error, with no tokens.
TOKENIZERS = ("tokenizer.json", "*.model", "vocab.json", "vocab.txt", "tekken.json", "*.tiktoken")
SAVE_AGAIN = "save the model and its tokenizer again with save_pretrained"
PICKLED = ("pytorch_model*.bin", "*.pt", "*.pth", "*.ckpt")


def is_folder(id: str) -> bool:
    """Whether an `id` names a local folder, existing or not; an id of the hub is `owner/name`."""
    is_path = id.startswith((".", "/", "~")) or id.endswith("/") or id.count("/") > 1
    return Path(id).is_dir() or is_path


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
    folder = Path(row.id)
    missing = [what for what, patterns in _parts(folder) if not _has(folder, patterns)]
    if missing:
        raise UserError(
            f"{row.model}: cannot load {row.id}: it has no {' and no '.join(missing)}; the folder "
            "must hold config.json, the tokenizer and *.safetensors, as save_pretrained of the "
            "model and of its tokenizer leave them"
        )


def _parts(folder: Path) -> list[tuple[str, tuple[str, ...]]]:
    """The parts of a model: a name, and files; one of the files must exist."""
    weights = "*.safetensors"
    if _has(folder, PICKLED):
        weights += " (pickled weights are not read, because they can run any code)"
    return [
        ("config.json", ("config.json",)),
        ("tokenizer (tokenizer.json)", TOKENIZERS),
        (weights, ("*.safetensors",)),
    ]


def _has(folder: Path, patterns: tuple[str, ...]) -> bool:
    return any(any(folder.glob(pattern)) for pattern in patterns)
