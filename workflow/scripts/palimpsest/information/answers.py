"""The answer of a string: its last symbol, which the first choice of the derivation decides.

In the languages L3, L3-short, L4, L6 and L8, one symbol in the middle of a string decides the last
one. A model has learned the language only if it has learned this. A **marker** is one more symbol
at the start of a string; a model can use the marker in place of the rule.
"""

from collections import defaultdict

from palimpsest.corpora import String
from palimpsest.corpora.grammar_corpus import first_choice
from palimpsest.errors import UserError
from palimpsest.languages import Grammar
from palimpsest.languages.structure import Rule, Symbol

START = "with-answer"


def answers(grammar: Grammar) -> list[str]:
    """The distinct answers of a language, in the order of its rules.

    Raises `UserError` if the last symbol is not decided by the first choice, or if there is only
    one answer.
    """
    found = list(dict.fromkeys(_answer(grammar, rule) for rule in first_choice(grammar)[1]))
    if None in found or len(found) < 2:
        raise UserError(
            f"{grammar.name}: its strings have no answer; the first choice of a derivation must "
            "decide the last symbol, and there must be two last symbols: choose L3, L3-short, L4, "
            "L6 or L8"
        )
    return found


def answer_of(string: String) -> str:
    return string[-1]


def with_answers(
    grammar: Grammar, beta: float = 0.0, alpha: float | None = None, label_noise: float = 0.0
) -> Grammar:
    """The language of training strings with random or wrong answers, and with markers.

    Parameters
    ----------
    grammar : a language whose strings have answers
    beta : share of strings whose answer is drawn anew, from the language's own shares of answers
    alpha : share of the strings with a right answer whose marker is this answer; the marker of all
        others is drawn evenly from all answers. None: strings have no marker.
    label_noise : share of strings whose answer is one of the wrong ones, drawn evenly

    Raises `UserError` if strings of the language have no answer.
    """
    names = answers(grammar)
    choices = first_choice(grammar)[1]
    share = dict.fromkeys(names, 0.0)
    for rule in choices:
        share[_answer(grammar, rule)] += rule.probability
    markers = {(): 1.0} if alpha is None else {(name,): 1 / len(names) for name in names}
    probability: dict[tuple[Symbol, ...], float] = defaultdict(float)
    for rule in choices:
        own = _answer(grammar, rule)
        for answer in names:
            wrong = label_noise / (len(names) - 1)
            of_rule = 1 - label_noise if answer == own else wrong
            of_answer = beta * share[answer] + (1 - beta) * of_rule
            for marker, even in markers.items():
                agrees = marker == (answer,)
                marked = alpha if alpha and answer == own else 0.0
                of_marker = (1 - marked) * even + marked * agrees
                symbols = [Symbol(name, True) for name in (*marker, answer)]
                rhs = (*symbols[:-1], *rule.rhs[:-1], symbols[-1])
                probability[rhs] += rule.probability * of_answer * of_marker
    rules = [Rule(START, rhs, p) for rhs, p in probability.items() if p > 0]
    return Grammar(grammar.name, START, (*rules, *grammar.rules))


def _answer(grammar: Grammar, rule: Rule) -> str | None:
    """The last terminal of every string of a rule; None if strings of the rule end differently."""
    while rule.rhs and not rule.rhs[-1].terminal:
        rules = [own for own in grammar.rules if own.lhs == rule.rhs[-1].name]
        if len(rules) != 1:
            return None
        (rule,) = rules
    return rule.rhs[-1].name if rule.rhs else None
