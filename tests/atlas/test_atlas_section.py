"""What the section trains and keeps, and what it says before anything is trained."""

import pytest

from helpers.commands import ROOT
from helpers.experiments import DEFAULT, experiment, message
from palimpsest.requests import TRACE, WEIGHTS

ATLAS = "config/atlas.yaml"


def atlas_of(monkeypatch, **block):
    monkeypatch.chdir(ROOT)
    return experiment(DEFAULT, ATLAS, command_line={"atlas": block})


def kept(made) -> dict[str, set]:
    """What the runs of each variant keep."""
    return {runs.variant: set(runs.keeps) for runs in made.single_runs}


@pytest.mark.parametrize(
    ("key", "value", "left_out"),
    [("gradients", [], "EK-FAC"), ("last_pass", False, "Min-K%++")],
)
def test_a_line_names_the_key_without_which_measures_are_left_out(
    monkeypatch, key, value, left_out
):
    assert not atlas_of(monkeypatch).notes
    made = atlas_of(monkeypatch, **{key: value})
    (note,) = made.notes
    assert f"atlas/{key}: is" in note
    assert left_out in note


def test_one_seed_has_no_references(monkeypatch):
    monkeypatch.chdir(ROOT)
    made = experiment(DEFAULT, ATLAS, command_line={"seeds": [3]})
    assert any(": seeds: has one" in note for note in made.notes)


def test_weights_are_kept_for_the_last_pass_only(monkeypatch):
    assert WEIGHTS in kept(atlas_of(monkeypatch))["base"]
    made = atlas_of(monkeypatch, last_pass=False)
    assert WEIGHTS not in kept(made)["base"]
    assert not [path for path in made.outputs["atlas"] if "last_pass" in path]


def test_languages_with_fields_have_their_exact_values(monkeypatch):
    """The models without a string are kept, because traces have no losses of single tokens."""
    for languages, fields, expected in (
        (["people"], True, True),
        (["people"], False, False),
        (["L2"], True, False),
    ):
        made = atlas_of(monkeypatch, languages=languages, fields=fields, last_pass=False)
        files = [path for path in made.outputs["atlas"] if "fields" in path]
        assert bool(files) == expected
        for variant in ("removals", "removals-again", "base"):
            assert (WEIGHTS in kept(made)[variant]) == expected
            assert TRACE in kept(made)[variant]


def test_an_unknown_language_is_named(monkeypatch):
    text = message(lambda: atlas_of(monkeypatch, languages=["poeple"]))
    assert "atlas/languages" in text
    assert "did you mean 'people'" in text


PRETRAINED = "config/atlas-pretrained.yaml"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"strings": "all"}, "atlas/models[0]: 'smollm2-135m-lora' is a full model and would be"),
        ({"gradients": ["trak"]}, "atlas/gradients: are of twins only"),
        ({"fields": True}, "atlas/fields: keeps the weights of every training"),
    ],
)
def test_a_full_model_is_asked_for_what_is_in_reach(monkeypatch, change, words):
    monkeypatch.chdir(ROOT)
    made = experiment(DEFAULT, PRETRAINED)
    removals = [runs for runs in made.single_runs if runs.variant == "removals"]
    assert [runs.regime.trainings(16) for runs in removals] == [16]
    assert words in message(lambda: experiment(DEFAULT, PRETRAINED, command_line={"atlas": change}))
