"""The rules of the section density for languages with unequal numbers of productions."""

import pytest

from helpers.rules import rules
from palimpsest.density.interventions import LEAK_CONDITIONS, leaked, without_production

CONFIG = "density:\n  leakage:\n    languages: [L3, L5, L4]\n"
FACTORIAL = [leaked(leak) for leak in LEAK_CONDITIONS]
GROUPS = {"": ("L3|L4", 4), "__2": ("L5", 2)}


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict:
    """The rules of an experiment on three languages: two have four productions, one has two."""
    file = tmp_path_factory.mktemp("config") / "languages.yaml"
    file.write_text(CONFIG)
    return rules(file)


@pytest.mark.parametrize("suffix", GROUPS)
def test_languages_with_equally_many_productions_share_rules(found, suffix):
    """Every rule makes the files of all conditions, and of each production of its languages."""
    languages, n_productions = GROUPS[suffix]
    productions = [without_production(n + 1) for n in range(n_productions)]
    for name in ("dataset_leaked", "embed_strings_leaked", "estimate_density_leaked"):
        rule = found[name + suffix]
        assert rule.wildcard_constraints["language"] == languages
        variants = {str(path).split("/")[-2] for path in rule.output}
        assert variants == {*FACTORIAL, *productions}


@pytest.mark.parametrize(
    ("language", "number", "suffix"), [("L3", 4, ""), ("L4", 3, ""), ("L5", 2, "__2")]
)
def test_each_dataset_is_made_by_one_rule(found, language, number, suffix):
    """Another language's rule would leave a production out that the language does not have."""
    for variant in ("leaked-0-0", without_production(number)):
        path = f"results/datasets/{language}/n72-seed0/{variant}/strings.parquet"
        makers = [name for name, rule in found.items() if rule.is_producer(path)]
        assert makers == [f"dataset_leaked{suffix}"]


def test_no_rule_makes_what_a_language_does_not_have(found):
    """L5 has two productions."""
    path = f"results/datasets/L5/n72-seed0/{without_production(3)}/strings.parquet"
    assert not [name for name, rule in found.items() if rule.is_producer(path)]


def test_ordinary_runs_have_rules_of_their_own(found):
    for name in ("embed_strings_base", "estimate_density_base"):
        assert found[name].wildcard_constraints["language"] == "L4"
        assert all("/base/" in str(path) for path in found[name].output)
