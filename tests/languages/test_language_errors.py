"""A grammar that cannot be used is refused in one line that says where, what, and what to do."""

import math
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palimpsest.errors import UserError
from palimpsest.languages import Grammar, GrammarError, GrammarWarning

LANGUAGES = Path(__file__).parents[2] / "config/languages"

REFUSED = {
    # what is wrong: (text, message)
    "empty": ("", "my.pcfg: empty file, it has no rules; a rule reads A -> B 'c' [0.5]"),
    "only comments": ("# S -> 'a' [1]\n\n", "my.pcfg: empty file, it has no rules"),
    "no arrow": ("S 'a' [1]", "my.pcfg:1: missing arrow '->' after 'S'; a rule reads"),
    "only a name": ("# one\nS", "my.pcfg:2: missing arrow '->' after 'S'"),
    "two arrows": (
        "S -> 'a' -> 'b' [1]",
        "my.pcfg:1: a second arrow '->'; write one rule per line",
    ),
    "no probability before a bar": (
        "S -> 'a' | 'b' [1]",
        "my.pcfg:1: missing probability: line 1 gave probabilities to rules of S, and line 1 gave "
        "none; give one to every rule, or to none, which makes all rules equally probable",
    ),
    "no probability in another line": (
        "S -> 'a' [0.5]\nS -> 'b'\nS -> 'c' [0.5]\nS -> 'd'",
        "my.pcfg:2: missing probability: lines 1 and 3 gave probabilities to rules of S, and lines "
        "2 and 4 gave none",
    ),
    "two probabilities": ("S -> 'a' [0.5] [0.5]", "my.pcfg:1: a rule has one probability, at its"),
    "early probability": ("S -> [1] 'a'", "my.pcfg:1: a rule has one probability, at its end"),
    "unclosed quote": ("S -> 'a [1]", 'my.pcfg:1: unclosed quote "\'a [1]"; a rule reads'),
    "unclosed bracket": ("S -> 'a' [1", "my.pcfg:1: unclosed bracket '[1'; a rule reads"),
    "garbage": ("S -> 'a' ; 'b' [1]", "my.pcfg:1: cannot read \"; 'b' [1]\"; a rule reads"),
    "arrow of another kind": ("S => 'a' [1]", "my.pcfg:1: missing arrow '->' after 'S'; a rule"),
    "curly quotes": (
        "S -> \u2018a\u2019 [1]",
        "my.pcfg:1: curly quotes are not read; write ' or \" for '\u2018a\u2019 [1]'",
    ),
    "a backslash before a quote": (
        r"S -> '\' [1]",
        r"""my.pcfg:1: unclosed quote "'\\' [1]"; a backslash before a quote is written \\""",
    ),
    "nothing after the arrow": ("S ->", "my.pcfg:1: S derives only the empty string; give it a"),
    "nothing but empty strings": (
        "S -> A A [1]\nA -> [0.5] | A [0.5]\nB -> 'b' [1]",
        "my.pcfg:1: S derives only the empty string; give it a rule that leads to terminals",
    ),
    "trailing bar": ("S -> 'a' [1] |", "my.pcfg:1: missing probability: line 1 gave"),
    "empty terminal": (
        "S -> '' [1]",
        "my.pcfg:1: an empty terminal ''; a terminal needs at least one letter, and an empty "
        "right-hand side is written as nothing: A -> [0.5]",
    ),
    "a letter for nothing": (
        "S -> \u03b5 [0.5] | 'a' [0.5]",
        "my.pcfg:1: non-terminal '\u03b5' has no rules; an empty right-hand side is written as",
    ),
    "quoted left-hand side": (
        "'S' -> 'a' [1]",
        "my.pcfg:1: the left-hand side is \"'S'\"; it must be a non-terminal, not quoted",
    ),
    "undefined": (
        "S -> 'a' A10 [1]\nA1 -> 'b' [1]",
        "my.pcfg:1: non-terminal 'A10' has no rules (did you mean 'A1'?); "
        "add a rule, or quote it if it is a terminal",
    ),
    "not quoted": ("S -> a [1]", "my.pcfg:1: non-terminal 'a' has no rules; add a rule, or quote"),
    "start undefined": (
        "S -> 'a' [1]\n%start SS",
        "my.pcfg:2: no start symbol: %start names 'SS', which has no rules (did you mean 'S'?); "
        "name the left-hand side of a rule",
    ),
    "start of nothing": ("%start\nS -> 'a' [1]", "my.pcfg:1: %start must name one non-terminal"),
    "other directive": (
        "%begin S\nS -> 'a' [1]",
        "my.pcfg:1: unknown directive '%begin'; known are %start, %text, %field",
    ),
    "a directive in the plural": (
        "%fields A\nS -> 'a' [1]",
        "my.pcfg:1: unknown directive '%fields' (did you mean '%field'?); known are",
    ),
    "pieces of text, twice": (
        "%text\nS -> 'a' [1]\n%text",
        "my.pcfg:3: %text was in line 1; delete one of them",
    ),
    "pieces of text, with a name": (
        "%text S\nS -> 'a' [1]",
        "my.pcfg:1: 'S' after %text; nothing else stands in this line",
    ),
    "a field of nothing": (
        "%text\n%field\nS -> 'a' [1]",
        "my.pcfg:2: %field must name non-terminals, as in %field EMAIL PHONE",
    ),
    "a quoted field": ("%text\n%field 'a'\nS -> 'a' [1]", "my.pcfg:2: %field must name non-term"),
    "a field twice": (
        "%text\n%field S\n%field A S\nS -> A [1]\nA -> 'a' [1]",
        "my.pcfg:3: %field S was in line 2; delete one of them",
    ),
    "an unknown field": (
        "%text\n%field MAIL\nS -> EMAIL [1]\nEMAIL -> 'a' [1]",
        "my.pcfg:2: the field 'MAIL' has no rules (did you mean 'EMAIL'?); name a non-terminal, or "
        "what stands before the hyphen in several: MAIL-1",
    ),
    "a field without text": (
        "%field S\nS -> 'a' [1]",
        "my.pcfg:1: S is a field, and fields are parts of a text; add a line %text",
    ),
    "sum too low": (
        "S -> A7 [1]\n\n\n\nA7 -> 'a' [0.5]\n# half\nA7 -> 'b' [0.4]",
        "my.pcfg:7: the rules of A7 sum to 0.90; they must sum to 1 (rules at lines 5 and 7)",
    ),
    "sum too high": (
        "S -> 'a' [0.5] | 'b' [0.5] | 'c' [0.5]",
        "my.pcfg:1: the rules of S sum to 1.50; they must sum to 1 (rules at line 1)",
    ),
    "sum of zeros": ("S -> 'a' [0]", "my.pcfg:1: the rules of S sum to 0.00; they must sum to 1"),
    "sum just too low": ("S -> 'a' [0.9499]", "my.pcfg:1: the rules of S sum to 0.9499; they must"),
    "negative": ("S -> 'a' [-0.5] | 'b' [1]", "my.pcfg:1: probability '[-0.5]' must be a number"),
    "above one": ("S -> 'a' [1.5]", "my.pcfg:1: probability '[1.5]' must be a number from 0 to 1"),
    "not a number": ("S -> 'a' [nan]", "my.pcfg:1: probability '[nan]' must be a number"),
    "infinite": ("S -> 'a' [inf]", "my.pcfg:1: probability '[inf]' must be a number"),
    "a percentage": (
        "S -> 'a' [50%] | 'b' [50%]",
        "my.pcfg:1: probability '[50%]' must be a number from 0 to 1, such as [0.3333], [1/3] or "
        "[1e-5]; write it as [0.5]",
    ),
    "a percentage with a point": ("S -> 'a' [2.5 %]", "my.pcfg:1: probability '[2.5 %]' must be"),
    "a comma": (
        "S -> 'a' [0,5]",
        "my.pcfg:1: probability '[0,5]' must be a number from 0 to 1, such as [0.3333], [1/3] or "
        "[1e-5]; write it with a point: [0.5]",
    ),
    "a fraction above one": ("S -> 'a' [4/3]", "my.pcfg:1: probability '[4/3]' must be a number"),
    "a fraction of zero": ("S -> 'a' [1/0]", "my.pcfg:1: probability '[1/0]' must be a number"),
    "half a fraction": ("S -> 'a' [1/]", "my.pcfg:1: probability '[1/]' must be a number"),
    "an underscore": ("S -> 'a' [0_5]", "my.pcfg:1: probability '[0_5]' must be a number"),
    "digits of another script": (
        "S -> 'a' [\u0660.\u0665]",
        "my.pcfg:1: probability '[\u0660.\u0665]' must be a number",
    ),
    "thousands of digits": (f"S -> 'a' [0.{'3' * 5000}]", "my.pcfg:1: probability '[0.333"),
    "below all floats": (
        "S -> 'a' [1e-400] | 'b' [1]",
        "my.pcfg:1: probability '[1e-400]' is below 2.23e-308, the smallest that is kept; write a",
    ),
    "far below all floats": (
        "S -> 'a' [1e-999999999]",
        "my.pcfg:1: probability '[1e-999999999]' is",
    ),
    "a fraction below all floats": (
        f"S -> 'a' [1/1{'0' * 350}]",
        "my.pcfg:1: probability '[1/10000",
    ),
    "far above one": ("S -> 'a' [1e999999999]", "my.pcfg:1: probability '[1e999999999]' must be"),
    "no number": ("S -> 'a' []", "my.pcfg:1: probability '[]' must be a number"),
    "two start symbols": (
        "%start A\n%start B\nA -> 'a' [1]\nB -> 'b' [1]",
        "my.pcfg:2: names the start symbol 'B', and line 1 names 'A'; a grammar has one start "
        "symbol: delete one of these lines",
    ),
    "a printed start symbol and another": (
        "Grammar with 2 productions (start state = A)\nA -> 'a' [1]\nB -> 'b' [1]\n%start B",
        "my.pcfg:4: names the start symbol 'B', and line 1 names 'A'",
    ),
    "supercritical": (
        "S -> A [1]\nA -> B B [0.6] | 'a' [0.4]\nB -> A [1]",
        "my.pcfg:2: strings have infinite expected length: A and B lead back to themselves "
        "1.095 times on average; this must be less than 1",
    ),
    "critical": (
        "S -> S S [0.5] | 'a' [0.5]",
        "my.pcfg:1: strings have infinite expected length: S leads back to itself 1 times",
    ),
    "endless": (
        "S -> 'a' A [1]\nA -> 'b' A [1]",
        "my.pcfg:2: A derives no finite string; give it a rule that leads to terminals",
    ),
    "unary cycle": ("S -> A [1]\nA -> S [1]", "my.pcfg:1: S derives no finite string"),
    "end of probability zero": ("S -> S [1] | 'a' [0]", "my.pcfg:1: S derives no finite string"),
    "just below critical": (
        "S -> S [0.9999999999] | 'a' [0.0000000001]",
        "my.pcfg:1: strings have derivations that are too long: S leads back to itself "
        "0.9999999999 times on average; this must be at most 0.999999999, so give",
    ),
    "just below critical, in two steps": (
        "S -> T [0.999999999] | 'a' [1e-9]\nT -> S [1.0]",
        "my.pcfg:1: strings have derivations that are too long: S and T lead back to themselves "
        "0.9999999995 times on average; this must be at most 0.999999999, so give",
    ),
    "just above critical": (
        "S -> S S [0.50000001] | 'a' [0.49999999]",
        "my.pcfg:1: strings have infinite expected length: S leads back to itself 1.00000002 times",
    ),
    "critical with empty strings": (
        "S -> '(' S ')' S [0.5] | [0.5]",
        "my.pcfg:1: strings have infinite expected length: S leads back to itself 1 times",
    ),
    "a loop of nothing": (
        "S -> A 'a' [1]\nA -> A A [0.5] | [0.5]",
        "my.pcfg:2: strings have infinite expected length: A leads back to itself 1 times",
    ),
    "derivations far too long": (
        "\n".join(f"A{i} -> A{i + 1} A{i + 1} [1]" for i in range(40))
        + "\nA40 -> 'a' [1e-9] | [1]",
        "my.pcfg: derivations have an expected 2.2e+12 rules; at most 100,000,000 are supported",
    ),
    "far too long": (
        "\n".join(f"A{i} -> A{i + 1} A{i + 1} [1]" for i in range(2000)) + "\nA2000 -> 'a' [1]",
        "my.pcfg: strings have an expected length of inf symbols; at most 1,000,000 are "
        "supported, so shorten the rules, or give a higher probability to those that end loops",
    ),
}


