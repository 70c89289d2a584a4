"""The warning for words that a model's tokenizer does not know."""

import logging

log = logging.getLogger("palimpsest")


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
