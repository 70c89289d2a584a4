"""Adapters (LoRA): what is trained, what is saved, and what is left as it was."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file

from helpers import adapter_training as program
from helpers.adapter_training import RECIPE, base_weights, logits_of, run_in, write_dataset
from helpers.checkpoints import write_checkpoint
from helpers.commands import MODELS, ROOT, SCRIPTS, finetune
from helpers.forks import python
from palimpsest.errors import UserError
from palimpsest.models import adapters, read_models
from palimpsest.models.adapters import initial_values, merged, with_adapter
from palimpsest.models.build import build
from palimpsest.training.precision import processor_has_bf16
from palimpsest.training.recipe import Recipe, epoch_order
from palimpsest.training.runs import Material

FP32 = ["0-fp32", "2-fp32", "3-fp32"]
CASES = [*FP32, "2-bf16"] if processor_has_bf16() else FP32
ROWS = read_models(MODELS)
MINE = ROWS["llama-3.2-1b"]  # whose twin is saved as the full model


class Trained:
    """What the program found, by case; the programs are started together, two at a time."""

    def __init__(self, folder):
        self.folder = folder
        write_checkpoint(folder, MINE.model)
        write_dataset(folder)
        pool = ThreadPoolExecutor(2)
        self.found = {case: pool.submit(self._run, case) for case in CASES}
        pool.shutdown(wait=False)

    def _run(self, case):
        paths = os.pathsep.join([str(SCRIPTS), str(ROOT / "tests")])
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        command = [python(), program.__file__, self.folder, *case.split("-")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return dict(np.load(self.folder / case / "found.npz"))

    def __getitem__(self, case):
        return self.found[case].result()

    def weights(self, case):
        self[case]
        (file,) = (self.folder / case / "whole").glob("*/weights.safetensors")
        return load_file(file)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return Trained(tmp_path_factory.mktemp("adapters"))


def peft_loop(run, material) -> np.ndarray:
    """Loss [epochs + 1, strings] in nats of the same training, as a user of peft would write it."""
    config = LoraConfig(
        r=RECIPE.adapter_rank, lora_alpha=RECIPE.adapter_alpha, target_modules="all-linear"
    )
    model = get_peft_model(build(run.row, "full", 0, 0, torch.float32), config)
    ours = with_adapter(build(run.row, "full", 0, 0, torch.float32), run.recipe.lora, "mine", 0)
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            parameters[f"base_model.model.{name}"].copy_(parameter)
    learned = [p for p in parameters.values() if p.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=0.0, weight_decay=0.0)
    encoded, n_steps, step = material.encoded, 6, 0

    def nll(rows):
        batch = encoded.batch(np.array(rows), torch.device("cpu"))
        logits = model(input_ids=batch.ids_BT, attention_mask=batch.mask_BT).logits
        return torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), batch.targets_BT.flatten(), reduction="sum"
        )

    def losses():
        with torch.no_grad():
            return [nll([row]).item() for row in range(len(encoded.lengths))]

    found = [losses()]
    for epoch in (1, 2):
        order = material.multiset[epoch_order(len(material.multiset), 0, epoch)]
        for first in range(0, len(order), RECIPE.batch_size):
            rows = order[first : first + RECIPE.batch_size]
            # The first step is warm-up, with a rate of 0; then ten times the model's rate falls.
            optimizer.param_groups[0]["lr"] = 3e-3 * ((n_steps - step) / 5 if step else 0)
            (nll(rows) / encoded.n_tokens[rows].sum()).backward()
            torch.nn.utils.clip_grad_norm_(learned, RECIPE.gradient_clipping)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
        found.append(losses())
    return np.array(found)


@pytest.mark.slow
def test_an_adapter_is_trained_as_by_a_plain_loop(trained):
    """Every ZeRO stage: each string's loss agrees within 1e-5 nats per token, and falls."""
    run = run_in(trained.folder)
    material = Material(run)
    expected, n_tokens = peft_loop(run, material), material.encoded.n_tokens
    assert (expected[0] - expected[2]).sum() / n_tokens.sum() > 0.01
    for case in FP32:
        assert (np.abs(trained[case]["nll"] - expected) / n_tokens).max() < 1e-5, case
    for case in set(CASES) - set(FP32):
        near = np.abs(trained[case]["nll"] - expected) / n_tokens
        assert 1e-6 < near.max() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_killed_training_of_an_adapter_resumes_to_the_same_bits(trained, case):
    """Its checkpoint has the adapter and its optimiser, and not the frozen weights."""
    found = trained[case]
    assert (found["resumed"] == found["nll"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_checkpoint_holds_no_frozen_weights(trained, case):
    """Only the adapter's, beside its optimiser: a large model would be written at every save."""
    recipe = run_in(trained.folder).recipe
    model = with_adapter(build(MINE, "twin", 12, 7, torch.float32), recipe.lora, "mine", 0)
    learned = {name for name, p in model.named_parameters() if p.requires_grad}
    assert set(trained[case]["saved"].tolist()) == learned


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case[0] != "3"])
def test_the_weights_beside_an_adapter_do_not_move(trained, case):
    """To the last bit; all parameters of the model without an adapter are frozen."""
    found = trained[case]
    assert sorted(found["frozen"]) == sorted(base_weights(run_in(trained.folder)))
    assert found["moved"].size == 0


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_merged_weights_predict_as_the_adapter_does(trained, case):
    """The file has the names and the shapes of the model, in float32 whatever the precision."""
    run, weights = run_in(trained.folder), trained.weights(case)
    before = base_weights(run)
    assert {n: w.shape for n, w in weights.items()} == {n: w.shape for n, w in before.items()}
    assert {weight.dtype for weight in weights.values()} == {torch.float32}
    assert not torch.equal(
        weights["model.layers.0.mlp.up_proj.weight"], before["model.layers.0.mlp.up_proj.weight"]
    )
    plain = build(run.row, "full", 0, 0, torch.float32)
    untrained = logits_of(plain)
    plain.load_state_dict(weights)
    logits = logits_of(plain)
    assert np.abs(logits - untrained).max() > 0.01
    beside = trained[case if case != "3-fp32" else "0-fp32"]["logits"]
    tolerance = 0.05 if "bf16" in case else 1e-4
    assert np.abs(logits - beside).max() < tolerance