def read(text):
    return Grammar.from_string(text, name="my.pcfg")


@pytest.mark.filterwarnings("ignore::palimpsest.languages.GrammarWarning")
@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(text, message):
    with pytest.raises(GrammarError) as caught:
        read(text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_an_error_is_both_the_users_and_a_value_error():
    with pytest.raises(UserError):
        read("")
    with pytest.raises(ValueError, match="empty file"):
        read("")


class TestFiles:
    def test_message_names_the_file(self, tmp_path):
        path = tmp_path / "my.pcfg"
        path.write_text("S -> 'a' [0.5]\n")
        with pytest.raises(GrammarError) as caught:
            Grammar.from_file(path)
        assert str(caught.value).startswith(f"{path}:1: the rules of S sum to 0.50")

    def test_missing(self, tmp_path):
        with pytest.raises(GrammarError, match=r"L9\.pcfg: no such file; a language is a grammar"):
            Grammar.from_file(tmp_path / "L9.pcfg")

    def test_a_folder(self, tmp_path):
        with pytest.raises(GrammarError, match=r"cannot be read \(Is a directory\)"):
            Grammar.from_file(tmp_path)

    def test_a_path_that_no_file_can_have(self):
        with pytest.raises(GrammarError, match="cannot be read"):
            Grammar.from_file("a\0b")

    def test_not_utf_8(self, tmp_path):
        path = tmp_path / "latin.pcfg"
        path.write_bytes("S -> 'a' [1]\n# caf\u00e9\n".encode("latin-1"))
        with pytest.raises(
            GrammarError, match=r"latin\.pcfg:2: not UTF-8 text \(byte 0xe9\); save"
        ):
            Grammar.from_file(path)

    def test_byte_order_mark_and_windows_line_ends_are_read(self, tmp_path):
        path = tmp_path / "windows.pcfg"
        path.write_bytes("\ufeffS -> 'a' [0.5]\r\nS -> 'b' [0.5]\r\n".encode())
        assert Grammar.from_file(path).terminals == ("a", "b")


class TestWarnings:
    def test_missing_probabilities(self):
        text = "S -> A 'b' | 'c' | 'c'\nS -> 'd'\nA -> 'a' [0.5] | [0.5]\nB ->"
        with pytest.warns(GrammarWarning) as caught:
            grammar = read(text)
        assert str(caught[0].message) == (
            "my.pcfg:1: no probabilities for the rules of S: they are taken as equally probable; "
            "repeated rules add up (line 1)"
        )
        probability = {rule.rhs[0].name: rule.probability for rule in grammar.rules if rule.rhs}
        assert probability["c"] == 0.5
        assert probability["d"] == 0.25

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "S -> S S [0.4999] | 'a' [0.5001]",
                "my.pcfg: strings have 2,501 symbols on average, and 1.74 % of them have more than "
                "1,024; for shorter strings, give a higher probability to the rules that end loops",
            ),
            (
                "S -> 'a' S [0.995] | 'b' [0.005]",
                "my.pcfg: strings have 200 symbols on average, and",
            ),
            ("S -> " + 2000 * "'a' " + "[0.9] | S [0.1]", "my.pcfg: strings have 2,000 symbols on"),
            (
                "\n".join(f"A{n} -> A{n - 1} A{n - 1} [1]" for n in range(11, 0, -1))
                + "\nA0 -> 'a' [0.5] | 'b' [0.5]",
                "my.pcfg: strings have 2,048 symbols on average, and 100 % of them have more than "
                "1,024; for shorter strings, shorten the rules; or choose models that take more",
            ),
        ],
    )
    def test_a_language_with_long_strings(self, text, message):
        with pytest.warns(GrammarWarning) as caught:
            read(text)
        assert str(caught[0].message).startswith(message)

    @pytest.mark.parametrize(
        "text",
        [
            "S -> S S [0.45] | 'a' [0.55]",
            "S -> 'a' S [0.99] | 'b' [0.01]",
            "S -> " + 1024 * "'a' " + "[1]",
            "S -> 'a' [1]\nB -> B B [0.4999] | 'b' [0.5001]",
        ],
    )
    def test_no_such_warning_where_few_strings_are_long(self, text):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message=".*never reached")
            read(text)

    def test_repeated_rules_add_up(self):
        with pytest.warns(GrammarWarning, match=r"add up \(lines 1 and 2\)$"):
            grammar = read("S -> 'a'\nS -> 'a'\nS -> 'b'")
        assert [rule.probability for rule in grammar.rules] == [2 / 3, 1 / 3]
        with pytest.warns(GrammarWarning, match="equally probable$"):
            read("S -> 'a' | 'b'")

    def test_terminals_that_look_alike(self):
        with pytest.warns(GrammarWarning) as caught:
            read("S -> 'a' T [0.5] | '\u00e9' [0.5]\nT -> 'e\u0301' [1]")
        assert str(caught[0].message) == (
            "my.pcfg: 1 terminals are written with composed and with decomposed letters, such as "
            "'\u00e9' in lines 1 and 2, and count as different terminals; to make them one, save "
            "the text in Unicode's normal form NFC"
        )

    @pytest.mark.parametrize(
        ("character", "name"),
        [
            ("\u200b", "U+200B (zero width space)"),
            ("\u00a0", "U+00A0 (no-break space)"),
            ("\0", "U+0000 (a control character)"),
            ("\ufffd", "U+FFFD (replacement character)"),
        ],
    )
    def test_characters_of_terminals_that_nobody_sees(self, character, name):
        with pytest.warns(GrammarWarning) as caught:
            read(f"S -> 'a' [0.5]\nS -> 'b{character}' [0.5]")
        assert str(caught[0].message) == (
            f"my.pcfg: {name} is part of a terminal (1 times, first in line 2)"
        )

    def test_a_sum_that_had_to_be_normalised(self):
        with pytest.warns(GrammarWarning) as caught:
            grammar = read("S -> 'a' [0.48]\nS -> 'b' [0.49]")
        assert [str(warning.message) for warning in caught] == [
            "my.pcfg:2: the rules of S sum to 0.97; they must sum to 1 "
            "(rules at lines 1 and 2): normalised"
        ]
        assert sum(rule.probability for rule in grammar.rules) == pytest.approx(1, abs=1e-15)

    @pytest.mark.parametrize("total", ["0.95", "1.05"])
    def test_off_by_just_what_is_allowed(self, total):
        half = f"{float(total) / 2:.4f}"
        with pytest.warns(GrammarWarning, match=f"sum to {total}"):
            read(f"S -> 'a' [{half}] | 'b' [{half}]")

    @pytest.mark.parametrize("total", ["0.99", "1", "1.01"])
    def test_off_by_a_rounding(self, total):
        half = f"{float(total) / 2:.4f}"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(f"S -> 'a' [{half}] | 'b' [{half}]")

    def test_one_warning_names_all_that_is_unreachable(self):
        with pytest.warns(GrammarWarning) as caught:
            read("S -> 'a' [1]\nB -> C [1]\nC -> B [1]")
        (warning,) = caught
        assert str(warning.message) == (
            "my.pcfg:2: never reached from S: B and C; "
            "the rules are kept, but take no part in the language"
        )


