"""How many tokens a model takes at once, and how many its vocabulary has."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from palimpsest.errors import UserError
from palimpsest.models.folders import SAVE_AGAIN, read_json
from palimpsest.models.table import Model

TWIN_POSITIONS = 1024  # of every twin, in tokens
POSITIONS = ("max_position_embeddings", "n_positions")  # keys of configurations in files
SHOWN = 40  # letters of a string in a message


@dataclass(frozen=True)
class Limits:
    """The most tokens at once, and the number of tokens in the vocabulary; None if unlimited.

    Beyond its positions, a model fails or predicts what nobody trained it for.
    """

    positions: int | None
    vocabulary: int | None

    @classmethod
    def of_config(cls, config) -> "Limits":
        """The limits in a configuration of transformers."""
        config = config.get_text_config()
        positions = above_0(getattr(config, POSITIONS[0], None))
        return cls(positions, above_0(config.vocab_size))


def known_positions(row: Model, scale: str) -> int | None:
    """The most tokens at once, if known without loading the model; None if unknown.

    Raises `UserError` if the configuration in a local folder is broken, or is of another type of
    model than the row.
    """
    if scale == "twin":
        return TWIN_POSITIONS
    path = Path(row.id) / "config.json"
    if not path.is_file():
        return None
    config = read_json(path)
    of_text = config.get("text_config")
    of_text = of_text if isinstance(of_text, dict) else {}
    types = [each["model_type"] for each in (config, of_text) if "model_type" in each]
    if types and row.model_type not in types:
        raise UserError(
            f"{row.model}: {path}: model_type is {types[0]!r}, and {row.model_type!r} in the table "
            "of models; correct the row's model_type or its id"
        )
    found = {**config, **of_text}
    for name in POSITIONS:
        value = found.get(name)
        if value is not None and type(value) is not int:
            raise UserError(
                f"{row.model}: {path}: {name} is {value!r}; it must be a whole number: {SAVE_AGAIN}"
            )
    return next((most for name in POSITIONS if (most := above_0(found.get(name)))), None)


def above_0(value: object) -> int | None:
    """A limit in a configuration; None if there is no limit, for which some classes write -1."""
    return value if isinstance(value, int) and value > 0 else None


def check_positions(
    model: str, what: str, n_tokens: int, most: int | None, remedy: Callable[[int], str]
) -> None:
    """Raise `UserError` if a string has more tokens than a model takes.

    `what` names the string, such as `the segment 'a b'`, and `n_tokens` counts its start token.
    `remedy` says what to do, from the most tokens that the model takes.
    """
    if most is not None and n_tokens > most:
        raise UserError(
            f"{model}: {what} has {n_tokens:,} tokens with the start token, and the model takes at "
            f"most {most:,}; {remedy(most)}"
        )


def check_vocabulary(model: str, largest: int, size: int | None) -> None:
    """Raise `UserError` if a tokenizer gives a token id that the model's weights do not have."""
    if size is not None and largest >= size:
        raise UserError(
            f"{model}: its tokenizer gives the token {largest:,}, and its weights have only the "
            f"tokens 0 to {size - 1:,}; call model.resize_token_embeddings(len(tokenizer)), and "
            "save the model again"
        )


def shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
