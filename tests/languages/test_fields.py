"""Fields of texts: where they stand, and their Bayes-optimal losses against closed forms."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.projects import ROOT
from palimpsest.languages import Grammar, GrammarError, field_losses

COLUMNS = ["string", "field", "value", "begin", "end", "optimal_nll"]
LN10 = math.log(10)
PIECES = ["a", "b", "ab", "ba", "aab"]


def losses(grammar: Grammar, text: str) -> dict[str, list[float]]:
    """The losses of each field's values, in the order of the text."""
    table = field_losses(grammar, [text])
    assert list(table) == COLUMNS
    for row in table.itertuples():
        assert text[row.begin : row.end] == row.value
    return table.groupby("field").optimal_nll.agg(list).to_dict()


@pytest.fixture(scope="module")
def people() -> Grammar:
    return Grammar.from_file(ROOT / "config/languages/people.pcfg")


def test_an_email_follows_from_the_name_and_a_number_from_nothing(people):
    text = "Ann Ek was born in Lund and can be reached at ann.ek@post.example or on 284-7193."
    expected = [
        (0, "NAME", "Ann Ek", 0, 6, math.log(1000)),  # of such sentences, 0.4, and of 400 names
        (0, "TOWN", "Lund", 19, 23, math.log(16)),
        (0, "EMAIL", "ann.ek@post.example", 46, 65, 0.0),
        (0, "PHONE", "284-7193", 72, 80, 7 * LN10),
    ]
    table = field_losses(people, [text])
    assert list(table) == COLUMNS
    assert [tuple(row) for row in table.drop(columns="optimal_nll").to_numpy()] == [
        row[:-1] for row in expected
    ]
    np.testing.assert_allclose(table.optimal_nll, [row[-1] for row in expected], atol=1e-12)


def test_a_name_follows_from_an_email_that_is_before_it(people):
    text = "ann.ek@post.example is the address of Ann Ek, born in Lund, telephone 284-7193."
    found = losses(people, text)
    assert found == {
        "EMAIL": [pytest.approx(math.log(400 / 0.3))],
        "NAME": [pytest.approx(0, abs=1e-12)],
        "TOWN": [pytest.approx(math.log(16))],
        "PHONE": [pytest.approx(7 * LN10)],
    }


def test_a_field_in_a_text_twice_and_one_that_several_values_share():
    """A price before its weight leaves the choice among the weights of the price."""
    parcels = Grammar.from_file(ROOT / "config/languages/parcels.pcfg")
    text = (
        "On Friday a parcel at 14 euros for 7 kg reached Oslo (OSL) from Lima (LIM); its code is "
    )
    found = losses(parcels, f"{text}KA-204188.")
    assert found["PRICE"] == [pytest.approx(math.log(2))]
    assert found["WEIGHT"] == [pytest.approx(math.log(4))]
    assert found["TOWN"] == [pytest.approx(math.log(16))] * 2
    assert found["AIRPORT"] == [pytest.approx(0, abs=1e-12)] * 2
    assert found["CODE"] == [pytest.approx(8 * LN10)]


def test_all_ways_to_cut_a_field_are_summed():
    """`Anna Ek` is one piece and another, or three."""
    grammar = Grammar.from_string("""
    %text
    %field NAME TOWN
    S -> NAME ' lives in ' TOWN [1]
    NAME -> 'Ann' ' Ek' [0.5] | 'Anna' ' Ek' [0.3] | 'Ann' 'a' ' Ek' [0.2]
    TOWN -> 'Lund' [0.75] | 'Oslo' [0.25]
    """)
    found = losses(grammar, "Anna Ek lives in Oslo")
    assert found == {"NAME": [pytest.approx(math.log(2))], "TOWN": [pytest.approx(math.log(4))]}


@pytest.mark.parametrize(("likely", "first"), [("Ann", 0.6), ("Anna", 0.4)])
def test_a_border_that_may_stand_in_two_places(likely, first):
    """`Anna Ek` is `Ann` with `a Ek`, or `Anna` with ` Ek`: the more probable way gives the span.

    Every text begins with `Ann`, so that this costs nothing; and `Anna` means one family or both.
    """
    short, long = (0.9, 0.1) if likely == "Ann" else (0.1, 0.9)
    grammar = Grammar.from_string(f"""
    %text
    %field FIRST FAMILY
    S -> FIRST FAMILY [1]
    FIRST -> 'Ann' [{first}] | 'Anna' [{1 - first}]
    FAMILY -> ' Ek' [{long}] | 'a Ek' [{short}]
    """)
    table = field_losses(grammar, ["Anna Ek"]).set_index("field")
    assert table.value.to_dict() == {"FIRST": likely, "FAMILY": "Anna Ek".removeprefix(likely)}
    of_text = first * short + (1 - first) * long
    of_anna = of_text + (1 - first) * short  # or `Annaa Ek`
    before = 1.0 if likely == "Ann" else of_anna
    assert table.optimal_nll["FIRST"] == pytest.approx(-math.log(before), abs=1e-12)
    assert table.optimal_nll["FAMILY"] == pytest.approx(math.log(before / of_text))