def test_loops_just_below_the_limit_are_usable():
    grammar = read("S -> S S [0.499] | 'a' [0.501]")
    assert grammar.expected_length() == pytest.approx(0.501 / (1 - 2 * 0.499))


def test_a_long_chain_of_rules_does_not_exhaust_the_stack():
    chain = "\n".join(f"A{i} -> A{i + 1} [1]" for i in range(1500)) + "\nA1500 -> 'a' [1]"
    grammar = read(chain)
    assert grammar.n_derivations() == 1
    assert grammar.sample(2, seed=0) == [("a",), ("a",)]


def test_ten_thousand_rules_are_read_and_scored():
    """A lexicon, and a chain of loops; a step that is quadratic in the rules would take minutes."""
    words = "\n".join(f"N -> 'w{n}' [1/5000]" for n in range(5000))
    chain = "\n".join(f"A{n} -> A{n + 1} 'x' [0.5] | A{n} [0.25] | [0.25]" for n in range(2000))
    grammar = read(f"S -> N A0 [1]\n{words}\n{chain}\nA2000 -> 'z' [1]")
    assert grammar.n_rules > 10_000
    score = grammar.log_probability([("w7",), ("w7", "x"), ("w7", "z")])
    expected = [math.log(1 / 5000 / 3), math.log(1 / 5000 * 2 / 9), -math.inf]
    np.testing.assert_allclose(score, expected, rtol=1e-12)


