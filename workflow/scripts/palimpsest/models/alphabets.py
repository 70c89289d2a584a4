"""What the strings of a corpus are made of: symbols, or text that a model's tokenizer cuts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# The special tokens of twins, by their ids
TWIN_SPECIALS = {"start": 0, "end": 1}
SPECIAL = "<{}>"  # the text of a twin's special token, such as <start>
# Tokens of a twin of a text: 256 bytes, the special tokens, and frequent sequences of bytes
TEXT_VOCABULARY = 512


@dataclass(frozen=True)
class Alphabet:
    """What the strings of a corpus are made of.

    With `terminals`, a string is their sequence, and each of them is one token of a model. Without
    them, a string is a text, which the tokenizer of a model cuts. A twin has no tokenizer of its
    own: then it has `tokenizer`, as JSON of the library `tokenizers`.
    """

    terminals: tuple[str, ...] = ()
    tokenizer: str | None = None

    @property
    def is_text(self) -> bool:
        return self.tokenizer is not None

    def decisive(self, scale: str) -> dict:
        """What decides a trace of a model of this scale, for the key of a run."""
        if not self.is_text:
            return {"terminals": list(self.terminals)}
        return {"tokenizer": self.tokenizer if scale == "twin" else "of the model"}

    @classmethod
    def of_configuration(cls, decided: dict) -> Alphabet:
        """The alphabet that `decisive` described."""
        return cls(tuple(decided.get("terminals", ())), decided.get("tokenizer"))


def twin_vocabulary(n_terminals: int, is_text: bool) -> int:
    """Number of tokens of a twin, with its special tokens."""
    return TEXT_VOCABULARY if is_text else len(TWIN_SPECIALS) + n_terminals


def special_text(name: str, terminals: Iterable[str]) -> str:
    """The text of a twin's special token: one that is in no terminal, where it would be cut out."""
    text = SPECIAL.format(name)
    while any(text in terminal for terminal in terminals):
        text = SPECIAL.format(text)
    return text


def byte_level_tokenizer(texts: Iterable[str]) -> str:
    """A tokenizer that knows every text: byte-level BPE, trained on some texts; JSON.

    The same texts give the same tokenizer. Texts with few different words give fewer tokens than
    `TEXT_VOCABULARY`.
    """
    from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
    from tokenizers.models import BPE

    made = Tokenizer(BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=TEXT_VOCABULARY,
        special_tokens=[SPECIAL.format(name) for name in TWIN_SPECIALS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    return made.to_str()