def test_merging_is_in_float32():
    """A small update of a weight in 16 bits is not rounded away."""
    base = torch.ones(2, 3, dtype=torch.bfloat16)
    weights = {
        "a.base_layer.weight": base,
        "a.base_layer.bias": base[0],
        "a.lora_A.default.weight": torch.full((1, 3), 2**-6, dtype=torch.bfloat16),
        "a.lora_B.default.weight": torch.full((2, 1), 2**-6, dtype=torch.bfloat16),
        "b.weight": base,
    }
    full = merged(weights, scale=2.0)
    assert list(full) == ["a.weight", "a.bias", "b.weight"]
    assert (full["a.weight"] == 1 + 2 * 2.0**-12).all()
    assert (full["b.weight"] == 1).all()
    assert {weight.dtype for weight in full.values()} == {torch.float32}


# What the recipe of an adapter is


def test_without_an_adapter_the_key_of_a_run_is_as_before():
    """The keys of adapters are not in it, whatever their values; with an adapter each counts."""
    plain = Recipe(1e-4)
    assert not [name for name in plain.decisive() if name.startswith("adapter")]
    assert replace(plain, adapter_rank=3, adapter_rate=1).decisive() == plain.decisive()
    assert plain.peak_rate == 1e-4
    lora = replace(plain, adapter="lora")
    changes = {
        "adapter_rank": 3,
        "adapter_alpha": 3,
        "adapter_dropout": 0.1,
        "adapter_targets": "q_proj",
        "adapter_rate": 1,
    }
    every = [lora.decisive(), *(replace(lora, **{k: v}).decisive() for k, v in changes.items())]
    assert all(one != other for i, one in enumerate(every) for other in every[:i])
    assert plain.decisive() not in every
    assert str(replace(lora, adapter_alpha=32).decisive()) == str(lora.decisive())


def test_the_rate_of_an_adapter_is_a_multiple_of_the_models():
    """At every step."""
    plain = Recipe(1e-4)
    lora = replace(plain, adapter="lora", adapter_rate=20)
    for step in range(10):
        expected = 20 * plain.learning_rate_at(step, 10)
        assert lora.learning_rate_at(step, 10) == pytest.approx(expected)


@pytest.mark.parametrize("model", sorted({row.model for row in ROWS.values()}))
def test_the_names_of_matrices_are_those_of_the_architecture(model):
    """The table, by which a configuration is checked, is what the models have."""
    row = ROWS[model]
    with torch.device("meta"):
        made = build(row, "twin", 11, 0, torch.float32)
    assert adapters._matrices_in(made) == set(adapters.MATRICES[row.model_type])


def test_some_matrices_can_be_targeted():
    """Only these have an adapter; an unknown name is one line with the known ones."""
    row = ROWS["pythia-1b"]
    small = build(row, "twin", 11, 0, torch.float32)
    recipe = Recipe(1e-4, adapter="lora", adapter_targets="dense,query_key_value")
    model = with_adapter(small, recipe.lora, "mine", 0)
    trained = {
        n.split(".lora_")[0].rpartition(".")[2]
        for n, p in model.named_parameters()
        if p.requires_grad
    }
    assert trained == {"dense", "query_key_value"}
    recipe = replace(recipe, adapter_targets="dens")
    with pytest.raises(UserError) as error:
        with_adapter(build(row, "twin", 11, 0, torch.float32), recipe.lora, "mine", 0)
    assert str(error.value) == (
        "recipes: adapter_targets: mine: no matrix is named 'dens'; known: all-linear, dense, "
        "dense_4h_to_h, dense_h_to_4h, query_key_value (did you mean 'dense'?)"
    )


def test_a_draw_depends_on_seed_and_model():
    """And on nothing that was drawn before."""
    shapes = {"a": (4, 9), "b": (4, 7)}
    first = initial_values(shapes, "mine", 0)
    torch.rand(3)
    again = initial_values(shapes, "mine", 0)
    assert all(torch.equal(first[name], again[name]) for name in shapes)
    for other in (initial_values(shapes, "mine", 1), initial_values(shapes, "yours", 0)):
        assert not any(torch.equal(first[name], other[name]) for name in shapes)
    assert (first["a"].abs() <= 1 / 3).all()  # 1 / sqrt(inputs)


def test_the_command_refuses_an_adapter_on_a_twin(tmp_path):
    """Also where no configuration was checked."""
    command = finetune(
        adapter="lora", dataset="none", trace="none", manifest="none", state=tmp_path / "state"
    )
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "error: recipes/default/adapter: lora is for full models, and llama-3.2-1b-twin is a "
        "twin, all of whose weights are trained; set it to none"
    )
    assert not (tmp_path / "state").exists()
