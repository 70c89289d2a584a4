"""Removals: trainings that lack a string, and are otherwise the training on the whole set."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from helpers.commands import MODELS as TABLE
from helpers.commands import ROOT
from palimpsest import tables, traces
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.choices import placebo_of, removed_strings
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import UserError
from palimpsest.jobs.finetune import Job
from palimpsest.models import read_models
from palimpsest.models.build import build as build_model
from palimpsest.regimes import Removals, half_of, of_half, without_string
from palimpsest.sections import KINDS
from palimpsest.training.batches import IGNORED
from palimpsest.training.fleet import FleetEngine
from palimpsest.training.fleet.engine import trained_alike
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Material, Run

MODEL = "llama-3.2-1b"
TOLERANCE = 1e-5  # nats per token
# At the twins' own learning rate, training amplifies the last bits; here two engines stay close.
CALM = Recipe(3e-4, epochs=3, batch_size=4, gradient_clipping=1.0, zero_stage=0, precision="fp32")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """A run on 16 strings, some of them repeated."""
    corpus = GrammarCorpus.from_file(ROOT / "config/languages/L2.pcfg")
    strings = build(Sampler("L2", corpus, 0), "base", 16, 8, predict_end=False)
    path = str(tmp_path_factory.mktemp("removals") / "strings.parquet")
    tables.write(path, strings, KINDS["strings"])
    return Run(f"{MODEL}-twin", read_models(TABLE)[MODEL], "twin", corpus, path, CALM)


@pytest.fixture
def strings(run):
    return tables.read(run.dataset, KINDS["strings"])


@pytest.fixture
def repeated(strings) -> str:
    """The name of the string with the most copies."""
    return strings.loc[strings["count"].idxmax(), "string_id"]


def trained(runs, folder) -> list[traces.Trace]:
    engine = FleetEngine(folder, 1, 2**33)
    engine.train(runs, lambda name: lambda *_: None)
    return [traces.read(engine.state(run).trace) for run in runs]


def plain(material: Material, run: Run) -> np.ndarray:
    """The loss float[strings] at the end of the same training in plain PyTorch, string by string.

    A string that is removed has no place in its step; the loss of a step is the mean over the
    tokens that are left.
    """
    recipe, encoded = run.recipe, material.encoded
    model = build_model(run.row, run.scale, material.vocabulary, material.seed, torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=recipe.weight_decay)
    ids, targets = torch.from_numpy(encoded.ids), torch.from_numpy(encoded.targets)

    def nll(row: int) -> torch.Tensor:
        logits = model(ids[row : row + 1, :-1]).logits[0]
        return torch.nn.functional.cross_entropy(
            logits, targets[row, 1:], ignore_index=IGNORED, reduction="sum"
        )

    steps = recipe.steps_per_epoch(material.epoch_size)
    for epoch in range(recipe.epochs):
        order = material.order(epoch + 1)
        for step in range(steps):
            rows = order[step * recipe.batch_size :][: recipe.batch_size]
            rows = rows[rows >= 0]
            optimizer.zero_grad()
            (sum(nll(row) for row in rows) / encoded.n_tokens[rows].sum()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.gradient_clipping)
            rate = recipe.learning_rate_at(epoch * steps + step, recipe.epochs * steps)
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()
    with torch.no_grad():
        losses = [nll(row).item() for row in material.measured_rows]
    return np.array(losses) / encoded.n_tokens[material.measured_rows]


def test_a_removal_is_the_training_without_the_string(run, repeated, tmp_path):
    removal = replace(run, removal=without_string(repeated))
    (trace,) = trained([removal], tmp_path)
    expected = plain(Material(removal), removal)
    assert np.abs(trace.loss[-1] - expected).max() < TOLERANCE
    (whole,) = trained([run], tmp_path)
    column = whole.column_of([repeated])
    difference = trace.loss[-1, trace.column_of([repeated])] - whole.loss[-1, column]
    assert difference > 20 * TOLERANCE


def test_the_other_strings_keep_their_steps(run, strings, repeated):
    whole, removal = Material(run), Material(replace(run, removal=without_string(repeated)))
    row = strings.index[strings["string_id"] == repeated]
    for epoch in (1, 2):
        order = whole.order(epoch)
        assert np.array_equal(removal.order(epoch), np.where(np.isin(order, row), -1, order))
    assert removal.epoch_size == whole.epoch_size == 16


def test_every_training_string_and_its_placebo_are_measured(run, strings, repeated):
    rows = Material(replace(run, removal=without_string(repeated))).measured_rows
    train = strings.loc[strings["count"] > 0, "string_id"]
    expected = {*train, *(placebo_of(strings, name) for name in train)}
    assert set(strings["string_id"].iloc[rows]) == expected
    assert len(rows) == len(expected)


def test_a_half_lacks_half_of_the_distinct_strings(strings):
    n = (strings["count"] > 0).sum()
    halves = [removed_strings(strings, of_half(number)) for number in range(4)]
    assert {len(half) for half in halves} == {n // 2, n - n // 2}
    assert len(set(map(tuple, halves))) == 4
    assert set(halves[0]).isdisjoint(halves[1])
    assert halves[1] == removed_strings(strings, of_half(1))


def test_a_step_of_removed_strings_only_changes_nothing_to_nan(run, repeated, tmp_path):
    alone = replace(run, recipe=replace(CALM, batch_size=1), removal=without_string(repeated))
    (trace,) = trained([alone], tmp_path)
    assert np.isfinite(trace.loss).all()


def test_a_job_trains_one_run_for_each_string_and_half(run, strings):
    class Assigned:
        def run(self, dataset):
            return run

    train = strings.loc[strings["count"] > 0, "string_id"].tolist()
    runs = Job(run.dataset, "", "", regime=Removals(None, 2)).runs(Assigned())
    assert [of.removal for of in runs] == [*map(without_string, train), "half-0", "half-1"]
    again = Job(run.dataset, "", "", regime=Removals(4, 2, again=True)).runs(Assigned())
    assert len(again) == 1 + 4 + 2
    assert again[0].removal is None
    assert all(of.again for of in again)
    keys = {tuple(of._which().items()) for of in (*runs, *again)}
    assert len(keys) == len(runs) + len(again)
    assert trained_alike(runs[0]) != trained_alike(run)
    assert half_of(runs[-1].removal) == 1


@pytest.mark.parametrize("removal", ["without-000000000000", "other", "half-x"])
def test_another_removal_is_refused(run, removal):
    with pytest.raises(UserError, match="no training string for the removal"):
        Material(replace(run, removal=removal))
