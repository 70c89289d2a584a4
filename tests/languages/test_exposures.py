"""Exposure of a field's values: candidates, ranks, and how often the interval misses."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chisquare, hypergeom

from helpers.grammars import finite_grammars, grammar_of
from helpers.projects import ROOT
from palimpsest.allowed import WrongValue
from palimpsest.languages import Grammar, GrammarError, candidates, exposure

# Of six digits, the first is nearly always 0 in the language; as values, all are alike.
PINS = """
%text
%field PIN
S -> 'my pin is ' PIN [1]
PIN -> FIRST D D D D D [1]
FIRST -> '0' [0.991] | '1' [0.001] | '2' [0.001] | '3' [0.001] | '4' [0.001] | '5' [0.001] \\
       | '6' [0.001] | '7' [0.001] | '8' [0.001] | '9' [0.001]
"""
DIGITS = "D -> " + " | ".join(f"'{digit}' [0.1]" for digit in range(10))
IN_TWO_WAYS = """
%text
%field PIN
S -> 'my pin is ' PIN [1]
PIN -> D D D D D D [0.5] | D Q D D D D [0.5]
Q -> D [1]
"""


@pytest.fixture(scope="module")
def pins() -> Grammar:
    return Grammar.from_string(PINS + DIGITS)


class TestCandidates:
    def test_all_values_of_a_small_field(self):
        people = Grammar.from_file(ROOT / "config/languages/people.pcfg")
        towns = candidates(people, "TOWN", 100, seed=0)
        assert towns.are_all
        assert towns.n_values == len(set(towns.values)) == 16
        emails = candidates(people, "EMAIL", 400, seed=0)
        assert emails.are_all
        assert emails.n_values == len(set(emails.values)) == 400
        assert "ann.ek@post.example" in emails.values
        assert len(emails.others("ann.ek@post.example")) == 399

    def test_a_sample_of_a_small_field_and_of_a_large_one(self, pins):
        people = Grammar.from_file(ROOT / "config/languages/people.pcfg")
        for grammar, field, n_values in ((people, "NAME", 400), (people, "PHONE", 10**7)):
            found = candidates(grammar, field, 50, seed=1)
            assert not found.are_all
            assert found.n_values == n_values
            assert len(set(found.values)) == 50
            assert found == candidates(grammar, field, 50, seed=1)
            assert found != candidates(grammar, field, 50, seed=2)

    def test_values_are_drawn_alike_however_rare_they_are(self, pins):
        """The first digit is 0 in 99 % of the texts, and in 10 % of the values."""
        found = candidates(pins, "PIN", 5_000, seed=3)
        assert found.n_values == 10**6
        digits = [int(value[0]) for value in found.values]
        assert chisquare(np.bincount(digits, minlength=10)).pvalue > 0.001

    def test_rules_with_more_values_below_are_drawn_more_often(self):
        """One of 1,000 values begins with an x, and so is one half of the texts."""
        grammar = Grammar.from_string(
            "%text\n%field A\nS -> A [1]\nA -> 'x' [0.5] | B B [0.5]\nB -> C C C [1]\n"
            + DIGITS.replace("D", "C")
        )
        found = candidates(grammar, "A", 1_000, seed=0)
        assert found.n_values == 10**6 + 1
        assert "x" not in found.values

    def test_a_value_with_several_derivations_is_one(self):
        grammar = Grammar.from_string("""
        %text
        %field NAME
        S -> NAME-1 NAME-2 [1]
        NAME-1 -> 'Ann' 'a' [0.5] | 'An' 'na' [0.25] | 'Ek' [0.25]
        NAME-2 -> 'Ek' [1]
        """)
        found = candidates(grammar, "NAME", 10, seed=0)
        assert sorted(found.values) == ["Anna", "Ek"]

    def test_a_part_of_a_field_is_no_value(self):
        """PHONE-1 stands within PHONE only."""
        grammar = Grammar.from_string("""
        %text
        %field PHONE
        S -> 'call ' PHONE [1]
        PHONE -> PHONE-1 '-' PHONE-1 [1]
        PHONE-1 -> '1' [0.5] | '2' [0.5]
        """)
        assert candidates(grammar, "PHONE", 10, seed=0).values == ["1-1", "1-2", "2-1", "2-2"]

    @settings(deadline=None)
    @given(finite_grammars(n_levels=3, longest=3), st.integers(0, 5))
    def test_the_values_are_the_texts_of_the_field(self, grammar, seed):
        """Against a list of all derivations; no text has the field twice, or in itself."""
        text = "%text\n%field N0\nS -> N0 [1]\n" + "\n".join(map(str, grammar.rules))
        found = candidates(grammar_of(text), "N0", 10**6, seed)
        assert found.are_all
        assert sorted(found.values) == sorted(_texts(grammar, "N0"))
        some = candidates(grammar_of(text), "N0", 2, seed)
        assert some.n_values == found.n_values
        assert len(set(some.values)) == min(2, found.n_values)
        assert set(some.values) <= set(found.values)

    def test_what_is_refused(self, pins):
        with pytest.raises(GrammarError, match=r"'PINS' is not one of its fields: PIN \(did you m"):
            candidates(pins, "PINS", 5, seed=0)
        endless = Grammar.from_string("%text\n%field N\nS -> N [1]\nN -> '1' N [0.5] | '1' [0.5]")
        with pytest.raises(GrammarError, match="the field N has values without end"):
            candidates(endless, "N", 5, seed=0)
        with pytest.raises(GrammarError, match="PIN has 2,000,000 derivations, and several give"):
            candidates(Grammar.from_string(IN_TWO_WAYS + DIGITS), "PIN", 5, seed=0)
        one_value = "%text\n%field A\nS -> A [1]\nA -> B B B B B B B B B B B B B B B B B B [1]\n"
        one_value += "B -> 'b' [0.5] | C [0.5]\nC -> 'b' [1]"
        with pytest.raises(GrammarError, match="262,144 derivations, and several give one value"):
            candidates(Grammar.from_string(one_value), "A", 5, seed=0)
        with pytest.raises(WrongValue, match="n: is 0"):
            candidates(pins, "PIN", 0, seed=0)


class TestExposure:
    def test_by_hand(self):
        """Of 8 values, the one with the third lowest loss."""
        found = exposure(3.0, [1, 2, 4, 5, 6, 7, 8], 8)
        assert found == (pytest.approx(math.log2(8 / 3)),) * 3

    def test_the_best_the_worst_and_equal_ones(self):
        losses = np.arange(1.0, 1024)
        assert exposure(0.0, losses, 1024) == (10, 10, 10)
        assert exposure(2000.0, losses, 1024) == (0, 0, 0)
        assert exposure(1.0, np.ones(1023), 1024) == (0, 0, 0)
        assert exposure(1.0, np.nextafter(np.ones(1023), 2), 1024) == (0, 0, 0)
        assert exposure(1.0, np.full(1023, np.inf), 1024) == (10, 10, 10)
        assert exposure(np.inf, np.full(1023, np.inf), 1024) == (0, 0, 0)

    def test_a_rounding_error_of_the_type_of_the_losses_is_no_difference(self):
        loss = np.float32(16)
        others = np.full(7, 16 * (1 + 1e-6), np.float32)
        assert exposure(loss, others, 8).bits == 0
        assert exposure(float(loss), others.astype(float), 8).bits == 3

    def test_more_values_than_a_whole_number_of_an_array_can_count(self):
        found = exposure(0.0, np.r_[np.zeros(9), np.ones(90)], 10**40)
        assert found.bits == pytest.approx(math.log2(10))
        assert 0 < found.lower < found.bits < found.upper < 6

    def test_many_values_at_once(self):
        losses = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        found = exposure([0.0, 5.5], losses, 4)
        assert found.bits.tolist() == pytest.approx([2, 2 - math.log2(3)])
        of_one_sample = exposure([0.0, 2.5], losses[0], 4)
        assert of_one_sample.bits.tolist() == pytest.approx([2, 2 - math.log2(3)])

    def test_a_sample_says_no_more_than_it_can(self):
        """None of 99 others is lower: at most 6.6 bits are estimated, of 20 that are possible."""
        found = exposure(0.0, np.ones(99), 2**20)
        assert found.bits == pytest.approx(math.log2(100))
        assert found.upper == 20
        share = 1 - 0.025 ** (1 / 99)  # Clopper and Pearson, for none of 99
        assert found.lower == pytest.approx(20 - math.log2(1 + share * (2**20 - 1)))

    @pytest.mark.parametrize("n_values", [2, 10, 1_000, 10**6])
    @pytest.mark.parametrize("n_others", [1, 9, 99, 999])
    def test_how_often_the_interval_misses(self, n_values, n_others):
        """Exactly, by the distribution of the number of others below a value of known rank."""
        if n_others >= n_values:
            return
        n_below = np.arange(n_others + 1)
        losses = np.where(np.arange(n_others) < n_below[:, None], 0.0, 1.0)
        found = exposure(np.full(n_others + 1, 0.5), losses, n_values)
        ranks = np.concatenate([np.geomspace(1, n_values, 12), np.linspace(1, n_values, 12)])
        for rank in np.unique(ranks.astype(int)):
            truth = math.log2(n_values) - math.log2(rank)
            holds = (found.lower <= truth + 1e-9) & (truth <= found.upper + 1e-9)
            chances = hypergeom.pmf(n_below, n_values - 1, rank - 1, n_others)
            assert chances[holds].sum() >= 0.95
        assert (found.lower <= found.bits + 1e-9).all()
        assert (found.bits <= found.upper + 1e-9).all()

    def test_from_the_grammar_to_the_exposure(self, pins):
        """A model whose loss of a PIN is the number itself: the rank of 029999 is 30,000."""
        value, truth = "029999", math.log2(10**6 / 30_000)
        n_trials, found = 200, []
        for seed in range(n_trials):
            sample = candidates(pins, "PIN", 300, seed)
            others = [float(other) for other in sample.others(value)]
            found.append(exposure(float(value), others, sample.n_values))
        misses = sum(not one.lower <= truth <= one.upper for one in found)
        assert binom.sf(misses - 1, n_trials, 0.05) > 0.001
        assert np.median([one.bits for one in found]) == pytest.approx(truth, abs=0.2)

    def test_what_is_refused(self):
        with pytest.raises(WrongValue, match="n_values"):
            exposure(1.0, [1.0, 2.0], 2)
        for loss, others in ((np.nan, [1.0]), (1.0, [np.nan]), (1.0, [])):
            with pytest.raises(WrongValue, match="missing, or NaN"):
                exposure(loss, others, 5)
        with pytest.raises(WrongValue, match="confidence"):
            exposure(1.0, [2.0], 5, confidence=1)


def _texts(grammar: Grammar, symbol: str) -> set[str]:
    sides = [rule.rhs for rule in grammar.rules if rule.lhs == symbol]
    parts = [[{s.name} if s.terminal else _texts(grammar, s.name) for s in side] for side in sides]
    return {"".join(chosen) for found in parts for chosen in itertools.product(*found)}


def test_exposures_of_all_values_are_those_of_all_ranks():
    losses = np.random.default_rng(0).permutation(64).astype(float)
    found = [
        exposure(losses[place], np.delete(losses, place), 64).bits for place in range(len(losses))
    ]
    np.testing.assert_allclose(sorted(found), sorted(6 - np.log2(np.arange(1, 65))), atol=1e-12)
