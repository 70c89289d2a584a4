"""Words and characters that a model's tokenizer does not know, and the warnings of them."""

import logging
import unicodedata
from collections import Counter
from collections.abc import Iterable

from palimpsest.models.tokens import Vocabulary

log = logging.getLogger("palimpsest")


def unknown_ids(tokenizer) -> list[int]:
    """The ids of the tokens that stand for any unknown text, in a tokenizer of transformers."""
    return sorted(Vocabulary.of_transformers(tokenizer).unknown)


def warn_of_unknown(model: str, share: float, what: str, numbers: str) -> None:
    """Warn if a share of the tokens of some texts are a model's unknown token.

    `what` names the texts, and `numbers` what is worked out from them.
    """
    if share > 0:
        log.warning(
            "%s: its tokenizer does not know %.3g %% of the tokens of the %s, which are all one "
            "token to it; do not trust their %s, or choose a model that knows these words",
            model,
            100 * share,
            what,
            numbers,
        )


def warn_of_left_out(model: str, tokenizer, texts: Iterable[str], what: str, numbers: str) -> None:
    """Warn if a tokenizer has no token at all for some characters, so that it leaves them out.

    Tokenizers without an unknown token do so. Marks, blanks and unseen characters do not count.
    """
    encode = Vocabulary.of_transformers(tokenizer).encode
    counts = Counter(c for text in texts for c in text if unicodedata.category(c)[0] not in "MCZ")
    left_out = [character for character in counts if not encode(character)]
    if left_out:
        log.warning(
            "%s: its tokenizer leaves out %.3g %% of the characters of the %s, such as %s; do not "
            "trust their %s, or choose a model that knows these characters",
            model,
            100 * sum(counts[character] for character in left_out) / counts.total(),
            what,
            " ".join(map(ascii, left_out[:3])),
            numbers,
        )
