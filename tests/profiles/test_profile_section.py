"""The section `profiles`: what it asks for, and blocks that are refused in one line."""

from pathlib import Path

import pytest

from helpers.experiments import DEFAULT, ROOT, experiment, message
from palimpsest.profiles.panel_files import PanelFile, panels

WRONG = {
    "an unknown model": (
        {"models": ["llama-3.2-1b-twin", "llama-4-twin"]},
        "profiles/models[1]: unknown model 'llama-4-twin'",
    ),
    "an unknown language": ({"languages": ["L9"]}, "profiles/languages[0]: unknown language 'L9'"),
    "a panel larger than its macro-batch": (
        {"panel": 33},
        "profiles/panel: 33 strings are more than a macro-batch has, which is "
        "profiles/cohort_size, 32",
    ),
    "too few validation strings": (
        {"validation": 63},
        "profiles/validation: 63 strings are too few",
    ),
    "an exact model that has no stream": (
        {"exact": {"models": ["opt-1.3b-twin"], "seeds": [0]}},
        "profiles/exact/models[0]: opt-1.3b-twin is not in profiles/models",
    ),
    "an exact seed that has no stream": (
        {"exact": {"models": ["llama-3.1-8b-twin"], "seeds": [0, 7]}},
        "profiles/exact/seeds[1]: 7 is not in seeds, so there is no estimate to compare with",
    ),
    "a full model's notions": (
        {"models": ["llama-3.2-1b"], "exact": {"models": ["llama-3.2-1b"], "seeds": [0]}},
        "profiles/notions: llama-3.2-1b in profiles/exact/models is too large for influence",
    ),
    "a panel that is not there": (
        {"panels": {"mine": "nowhere.csv"}},
        "profiles/panels/mine: no such file: nowhere.csv; a panel is one .csv, .tsv, "
        ".jsonl, .json or .parquet file",
    ),
    "a panel in another format": (
        {"panels": {"mine": "README.md"}},
        "profiles/panels/mine: 'README.md' is not a .csv, .tsv, .jsonl, .json or .parquet "
        "file; save it as one",
    ),
    "a panel whose name is a path": (
        {"panels": {"../mine": "config/panels/example.csv"}},
        "profiles/panels/../mine: is not a name",
    ),
    "a panel without a file": (
        {"panels": {"mine": {"unit": "document"}}},
        "profiles/panels/mine: the key 'file' is missing",
    ),
    "a column that no panel has": (
        {"panels": {"mine": {"file": "config/panels/example.csv", "units": "document"}}},
        "profiles/panels/mine: unknown key 'units'; known: file, unit, time, cohort, outcome, "
        "loss, other_outcomes, parameters, model, checkpoints, tokens, steps, texts, batches, "
        "instances, validation, seed (did you mean 'unit'?)",
    ),
    "a panel that is neither a path nor a block": (
        {"panels": {"mine": 3}},
        "profiles/panels/mine: 3 is not allowed; must be a path, or a block with the key file",
    ),
    "an outcome and a loss": (
        {
            "panels": {
                "mine": {"file": "config/panels/example.csv", "outcome": "a", "loss": "b"},
            }
        },
        "profiles/panels/mine: outcome and loss are both given; name one of the two columns",
    ),
}


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_block_is_refused_in_one_line(what):
    block, expected = WRONG[what]
    assert expected in message(lambda: experiment(DEFAULT, command_line={"profiles": block}))


def test_every_macro_batch_is_left_out_once():
    """In the streams of the exact models, and of no other."""
    made = experiment(DEFAULT)
    block = made.settings.block("profiles")
    asked = [runs for runs in made.requests if runs.variant.startswith("stream")]
    whole = [runs for runs in asked if runs.variant == "stream"]
    assert [runs.model for runs in whole] == block["models"]
    without = {f"stream-without-{g}" for g in range(1, block["cohorts"] + 1)}
    assert {runs.intervention for runs in asked} == {"stream", *without}
    again = {runs.variant for runs in asked} - {"stream", *without}
    n = block["notions"]["replicates"]
    assert again == {f"{name}-{draw}" for name in ("stream", *without) for draw in range(n)}
    assert {runs.model for runs in asked if runs not in whole} == set(block["exact"]["models"])


def test_only_models_that_are_questioned_keep_their_weights():
    """Those of the whole streams that are trained again; replicates have one job of their own."""
    others = {"density": None, "information": None}
    made = experiment(DEFAULT, command_line=others)
    (kept,) = (runs for runs in made.single_runs if "weights" in runs.keeps)
    assert (kept.model, kept.variant) == ("llama-3.1-8b-twin", "stream")
    without = experiment(DEFAULT, command_line={"profiles": {"notions": None}, **others})
    assert not [runs for runs in without.single_runs if "weights" in runs.keeps]
    of_model = [
        {runs.variant.removeprefix("stream").rpartition("-")[2] for runs in job}
        for jobs in made.training_jobs
        for job in jobs
        if job[0].model == kept.model and job[0].one_pass and job[0].one_pass.every > 1
    ]
    assert of_model == [{"0", "1"}]


def test_one_model_has_no_correlation():
    """And no truth if `exact` is null."""
    block = {"models": ["opt-1.3b-twin"], "exact": None, "dilution": None}
    files = experiment(DEFAULT, command_line={"profiles": block}).outputs["profiles"]
    assert len(files) == 4
    assert not [file for file in files if "correlations" in file or "exact" in file]


def test_a_panel_is_a_path_or_a_block(tmp_path):
    """The short form and the long form, side by side; columns that are not named are the kind's."""
    file, other = "config/panels/example.csv", str(tmp_path / "long.csv")
    Path(other).write_text("document,time,cohort,nll\na,1,,2.5\n")
    asked = {"short": file, "long": {"file": other, "unit": "document", "loss": "nll"}}
    block = experiment(DEFAULT, command_line={"profiles": {"panels": asked}}).settings.block(
        "profiles"
    )
    assert panels(block) == {
        "short": PanelFile("short", file, {}),
        "long": PanelFile("long", other, {"unit": "document", "loss": "nll"}),
    }