PIECES = [
    " ",
    "\n",
    "'",
    '"',
    "[",
    "]",
    "->",
    "|",
    "#",
    "%",
    "\\",
    "[0.5]",
    "A",
    "S",
    "\0",
    "\u2028",
]


def mutated(text, seed):
    """The text with a few random cuts, doublings, and insertions."""
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 4)):
        a, b = sorted(chance.choices(range(len(text) + 1), k=2))
        b = min(b, a + chance.choice([1, 3, 40]))
        piece = chance.choice([*PIECES, chr(chance.randint(1, 0x2FFF))])
        text = chance.choice(
            [
                text[:a] + text[b:],
                text[:a] + piece + text[a:],
                text[:b] + text[a:],
                text[:a] + piece + text[b:],
            ]
        )
    return text


def check_reads_or_refuses(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        try:
            grammar = read(text)
        except GrammarError as error:
            message = str(error)
            assert message.startswith("my.pcfg:")
            assert len(message.splitlines()) == 1
            return
    assert 0 < grammar.expected_length() < math.inf


@settings(max_examples=400, deadline=None)
@given(
    name=st.sampled_from(sorted(path.name for path in LANGUAGES.glob("L*.pcfg"))),
    seed=st.integers(0, 2**32),
)
def test_a_damaged_language_is_read_or_refused_in_one_line(name, seed):
    check_reads_or_refuses(mutated((LANGUAGES / name).read_text(), seed))


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet=st.sampled_from([*"SAB ab'\"[].|#%\\\n0519->"]), max_size=40))
def test_random_text_is_refused_in_one_line(text):
    check_reads_or_refuses(text)
    check_reads_or_refuses("S -> 'a' [0.5] | S 'b' [0.5]\n" + text)


@given(text=st.text(max_size=60))
def test_any_text_is_refused_in_one_line(text):
    check_reads_or_refuses(text)
