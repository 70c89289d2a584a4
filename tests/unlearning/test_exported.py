"""Unlearned models as folders: the model in a folder is the one that the tables describe."""

import json

import pytest
import torch

from helpers.model_folders import nll_of
from helpers.unlearning_twins import assignment, trained_twins
from palimpsest import tables
from palimpsest.errors import UserError
from palimpsest.sections import KINDS
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.run.exported import Wanted, export_unlearned
from palimpsest.unlearning.run.parts import Afterwards, Curve, Part, Relearning
from palimpsest.unlearning.run.unlearn import Unlearning, unlearn

# The grammar has a rule that is never reached, and says so.
pytestmark = pytest.mark.filterwarnings("ignore::palimpsest.languages.GrammarWarning")

# Its noise and its order of strings are random.
METHOD = Method.from_json(
    "mine",
    json.dumps(
        [
            {"erase": "select-parts", "parts": ["matrices"]},
            {"erase": "noise", "sigma": 0.2},
            {"erase": "gradient-ascent", "share": 0.4, "rate": 1.0},
        ]
    ),
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        yield trained_twins(tmp_path_factory.mktemp("trained"), 2)


def export_it(trained, folder, method, **start):
    wanted = Wanted(**{"method": method, "variant": "original", "cutoff": 1.0, **start})
    work = assignment(folder / "state")
    export_unlearned(
        wanted, work, trained.datasets["original"], trained.weights, str(folder / "made")
    )


def test_the_folder_has_the_model_of_the_tables(trained, tmp_path):
    """The same random numbers give the same model, also alone instead of beside others."""
    files = [str(tmp_path / name) for name in ("u.parquet", "m.parquet", "s.parquet", "m.json")]
    part = Part([0, 1], [0, 0], "original", [0, 1], *files)
    afterwards = Afterwards(1.0, Curve(0, 1), Relearning(0, 0))
    dataset = trained.datasets["original"]
    one = Unlearning(METHOD, part, afterwards)
    unlearn([one], assignment(tmp_path / "state"), dataset, trained.weights)
    export_it(trained, tmp_path, METHOD, start=1, origin=1)
    found = nll_of(tmp_path / "made", tables.read(dataset, KINDS["strings"]))
    predicted = tables.read(part.predictions, KINDS["unlearned"])
    for origin, is_it in ((0, False), (1, True)):
        nll = predicted[predicted["origin"] == origin].set_index("string_id")["nll"]
        assert ((found - nll).abs().max() < 1e-3) == is_it
    about = json.loads((tmp_path / "made/palimpsest.json").read_text())
    assert (about["method"], about["origin"]) == ("mine", 1)
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
