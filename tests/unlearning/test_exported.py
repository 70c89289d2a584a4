"""Unlearned models as folders: the model in a folder is the one that the tables describe."""

import json

import pytest
import torch

from helpers.model_folders import nll_of
from helpers.unlearning_twins import assignment, trained_twins
from palimpsest import tables
from palimpsest.errors import UserError
from palimpsest.jobs.query import QueryFiles
from palimpsest.sections import KINDS
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.run.exported import unlearned_model
from palimpsest.unlearning.run.unlearn import unlearn

# The grammar has a rule that is never reached, and says so.
pytestmark = pytest.mark.filterwarnings("ignore::palimpsest.languages.GrammarWarning")

# Its noise and its order of strings are random.
METHOD = Method.of(
    "mine",
    [
        {"erase": "select-parts", "parts": ["matrices"]},
        {"erase": "noise", "sigma": 0.2},
        {"erase": "gradient-ascent", "share": 0.4, "rate": 1.0},
    ],
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        yield trained_twins(tmp_path_factory.mktemp("trained"), 2)


def export_it(trained, folder, method, **start):
    values = {"variant": "original", "cutoff": 1.0, **start}
    manifest = str(folder / "made/palimpsest.json")
    files = QueryFiles(trained.datasets["original"], trained.weights, manifest=manifest)
    values |= {"method": method.name, "phases": method.written}
    unlearned_model.query.run([files], values, assignment(folder / "state"))


def test_the_folder_has_the_model_of_the_tables(trained, tmp_path):
    """The same random numbers give the same model, also alone instead of beside others."""
    models = {"origins": [0, 1], "unlearning_replicates": [0, 0], "retrained_offset": 0}
    values = {
        "phases": {METHOD.name: METHOD.written},
        "models": models,
        "afterwards": {
            "cutoff": 1.0,
            "curve": {"models": 0, "points": 1},
            "relearn": {"models": 0, "steps": 0},
        },
    }
    written = [str(tmp_path / name) for name in ("u.parquet", "m.parquet", "s.parquet")]
    dataset = trained.datasets["original"]
    files = QueryFiles(dataset, trained.weights, written, str(tmp_path / "m.json"))
    unlearn.query.run([files], values, assignment(tmp_path / "state"))
    export_it(trained, tmp_path, METHOD, start=1, origin=1)
    found = nll_of(tmp_path / "made", tables.read(dataset, KINDS["strings"]))
    predicted = tables.read(written[0], KINDS["unlearned"])
    for origin, is_it in ((0, False), (1, True)):
        nll = predicted[predicted["origin"] == origin].set_index("string_id")["nll"]
        assert ((found - nll).abs().max() < 1e-3) == is_it
    about = json.loads((tmp_path / "made/palimpsest.json").read_text())
    assert (about["method"], about["origin"]) == ("mine", 1)
    assert about["unlearning_replicate"] == 0
    assert about["starts_from"] == {"variant": "original", "replicate": 1}


def test_the_ends_are_trained_models(trained, tmp_path):
    """The folder of `retrain` has a retrained model as it was trained."""
    export_it(trained, tmp_path, Method("retrain", []), variant="retain", start=1, origin=0)
    strings = tables.read(trained.datasets["retain"], KINDS["strings"])
    nll = trained.trace("retain", 1, epoch=2).set_index("string_id")["nll"]
    assert (nll_of(tmp_path / "made", strings) - nll).abs().max() < 1e-3


def test_a_model_that_was_not_trained_is_refused(trained, tmp_path):
    with pytest.raises(UserError, match="no weights of original-7"):
        export_it(trained, tmp_path, METHOD, start=7, origin=7)
    assert not (tmp_path / "made").exists()
