"""Panels made from checkpoints: draws, outcomes equal to transformers by hand, and refusals."""

import re

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from helpers.experiments import DEFAULT, ROOT, experiment, message
from helpers.tiny_language_models import write
from palimpsest import tables
from palimpsest.profiles import kinds, read_panel
from palimpsest.profiles.panel_asking import PanelJob, ask_panel
from palimpsest.profiles.panel_checkpoints import measured, step_of
from palimpsest.profiles.panel_files import panels
from palimpsest.profiles.panel_joining import joined
from palimpsest.profiles.panel_rows import draw, drawn, hashes
from palimpsest.training.attempts import Attempts

VOCABULARY, CONTEXT, N_ROWS = 40, 16, 24
STEPS = [*np.repeat([3, 7, 12, 18], 4), *[-1] * 8]
OUTCOMES = ["nll", "n_correct", "rank_sum"]


def neox(folder, seed):
    """A tiny GPT-NeoX with random weights, without a tokenizer."""
    torch.manual_seed(seed)
    model = GPTNeoXForCausalLM(
        GPTNeoXConfig(
            vocab_size=VOCABULARY,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=CONTEXT,
        )
    )
    model.save_pretrained(folder)
    return model.eval()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Checkpoints 0, 10 and 20, a token file as Pythia packs it, and the steps of its rows."""
    folder = tmp_path_factory.mktemp("checkpoints")
    models = {step: neox(folder / f"step{step}", step) for step in (0, 10, 20)}
    chance = np.random.default_rng(0)
    tokens = chance.integers(0, VOCABULARY, (N_ROWS, CONTEXT + 1), dtype=np.uint16)
    np.save(folder / "tokens.npy", tokens)
    np.save(folder / "steps.npy", np.array(STEPS))
    return folder, models, tokens


def rows_of(folder):
    files = [str(folder / "tokens.npy")], [str(folder / "steps.npy")], []
    draws = dict.fromkeys(("batches", "instances", "validation"))
    return drawn(*files, language="mine", times=[0, 10, 20], **draws, seed=0)


def ask(folder, step, to, **changed):
    """The outcomes under a checkpoint."""
    rows = to / "rows.parquet"
    tables.write(rows, rows_of(folder), kinds.PANEL_ROWS)
    job = {
        "name": "mine",
        "time": step,
        "model": str(folder / f"step{step}"),
        "rows": str(rows),
        "table": str(to / f"{step}.parquet"),
        "tokens": str(folder / "tokens.npy"),
    }
    asked = {"micro_batch_size": 1, "evaluation_batch_size": 5}
    ask_panel(PanelJob(**{**job, **changed}), Attempts(to / "attempts.json", asked))
    return tables.read(to / f"{step}.parquet", kinds.PANEL_OUTCOMES)


@pytest.fixture(scope="module")
def outcomes(made, tmp_path_factory):
    folder, _, _ = made
    return [ask(folder, step, tmp_path_factory.mktemp("outcomes")) for step in (0, 10, 20)]


def test_outcomes_are_those_of_transformers_by_hand(made, outcomes):
    """Of 17 tokens, the model reads 16 and predicts 16; sums within 1e-4."""
    _, models, tokens = made
    ids = torch.from_numpy(tokens.astype(np.int64))
    for table, model in zip(outcomes, models.values(), strict=True):
        with torch.no_grad():
            logits = model(ids[:, :-1]).logits
        losses = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), ids[:, 1:], reduction="none"
        )
        np.testing.assert_allclose(table["nll"], losses.sum(1), atol=1e-4)
        right = (logits.argmax(-1) == ids[:, 1:]).sum(1)
        np.testing.assert_array_equal(table["n_correct"], right)
        true = logits.gather(-1, ids[:, 1:, None])
        np.testing.assert_array_equal(table["rank_sum"], ((logits > true).sum(-1) + 1).sum(1))
        assert (table["n_tokens"] == CONTEXT).all()


def test_a_panel_has_three_outcomes(outcomes, made, tmp_path):
    """It is read as any other; steps between two checkpoints belong to the later one."""
    checkpoints = {str(step): f"step{step}" for step in (0, 10, 20)}
    panel = joined(rows_of(made[0]), outcomes, language="mine", checkpoints=checkpoints)
    path = tmp_path / "panel.parquet"
    tables.write(path, panel, kinds.MEASURED_PANEL)
    with pytest.warns(UserWarning, match="between two times"):
        found = read_panel(path, {"outcome": "log_likelihood"})
    assert found.times.tolist() == [0, 10, 20]
    assert [(found.cohorts == g).sum() for g in (10, 20, np.inf)] == [8, 8, 8]
    (name,) = hashes(made[2], [5])
    first = panel.set_index(["unit", "time"]).loc[(name, 10.0)]
    table = outcomes[1].set_index("row").loc[5]
    assert first["log_likelihood"] == -table["nll"]
    assert first["token_accuracy"] == table["n_correct"] / CONTEXT
    assert first["negative_rank"] == -table["rank_sum"] / CONTEXT


def test_one_model_under_two_names_is_refused(made, outcomes, tmp_path):
    """As published checkpoints sometimes are; the configuration may differ."""
    folder, models, _ = made
    models[10].config.tie_word_embeddings = False
    models[10].save_pretrained(folder / "step30")
    again = ask(folder, 30, tmp_path)
    checkpoints = {str(step): f"step{step}" for step in (0, 10, 20, 30)}
    said = message(
        lambda: joined(
            rows_of(folder), [*outcomes, again], language="mine", checkpoints=checkpoints
        )
    )
    assert said.startswith(
        "profiles/panels/mine/checkpoints: step10 and step30 have the same weights"
    )


def test_outcomes_that_never_change_are_refused(made, outcomes):
    """Even if the weights differ, such as by a name."""
    same = [outcomes[0], outcomes[0].assign(time=10.0, weights="other")]
    checkpoints = {"0": "step0", "10": "step10"}
    said = message(lambda: joined(rows_of(made[0]), same, language="mine", checkpoints=checkpoints))
    assert "no string's outcome ever changes" in said


WRONG_TOKENS = {
    "a row longer than the context": (
        np.zeros((N_ROWS, CONTEXT + 2), dtype=np.uint16),
        f"a row has {CONTEXT + 2} tokens, and ",
    ),
    "a token that the model does not have": (
        np.full((N_ROWS, CONTEXT), VOCABULARY, dtype=np.uint16),
        f"row 0 has the token {VOCABULARY}, and ",
    ),
    "numbers that are no tokens": (np.zeros((N_ROWS, CONTEXT)), "is an array of float64"),
    "one column of tokens": (np.zeros((N_ROWS, 1), dtype=int), "two columns or more"),
}


@pytest.mark.parametrize("what", WRONG_TOKENS)
def test_wrong_tokens_are_refused_and_nothing_is_written(made, tmp_path, what):
    tokens, expected = WRONG_TOKENS[what]
    np.save(tmp_path / "wrong.npy", tokens)
    said = message(lambda: ask(made[0], 0, tmp_path, tokens=str(tmp_path / "wrong.npy")))
    assert said.startswith(f"{tmp_path}/wrong.npy: ")
    assert expected in said
    assert not (tmp_path / "0.parquet").exists()


def test_a_checkpoint_that_is_not_there_is_one_line(made, tmp_path):
    said = message(lambda: ask(made[0], 0, tmp_path, model=str(tmp_path / "step5/")))
    assert "cannot be loaded" in said
    assert "\n" not in said


WRONG_STEPS = {
    "fewer steps than rows": (np.array(STEPS[:-1]), "has the steps of 23 rows, and "),
    "a step of a row in two columns": (np.array([STEPS] * 2), "must be one of numbers [rows]"),
    "only rows that are trained on": (np.abs(STEPS), "0 rows are never trained on"),
    "steps that miss all checkpoints": (
        np.where(np.array(STEPS) > 0, 50, -1),
        "no row is trained on between two of the checkpoints",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", WRONG_STEPS)
def test_wrong_steps_are_refused(made, tmp_path, what):
    steps, expected = WRONG_STEPS[what]
    np.save(tmp_path / "steps.npy", steps)
    files = [str(made[0] / "tokens.npy")], [str(tmp_path / "steps.npy")], []
    draws = dict.fromkeys(("batches", "instances", "validation"))
    said = message(lambda: drawn(*files, language="mine", times=[0, 10, 20], **draws, seed=0))
    assert expected in said


TABLES_OF_STEPS = {
    "a row that is not there": ([*range(23), 24], "24 is no row of"),
    "a row twice": ([*range(23), 5], "row 5 of"),
}


@pytest.mark.parametrize("what", TABLES_OF_STEPS)
def test_a_table_of_steps_has_every_row_once(made, tmp_path, what):
    rows, expected = TABLES_OF_STEPS[what]
    steps = [step if step > 0 else None for step in STEPS]
    path = tmp_path / "steps.csv"
    pd.DataFrame({"row": rows, "step": steps}).to_csv(path, index=False)
    files = [str(made[0] / "tokens.npy")], [str(path)], []
    draws = dict.fromkeys(("batches", "instances", "validation"))
    arguments = {"language": "mine", "times": [0, 10, 20], **draws, "seed": 0}
    assert expected in message(lambda: drawn(*files, **arguments))
    pd.DataFrame({"row": range(24), "step": steps}).to_csv(path, index=False)
    pd.testing.assert_frame_equal(drawn(*files, **arguments), rows_of(made[0]))


def test_the_draws_of_the_paper():
    """Ten of the steps between two checkpoints, ten rows of each, and 2,000 others, by the seed."""
    n_steps, per_step = 3000, 12
    steps = np.concatenate(
        [np.repeat(np.arange(1.0, n_steps + 1), per_step), np.full(5000, np.nan)]
    )
    times = [0, 1000, 2000, 3000]
    found = draw(steps, times, 10, 10, 2000, seed=0)
    never = found["cohort"].isna()
    assert never.sum() == 2000
    counts = found.loc[~never, "cohort"].value_counts()
    assert (counts == 10).all()
    assert np.histogram(counts.index, bins=[0.5, 1000.5, 2000.5, 3000.5])[0].tolist() == [10] * 3
    assert found["row"].is_monotonic_increasing
    assert found["row"].is_unique
    # Not the first rows of a step, and not the first steps
    places = found.loc[~never, "row"] % per_step
    assert set(places) == set(range(per_step))
    assert sorted(counts.index)[9] > 10
    pd.testing.assert_frame_equal(found, draw(steps, times, 10, 10, 2000, seed=0))
    assert not found["row"].equals(draw(steps, times, 10, 10, 2000, seed=1)["row"])


def test_rows_outside_of_the_checkpoints_are_left_out_with_a_line():
    steps = np.array([0.0, 5.0, 5.0, 25.0, np.nan, np.nan])
    with pytest.warns(UserWarning, match="2 rows are left out") as said:
        found = draw(steps, [0, 10, 20], None, None, None, seed=0)
    assert len(said) == 1
    assert "the first batch is step 1" in str(said[0].message)
    assert found["row"].tolist() == [1, 2, 4, 5]


def test_texts_are_strings_too(tmp_path):
    """Of a table with a step for each; the tokens are the model's own."""
    model = write(tmp_path / "step10")
    texts = ["Ann Ek", "Ben wrote", "a", "x x x"]
    frame = pd.DataFrame({"unit": list("abcd"), "text": texts, "step": [5, 5, None, None]})
    frame.to_csv(tmp_path / "texts.csv", index=False)
    draws = dict.fromkeys(("batches", "instances", "validation"))
    file = str(tmp_path / "texts.csv")
    rows = drawn([], [], [file], language="mine", times=[0, 10], **draws, seed=0)
    assert rows["cohort"].tolist()[:2] == [5, 5]
    assert rows["unit"].tolist() == list("abcd")
    tables.write(tmp_path / "rows.parquet", rows, kinds.PANEL_ROWS)
    job = PanelJob(
        "mine",
        10,
        model,
        str(tmp_path / "rows.parquet"),
        str(tmp_path / "10.parquet"),
        texts=file,
    )
    asked = {"micro_batch_size": 1, "evaluation_batch_size": 5}
    ask_panel(job, Attempts(tmp_path / "attempts.json", asked))
    found = tables.read(tmp_path / "10.parquet", kinds.PANEL_OUTCOMES)
    assert len(found) == 4
    assert (found["nll"] > 0).all()


