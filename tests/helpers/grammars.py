"""Grammars drawn by hypothesis."""

import warnings

from hypothesis import strategies as st

from palimpsest.languages import Grammar, GrammarWarning


def grammar_of(text: str) -> Grammar:
    """The grammar of a text, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        return Grammar.from_string(text)


@st.composite
def finite_grammars(draw, n_levels: int, longest: int):
    """Grammars without recursion, rich in unary rules, shared beginnings and ambiguity.

    `n_levels` is the number of non-terminals, and `longest` the largest number of symbols on the
    right-hand side of a rule.
    """
    lines = []
    for level in range(n_levels):
        lower = [f"N{i}" for i in range(level + 1, n_levels)]
        symbol = st.sampled_from([*lower, *lower, "'a'", "'b'"])
        side = st.lists(symbol, min_size=1, max_size=longest)
        sides = draw(st.lists(side, min_size=1, max_size=3))
        weights = draw(st.lists(st.integers(1, 9), min_size=len(sides), max_size=len(sides)))
        for chosen, weight in zip(sides, weights, strict=True):
            lines.append(f"N{level} -> {' '.join(chosen)} [{weight / sum(weights):.15f}]")
    return grammar_of("\n".join(lines))