def test_a_field_within_itself_and_one_that_is_empty():
    grammar = Grammar.from_string("""
    %text
    %field NUMBER TITLE
    S -> TITLE 'no ' NUMBER [1]
    TITLE -> 'dear ' [0.25] | [0.75]
    NUMBER -> '1' NUMBER [0.5] | '1' [0.5]
    """)
    table = field_losses(grammar, ["no 111", "dear no 1"])
    assert table.value.tolist() == ["", "111", "dear ", "1"]
    assert table.string.tolist() == [0, 0, 1, 1]
    expected = [0, math.log(4), math.log(4), 0]  # every number begins with a 1
    np.testing.assert_allclose(table.optimal_nll, expected, atol=1e-12)


def test_fields_stay_when_the_empty_text_is_left_out():
    text = "%text\n%field A\nS -> A A [1]\nA -> 'ab' [0.5] | [0.5]"
    grammar = Grammar.from_string(text)
    found = losses(grammar.without_empty_string(), "abab")["A"]
    assert found == [pytest.approx(0, abs=1e-12), pytest.approx(math.log(3))]
    assert losses(grammar, "abab")["A"] == [
        pytest.approx(math.log(4 / 3)),
        pytest.approx(math.log(3)),
    ]


def test_no_texts_give_an_empty_table(people):
    table = field_losses(people, [])
    assert list(table) == COLUMNS
    assert not len(table)


def test_a_text_of_another_language_is_refused(people):
    with pytest.raises(GrammarError, match=r"people.pcfg: text 1 is not in the language: 'Ann Ek'"):
        field_losses(people, ["".join(people.sample(1, 0)[0]), "Ann Ek"])
    with pytest.raises(GrammarError, match="<string>: has no fields; name some in a line %field"):
        field_losses(Grammar.from_string("%text\nS -> 'a' [1]"), ["a"])


def test_what_is_no_list_of_texts_is_refused(people):
    (string,) = people.sample(1, seed=0)
    for wrong in ("".join(string), [string]):
        with pytest.raises(TypeError, match=r"a list of texts \(str\), such as \[\"\".join\("):
            field_losses(people, wrong)


def sides(least: int):
    """The right-hand sides of a non-terminal: pieces, perhaps none."""
    side = st.lists(st.sampled_from(PIECES), min_size=least, max_size=3)
    return st.lists(side, min_size=1, max_size=3)


@settings(deadline=None)
@given(first=sides(1), inner=sides(0), then=sides(0), data=st.data())
def test_a_loss_is_that_of_all_texts_that_begin_alike(first, inner, then, data):
    """Against a list of all derivations, one after the other, with their fields."""
    sides_of = {"A": first, "B": inner, "C": then}
    rules = ["%text\n%field A B C", "S -> A B C [0.5] | B A [0.5]"]
    derivations: Counter = Counter()
    for field, found in sides_of.items():
        written = (f"{_side(side)} [{1 / len(found)!r}]" for side in found)
        rules.append(f"{field} -> {' | '.join(written)}")
    for order in ("ABC", "BA"):
        p = 0.5 / math.prod(len(sides_of[field]) for field in order)
        for chosen in itertools.product(*(sides_of[field] for field in order)):
            derivations[tuple(zip(order, map(tuple, chosen), strict=True))] += p
    text_of = {d: "".join(piece for _, side in d for piece in side) for d in derivations}
    text = data.draw(st.sampled_from(sorted(set(text_of.values()))))

    table = field_losses(Grammar.from_string("\n".join(rules)), [text])
    ways = {d: p for d, p in derivations.items() if text_of[d] == text}
    best = [d for d, p in ways.items() if p > max(ways.values()) * (1 - 1e-9)]
    values = sorted(zip(table.field, table.value, strict=True))
    assert values in [sorted((field, "".join(side)) for field, side in d) for d in best]
    for row in table.itertuples():
        assert text[row.begin : row.end] == row.value
        before, to_end = (
            sum(p for d, p in derivations.items() if text_of[d].startswith(text[:place]))
            for place in (row.begin, row.end)
        )
        assert row.optimal_nll == pytest.approx(math.log(before / to_end), abs=1e-9)


def _side(side: list[str]) -> str:
    return " ".join(f"'{piece}'" for piece in side)