def drawn_texts(folder, **columns):
    pd.DataFrame(columns).to_csv(folder / "texts.csv", index=False)
    draws = dict.fromkeys(("batches", "instances", "validation"))
    file = str(folder / "texts.csv")
    return drawn([], [], [file], language="mine", times=[0, 10], **draws, seed=0)


def test_strings_have_names_of_their_own(tmp_path):
    columns = {"text": ["v", "w", "x", "y"], "step": [5, 5, None, None]}
    said = message(lambda: drawn_texts(tmp_path, unit=["a", "a", "b", "c"], **columns))
    assert "unit 'a' is there a second time, after line 2; give each string its own" in said


def test_strings_that_are_there_twice_are_left_out_or_refused(tmp_path):
    """As one that is trained on and also stands for what is never trained on."""
    n = 120
    columns = {"unit": range(n), "step": [5] * 60 + [None] * 60}
    texts = [f"text {place}" for place in range(n)]
    with pytest.warns(UserWarning, match="2 of 120 drawn rows have the string of another row"):
        found = drawn_texts(tmp_path, text=[*texts[:-1], texts[0]], **columns)
    assert found["row"].tolist() == [*range(1, n - 1)]
    said = message(lambda: drawn_texts(tmp_path, text=[*texts[:-3], *texts[:3]], **columns))
    assert "6 of 120 drawn rows have the string of another row, such as the rows 0 and 117" in said


