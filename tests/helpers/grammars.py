"""Grammars drawn by hypothesis."""

import warnings

from hypothesis import assume
from hypothesis import strategies as st

from palimpsest.languages import Grammar, GrammarError, GrammarWarning


def grammar_of(text: str) -> Grammar:
    """The grammar of a text, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        return Grammar.from_string(text)


def usable(text: str, *reasons: str) -> Grammar:
    """The grammar of a text; a text that is refused for one of the reasons is drawn again."""
    try:
        return grammar_of(text)
    except GrammarError as error:
        if not any(reason in str(error) for reason in reasons):
            raise
    assume(False)


@st.composite
def finite_grammars(draw, n_levels: int, longest: int, shortest: int = 1):
    """Grammars without recursion, rich in unary rules, shared beginnings and ambiguity.

    `n_levels` is the number of non-terminals, and `shortest` and `longest` are the numbers of
    symbols on the right-hand side of a rule; with 0, some rules are empty, but not all strings.
    """
    lines = []
    for level in range(n_levels):
        lower = [f"N{i}" for i in range(level + 1, n_levels)]
        symbol = st.sampled_from([*lower, *lower, "'a'", "'b'"])
        side = st.lists(symbol, min_size=shortest, max_size=longest)
        sides = draw(st.lists(side, min_size=1, max_size=3))
        weights = draw(st.lists(st.integers(1, 9), min_size=len(sides), max_size=len(sides)))
        for chosen, weight in zip(sides, weights, strict=True):
            lines.append(f"N{level} -> {' '.join(chosen)} [{weight / sum(weights):.15f}]")
    return usable("\n".join(lines), "derives only the empty string")
