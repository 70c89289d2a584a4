"""Empty right-hand sides and tiny probabilities: against brute force, and against NLTK."""

import math
import warnings
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product

import nltk
import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helpers.grammars import grammar_of, usable
from palimpsest.languages import Grammar, GrammarError, inside
from palimpsest.languages.decisions import decisions
from palimpsest.languages.notation import Symbol

DYCK = "S -> '(' S ')' S [0.4] | [0.6]"
CYCLES = """
S -> A B [0.3] | B A 'c' [0.3] | S S [0.1] | [0.1] | A [0.2]
A -> B A [0.2] | [0.3] | 'a' [0.5]
B -> A [0.2] | A B A [0.1] | 'b' [0.4] | [0.3]
"""
MANY = """
S -> A A B A 'c' B A B A [0.5] | A B A B A B [0.5]
A -> 'a' [0.5] | [0.5]
B -> 'b' [0.25] | A [0.25] | [0.5]
"""
GRAMMARS = {"dyck": DYCK, "cycles": CYCLES, "many": MANY}


@st.composite
def finite(draw):
    """Grammars without recursion, with empty rules, and with probabilities down to 1e-280."""
    names = [f"N{level}" for level in range(4)]
    lines = []
    for level, name in enumerate(names):
        symbols = st.sampled_from([*names[level + 1 :], *names[level + 1 :], "'a'", "'b'"])
        sides = draw(st.lists(st.lists(symbols, max_size=3), min_size=1, max_size=3))
        tiny = draw(st.lists(st.sampled_from([0, 0, 0, 30, 280]), min_size=3, max_size=3))
        weights = [Fraction(1, 10**power) for power in tiny[: len(sides)]]
        weights[0] = 1 - sum(weights[1:]) if sum(weights[1:]) < 1 else Fraction(1, len(sides))
        if weights[0] == Fraction(1, len(sides)):
            weights = [weights[0]] * len(sides)
        for side, weight in zip(sides, weights, strict=True):
            number = f"{weight.numerator}/{weight.denominator}"
            if len(number) > 300:
                number = f"{float(weight):.17g}"
            lines.append(f"{name} -> {' '.join(side)} [{number}]")
    return usable("\n".join(lines), "only the empty string")


@st.composite
def recursive(draw):
    """Grammars whose non-terminals lead to each other, and may be empty; derivations soon end."""
    names, lines = ["S", "A", "B"], []
    for name in names:
        sides = st.lists(st.sampled_from([*names, "'a'", "'b'"]), max_size=3)
        longer = draw(st.lists(sides, min_size=1, max_size=3))
        ends = draw(st.sampled_from(["", "'a'", "'b'"]))
        weights = draw(st.lists(st.integers(1, 5), min_size=len(longer), max_size=len(longer)))
        whole = sum(weights) + 9
        lines += [f"{name} -> {' '.join(s)} [{w}/{whole}]" for s, w in zip(longer, weights)]  # noqa: B905
        lines.append(f"{name} -> {ends} [9/{whole}]")
    return usable("\n".join(lines), "infinite expected length", "only the empty string")


def exact(grammar):
    """Strings of a language without recursion with exact probabilities, by plain expansion."""
    rules = defaultdict(list)
    for rule in grammar.rules:
        rules[rule.lhs].append((rule.rhs, Fraction(rule.probability)))
    waiting, found = [(Fraction(1), (), (Symbol(grammar.start, False),))], Counter()
    while waiting:
        probability, done, rest = waiting.pop()
        if not rest:
            found[done] += probability
        elif rest[0].terminal:
            waiting.append((probability, (*done, rest[0].name), rest[1:]))
        else:
            waiting += [(probability * p, done, rhs + rest[1:]) for rhs, p in rules[rest[0].name]]
    return found


def log(probability):
    """log of a Fraction, however small: that of a number between 1/2 and 2, and of a power of 2.

    The logs of numerator and denominator are in thousands here, and their difference has few
    correct digits.
    """
    if not probability:
        return -math.inf
    power = probability.numerator.bit_length() - probability.denominator.bit_length()
    return math.log(probability / Fraction(2) ** power) + power * math.log(2)


