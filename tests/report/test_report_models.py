"""A reader sees at a glance which models are twins and which are pretrained."""

import json

import pytest

from palimpsest import manifests, report
from palimpsest.report.models import magnitude, rows, sentence
from palimpsest.tables.claims import CLAIMS
from palimpsest.tables.headline import HEADLINE

TWIN = {
    "model": "opt-1.3b-twin",
    "scale": "twin",
    "parameters": 58_624,
    "engine": "fleet",
    "precision": "float32",
    "adapter_rank": None,
    "source": None,
    "revision": None,
}
FULL = {
    **TWIN,
    "model": "opt-1.3b",
    "scale": "full",
    "parameters": 1_315_758_080,
    "engine": "deepspeed",
    "precision": "bfloat16",
    "source": "facebook/opt-1.3b",
    "revision": "abc",
}


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ([TWIN, TWIN], "Every model that was trained here is a twin: a twin has the architecture"),
        ([FULL], "Every model that was trained here is pretrained: it had"),
        ([TWIN, FULL], "Of the models that were trained here, 1 is pretrained and 1 is a twin: a"),
        (
            [TWIN, FULL, FULL, TWIN],
            "Of the models that were trained here, 2 are pretrained and 2 are twins: a twin has",
        ),
    ],
)
def test_one_sentence_says_how_many_are_twins(models, said):
    assert sentence(models).startswith(said)
    assert sentence(models).endswith(".")


def test_pretrained_models_come_first_and_say_where_they_are_from():
    full, twin = rows([TWIN, FULL])
    assert full == {
        "model": "opt-1.3b",
        "scale": "pretrained",
        "parameters": "1.32 billion",
        "begins": "facebook/opt-1.3b, revision abc",
        "trained_by": "deepspeed, bfloat16",
    }
    (adapted,) = rows([{**FULL, "adapter_rank": 8}])
    assert adapted["trained_by"] == "deepspeed, bfloat16, only adapters (LoRA of rank 8)"
    assert (twin["scale"], twin["parameters"]) == ("twin", "58,600")
    assert twin["begins"] == "random weights"


@pytest.mark.parametrize(
    ("n", "shown"),
    [(999, "999"), (999_999, "1,000,000"), (134_515_008, "135 million"), (2e9, "2 billion")],
)
def test_parameters_are_rounded(n, shown):
    assert magnitude(n) == shown


def test_the_methods_say_what_the_models_were(tmp_path):
    """A sentence counts them, and each model has a row with its scale."""
    report.render(
        tmp_path / "report.html",
        parts=[],
        figures=[],
        headline=HEADLINE.schema.empty_table().to_pandas(),
        claims=CLAIMS.schema.empty_table().to_pandas(),
        totals={},
        models=[TWIN, FULL],
    )
    text = (tmp_path / "report.html").read_text()
    assert "1 is pretrained and 1 is a twin" in text
    for name, scale in (("opt-1.3b", "pretrained"), ("opt-1.3b-twin", "twin")):
        assert f'<td class="name">{name}</td>\n<td>{scale}</td>' in text


def test_models_are_read_from_manifests(tmp_path):
    """A full model names the commit that was used; without one, the revision that was asked for."""
    found = []
    for place, (one, commit) in enumerate([(TWIN, None), (FULL, None), (FULL, "0123")]):
        row = {"model": "x"} if one is TWIN else {"id": one["source"], "revision": "abc"}
        own = {name: one[name] for name in ("model", "parameters", "engine", "precision")}
        decided = {"scale": one["scale"], "row": row, "recipe": {}}
        path = tmp_path / f"{place}.json"
        path.write_text(json.dumps({**own, "resolved_revision": commit, "configuration": decided}))
        found.append(str(path))
    assert manifests.initial_weights(found[:2]) == [TWIN, FULL]
    assert manifests.initial_weights(found[2:]) == [{**FULL, "revision": "0123"}]
