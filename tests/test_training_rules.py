"""Rules that train: a name for each group of jobs, and a pattern that tells their files apart."""

import re

import pytest

from palimpsest.requests import TOKENS, TRACE, WEIGHTS, Runs
from palimpsest.training_rules import by_name, recipes_of, variants_of_others

NAME = "[a-z0-9-]+"


def runs(model="a-twin", intervention="base", seeds=(0, 1), keeps=frozenset({TRACE}), **others):
    return Runs(model, "L1", 16, intervention, seeds=seeds, keeps=keeps, **others)


def is_twin(model):
    return model.endswith("-twin")


def names(*groups, kept_alone=frozenset()):
    return list(by_name(groups, is_twin, kept_alone))


def test_a_rule_is_named_by_its_runs_and_equal_names_get_numbers():
    both = [runs(), runs(intervention="dedup-matched"), runs(intervention="s1", label="targets")]
    name = "train_twins_on_base_and_dedup_matched_and_targets"
    assert names([both]) == [name]
    assert names([both], [both], [[runs(model="a")]]) == [name, f"{name}__2", "train_full_on_base"]


@pytest.mark.parametrize(
    ("kept", "kept_alone", "has_rule"),
    [
        (set(), set(), False),
        ({WEIGHTS}, set(), True),
        ({WEIGHTS}, {WEIGHTS}, False),
        ({TOKENS}, {WEIGHTS}, True),
    ],
)
def test_one_run_of_a_full_model_needs_a_rule_for_its_further_files(kept, kept_alone, has_rule):
    job = [runs(model="a", seeds=(3,), keeps=frozenset({TRACE, *kept}))]
    assert bool(names([job], kept_alone=kept_alone)) == has_rule


def test_patterns_hold_for_the_files_of_their_jobs_only():
    jobs = [[runs(), runs(intervention="dedup")], [runs(model="b-twin")]]
    recipe = re.compile(f"runs/base/(?P<recipe>{recipes_of(jobs)})/")
    assert recipe.match("runs/base/default/b-twin/L1/n16-seed9/")
    assert not recipe.match("runs/base/default/c-twin/L1/n16-seed0/")
    assert not recipe.match("runs/base/default/a-twin/L1/n160-seed0/")
    others = re.compile(f"runs/(?P<variant>{variants_of_others([jobs], NAME)})/")
    assert not others.match("runs/dedup/default/a-twin/L1/n16-seed1/")
    assert others.match("runs/dedup/default/b-twin/L1/n16-seed1/")
    assert others.match("runs/dedup/default/a-twin/L1/n16-seed2/")
    assert variants_of_others([], NAME) == NAME