def iterated(grammar, strings):
    """Probabilities of strings, by iteration of the equations of all their parts from 0."""
    parts = {s[a:b] for s in strings for a in range(len(s) + 1) for b in range(a, len(s) + 1)}
    known = {(rule.lhs, part): 0.0 for rule in grammar.rules for part in parts}

    def of_sequence(symbols, part):
        if not symbols:
            return float(not part)
        first, rest = symbols[0], symbols[1:]
        if first.terminal:
            return of_sequence(rest, part[1:]) if part[:1] == (first.name,) else 0.0
        return sum(
            known[first.name, part[:cut]] * of_sequence(rest, part[cut:])
            for cut in range(len(part) + 1)
            if known[first.name, part[:cut]]
        )

    for _ in range(2000):
        new = dict.fromkeys(known, 0.0)
        for rule in grammar.rules:
            for part in parts:
                new[rule.lhs, part] += rule.probability * of_sequence(rule.rhs, part)
        largest = max(abs(new[key] - known[key]) for key in known)
        known = new
        if largest < 1e-15:
            break
    return np.array([known[grammar.start, s] for s in strings])


@settings(deadline=None, max_examples=60)
@given(finite())
def test_every_string_and_prefix_of_a_finite_language(grammar):
    """To a part in 1e12 of the probability, however small it is."""
    strings = exact(grammar)
    assume(len(strings) < 3000)
    prefixes = Counter()
    for string, probability in strings.items():
        for end in range(len(string) + 1):
            prefixes[string[:end]] += probability
    asked = list(prefixes)
    expected = [log(strings[string]) for string in asked]
    np.testing.assert_allclose(grammar.log_probability(asked), expected, rtol=1e-13, atol=1e-12)
    expected = [log(prefixes[string]) for string in asked]
    found = grammar.log_prefix_probability(asked)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-12)
    longest = max(map(len, strings))
    by_length = Counter()
    for string, probability in strings.items():
        by_length[len(string)] += probability
    found = grammar.length_probabilities(longest + 1)
    np.testing.assert_allclose(
        found, [float(by_length[n]) for n in range(longest + 2)], rtol=1e-12, atol=1e-300
    )
    for limit in range(longest + 1):
        tail = float(sum(p for n, p in by_length.items() if n > limit))
        assert grammar.probability_longer_than(limit) == pytest.approx(tail, rel=1e-12, abs=1e-300)
    mean = float(sum(n * p for n, p in by_length.items()))
    assert grammar.expected_length() == pytest.approx(mean, rel=1e-12)
    assert grammar.longest() == longest


@settings(deadline=None, max_examples=40)
@given(recursive())
def test_strings_of_a_recursive_language(grammar):
    strings = [s for n in range(4) for s in product("ab", repeat=n)]
    expected = iterated(grammar, strings)
    found = np.exp(grammar.log_probability(strings))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14)
    assert ((found > 0) == (expected > 0)).all()


