"""What the erase phases of methods add: the parts of methods, their table and its claims."""

import numpy as np
import pytest
import torch

from helpers import unlearning_claim_worlds as worlds
from helpers.experiments import ROOT
from helpers.unlearning_twins import assignment, trained_twins
from helpers.unlearning_world import world
from palimpsest import tables
from palimpsest.claims import judge_all
from palimpsest.jobs.query import QueryFiles
from palimpsest.sections import KINDS
from palimpsest.unlearning.claims import CLAIMS
from palimpsest.unlearning.evaluate.ablation import ablation_table
from palimpsest.unlearning.evaluate.rules import Rules
from palimpsest.unlearning.evaluate.scores import Retraining
from palimpsest.unlearning.methods import read_methods
from palimpsest.unlearning.methods.table import methods_of
from palimpsest.unlearning.run.unlearn import unlearn

# The grammar has a rule that is never reached, and says so.
pytestmark = pytest.mark.filterwarnings("ignore::palimpsest.languages.GrammarWarning")

TABLE = read_methods(ROOT / "config/unlearning.yaml")
RULES = Rules("geometric_mean", "grid", 1e-5, 0.5, 0.2)


def method(*phases):
    return methods_of({"m": {"phases": list(phases)}})["m"]


ERASE = {"erase": "gradient-ascent", "share": 0.1, "rate": 0.1}
REPAIR = {"repair": "finetune", "share": 0.2, "rate": 1.0}
SELECT = {"erase": "select-parts", "parts": ["matrices"]}


# Methods without their erase phases


def names(alone):
    return [placed.phase.name for placed in alone.placed]


def test_only_repair_phases_stay_with_their_settings_and_rounds():
    whole = method(ERASE, {"repeat": 2, "phases": [ERASE, REPAIR]}, ERASE)
    alone = whole.repair_alone
    assert alone.name == "m.repair"
    assert names(alone) == ["finetune", "finetune"]
    assert alone.phases == [whole.phases[2]] * 2
    assert alone.repair_alone is None


def test_a_repeat_of_erase_phases_goes():
    assert names(method({"repeat": 3, "phases": [ERASE]}, REPAIR).repair_alone) == ["finetune"]


def test_a_selection_stays_only_for_a_repair_that_needs_it():
    slow = {**REPAIR, "elsewhere": 0.1}
    reset = {"erase": "reinitialise"}
    assert names(method(SELECT, reset, slow).repair_alone) == ["select-parts", "finetune"]
    assert names(method(SELECT, reset, REPAIR).repair_alone) == ["finetune"]


@pytest.mark.parametrize("phases", [[ERASE], [REPAIR], [ERASE, {**ERASE, "rate": 0.5}]])
def test_a_method_of_one_role_has_no_part(phases):
    assert method(*phases).repair_alone is None


@pytest.mark.parametrize("name", TABLE)
def test_a_part_of_a_shipped_method_changes_weights_by_repair_only(name):
    roles = {placed.role for placed in TABLE[name].placed}
    alone = TABLE[name].repair_alone
    assert (alone is None) == (len(roles) == 1)
    if alone:
        assert {one.role for one in alone.placed if not one.phase.selects} == {"repair"}
        repairs = [one.phase for one in TABLE[name].placed if one.role == "repair"]
        assert [one.phase for one in alone.placed if one.role == "repair"] == repairs


# The table


def ablation_of(folder, whole, alone):
    """The table of a method whose models, whole and without erasing, are those of a world."""
    made = world(folder, methods=(whole, alone))
    problem = made.problem()
    methods = problem.methods(made.unlearned, made.models)
    cost = Retraining(steps=40, seconds=10.0)
    return ablation_table(problem, methods, RULES, cost, {whole: alone}).set_index("part")


