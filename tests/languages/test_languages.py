"""Languages: nine grammars, their sampler, and exact probabilities of strings and prefixes."""

import math
import subprocess
import sys
import warnings
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from pathlib import Path

import nltk
import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from helpers.grammars import finite_grammars
from palimpsest.languages import Grammar, GrammarWarning, inside
from palimpsest.languages.notation import Symbol

ROOT = Path(__file__).parents[2]
LANGUAGES = sorted(path.stem for path in (ROOT / "config/languages").glob("L*.pcfg"))

FINITE = """
S -> A B [0.5] | A [0.2] | 'c' A 'c' [0.3]
A -> 'a' [0.6] | B 'b' [0.4]
B -> 'b' [0.7] | 'b' 'b' [0.2] | 'c' [0.1]
"""
AMBIGUOUS = """
S -> S S [0.15] | 'a' [0.65] | T [0.2]
T -> 'a' 'b' [0.25] | S [0.25] | 'b' [0.5]
"""
LEFT_RECURSIVE = "S -> S 'a' [0.4] | S 'b' [0.1] | 'c' [0.5]"
RIGHT_RECURSIVE = "S -> 'a' S [0.4] | 'b' [0.6]"
HIDDEN_LEFT_RECURSIVE = """
S -> A 'x' [0.5] | 'y' [0.5]
A -> S [0.5] | S S [0.25] | 'z' [0.25]
"""
RECURSIVE = [
    pytest.param(AMBIGUOUS, id="ambiguous"),
    pytest.param(LEFT_RECURSIVE, id="left recursive"),
    pytest.param(RIGHT_RECURSIVE, id="right recursive"),
    pytest.param(HIDDEN_LEFT_RECURSIVE, id="hidden left recursive"),
]
ALL = [pytest.param(FINITE, id="finite"), *RECURSIVE]