@settings(deadline=None, max_examples=40)
@given(recursive())
def test_all_strings_and_the_tail_are_one(grammar):
    """Also: the end of a string and its next symbols share the probability of its beginning."""
    strings = [s for n in range(6) for s in product(grammar.terminals, repeat=n)]
    probability = np.exp(grammar.log_probability(strings))
    begun = np.exp(grammar.log_prefix_probability(strings))
    assert probability.sum() + grammar.probability_longer_than(5) == pytest.approx(1, abs=1e-12)
    of_length = [
        sum(p for s, p in zip(strings, probability, strict=True) if len(s) == n) for n in range(6)
    ]
    np.testing.assert_allclose(grammar.length_probabilities(5), of_length, rtol=1e-9, atol=1e-14)
    place = {string: index for index, string in enumerate(strings)}
    for string in strings[: len(strings) // 2 - 1]:
        if len(string) < 5:
            after = sum(begun[place[*string, symbol]] for symbol in grammar.terminals)
            whole = begun[place[string]]
            assert probability[place[string]] + after == pytest.approx(whole, rel=1e-9, abs=1e-14)


@settings(deadline=None, max_examples=25)
@given(recursive())
def test_the_language_without_its_empty_string(grammar):
    """The same strings, the same ratios of probabilities."""
    other = grammar.without_empty_string()
    strings = [s for n in range(4) for s in product(grammar.terminals, repeat=n)]
    empty = math.exp(grammar.log_probability([()])[0])
    assert other.log_probability([()]) == -np.inf
    if not empty:
        assert other is grammar
    expected = np.exp(grammar.log_probability(strings[1:])) / (1 - empty)
    np.testing.assert_allclose(
        np.exp(other.log_probability(strings[1:])), expected, rtol=1e-9, atol=1e-14
    )
    assert other.expected_length() == pytest.approx(grammar.expected_length() / (1 - empty))
    for name in {rule.lhs for rule in other.rules}:
        of_name = [rule.probability for rule in other.rules if rule.lhs == name]
        assert sum(of_name) == pytest.approx(1, abs=1e-14)


def test_dyck_in_closed_form():
    """A string of n pairs has probability 0.4^n 0.6^(n + 1); Catalan(n) strings have n pairs."""
    grammar = grammar_of(DYCK)
    strings = [s for n in range(9) for s in product("()", repeat=n)]
    scores = grammar.log_probability(strings)
    for string, score in zip(strings, scores, strict=True):
        depth = np.cumsum([1 if symbol == "(" else -1 for symbol in string] or [0])
        balanced = depth.min() >= 0 and depth[-1] == 0
        pairs = len(string) // 2
        expected = pairs * math.log(0.4) + (pairs + 1) * math.log(0.6) if balanced else -math.inf
        assert score == pytest.approx(expected, abs=1e-13)
    lengths = grammar.length_probabilities(400)
    for pairs in (0, 1, 5, 200):
        exact = math.comb(2 * pairs, pairs) // (pairs + 1) * Fraction(2, 5) ** pairs
        assert lengths[2 * pairs] == pytest.approx(float(exact * Fraction(3, 5) ** (pairs + 1)))
    assert not lengths[1::2].any()
    assert grammar.expected_length() == pytest.approx(2 * 0.4 / (1 - 0.8))
    assert grammar.longest() == math.inf


@pytest.mark.parametrize("text", GRAMMARS.values(), ids=GRAMMARS)
def test_sampling(text):
    """Chi-square against exact probabilities; the log probability of a derivation is its own."""
    grammar = grammar_of(text)
    n = 50_000
    sampled = grammar.sample_encoded(n, seed=5)
    drawn = Counter(grammar.decode(sampled))
    strings = [string for string, _ in drawn.most_common(25)]
    expected = n * np.exp(grammar.log_probability(strings))
    observed = np.array([drawn[string] for string in strings])
    rest = n - expected.sum()
    assert rest > 20
    statistic = ((observed - expected) ** 2 / expected).sum()
    statistic += (n - observed.sum() - rest) ** 2 / rest
    assert scipy.stats.chi2.sf(statistic, len(strings)) > 1e-3
    assert (grammar.log_probability(sampled) >= sampled.derivation_log_prob - 1e-9).all()
    surprise = -sampled.derivation_log_prob
    error = surprise.std() / math.sqrt(n)
    assert abs(surprise.mean() - grammar.derivation_entropy()) < 5 * error
    assert (
        abs(sampled.lengths.mean() - grammar.expected_length()) < 5 * sampled.lengths.std() / n**0.5
    )


@pytest.mark.parametrize("text", GRAMMARS.values(), ids=GRAMMARS)
def test_the_most_probable_derivation(text):
    """Its terminals are the string, and its rules have their children; at most the string's."""
    grammar = grammar_of(text)
    strings = [(), *dict.fromkeys(s for s in grammar.sample(20, seed=1) if 0 < len(s) <= 8)]
    sampled = grammar.sample_encoded(2000, seed=2)
    best_drawn = defaultdict(lambda: -math.inf)
    for string, p in zip(grammar.decode(sampled), sampled.derivation_log_prob, strict=True):
        best_drawn[string] = max(best_drawn[string], p)
    for string in strings:
        nodes = grammar.derivation(string)
        assert tuple(node.symbol.name for node in nodes if node.rule is None) == string
        for number, node in enumerate(nodes):
            below = [child for child in nodes if child.parent == number]
            assert tuple(child.symbol for child in below) == (node.rule.rhs if node.rule else ())
            if not below and node.rule:
                assert node.begin == node.end
        own = sum(math.log(node.rule.probability) for node in nodes if node.rule)
        assert own <= grammar.log_probability([string])[0] + 1e-9
        assert own >= best_drawn[string] - 1e-9


def without_empty_rules(grammar):
    """NLTK's grammar and the same language by hand: each subset of empty symbols is a rule."""
    empty = dict.fromkeys({rule.lhs for rule in grammar.rules}, 0.0)
    for _ in range(500):
        new = dict.fromkeys(empty, 0.0)
        for rule in grammar.rules:
            if not any(symbol.terminal for symbol in rule.rhs):
                new[rule.lhs] += rule.probability * math.prod(empty[s.name] for s in rule.rhs)
        empty = new
    rules = Counter()
    for rule in grammar.rules:
        options = [
            [(symbol, 1.0)] if symbol.terminal
            else [(symbol, 1 - empty[symbol.name]), (None, empty[symbol.name])]
            for symbol in rule.rhs
        ]  # fmt: skip
        for chosen in product(*options):
            rhs = tuple(symbol for symbol, _ in chosen if symbol)
            weight = math.prod(weight for _, weight in chosen)
            if rhs and weight:
                rules[rule.lhs, rhs] += rule.probability * weight / (1 - empty[rule.lhs])
    return rules, empty[grammar.start]


def test_against_nltk_with_the_rules_without_empty_ones():
    grammar = grammar_of(DYCK)
    rules, empty = without_empty_rules(grammar)
    productions = [
        nltk.ProbabilisticProduction(
            nltk.Nonterminal(lhs),
            [s.name if s.terminal else nltk.Nonterminal(s.name) for s in rhs],
            prob=probability,
        )
        for (lhs, rhs), probability in rules.items()
    ]
    peer = nltk.PCFG(nltk.Nonterminal("S"), productions)
    parser = nltk.parse.InsideChartParser(peer)
    for string in sorted(set(grammar.sample(60, seed=3)), key=len)[1:9]:
        total = sum(tree.prob() for tree in parser.parse(list(string)))
        expected = math.log(total * (1 - empty))
        assert grammar.log_probability([string])[0] == pytest.approx(expected, abs=1e-12)


class TestTinyProbabilities:
    def test_a_rule_of_250_digits(self):
        grammar = grammar_of("S -> 'a' [1e-250] | 'b' [1.0]")
        expected = [-250 * math.log(10), 0.0]
        for score in (grammar.log_probability, grammar.log_prefix_probability):
            np.testing.assert_allclose(score([("a",), ("b",)]), expected, rtol=1e-15)
        nodes = grammar.derivation(("a",))
        assert math.log(nodes[0].rule.probability) == pytest.approx(expected[0])
        assert grammar.derivation_entropy() == pytest.approx(-expected[0] * 1e-250, rel=1e-12)
        assert decisions(grammar, [("a",)], False).loss == pytest.approx(-expected[0])

    @pytest.mark.parametrize(("length", "back"), [(45, False), (1500, False), (100, True)])
    def test_a_chain_of_rules(self, length, back):
        """The other choice is a terminal, or leads back to the start of the chain."""
        other = "S0" if back else "'b'"
        lines = [f"S{n} -> S{n + 1} [1e-5] | {other} [0.99999]" for n in range(1, length)]
        lines = ["S0 -> S1 [1e-5] | 'b' [0.99999]", *lines, f"S{length} -> 'a' [1]"]
        grammar = Grammar.from_string("\n".join(lines))
        expected = length * math.log(1e-5)
        if back:  # S0 comes back with 1e-5 times the probability not to go on to the end
            expected -= math.log1p(-1e-5)
        found = [grammar.log_probability([("a",)]), grammar.log_prefix_probability([("a",)])]
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_an_empty_string_below_all_floats(self):
        lines = [f"S{n} -> S{n + 1} S{n + 1} [1e-9] | 'b' [0.999999999]" for n in range(12)]
        grammar = Grammar.from_string("\n".join([*lines, "S12 -> [1e-9] | 'c' [0.999999999]"]))
        expected = math.log(1e-9) * (2**13 - 1)
        assert grammar.log_probability([()])[0] == pytest.approx(expected, rel=1e-12)
        with_b = grammar.log_probability([("b",)])[0]
        assert with_b == pytest.approx(math.log(0.999999999), rel=1e-6)

    def test_a_loop_of_small_and_large_steps(self):
        """Of a loop, the entries of the inverse that are small have as many correct digits."""
        grammar = grammar_of(
            "S -> A [1e-200] | 'x' [1]\nA -> B [0.5] | 'y' [0.5]\n"
            "B -> A [1e-200] | S [1e-200] | 'z' [1]"
        )
        found = grammar.log_probability([("y",), ("z",)])
        expected = [math.log(0.5) - 200 * math.log(10)] * 2
        np.testing.assert_allclose(found, expected, rtol=1e-14)

    def test_a_symbol_that_rules_cannot_share_is_refused(self):
        grammar = grammar_of("S -> A [1e-200] | 'b' [1]\nA -> 'a' [1e-200] | 'b' [1]")
        with pytest.raises(GrammarError, match="symbol 1 of a string has a loss of 921 nats"):
            decisions(grammar, [("a",)], predict_end=False)


class TestTails:
    def test_a_near_critical_language_in_closed_form(self):
        """Binary trees: a string of n symbols has probability C(n - 1) p^(n - 1) q^n."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            grammar = grammar_of("S -> S S [0.4999] | 'a' [0.5001]")
        p, q = Fraction("0.4999"), Fraction("0.5001")
        exact = [math.comb(2 * n, n) // (n + 1) * p**n * q ** (n + 1) for n in range(300)]
        found = grammar.length_probabilities(300)
        np.testing.assert_allclose(found, [0.0, *map(float, exact)], rtol=1e-10)
        assert grammar.probability_longer_than(300) == pytest.approx(
            float(1 - sum(exact)), rel=1e-9
        )

    def test_a_small_tail_keeps_its_digits(self):
        grammar = grammar_of("S -> 'a' S [0.4] | 'b' [0.6]")
        assert grammar.probability_longer_than(700) == pytest.approx(0.4**700, rel=1e-10)
        assert grammar.probability_longer_than(0) == 1
        with pytest.raises(ValueError, match="limit: is -1 and must be a whole number at least 0"):
            grammar.probability_longer_than(-1)
        with pytest.raises(ValueError, match=r"limit: is 1\.5 and must be a whole number"):
            grammar.length_probabilities(1.5)

    def test_a_string_beyond_the_limit_is_refused_and_not_left_out(self):
        grammar = grammar_of("S -> 'a' S [0.9] | 'b' [0.1]")
        lengths = grammar.sample_encoded(2000, seed=0).lengths
        longest = int(lengths.max())
        assert len(grammar.sample(2000, 0, longest=longest)) == 2000
        first = int((lengths == longest).argmax()) + 1
        with pytest.raises(
            GrammarError,
            match=rf"string {first:,} of a sample of 2,000 has more than {longest - 1} symbols",
        ):
            grammar.sample(2000, 0, longest=longest - 1)
        assert len(grammar.sample(first - 1, 0, longest=longest - 1)) == first - 1

    def test_millions_of_symbols_are_refused_by_default(self):
        grammar = grammar_of("S -> S S [0.49999] | 'a' [0.50001]")
        with pytest.raises(GrammarError, match="has more than 100,000 symbols") as error:
            grammar.sample(5000, seed=0)
        assert str(error.value).startswith(f"{grammar.name}: string ")
        assert "lower the probability of the rules that repeat" in str(error.value)

    def test_a_chart_beyond_memory_is_refused(self, monkeypatch):
        grammar = grammar_of("S -> S S [0.4] | 'a' [0.6]")
        monkeypatch.setattr(inside, "MOST_ROOM", 2**14)
        assert np.isfinite(grammar.log_probability([("a",) * 170])).all()
        with pytest.raises(
            GrammarError, match=r"^.+: a string of 190 symbols is too long for exact prob"
        ):
            grammar.log_probability([("a",), ("a",) * 190])
