"""The section `information`: what it asks for, and blocks that are refused in one line."""

import shutil
from pathlib import Path

import pytest
import yaml

from helpers.experiments import DEFAULT, ROOT, experiment, message
from helpers.rules import rules
from palimpsest.information import kinds
from palimpsest.information.interventions import marked, shuffled
from palimpsest.information.section import READING, percent, variants
from palimpsest.memorisation.section import DEFAULTS

PERCENTS = (0, 25, 50, 75, 100)
VARIANTS = [*map(marked, PERCENTS), *map(shuffled, PERCENTS)]
WRONG = {
    "an unknown model": (
        {"models": ["opt-2b-twin"]},
        "information/models[0]: unknown model 'opt-2b-twin'",
    ),
    "an unknown language": (
        {"languages": ["L3", "L9"]},
        "information/languages[1]: unknown language 'L9'",
    ),
    "a language without answers": (
        {"languages": ["L3", "L1"]},
        "information/languages[1]: config/languages/L1.pcfg: its strings have no answer; the ",
    ),
    "a share that is no whole percent": (
        {"alphas": [0, 0.125]},
        "information/alphas[1]: 0.125 is not a whole percent, and variants are named by their "
        "percent; set it to 0.12",
    ),
    "no share at all": (
        {"alphas": [], "betas": []},
        "information/alphas: there is nothing to train without alphas and without betas; name",
    ),
    "a share above one": ({"betas": [0, 2]}, "information/betas[1]: 2 is not allowed"),
    "a seed that the experiment lacks": (
        {"seeds": [0, 7]},
        "information/seeds[1]: 7 is not among the seeds of the experiment: 0, 1, 2, 3, 4; choose",
    ),
    "a number of tests that cannot be divided": (
        {"tests": 250},
        "information/tests: 250 strings cannot be evenly divided among the 4 answers and 4 "
        "markers of L3; choose a multiple of 16, such as 240 or 256",
    ),
    "too few tests": (
        {"tests": 4},
        "information/tests: 4 strings cannot be evenly divided among the 4 answers and 4 "
        "markers of L3; choose a multiple of 16, such as 16",
    ),
    "a layer that the only model lacks": (
        {"models": ["opt-1.3b-twin"], "layers": [0, 2]},
        "information/layers[1]: opt-1.3b-twin has no layer 2; its layers are 0, 1: choose among "
        "them, or set the key to all",
    ),
    "a layer that one of the models lacks": (
        {"models": ["opt-1.3b", "opt-1.3b-twin"], "layers": [23]},
        "information/layers[0]: opt-1.3b-twin has no layer 23; its layers are 0, 1",
    ),
    "an unknown place": ({"places": ["embedding"]}, "information/places[0]: 'embedding' is not"),
    "an unknown position": ({"positions": ["first"]}, "information/positions[0]: 'first' is not"),
    "too many neighbours": (
        {"tests": 16, "neighbours": 16},
        "information/neighbours: a string has only 15 neighbours among 16 evaluated strings, and "
        "16 are asked for; lower it, or raise information/tests",
    ),
    "more pairs than there are": (
        {"models": ["opt-1.3b-twin"], "pairs": 8129},
        "information/pairs: 8,129 are more than the 8,128 pairs of the 128 neurons that a site "
        "of opt-1.3b-twin has at most; lower it, or set it to all",
    ),
    "no site that the claims are about": (
        {"places": ["residual", "attention"]},
        "information/places: mlp is not among residual, attention, and the claims are about it, so "
        "nothing would be judged; add mlp",
    ),
    "no position that the claims are about": (
        {"positions": ["mean"]},
        "information/positions: last is not among mean, and the claims are about it, so nothing "
        "would be judged; add last",
    ),
    "an answer that is never right": (
        {"label_noise": 1},
        "information/label_noise: 1 is not allowed",
    ),
    "one bin": ({"bins": 1}, "information/bins: 1 is not allowed"),
    "an unknown key": ({"depth": 2}, "information: unknown key 'depth'"),
}


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


def made_with(**block):
    """The default experiment on L3 with these values in the section's block."""
    return experiment(DEFAULT, command_line={"information": {"languages": ["L3"], **block}})


def of_section(made):
    """The requests of the section."""
    (section,) = (each for each in made.sections if each.name == "information")
    return list(section.requests(made.settings))


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_block_is_refused_in_one_line(what):
    block, expected = WRONG[what]
    assert expected in message(lambda: made_with(**block))