def test_equal_rows_of_tokens_are_refused(made, tmp_path):
    """In any type of number, the same tokens have the same name."""
    tokens = made[2].copy()
    tokens[:] = tokens[0]
    np.save(tmp_path / "tokens.npy", tokens)
    files = [str(tmp_path / "tokens.npy")], [str(made[0] / "steps.npy")], []
    draws = dict.fromkeys(("batches", "instances", "validation"))
    said = message(lambda: drawn(*files, language="mine", times=[0, 10, 20], **draws, seed=0))
    assert "24 of 24 drawn rows have the string of another row" in said
    assert hashes(tokens, [0]) == hashes(tokens.astype(np.int64), [3]) == hashes(made[2], [0])
    assert len({*hashes(made[2], range(N_ROWS))}) == N_ROWS


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step1000", 1000),
        ("owner/name@step1000-tokens2B", 1000),
        ("out/checkpoint-500", 500),
        ("out/global_step143000", 143000),
        ("runs/7/last", None),
        ("main", None),
        ("2000", 2000),
    ],
)
def test_the_step_of_a_checkpoint_is_in_its_name(name, step):
    assert step_of(name) == step


def test_checkpoints_are_in_the_order_of_their_steps():
    block = {"model": "owner/name", "checkpoints": ["step2000", "step0", "step512"]}
    found = measured(block).checkpoints
    assert list(found.items()) == [
        ("0", "owner/name@step0"),
        ("512", "owner/name@step512"),
        ("2000", "owner/name@step2000"),
    ]