def test_the_table_has_both_parts_of_a_method(tmp_path):
    """`good` models are like retrained models, and `shifted` ones half-way."""
    found = ablation_of(tmp_path, "good", "shifted")
    assert list(found.index) == ["repair", "whole"]
    assert set(found["method"]) == {"good"}
    assert found.loc["whole", "forgetting_quality"] > found.loc["repair", "forgetting_quality"]
    assert found.loc["whole", "share"] == pytest.approx(1, abs=0.1)
    assert 0.2 < found.loc["repair", "share"] < 0.8
    assert (abs(found["control_share"]) < 0.2).all()
    assert set(found["steps_share"]) == {0.1}


# Claims


OWN = [claim for claim in CLAIMS if "unlearning_ablation" in claim.statistic.reads]


@pytest.mark.parametrize(
    ("whole", "repair", "verdict"), [(0.7, 0.2, "agrees"), (0.2, 0.7, "disagrees")]
)
def test_every_method_has_a_row(whole, repair, verdict):
    """Its note names the method."""
    planted = worlds.ablation(whole, repair, 0.03, methods=("scrub", "kookmin"))
    found = judge_all(OWN, {"unlearning_ablation": planted})
    assert len(found) == 2 * len(OWN)
    assert set(found["verdict"]) == {verdict}
    assert [note.rpartition("method: ")[2] for note in found["note"]] == ["scrub", "kookmin"] * 2


def test_one_method_that_only_repairs_changes_no_other_row():
    both = worlds.ablation(0.7, 0.2, 0.03, methods=("scrub", "kookmin"))
    equal = (both["method"] == "kookmin") & (both["part"] == "whole")
    repair = both[(both["method"] == "kookmin") & (both["part"] == "repair")]
    both.loc[equal, ["forgetting_quality", "share"]] = repair[
        ["forgetting_quality", "share"]
    ].to_numpy()
    found = judge_all(OWN, {"unlearning_ablation": both}).set_index("note")
    assert set(found.loc["method: scrub", "verdict"]) == {"agrees"}
    of_kookmin = found[found.index.str.contains("kookmin")]
    assert set(of_kookmin["verdict"]) == {"cannot tell"}
    assert (of_kookmin["estimate"] == 0).all()


# Models

TABLES = ("unlearned", "models", "stages")


def test_parts_are_unlearned_but_not_followed(tmp_path, monkeypatch):
    """A part is what the method with only these phases is; it has no curve and does not relearn."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    trained = trained_twins(tmp_path / "trained", 2)
    whole = method({**ERASE, "rate": 5.0}, REPAIR)
    phases = {"m": whole.written, "m.repair": whole.repair_alone.written}
    asked = {
        "phases": phases,
        "models": {
            "origins": [0, 1],
            "unlearning_replicates": [0, 0],
            "ends": {"none": [], "retrain": []},
            "retrained_offset": 1,
        },
        "afterwards": {
            "cutoff": 1.0,
            "curve": {"models": 2, "points": 2},
            "relearn": {"models": 2, "steps": 2},
        },
        "parts": ["m.repair"],
    }
    files = [
        QueryFiles(
            trained.datasets["original"],
            trained.weights,
            [
                str(tmp_path / name / f"{made}.parquet")
                for made in ("unlearned", "models", "stages")
            ],
            str(tmp_path / name / "manifest.json"),
        )
        for name in phases
    ]
    unlearn.query.run(files, asked, assignment(tmp_path / "state"))

    def read(name, kind, table):
        return tables.read(tmp_path / name / f"{table}.parquet", KINDS[kind])

    losses = {name: read(name, "unlearned", "unlearned")["nll"] for name in phases}
    assert not np.allclose(losses["m"], losses["m.repair"])
    steps = {name: read(name, "unlearned_models", "models")["steps"].iloc[0] for name in phases}
    assert steps["m.repair"] < steps["m"]
    assert len(read("m", "unlearning_stages", "stages"))
    assert not len(read("m.repair", "unlearning_stages", "stages"))
    assert read("m.repair", "unlearned_models", "models")["relearn_steps"].isna().all()