@pytest.mark.parametrize(
    "block",
    [
        {"tests": 16, "neighbours": 15},
        {"models": ["opt-1.3b-twin"], "pairs": 8128},
        {"models": ["opt-1.3b-twin"], "layers": [1]},
        {"models": ["opt-1.3b-twin", "opt-6.7b-twin"], "pairs": 30000},
        {"alphas": []},
        {"betas": [0.07, 0.29]},  # 100 times these are not quite whole numbers
        {"pairs": "all"},
    ],
)
def test_what_is_just_allowed_is_not_refused(block):
    assert made_with(**block).outputs["information"]


def test_a_text_has_no_answers(tmp_path):
    folder = tmp_path / "languages"
    shutil.copytree("config/languages", folder)
    (folder / "notes.txt").write_text("a b c\n" * 600)
    over = {"languages_folder": str(folder), "information": {"languages": ["notes"]}}
    said = message(lambda: experiment(DEFAULT, command_line=over))
    assert "information/languages[0]: 'notes' is a text" in said
    assert "what decides the last symbol of its strings needs them" in said


def test_every_variant_is_trained_in_the_seeds_of_the_section():
    made = made_with(models=["opt-1.3b-twin", "opt-2.7b-twin"], seeds=[1, 2])
    asked = of_section(made)
    assert [runs.variant for runs in asked] == 2 * VARIANTS
    assert {runs.seeds for runs in asked} == {(1, 2)}
    assert all({"trace", "weights"} == runs.keeps for runs in asked)
    assert {runs.seeds for runs in of_section(made_with(seeds="all"))} == {(0, 1, 2, 3, 4)}


def test_shares_are_named_by_their_percent():
    made = made_with(alphas=[0, 0.29, 1], betas=[0.07])
    expected = ["marked-0", "marked-29", "marked-100", "shuffled-7"]
    assert variants(made.settings) == expected
    assert [percent(n / 100) for n in range(101)] == list(range(101))


def test_markers_and_permuted_answers_are_trained_in_jobs_of_their_own():
    """So that two cores share the work."""
    made = made_with(models=["opt-1.3b-twin"])
    jobs = [job for alike in made.training_jobs for job in alike]
    own = [[runs.variant for runs in job] for job in jobs if job[0].variant in VARIANTS]
    assert own == [VARIANTS[:5], VARIANTS[5:]]


def test_outputs_are_listed_once():
    made = made_with(models=["opt-1.3b-twin", "opt-2.7b-twin"], seeds=[0, 1])
    files = made.outputs["information"]
    assert len(files) == len(set(files))
    stems = [Path(file).stem for file in files]
    for name in ("activations", "answers", "norms", "neurons", "pairs", "manifest"):
        assert stems.count(name) == 2 * 2 * len(VARIANTS)
    assert stems.count("information") == 2
    assert len(made.tables(kinds.INFORMATION)) == 2


def test_unfinished_jobs_say_what_they_read():
    """A change of the sites is another job."""
    made = made_with(models=["opt-1.3b-twin"], seeds=[0], layers=[1], positions=["last", "mean"])
    own = [job for job in made.unfinished if job.given.get("query") == READING]
    assert len(own) == len(VARIANTS)
    assert own[0].given["values"]["layers"] == [1]
    assert own[0].given["values"]["positions"] == ["last", "mean"]
    assert "marked-0" in own[0].dataset


def test_the_section_can_be_left_out():
    made = experiment(DEFAULT, command_line={"information": None})
    assert "information" not in made.outputs
    assert not [runs for runs in made.requests if runs.variant in VARIANTS]


def test_the_contextual_measure_has_its_rule_without_the_section_memorisation(tmp_path):
    """A block that is null has no keys, and what is measured here needs two of them."""
    (tmp_path / "off.yaml").write_text("memorisation: null\nunlearning: null\n")
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    assert {key: config["memorisation"][key] for key in DEFAULTS} == DEFAULTS
    for files in ((), (tmp_path / "off.yaml",)):
        of_rules = rules(*files)
        params, keys = dict(of_rules["compare_epochs"].params.items()), ["start", "stand_in_gap"]
        assert {key: params[key] for key in keys} == {key: DEFAULTS[key] for key in keys}