def test_the_blocks_of_the_page_are_allowed(monkeypatch, made):
    """With files that are there in the place of their own."""
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs/profiles.md").read_text()
    there = {"file": "config/panels/example.csv"}
    there |= {name: str(made[0] / f"{name}.npy") for name in ("tokens", "steps")}
    n_panels = []
    for text in re.findall(r"```yaml\n(profiles:\n  models.*?)```", page, re.DOTALL):
        block = yaml.safe_load(text)["profiles"]
        for panel in block["panels"].values():
            panel |= {name: file for name, file in there.items() if name in panel}
        block |= {"exact": None, "notions": None, "dilution": None}
        made_of = experiment(DEFAULT, command_line={"profiles": block})
        n_panels.append(len(panels(made_of.settings.block("profiles"))))
        assert not [runs for runs in made_of.requests if runs.variant.startswith("stream")]
    assert n_panels == [3, 1]


BLOCK = {
    "checkpoints": ["step0", "step10"],
    "model": "owner/name",
    "tokens": "tokens.npy",
    "steps": "steps.npy",
}
WRONG = {
    "a checkpoint without a step": (
        {"checkpoints": ["step0", "main"]},
        "/checkpoints[1]: main has no step in its name",
    ),
    "a step twice": (
        {"checkpoints": ["step10", "step0", "step10-again"]},
        "/checkpoints[2]: step10-again and step10 are both of step 10",
    ),
    "a folder that is not there": (
        {"model": None, "checkpoints": ["./step0", "./step10"]},
        "/checkpoints[0]: no such folder: ./step0",
    ),
    "no strings": ({"tokens": None}, ": one of the keys 'tokens' and 'texts' must be there"),
    "no steps": ({"steps": None}, ": the key 'steps' is missing"),
    "tokens that are not there": (
        {"tokens": "nowhere.npy"},
        "/tokens: no such file: nowhere.npy",
    ),
    "tokens of another format": (
        {"tokens": "README.md"},
        "/tokens: README.md is not a .npy file",
    ),
    "a column beside checkpoints": (
        {"unit": "document"},
        "/unit: is for a panel from a file, not from checkpoints",
    ),
    "one checkpoint": ({"checkpoints": ["step0"]}, "/checkpoints"),
    "revisions of a folder": (
        {"model": "./docs"},
        "/model: ./docs is a folder, which has no revisions",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_block_is_refused_in_one_line(monkeypatch, made, what):
    """With the token files of the other tests, but for what is wrong."""
    monkeypatch.chdir(ROOT)
    changed, expected = WRONG[what]
    files = {name: str(made[0] / f"{name}.npy") for name in ("tokens", "steps")}
    block = {**BLOCK, **files, **changed}
    block = {name: value for name, value in block.items() if value is not None}
    over = {"profiles": {"panels": {"mine": block}}}
    assert f"profiles/panels/mine{expected}" in message(
        lambda: experiment(DEFAULT, command_line=over)
    )
