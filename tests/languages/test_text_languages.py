"""The languages of text that come with Palimpsest."""

import math
import re
import warnings
from functools import cache

import numpy as np
import pytest

from helpers.projects import ROOT
from palimpsest.languages import Grammar

LANGUAGES = sorted(
    path.stem
    for path in (ROOT / "config/languages").glob("*.pcfg")
    if not path.stem.startswith("L")
)


@cache
def language(name: str) -> Grammar:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return Grammar.from_file(ROOT / f"config/languages/{name}.pcfg")


def test_the_examples_of_the_page_are_right(monkeypatch, capsys):
    """The table of the fields as printed; the exposure of a number that has the lowest loss."""
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs/languages.md").read_text()
    of_fields, of_exposure = re.findall(
        r"```python\n([^`]*(?:field_losses|exposure\()[^`]*)```", page
    )
    names = {"loss_of": lambda text: float("284-7193" not in text)}
    exec(of_fields, names)
    assert f"```\n\n```\n{capsys.readouterr().out}```" in page
    exec(of_exposure, names)
    numbers, found = names["numbers"], names["found"]
    assert f"{len(numbers.values):,} of numbers.n_values = {numbers.n_values:,}" in of_exposure
    assert f"the estimate is {found.bits:.0f} bits" in page
    assert f"the interval is {found.lower:.1f} to {found.upper:.1f}." in page


def test_there_are_three():
    assert LANGUAGES == ["biographies", "parcels", "people"]


@pytest.mark.parametrize("name", LANGUAGES)
def test_it_is_a_small_file_of_short_texts(name):
    grammar = language(name)
    text = (ROOT / f"config/languages/{name}.pcfg").read_text()
    assert grammar.is_text
    assert grammar.fields
    assert text.startswith("# Texts on ")
    assert len(text) < 80_000
    lengths = [len("".join(string)) for string in grammar.sample(2_000, seed=0)]
    # An encoder's time is that of its tokens, so its texts are shorter.
    low, high = (50, 70) if name == "biographies" else (80, 100)
    assert low < np.mean(lengths) < high
    assert grammar.of_characters().longest() < 120


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_text_has_one_derivation(name):
    """So its exact probability is that of the derivation by which it was drawn."""
    grammar = language(name)
    sampled = grammar.sample_encoded(500, seed=1)
    texts = [tuple("".join(string)) for string in grammar.decode(sampled)]
    found = grammar.of_characters().log_probability(texts)
    np.testing.assert_allclose(found, sampled.derivation_log_prob, rtol=1e-12)


def test_an_email_follows_from_its_name():
    """400 names and 400 e-mails; each pair is derived by one rule in each order."""
    grammar = language("people")
    texts = {rule.lhs: rule.rhs[0].name for rule in grammar.rules if rule.rhs[0].terminal}
    for order, first, then in (("NAMED", "NAME", "EMAIL"), ("MAILED", "EMAIL", "NAME")):
        rules = [rule for rule in grammar.rules if rule.lhs == order]
        assert len(rules) == 400
        for rule in rules:
            left, right = rule.rhs[0].name, rule.rhs[-1].name
            assert (left.split("-")[0], right.split("-")[0]) == (first, then)
            pair = {first: texts[left], then: texts[right]}
            assert pair["EMAIL"] == pair["NAME"].lower().replace(" ", ".")
    names = {text for symbol, text in texts.items() if symbol.startswith("NAME-")}
    assert len(names) == 400


def test_the_probability_of_a_text_on_a_person():
    text = "Ann Ek was born in Lund and can be reached at ann.ek@post.example or on 284-7193."
    other = text.replace("ann.ek@", "ann.berg@")
    found = language("people").of_characters().log_probability([tuple(text), tuple(other)])
    assert found[0] == pytest.approx(math.log(0.4 / 400 * 0.5 / 16 * 1e-7))
    assert found[1] == -math.inf


def test_the_probability_of_a_text_on_a_parcel():
    text = "On Friday a parcel at 9 euros for 3 kg reached Oslo (OSL) from Lima (LIM); its code is "
    text += "KA-204188."
    (found,) = language("parcels").of_characters().log_probability([tuple(text)])
    assert found == pytest.approx(math.log(0.5 / 7 * (1 / 4) * (1 / 2) / 16**2 * 1e-8))