@cache
def language(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        return Grammar.from_file(ROOT / f"config/languages/{name}.pcfg")


def enumerate_strings(grammar, least_probability=0.0):
    """Strings and their probabilities, by expanding leftmost non-terminals; an independent check.

    Partial derivations less likely than `least_probability` are given up.
    """
    rules = {}
    for rule in grammar.rules:
        rules.setdefault(rule.lhs, []).append(rule)
    waiting = [(1.0, (), (Symbol(grammar.start, terminal=False),))]
    found = Counter()
    while waiting:
        probability, done, rest = waiting.pop()
        if not rest:
            found[done] += probability
        elif rest[0].terminal:
            waiting.append((probability, (*done, rest[0].name), rest[1:]))
        else:
            waiting += [
                (probability * rule.probability, done, rule.rhs + rest[1:])
                for rule in rules[rest[0].name]
                if probability * rule.probability > least_probability
            ]
    return found


def nltk_log_probability(grammar, string):
    """Sum over all parses of NLTK's inside chart parser."""
    parser = nltk.parse.InsideChartParser(nltk.PCFG.fromstring(str(grammar)))
    if not set(string) <= set(grammar.terminals):
        return -math.inf
    total = sum(tree.prob() for tree in parser.parse(list(string)))
    return math.log(total) if total else -math.inf


class TestFiles:
    def test_there_are_ten(self):
        """Nine of the paper, and a short one."""
        of_paper = ["L1", "L2", "L3", "L4", "L4-skewed", "L5", "L6", "L7", "L8"]
        assert sorted([*of_paper, "L3-short"]) == LANGUAGES

    @pytest.mark.parametrize("name", LANGUAGES)
    def test_loads_with_no_warning_but_of_an_unreachable_rule(self, name):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Grammar.from_file(ROOT / f"config/languages/{name}.pcfg")
        messages = [str(warning.message) for warning in caught]
        expected = int(name in ("L3", "L4", "L4-skewed", "L6", "L8"))
        assert len(messages) == expected
        assert all("never reached from S: C1_5;" in message for message in messages)

    @pytest.mark.parametrize("name", LANGUAGES)
    def test_nltk_reads_the_same_rules(self, name):
        grammar = language(name)
        text = (ROOT / f"config/languages/{name}.pcfg").read_text()
        printed = Counter()
        for rule in nltk.PCFG.fromstring(text).productions():
            printed[rule.lhs().symbol(), tuple(map(str, rule.rhs()))] += rule.prob()
        merged = nltk.PCFG.fromstring(str(grammar))
        assert merged.start().symbol() == grammar.start == "S"
        assert len(merged.productions()) == grammar.n_rules
        for rule in merged.productions():
            key = rule.lhs().symbol(), tuple(map(str, rule.rhs()))
            assert rule.prob() == pytest.approx(printed[key], abs=1e-4)

    def test_probabilities_of_the_papers_figures(self):
        rules = {str(rule).rpartition(" [")[0]: rule.probability for rule in language("L3").rules}
        assert rules["B2 -> B1"] == pytest.approx(2 / 3, abs=1e-12)
        assert rules["E3 -> E2"] == pytest.approx(2 / 3, abs=1e-12)
        assert rules["E1 -> '5' '6' '5' '9'"] == pytest.approx(1 / 3, abs=1e-12)
        skewed = {str(r).rpartition(" [")[0]: r.probability for r in language("L4-skewed").rules}
        assert skewed["B3 -> B2"] == pytest.approx(0.95)
        assert skewed["E3 -> E2"] == pytest.approx(0.95)
        assert skewed["E2 -> E1"] == pytest.approx(0.05)

    def test_the_more_skewed_l4_has_its_lowest_level_and_likely_rules_above(self):
        """Figure 15 of the paper, for strings that differ more in frequency."""
        skewed, plain = (
            {str(rule).rpartition(" [")[0]: rule.probability for rule in language(name).rules}
            for name in ("L4-skewed", "L4")
        )
        assert skewed.keys() == plain.keys()
        leaves = [rule for rule in plain if rule.startswith(("B1 ", "E1 "))]
        assert {rule: skewed[rule] for rule in leaves} == {rule: plain[rule] for rule in leaves}
        for symbol in ("S5", "B4", "B3", "B2", "E4", "E3", "E2"):
            of_symbol = [skewed[rule] for rule in skewed if rule.startswith(f"{symbol} ")]
            assert max(of_symbol) >= 0.9, symbol

    def test_strings_of_the_more_skewed_l4_differ_more_in_frequency(self):
        skewed, plain = language("L4-skewed"), language("L4")
        entropies = [grammar.entropy(2000, 0) for grammar in (skewed, plain)]
        assert entropies[0][0] + 5 * entropies[0][1] < entropies[1][0] - 5 * entropies[1][1]
        strings = list(dict.fromkeys(skewed.sample(5000, seed=0)))
        counts = 1024 * np.exp(np.sort(skewed.log_probability(strings))[:-4:-1])
        assert (counts[:-1] > counts[1:] + 0.5).all()

    @pytest.mark.parametrize(
        ("name", "string"),
        [
            ("L3", "1 8 6 2 9 3 9 6 1 9 6 1 1 8 6 2 9 3 9 6 1 9 6 1 7 1 5 1 5 1 5 1 5 3"),
            ("L4", "2 9 3 " * 6 + "7 5 6 5 9 5 6 5 9 3"),
            ("L8", "a h f b b i c i f a i f a a h f b b i c i f a g a e a e e i a e a e e i c"),
        ],
    )
    def test_the_papers_strings_are_in_the_language(self, name, string):
        """Figure 12 (in L4 and L8 with slips of the print mended)."""
        assert np.isfinite(language(name).log_probability([string.split()]))

    @pytest.mark.parametrize("pair", [("L5", "L7"), ("L6", "L8")])
    def test_letters_for_digits_change_nothing_else(self, pair):
        digits, letters = map(language, pair)
        code = dict(zip(digits.terminals, letters.terminals, strict=True))
        strings = digits.sample(200, seed=1)
        spelt = [tuple(code[symbol] for symbol in string) for string in strings]
        np.testing.assert_allclose(
            digits.log_probability(strings), letters.log_probability(spelt), rtol=1e-12
        )

    def test_reading_is_light(self):
        program = (
            "import sys, warnings; warnings.simplefilter('ignore')\n"
            "from palimpsest.languages import Grammar\n"
            f"grammar = Grammar.from_file({str(ROOT / 'config/languages/L3.pcfg')!r})\n"
            "grammar.derivation_entropy(), grammar.n_derivations(), grammar.expected_length()\n"
            "assert not {'numba', 'scipy', 'pandas', 'torch'} & set(sys.modules)\n"
        )
        subprocess.run(
            [sys.executable, "-c", program], check=True, cwd=ROOT / "workflow/scripts", timeout=60
        )


class TestNotation:
    def test_alternatives_comments_quotes_and_continued_lines(self):
        """All as NLTK reads it, except comments after a rule, which are our extension."""
        text = """
        # a comment
        S -> A 'it''s' [0.5] | "don't" [0.25] \\
             | '#' [0.25]  # a comment, after a terminal that looks like one
        A -> 'a' [1.0]
        """
        grammar = Grammar.from_string(text)
        strings = enumerate_strings(grammar)
        assert strings == {("a", "it", "s"): 0.5, ("don't",): 0.25, ("#",): 0.25}

    def test_start_directive(self):
        with pytest.warns(GrammarWarning, match="never reached from B: A"):
            grammar = Grammar.from_string("%start B\nA -> B [1]\nB -> 'b' [1]")
        assert grammar.start == "B"
        assert grammar.terminals == ("b",)

    def test_first_left_hand_side_is_the_start(self):
        assert Grammar.from_string("B -> A 'b' [1]\nA -> 'a' [1]").start == "B"

    def test_duplicates_are_one_rule_with_the_sum(self):
        twice = Grammar.from_string("S -> 'a' [0.3]\nS -> 'b' [0.4]\nS -> 'a' [0.3]")
        once = Grammar.from_string("S -> 'a' [0.6]\nS -> 'b' [0.4]")
        assert twice.rules == once.rules
        assert twice.n_rules == 2

    def test_a_terminal_may_be_spelt_like_a_nonterminal(self):
        grammar = Grammar.from_string("S -> A 'A' 'S' [1]\nA -> 'B' [1]")
        assert grammar.sample(1, seed=0) == [("B", "A", "S")]
        assert grammar.log_probability([("B", "A", "S")]) == pytest.approx(0)

    def test_thirds_pass_in_silence_and_are_exact(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            grammar = Grammar.from_string("S -> 'a' [0.3333] | 'b' [0.3333] | 'c' [0.3333]")
        assert [rule.probability for rule in grammar.rules] == pytest.approx([1 / 3] * 3, abs=1e-15)

    def test_rules_of_probability_zero_are_dropped(self):
        grammar = Grammar.from_string("S -> 'a' [1.0] | S S [0.0]")
        assert grammar.n_rules == 1
        assert grammar.log_probability([("a",), ("a", "a")]).tolist() == [0.0, -math.inf]

    @pytest.mark.parametrize("name", LANGUAGES)
    def test_printing_and_reading_again(self, name):
        grammar = language(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GrammarWarning)
            again = Grammar.from_string(str(grammar))
        assert (again.start, again.terminals) == (grammar.start, grammar.terminals)
        for old, new in zip(grammar.rules, again.rules, strict=True):
            assert (old.lhs, old.rhs) == (new.lhs, new.rhs)
            assert old.probability == pytest.approx(new.probability, rel=1e-15)


class TestSummaries:
    def test_L1_is_36_even_choices(self):
        grammar = language("L1")
        assert grammar.derivation_entropy() == pytest.approx(36 * math.log(2), rel=1e-12)
        assert grammar.n_derivations() == 2**36
        assert grammar.expected_length() == pytest.approx(72)
        estimate, error = grammar.entropy(200, seed=0)
        assert estimate == pytest.approx(36 * math.log(2), rel=1e-12)  # all equally likely
        assert error < 1e-12

    def test_L2_is_36_skewed_choices(self):
        choice = -0.95 * math.log(0.95) - 0.05 * math.log(0.05)
        assert language("L2").derivation_entropy() == pytest.approx(36 * choice, rel=1e-12)

    def test_L3_expected_length(self):
        expected = 2 * (4 / 3) * (5 / 3) * 3 + 2 * (4 / 3) * 2 * 4 + 2
        assert language("L3").expected_length() == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize(("name", "nats"), [("L3", 16.8), ("L6", 16.8), ("L4", 8.3)])
    def test_entropy_of_strings_is_below_that_of_derivations(self, name, nats):
        estimate, error = language(name).entropy(20_000, seed=0)
        assert abs(estimate - nats) < 4 * error + 0.1
        assert estimate + 10 * error < language(name).derivation_entropy()

    @pytest.mark.parametrize("name", LANGUAGES)
    def test_closed_forms_agree_with_samples(self, name):
        sampled = language(name).sample_encoded(20_000, seed=3)
        for exact, drawn in [
            (language(name).derivation_entropy(), -sampled.derivation_log_prob),
            (language(name).expected_length(), sampled.lengths),
        ]:
            assert abs(drawn.mean() - exact) <= 5 * drawn.std() / math.sqrt(len(drawn)) + 1e-9

    def test_recursive(self):
        grammar = Grammar.from_string(RIGHT_RECURSIVE)
        assert grammar.expected_length() == pytest.approx(1 / 0.6)
        choice = -0.4 * math.log(0.4) - 0.6 * math.log(0.6)
        assert grammar.derivation_entropy() == pytest.approx(choice / 0.6)
        assert grammar.n_derivations() == math.inf

    def test_number_of_derivations(self):
        assert Grammar.from_string(FINITE).n_derivations() == 4 * 3 + 4 + 4

    def test_ambiguity(self):
        assert language("L3").is_ambiguous()
        assert not language("L1").is_ambiguous()
        assert not Grammar.from_string(LEFT_RECURSIVE).is_ambiguous()
        assert Grammar.from_string(AMBIGUOUS).is_ambiguous()

    def test_entropy_of_a_finite_language(self):
        grammar = Grammar.from_string(FINITE)
        exact = -sum(p * math.log(p) for p in enumerate_strings(grammar).values())
        estimate, error = grammar.entropy(50_000, seed=0)
        assert abs(estimate - exact) < 4 * error


class TestRandomGrammars:
    """Everything exact against plain enumeration."""

    @settings(max_examples=60, deadline=None)
    @given(grammar=finite_grammars(n_levels=4, longest=3))
    def test_probabilities(self, grammar):
        assume(grammar.n_derivations() <= 5_000)
        exact = enumerate_strings(grammar)
        prefixes = Counter()
        for string, probability in exact.items():
            for end in range(len(string) + 1):
                prefixes[string[:end]] += probability
        whole = np.exp(grammar.log_probability(list(prefixes)))
        begun = np.exp(grammar.log_prefix_probability(list(prefixes)))
        np.testing.assert_allclose(whole, [exact[string] for string in prefixes], rtol=1e-10)
        np.testing.assert_allclose(begun, list(prefixes.values()), rtol=1e-10)

    @settings(max_examples=60, deadline=None)
    @given(grammar=finite_grammars(n_levels=4, longest=3))
    def test_summaries(self, grammar):
        assume(grammar.n_derivations() <= 5_000)
        exact = enumerate_strings(grammar)
        length = sum(len(string) * probability for string, probability in exact.items())
        entropy = -sum(probability * math.log(probability) for probability in exact.values())
        assert grammar.expected_length() == pytest.approx(length, rel=1e-10)
        assert grammar.derivation_entropy() >= entropy - 1e-10
        assert grammar.n_derivations() >= len(exact)
        if grammar.is_ambiguous():
            assert grammar.derivation_entropy() > entropy
        assert set(grammar.sample(200, seed=0)) <= set(exact)


class TestSampling:
    @pytest.mark.parametrize("text", ALL)
    def test_frequencies(self, text):
        """Chi-square against exact probabilities, rare strings pooled."""
        grammar = Grammar.from_string(text)
        strings = list(enumerate_strings(grammar, least_probability=1e-5))
        exact = dict(zip(strings, np.exp(grammar.log_probability(strings)), strict=True))
        n = 100_000
        drawn = Counter(grammar.sample(n, seed=11))
        common = [string for string, probability in exact.items() if probability * n > 20]
        observed = [drawn[string] for string in common]
        expected = [exact[string] * n for string in common]
        rest = n - sum(expected)
        if rest > 20:
            observed.append(n - sum(observed))
            expected.append(rest)
        statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
        freedom = len(observed) - (rest > 20)
        assert freedom > 4
        assert scipy.stats.chi2.sf(statistic, freedom) > 1e-3

    @pytest.mark.parametrize("count", [2, 3, 7, 100])
    def test_many_rules_of_unequal_probability(self, count):
        weights = np.arange(1, count + 1) / np.arange(1, count + 1).sum()
        rules = [f"S -> 't{i}' [{p:.12f}]" for i, p in enumerate(weights)]
        grammar = Grammar.from_string("\n".join(rules))
        codes = grammar.sample_encoded(200_000, seed=5).symbols
        place = [grammar.terminals.index(f"t{i}") for i in range(count)]
        observed = np.bincount(codes, minlength=count)[place]
        assert scipy.stats.chisquare(observed, weights * 200_000).pvalue > 1e-3

    def test_same_seed_same_strings_and_more_of_them(self):
        grammar = language("L3")
        assert grammar.sample(50, seed=7) == grammar.sample(100, seed=7)[:50]
        assert grammar.sample(50, seed=7) != grammar.sample(50, seed=8)

    def test_neighbouring_seeds_share_nothing(self):
        grammar = language("L1")
        samples = [set(grammar.sample(500, seed=seed)) for seed in range(6)]
        assert not any(a & b for a, b in pairwise(samples))

    def test_derivation_probability_is_exact_where_there_is_one_derivation(self):
        sampled = language("L5").sample_encoded(500, seed=0)
        np.testing.assert_allclose(
            language("L5").log_probability(sampled), sampled.derivation_log_prob, rtol=1e-12
        )

    def test_derivation_is_never_likelier_than_its_string(self):
        sampled = language("L6").sample_encoded(2000, seed=0)
        excess = language("L6").log_probability(sampled) - sampled.derivation_log_prob
        assert excess.min() > -1e-12
        assert excess.max() > 5

    def test_deep_nesting_makes_room_for_itself(self):
        grammar = Grammar.from_string("S -> '(' S ')' [0.998] | 'x' [0.002]")
        sampled = grammar.sample_encoded(300, seed=2)
        depth = (sampled.lengths - 1) // 2
        assert depth.max() > 1500
        longest = grammar.decode(sampled)[depth.argmax()]
        assert longest == ("(",) * depth.max() + ("x",) + (")",) * depth.max()
        expected = depth * math.log(0.998) + math.log(0.002)
        np.testing.assert_allclose(sampled.derivation_log_prob, expected, rtol=1e-9)

    def test_nothing_and_nonsense(self):
        assert language("L1").sample(0, seed=0) == []
        with pytest.raises(ValueError, match="n: is -1 and must be a whole number at least 0"):
            language("L1").sample(-1, seed=0)
        with pytest.raises(ValueError, match="seed: is -1 and must be a whole number at least 0"):
            language("L1").sample(1, seed=-1)
        with pytest.raises(
            ValueError,
            match=r"n: is 1 and .* at least 2, the samples of an",
        ):
            language("L1").entropy(1, seed=0)
        for wrong in (1.5, "a", None):
            with pytest.raises(ValueError, match=r"n: is .* and must be a whole number"):
                language("L1").sample(wrong, seed=0)


class TestEncoding:
    @given(data=st.data())
    def test_round_trip(self, data):
        grammar = language("L8")
        symbols = st.sampled_from(grammar.terminals)
        strings = data.draw(st.lists(st.lists(symbols, max_size=6).map(tuple), max_size=6))
        encoded = grammar.encode(strings)
        assert len(encoded) == len(strings)
        assert grammar.decode(encoded) == strings
        assert encoded.lengths.tolist() == [len(string) for string in strings]
        for string, codes in zip(strings, encoded, strict=True):
            assert tuple(grammar.terminals[code] for code in codes) == string
        assert np.isnan(encoded.derivation_log_prob).all()

    def test_types(self):
        sampled = language("L3").sample_encoded(5, seed=0)
        assert sampled.symbols.dtype == np.uint16
        assert sampled.offsets.dtype == np.int64
        assert sampled.derivation_log_prob.dtype == np.float64
        assert sampled.offsets[-1] == len(sampled.symbols) == sampled.lengths.sum()
        assert np.shares_memory(sampled[2], sampled.symbols)
        with pytest.raises(IndexError):
            sampled[5]

    def test_sampled_and_encoded_are_the_same(self):
        grammar = language("L3")
        sampled = grammar.sample_encoded(100, seed=4)
        again = grammar.encode(grammar.decode(sampled))
        assert (again.symbols == sampled.symbols).all()
        assert (again.offsets == sampled.offsets).all()
        np.testing.assert_array_equal(
            grammar.log_probability(again), grammar.log_probability(grammar.decode(sampled))
        )

    def test_outside_the_alphabet(self):
        encoded = language("L1").encode([("1", "?")])
        assert encoded.symbols.tolist() == [0, 65535]
        with pytest.raises(ValueError, match="outside the alphabet"):
            language("L1").decode(encoded)

    def test_a_str_is_not_a_string(self):
        with pytest.raises(TypeError, match=r"tuple of symbols.*got '123'"):
            language("L1").log_probability(["123"])

    @pytest.mark.parametrize("symbol", [1, 1.0, b"1", None])
    def test_a_symbol_is_text(self, symbol):
        """The number 1 is not the terminal '1', and no string of the language has it."""
        with pytest.raises(TypeError, match="a symbol is text, such as '1'; got "):
            language("L1").log_probability([("1", symbol)])
        with pytest.raises(TypeError, match="a string is a tuple of symbols"):
            language("L1").log_probability([("1",), None])


class TestLogProbability:
    def test_every_string_of_a_finite_language(self):
        grammar = Grammar.from_string(FINITE)
        exact = enumerate_strings(grammar)
        found = np.exp(grammar.log_probability(list(exact)))
        np.testing.assert_allclose(found, list(exact.values()), rtol=1e-12)
        assert found.sum() == pytest.approx(1, abs=1e-12)

    def test_strings_outside_a_finite_language(self):
        grammar = Grammar.from_string(FINITE)
        exact = enumerate_strings(grammar)
        others = [string for n in range(5) for string in product("abc", repeat=n)]
        outside = [string for string in others if string not in exact]
        assert len(outside) > 50
        assert (grammar.log_probability(outside) == -np.inf).all()

    @pytest.mark.parametrize("text", ALL)
    def test_against_nltk(self, text):
        grammar = Grammar.from_string(text)
        if text == AMBIGUOUS:  # NLTK cannot parse with a loop of unary rules: take S -> T out
            grammar = Grammar.from_string(text.replace("| T [0.2]", "| T 'b' [0.2]"))
        strings = [string for n in range(1, 5) for string in product(grammar.terminals, repeat=n)]
        strings = strings[:: max(1, len(strings) // 60)]
        expected = [nltk_log_probability(grammar, string) for string in strings]
        assert np.isfinite(expected).any()
        np.testing.assert_allclose(grammar.log_probability(strings), expected, rtol=1e-9)

    @pytest.mark.parametrize("name", ["L3", "L4-skewed", "L7"])
    def test_languages_against_nltk(self, name):
        grammar = language(name)
        shortest = sorted(set(grammar.sample(300, seed=0)), key=len)[:3]
        expected = [nltk_log_probability(grammar, string) for string in shortest]
        np.testing.assert_allclose(grammar.log_probability(shortest), expected, rtol=1e-9)

    @pytest.mark.parametrize("text", RECURSIVE)
    def test_against_a_truncated_enumeration(self, text):
        grammar = Grammar.from_string(text)
        lower = enumerate_strings(grammar, least_probability=1e-7)
        likely = [string for string, probability in lower.items() if probability > 1e-2]
        exact = np.exp(grammar.log_probability(likely))
        np.testing.assert_allclose(exact, [lower[s] for s in likely], rtol=1e-3)
        assert len(likely) > 4

    def test_a_loop_of_unary_rules_is_summed(self):
        grammar = Grammar.from_string("S -> T [0.9] | 'a' [0.1]\nT -> S [0.9] | 'b' [0.1]")
        found = np.exp(grammar.log_probability([("a",), ("b",)]))
        np.testing.assert_allclose(found, [0.1 / 0.19, 0.09 / 0.19], rtol=1e-12)

    @pytest.mark.parametrize("length", [1, 2, 400, 5000])
    def test_long_strings_do_not_underflow(self, length):
        grammar = Grammar.from_string("S -> 'a' S [0.001] | 'b' [0.999]")
        string = ("a",) * (length - 1) + ("b",)
        expected = (length - 1) * math.log(0.001) + math.log(0.999)
        assert grammar.log_probability([string]) == pytest.approx(expected, rel=1e-12)
        assert grammar.log_prefix_probability([string]) == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("length", [1, 2, 10, 250])
    def test_catalan_many_derivations(self, length):
        """All binary trees: C(n - 1) p^(n - 1) q^n, and a chart with every cell filled."""
        grammar = Grammar.from_string("S -> S S [0.4] | 'a' [0.6]")
        n = length - 1
        catalan = math.lgamma(2 * n + 1) - math.lgamma(n + 1) - math.lgamma(n + 2)
        expected = catalan + n * math.log(0.4) + length * math.log(0.6)
        assert grammar.log_probability([("a",) * length]) == pytest.approx(expected, rel=1e-11)

    def test_400_symbols_of_low_probability_and_many_derivations(self):
        grammar = Grammar.from_string("S -> S S [0.001] | 'a' [0.009] | 'b' [0.99]")
        n = 399
        catalan = math.lgamma(2 * n + 1) - math.lgamma(n + 1) - math.lgamma(n + 2)
        expected = catalan + n * math.log(0.001) + 400 * math.log(0.009)
        assert expected < -4000
        assert grammar.log_probability([("a",) * 400]) == pytest.approx(expected, rel=1e-11)

    def test_tiny_and_ordinary_probabilities_in_one_sum(self):
        """Summands that lie many powers of 2^64 apart, in either order."""
        rules = "S -> A 'x' [0.5] | B 'x' [0.5]\nA -> 'a' A [1e-30] | 'a' [1]\n"
        grammar = Grammar.from_string(rules + "B -> 'a' B [0.5] | 'a' [0.5]")
        expected = math.log(0.5 * 0.5**40 + 0.5 * 1e-30**39)
        assert grammar.log_probability([("a",) * 40 + ("x",)]) == pytest.approx(expected)

    def test_outside(self):
        grammar = language("L1")
        string = grammar.sample(1, seed=0)[0]
        wrong = [(), ("?",), string[:-1], (*string, "1"), (*string[:-1], "?"), string[::-1]]
        assert (grammar.log_probability(wrong) == -np.inf).all()
        assert grammar.log_probability([]).shape == (0,)

    def test_order_and_repeats_are_kept(self):
        grammar = language("L3")
        strings = grammar.sample(50, seed=0)
        shuffled = [strings[i] for i in (3, 3, 0, 49, 3)] + [("?",)]
        one_by_one = [grammar.log_probability([string])[0] for string in shuffled]
        assert grammar.log_probability(shuffled).tolist() == one_by_one


class TestNumbersBelowAnyFloat:
    """The chart's own numbers: a mantissa, and an exponent of 2^64."""

    numbers = st.tuples(st.floats(-64, 0).map(math.exp2), st.integers(-4, 0))

    @given(first=numbers, second=numbers)
    @example(first=(1.0, -1), second=(2.0**-64, 0))
    @example(first=(2.0**-64, 0), second=(1.0, -1))
    def test_sums(self, first, second):
        found = inside._sum(*first, *second)
        exact = value(*first) + value(*second)
        assert abs(value(*found) / exact - 1) < 2**-51

    @given(number=numbers, factor=st.floats(1e-200, 1))
    def test_zero_and_small_products(self, number, factor):
        mantissa, exponent = inside._sum(0.0, 0, number[0] * factor, number[1])
        assert value(mantissa, exponent) == value(number[0] * factor, number[1])
        assert mantissa >= 2.0**-64


def value(mantissa, exponent):
    return Fraction(mantissa) * Fraction(2) ** (64 * exponent)


class TestLogPrefixProbability:
    def test_every_prefix_of_a_finite_language(self):
        grammar = Grammar.from_string(FINITE)
        exact = Counter()
        for string, probability in enumerate_strings(grammar).items():
            for end in range(len(string) + 1):
                exact[string[:end]] += probability
        found = np.exp(grammar.log_prefix_probability(list(exact)))
        np.testing.assert_allclose(found, list(exact.values()), rtol=1e-12)

    @pytest.mark.parametrize("text", RECURSIVE)
    def test_against_a_truncated_enumeration(self, text):
        grammar = Grammar.from_string(text)
        strings = enumerate_strings(grammar, least_probability=1e-7)
        missing = 1 - sum(strings.values())
        assert missing < 0.02
        for prefix in [p for n in range(4) for p in product(grammar.terminals, repeat=n)]:
            lower = sum(p for string, p in strings.items() if string[: len(prefix)] == prefix)
            found = math.exp(grammar.log_prefix_probability([prefix])[0])
            assert lower - 1e-12 <= found <= lower + missing + 1e-12

    def test_left_recursion_in_closed_form(self):
        """LEFT_RECURSIVE makes c followed by a geometric number of a (4 in 5) and b (1 in 5)."""
        grammar = Grammar.from_string(LEFT_RECURSIVE)
        prefixes = [("c",), ("c", "a"), ("c", "b", "a"), ("a",), ("c", "c")]
        found = np.exp(grammar.log_prefix_probability(prefixes))
        np.testing.assert_allclose(found, [1, 0.4, 0.1 * 0.4, 0, 0], rtol=1e-12)

    @pytest.mark.parametrize("name", LANGUAGES)
    @settings(max_examples=10, deadline=None)
    @given(seed=st.integers(0, 2**32), cut=st.floats(0, 1))
    def test_next_symbols_and_the_end_share_the_prefix(self, name, seed, cut):
        """P(prefix) = P(string ends here) + the sum over symbols of P(prefix + symbol)."""
        grammar = language(name)
        (string,) = grammar.sample(1, seed)
        check_shares(grammar, string[: round(cut * len(string))])

    @pytest.mark.parametrize("text", ALL)
    @settings(max_examples=15, deadline=None)
    @given(seed=st.integers(0, 2**32), cut=st.floats(0, 1))
    def test_the_same_with_loops_and_recursion(self, text, seed, cut):
        grammar = Grammar.from_string(text)
        (string,) = grammar.sample(1, seed)
        check_shares(grammar, string[: round(cut * len(string))])

    def test_empty_and_outside(self):
        found = language("L3").log_prefix_probability([(), ("?",), ("7",), ("2", "?")])
        assert found.tolist() == [0.0, -math.inf, -math.inf, -math.inf]

    def test_the_first_symbol_of_L3(self):
        found = np.exp(language("L3").log_prefix_probability([("2",), ("9",), ("1",)]))
        np.testing.assert_allclose(found, 1 / 3, rtol=1e-12)

    def test_a_string_that_nothing_can_follow(self):
        strings = language("L1").sample(20, seed=0)
        np.testing.assert_allclose(
            language("L1").log_prefix_probability(strings),
            language("L1").log_probability(strings),
            rtol=1e-12,
        )


def check_shares(grammar, prefix):
    longer = [(*prefix, symbol) for symbol in grammar.terminals]
    whole = np.exp(grammar.log_prefix_probability([prefix])[0])
    shares = np.exp(grammar.log_prefix_probability(longer)).sum()
    ends = np.exp(grammar.log_probability([prefix])[0])
    assert whole > 0
    assert ends + shares == pytest.approx(whole, rel=1e-9)
