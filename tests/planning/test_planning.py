"""Planning: the formulas against DeepSpeed's estimators, real tensors, and closed forms."""

import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs
from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM

from palimpsest.languages import Grammar
from palimpsest.models import read_models
from palimpsest.models.adapters import Adapter, with_adapter
from palimpsest.models.build import EAGER_ONLY, build, twin_config
from palimpsest.planning import disk, duration, memory, shapes
from palimpsest.planning.fit import change_to_adapters, changes_that_fit, fits
from palimpsest.planning.shapes import (
    Hardware,
    Shape,
    Strings,
    Training,
    full_shape,
    trained_parameters,
    twin_shape,
)
from palimpsest.planning.summary import summary
from palimpsest.training.precision import processor_has_bf16

ROOT = Path(__file__).parents[2]
MODELS = read_models(ROOT / "config/models.tsv")
TRAINING = Training(
    epochs=50,
    batch_size=8,
    micro_batch_size=8,
    processes=1,
    zero_stage=2,
    offload_optimizer="none",
    precision="bf16",
    evaluate_every=1,
    evaluation_batch_size=64,
    checkpoint_every=5,
)
HARDWARE = Hardware(
    gpu_memory_gb=80,
    gpu_teraflops=989,
    gpu_terabytes_per_second=3.0,
    utilisation=0.3,
    main_memory_gb=500,
    longest_job_hours=48,
    twin_gpus=1,
    gpus=None,
)
STRINGS = Strings(n_trained=64, n_measured=160, expected=73.0, longest=73)
SEVEN = Shape(7_248_000_000, 32, 4096, 32768)

SHAPES = [full_shape(row) for row in MODELS.values()]
some_shapes = st.sampled_from(SHAPES)
# Of a smaller model, the embedding is so large a part that nobody offloads it over many GPUs.
some_large_shapes = st.sampled_from([shape for shape in SHAPES if shape.parameters > 4e8])
some_trainings = st.builds(
    Training,
    epochs=st.integers(1, 100),
    batch_size=st.integers(1, 64),
    micro_batch_size=st.integers(1, 64),
    processes=st.integers(1, 32),
    zero_stage=st.integers(1, 3),
    offload_optimizer=st.sampled_from(["none", "cpu"]),
    precision=st.sampled_from(["auto", "bf16", "fp32"]),
    evaluate_every=st.integers(1, 10),
    evaluation_batch_size=st.integers(1, 128),
    checkpoint_every=st.integers(0, 50),
    adapter=st.sampled_from(["none", "lora"]),
    adapter_rank=st.integers(1, 64),
    adapter_dropout=st.sampled_from([0.0, 0.1]),
)


def states(shape, training):
    """Bytes of weights, gradients and optimiser on each GPU."""
    parts = memory.gpu_memory(shape, training, longest=73)
    return sum(parts[name] for name in ("weights", "gradients", "optimiser"))


# GPU memory


@pytest.mark.parametrize("processes", [1, 2, 4, 8])
@pytest.mark.parametrize("shape", [SEVEN, Shape(13_016_000_000, 40, 5120, 32000)])
def test_zero_2_is_what_deepspeed_estimates(shape, processes):
    """2 bytes per parameter and 18 shared out; only the 2 if the optimiser is offloaded."""
    training = replace(TRAINING, processes=processes)
    for offload in ("none", "cpu"):
        _, theirs = estimate_zero2_model_states_mem_needs(
            shape.parameters, num_gpus_per_node=processes, cpu_offload=offload == "cpu"
        )
        ours = states(shape, replace(training, offload_optimizer=offload))
        assert ours == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("processes", [1, 2, 4, 8])
def test_zero_3_is_what_deepspeed_estimates_and_the_gradients(processes):
    """Its estimate leaves out the buffer of gradients that real tensors show (2 bytes, shared)."""
    shape = Shape(900_000_000, 24, 2048, 50000)
    _, theirs, largest_layer = estimate_zero3_model_states_mem_needs(
        shape.parameters,
        shape.largest,
        num_gpus_per_node=processes,
        cpu_offload=False,
        cpu_offload_params=False,
    )
    ours = states(shape, replace(TRAINING, zero_stage=3, processes=processes))
    gradients = 2 * shape.parameters / processes
    assert ours - gradients == pytest.approx(theirs - largest_layer, rel=1e-6)


@pytest.mark.parametrize("processes", [1, 2, 4, 8])
def test_offloading_takes_as_much_main_memory_as_deepspeed_says(processes):
    """At least 16 bytes per parameter; at most DeepSpeed's estimate plus each process's copy."""
    training = replace(TRAINING, processes=processes, offload_optimizer="cpu")
    theirs, _ = estimate_zero2_model_states_mem_needs(
        SEVEN.parameters, num_gpus_per_node=processes, cpu_offload=True
    )
    copies = processes * (2 * SEVEN.parameters + memory.PROCESS)
    ours = memory.main_memory(SEVEN, training)
    assert 16 * SEVEN.parameters < ours <= theirs + copies


# Every tensor of this process when the optimiser takes its second step, in bytes per parameter.
COUNT = """
import gc, sys, warnings
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from palimpsest.training import deepspeed_engine as engine
from palimpsest.training.recipe import Recipe

warnings.simplefilter("ignore")
engine.stand_alone_unless_launched()
recipe = Recipe(learning_rate=1e-3, zero_stage=int(sys.argv[1]), precision=sys.argv[2])
accelerator, dtype = engine.make_accelerator(recipe, "full", False)
config = AutoConfig.for_model("llama", vocab_size=512, hidden_size=128, intermediate_size=256,
                              num_hidden_layers=3, num_attention_heads=4)
model = AutoModelForCausalLM.from_config(config, dtype=dtype)
n = sum(getattr(p, "ds_numel", p.numel()) for p in model.parameters())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
model, optimizer = accelerator.prepare(model, optimizer)

def count(*_):
    found = {}
    for thing in gc.get_objects():
        if type(thing) in (torch.Tensor, torch.nn.Parameter):
            for tensor in (thing, thing.grad if thing.is_leaf else None):
                if tensor is not None and tensor.device.type != "meta":
                    storage = tensor.untyped_storage()
                    found[storage.data_ptr()] = storage.nbytes()
    counted.append(sum(size for size in found.values() if size < 2e8) / n)

counted, inner = [], optimizer.optimizer
while hasattr(inner, "optimizer"):
    inner = inner.optimizer
inner.register_step_pre_hook(count)
ids = torch.randint(0, 512, (8, 20))
for step in range(2):
    accelerator.backward(model(input_ids=ids, labels=ids).loss)
    optimizer.step()
    optimizer.zero_grad()
print("COUNTED", counted[-1])
"""
# With one process ZeRO 1 holds what ZeRO 2 does.
PRECISIONS = ("bf16", "fp32") if processor_has_bf16() else ("fp32",)
COUNTED = [(stage, precision) for stage in (0, 2, 3) for precision in PRECISIONS]


@pytest.fixture(scope="module")
def counted():
    """Bytes per parameter of real tensors in the middle of a step, by ZeRO stage and precision."""

    def count(case):
        command = [sys.executable, "-c", COUNT, *map(str, case)]
        done = subprocess.run(
            command, cwd=ROOT / "workflow/scripts", capture_output=True, text=True, timeout=600
        )
        assert "COUNTED" in done.stdout, done.stderr
        return float(done.stdout.split("COUNTED")[1])

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(COUNTED, pool.map(count, COUNTED), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("case", COUNTED, ids=lambda case: f"ZeRO {case[0]}, {case[1]}")
def test_the_states_are_those_of_real_tensors(counted, case):
    """One process, a Llama of 0.6M parameters.

    ZeRO 2 frees the gradients in bf16 before it updates, but holds them in the backward pass; the
    estimate adds them.
    """
    stage, precision = case
    shape = Shape(1_000_000, 3, 128, 512)
    training = replace(TRAINING, zero_stage=stage, precision=precision)
    let_go = 2.0 if case == (2, "bf16") else 0.0
    ours = states(shape, training) / shape.parameters
    assert ours - let_go == pytest.approx(counted[case], rel=0.02)


def saved_by_backward(row, dtype, n_layers, tokens=128, width=512, dropout=None):
    """Bytes that the backward pass of a model's body needs, weights apart.

    With a `dropout`, only adapters are trained.
    """
    wide = {"twin_hidden": width, "twin_layers": n_layers}
    config = twin_config(replace(row, **wide), vocabulary=50)
    # The widest feed-forward layer of the table's models, in widths.
    if hasattr(config, "intermediate_size") and row.model_type == "qwen2":
        config.intermediate_size = int(5.83 * width)
    elif row.model_type == "gemma3_text":  # narrow, and its heads are wider than the model
        config.intermediate_size = int(3.2 * width)
        config.head_dim = int(1.6 * width) // config.num_attention_heads
        config.num_key_value_heads = 1
    elif hasattr(config, "intermediate_size"):
        config.intermediate_size = 4 * width
    attention = "eager" if row.model_type in EAGER_ONLY else "sdpa"
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=dtype)
    if dropout is not None:
        adapter = Adapter(16, 32, dropout, ("all-linear",))
        model = with_adapter(model, adapter, row.model, 0).train()
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes(), tensor
        return tensor

    ids = torch.zeros((2, tokens), dtype=torch.long)
    mask = torch.ones_like(ids)
    mask[0, -5:] = 0
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.base_model(input_ids=ids, attention_mask=mask, use_cache=False)
    return sum(size for size, _ in kept.values()) / (2 * tokens * width)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_activations_are_those_of_the_family_that_has_most(dtype):
    """No family keeps more for the backward pass than is counted, and one keeps nearly as much.

    Gemma 3 keeps 43 numbers where 42 are counted; its only model is small.
    """
    rows = {row.model_type: row for row in MODELS.values()}
    kept = {
        name: (saved_by_backward(row, dtype, 3) - saved_by_backward(row, dtype, 1)) / 2
        for name, row in rows.items()
    }
    counted = memory.ACTIVATIONS * torch.finfo(dtype).bits // 8
    assert max(kept.values()) <= counted * 1.03
    if dtype == torch.bfloat16:
        assert max(kept.values()) > 0.9 * counted


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_adapters_keep_no_more_activations_than_is_counted(dropout):
    """Frozen weights need no inputs for their own gradient, and adapters need the same inputs."""
    counted = 2 * (memory.ACTIVATIONS + (memory.DROPPED if dropout else 0))
    for row in {row.model_type: row for row in MODELS.values()}.values():
        kept = [saved_by_backward(row, torch.bfloat16, n, dropout=dropout) for n in (1, 3)]
        assert (kept[1] - kept[0]) / 2 <= counted, row.model


@settings(deadline=None)
@given(some_shapes, some_trainings, st.integers(10, 300))
def test_more_processes_never_need_more_on_a_gpu(shape, training, longest):
    """For one model, with every ZeRO stage that shards its state."""
    more = replace(training, processes=2 * training.processes)
    assert memory.gpu_peak(shape, more, longest) <= memory.gpu_peak(shape, training, longest)


@settings(deadline=None)
@given(some_shapes, some_trainings)
def test_a_higher_stage_never_holds_more_on_a_gpu(shape, training):
    """Weights, gradients and optimiser, from two processes on."""
    training = replace(training, processes=training.processes + 1, offload_optimizer="none")
    held = [states(shape, replace(training, zero_stage=stage)) for stage in range(4)]
    assert held == sorted(held, reverse=True)


@settings(deadline=None)
@given(some_large_shapes, some_trainings, st.integers(10, 300))
def test_offloading_never_needs_more_on_a_gpu(shape, training, longest):
    """On up to ten GPUs, its buffers are smaller than what leaves each of them.

    Of eleven processes, each holds less than a buffer for the largest matrix of the smallest model.
    """
    training = replace(training, adapter="none")  # an adapter's optimiser is smaller than a buffer
    peaks = [
        memory.gpu_peak(shape, replace(training, offload_optimizer=where), longest)
        for where in ("cpu", "none")
    ]
    assert training.processes > 10 or peaks[0] <= peaks[1]


def test_smaller_batches_need_less():
    """Smaller batches in training and in measuring, where each decides the peak."""
    training = replace(TRAINING, evaluation_batch_size=1)
    peak = memory.gpu_peak(SEVEN, training, 73)
    assert memory.gpu_peak(SEVEN, replace(training, micro_batch_size=2), 73) < peak
    measuring = replace(TRAINING, evaluation_batch_size=1024)
    peak = memory.gpu_peak(SEVEN, measuring, 73)
    assert memory.gpu_peak(SEVEN, replace(measuring, evaluation_batch_size=512), 73) < peak


# Adapters


def adapted(rank=16, **changes):
    """The settings of the tests, with adapters."""
    return replace(TRAINING, adapter="lora", adapter_rank=rank, **changes)


def test_an_8b_model_fits_a_card_of_24_gb_with_adapters_only():
    """With equal batches; all weights need 16 more bytes each, and adapters only theirs."""
    shape, small = full_shape(MODELS["llama-3.1-8b"]), {"micro_batch_size": 2}
    small["evaluation_batch_size"] = 16
    lora, every = adapted(**small), replace(TRAINING, **small)
    for stage in (0, 2):
        assert fits(shape, replace(lora, zero_stage=stage), 73, 24)
        assert not fits(shape, replace(every, zero_stage=stage), 73, 80)
    more = states(shape, every) - states(shape, lora)
    assert more == pytest.approx(18 * shape.parameters, rel=0.02)
    assert memory.main_memory(shape, lora) == memory.PROCESS + 4 * shape.parameters
    assert changes_that_fit(shape, adapted(), 73, 24, ("micro_batch_size",)) == []


def test_adapters_are_suggested_with_smaller_batches():
    """Where nothing else is changed; not if the model has adapters, or does not fit even so."""
    shape = full_shape(MODELS["llama-3.1-8b"])
    change = change_to_adapters(shape, TRAINING, 73, 24, 16)
    assert change.keys() == {"adapter", "micro_batch_size", "evaluation_batch_size"}
    assert fits(shape, replace(adapted(), **change), 73, 24)
    assert change_to_adapters(shape, TRAINING, 73, 40, 16) == {"adapter": "lora"}
    assert change_to_adapters(shape, TRAINING, 73, 16, 16) == {}
    assert change_to_adapters(shape, adapted(), 73, 24, 16) == {}


def test_the_parameters_of_an_adapter_in_closed_form():
    """Known for Llama 3.1 8B at rank 16; the output head, which has none, is counted: 5 %."""
    known = 41_943_040
    estimate = trained_parameters(full_shape(MODELS["llama-3.1-8b"]), adapted())
    assert known <= estimate < 1.06 * known
    assert trained_parameters(SEVEN, TRAINING) == SEVEN.parameters


@pytest.mark.parametrize("kind", sorted({row.model_type for row in MODELS.values()}))
def test_the_parameters_of_an_adapter_are_never_underestimated(kind):
    """Real networks of every architecture, on the meta device."""
    row = next(row for row in MODELS.values() if row.model_type == kind)
    row = replace(row, twin_hidden=256, twin_heads=4)
    with torch.device("meta"):
        model = build(row, "twin", 11, 0, torch.float32)
        shape = Shape(model.num_parameters(), row.twin_layers, row.twin_hidden, 11)
        lora = with_adapter(model, Adapter(4, 8, 0.0, ("all-linear",)), row.model, 0)
    counted = sum(p.numel() for p in lora.parameters() if p.requires_grad)
    assert counted <= trained_parameters(shape, adapted(rank=4)) < 1.25 * counted


def test_a_step_of_adapters_is_shorter_and_its_checkpoint_small():
    """A step reads the weights twice and not three times; a checkpoint has only adapters."""
    named = SEVEN, adapted(), STRINGS, HARDWARE
    ratio = duration.step_seconds(*named) / duration.step_seconds(
        SEVEN, TRAINING, STRINGS, HARDWARE
    )
    assert 0.25 < ratio < 0.5  # the update of all weights falls away as well
    assert disk.checkpoint_bytes(SEVEN, adapted()) < 0.02 * disk.checkpoint_bytes(SEVEN, TRAINING)
    assert disk.weights_bytes(SEVEN, adapted()) == 4 * SEVEN.parameters


# What fits


@pytest.mark.parametrize("name", ["llama-2-13b", "mistral-nemo-12b", "gemma-2-9b", "pythia-2.8b"])
@pytest.mark.parametrize("gpu_memory_gb", [16, 24, 40, 80])
def test_what_is_suggested_fits_and_no_part_of_it_does(name, gpu_memory_gb):
    """Each change makes the model fit; without any one of its keys, the model does not fit."""
    shape, training = full_shape(MODELS[name]), replace(TRAINING, zero_stage=0)
    asked = 101, gpu_memory_gb
    if fits(shape, training, *asked):
        return
    for change in changes_that_fit(shape, training, *asked):
        assert fits(shape, replace(training, **change), *asked)
        for key in change:
            part = {k: v for k, v in change.items() if k != key}
            changed = replace(training, **part)
            assert (changed.offloaded and not changed.zero_stage) or not fits(
                shape, changed, *asked
            )


def test_a_large_model_is_shared_out_or_offloaded():
    """The two remedies that there are for Llama 2 13B on one GPU of 80 GB."""
    shape, training = full_shape(MODELS["llama-2-13b"]), replace(TRAINING, zero_stage=0)
    changes = changes_that_fit(shape, training, 73, 80)
    assert [set(change) for change in changes] == [
        {"zero_stage", "offload_optimizer"},
        {"zero_stage", "processes"},
    ]
    assert changes_that_fit(shape, training, 73, 2) == []


# Main memory, time and disk


@settings(deadline=None)
@given(st.floats(1e9, 1e12), st.floats(1, 1e6), st.integers(1, 5))
def test_a_further_attempt_asks_for_more(size, seconds, attempt):
    """Every attempt asks for more than expected, up to the limits of machine and queue."""
    amounts = [memory.asked_for(size, a, 5e11) for a in (attempt, attempt + 1)]
    assert amounts[0] < amounts[1] <= 500_000 or amounts[1] == 500_000
    assert memory.asked_for(size, 1, 5e11) * 1e6 >= min(size, 5e11)
    minutes = [duration.asked_for(seconds, a, 48 * 3600) for a in (attempt, attempt + 1)]
    assert minutes[0] < minutes[1] <= 48 * 60 or minutes[1] == 48 * 60
    assert 60 * minutes[0] >= min(seconds, 48 * 3600)


def test_steps_are_counted_as_they_are_taken():
    """50 epochs of 64 strings in batches of 8, measured before the first and after each."""
    assert STRINGS.steps(TRAINING) == 400
    assert STRINGS.tokens_trained(TRAINING) == 50 * 64 * 73
    assert STRINGS.tokens_measured(TRAINING) == 51 * 160 * 73
    assert replace(TRAINING, evaluate_every=20).measurements == 4  # 0, 20, 40 and 50
    assert TRAINING.checkpoints == 9  # 5, 10, ..., 45
    assert replace(TRAINING, checkpoint_every=0).checkpoints == 0


@pytest.mark.parametrize(("processes", "strings"), [(1, 8), (2, 4), (3, 3), (16, 1)])
def test_processes_share_a_batch_as_in_training(processes, strings):
    """The forward passes of `micro_batches`."""
    assert replace(TRAINING, processes=processes).strings_per_pass == strings
    assert replace(TRAINING, micro_batch_size=3, processes=1).passes == 3


def test_products_take_six_operations_per_parameter_and_token():
    """The batch is so large that other operations are negligible."""
    training = replace(TRAINING, batch_size=65536, micro_batch_size=65536)
    strings = Strings(65536, 65536, 73.0, 73)
    expected = 6 * SEVEN.parameters * 65536 * 73 / (989e12 * 0.3)
    took = duration.step_seconds(SEVEN, training, strings, HARDWARE)
    assert took == pytest.approx(expected, rel=1e-3)


def test_offloading_is_slow_and_more_gpus_are_faster():
    """An update on the CPU takes seconds, one on the GPU a fraction of one."""
    offloaded = replace(TRAINING, offload_optimizer="cpu")
    on_gpu = duration.update_seconds(SEVEN, TRAINING, HARDWARE)
    on_cpu = duration.update_seconds(SEVEN, offloaded, HARDWARE)
    assert on_gpu < 0.2 < 4 < on_cpu
    two = duration.update_seconds(SEVEN, replace(offloaded, processes=2), HARDWARE)
    assert two == pytest.approx(on_cpu / 2)


def test_small_steps_take_as_long_as_the_memory_of_the_gpu():
    """A memory of a third of the speed makes a step of one string three times as long."""
    one = replace(TRAINING, batch_size=1, micro_batch_size=1)
    slow = replace(HARDWARE, gpu_terabytes_per_second=1.0)
    fast, long = (duration.step_seconds(SEVEN, one, STRINGS, it) for it in (HARDWARE, slow))
    assert long == pytest.approx(3 * fast)


def test_a_measured_speed_takes_the_place_of_every_assumption():
    """Training time follows from the speed; measuring time follows from the measured tokens."""
    took = duration.measured(duration.Speed(1000.0, 0.002), TRAINING, STRINGS)
    assert took.training == pytest.approx(50 * 64 * 73 / 1000)
    assert took.measuring == pytest.approx(51 * 160 * 73 * 0.002)
    assert took.basis == "measured"
    assert took.seconds == took.training + took.measuring


def test_two_checkpoints_are_on_disk_at_once():
    """14 bytes a parameter in bf16; in fp32 the weights are their own master only without ZeRO."""
    assert disk.state_bytes(SEVEN, TRAINING) == 2 * 14 * SEVEN.parameters
    assert disk.state_bytes(SEVEN, replace(TRAINING, checkpoint_every=50)) == 0
    fp32 = replace(TRAINING, precision="fp32")
    assert disk.checkpoint_bytes(SEVEN, fp32) == 16 * SEVEN.parameters
    assert disk.checkpoint_bytes(SEVEN, replace(fp32, zero_stage=0)) == 12 * SEVEN.parameters


# Shapes and strings


@pytest.mark.parametrize("name", MODELS)
def test_a_twins_parameters_in_closed_form(name):
    """Within 10 % of the real network's count; on the meta device, it takes no memory."""
    row = MODELS[name]
    with torch.device("meta"):
        model = build(row, "twin", 11, 0, torch.float32)
    assert twin_shape(row, 11).parameters == pytest.approx(model.num_parameters(), rel=0.1)


@pytest.mark.parametrize("name", MODELS)
def test_layers_width_and_vocabulary_belong_to_the_parameters(name):
    """The matrices of the table's shape are about as many parameters as the table says.

    A layer has 8 to 20 squared widths: few attention heads share keys and values, or the
    feed-forward layer is wide.
    """
    row = MODELS[name]
    embedding = row.vocabulary * row.hidden
    squares = row.layers * row.hidden**2
    assert any(
        8 * squares < row.parameters - matrices * embedding < 20 * squares for matrices in (1, 2)
    )


@pytest.mark.filterwarnings("ignore::palimpsest.languages.GrammarWarning")
def test_the_longest_string_of_a_grammar():
    """The largest sum over expansions; none if rules lead back; never below a sampled string."""
    grammar = Grammar.from_string("S -> A A 'x' [0.5] | 'y' [0.5]\nA -> 'a' [0.9] | 'a' 'b' [0.1]")
    assert grammar.longest() == 5
    assert Grammar.from_string("S -> 'a' S [0.5] | 'b' [0.5]").longest() == math.inf
    for path in sorted((ROOT / "config/languages").glob("L[1-8].pcfg")):
        language = Grammar.from_file(path)
        sampled = max(map(len, language.sample(500, seed=0)))
        assert language.expected_length() <= sampled <= language.longest() < 200


def test_a_recursive_language_is_planned_for_several_expected_lengths():
    """With the start token and, where it is predicted, the end."""
    assert shapes.tokens(2.0, math.inf, predict_end=False) == (3.0, 13)
    assert shapes.tokens(2.0, 5.0, predict_end=True) == (4.0, 7)


# The summary


def row(model, done=False, basis="assumed", **numbers):
    """A row of a plan."""
    names = ("gpus", "gpu_memory_gb", "main_memory_gb", "hours", "gpu_hours", "disk_gb", "state_gb")
    return {
        "model": model,
        "trainings": 1,
        "done": done,
        "basis": basis,
        **dict.fromkeys(names, 1),
        **numbers,
    }


def test_the_summary_counts_what_is_left():
    """Finished runs count as runs and nothing else; the largest memory is shown, not the sum."""
    rows = [
        row("a", hours=3, gpu_hours=6, gpu_memory_gb=20, state_gb=0),
        row("a", hours=4, gpu_hours=8, gpu_memory_gb=30, done=True, basis="measured"),
        row("b-twin", hours=0.5, gpu_hours=0.5, gpu_memory_gb=None, state_gb=0),
    ]
    header, _, first, twin, _, total, *notes = summary(rows, HARDWARE).splitlines()
    assert " ".join(first.split()) == "a 2 1 1 30 GB 1 GB 3 h 6 h 1 GB assumed"
    assert twin.split()[4] == "-"
    assert "30 min" in twin
    assert total.split()[1:3] == ["3", "2"]
    assert len({line.index(line.strip()[0]) for line in (header, first, twin, total)}) == 1
    assert notes[-1] == "Measured by finished runs: a."
    assert "measured yet" in summary(rows[:1], HARDWARE)


# What Snakemake imports


def test_planning_is_light():
    """A dry run must stay fast: nothing heavy is imported to check and to plan an experiment."""
    program = (
        "import sys\n"
        "import yaml\n"
        "from palimpsest.configuration.sources import Sources\n"
        "from palimpsest.experiment import Experiment\n"
        "from palimpsest.planning.summary import summary\n"
        "config = yaml.safe_load(open('config/config.yaml'))\n"
        "experiment = Experiment(config, Sources([]), 'config/schemas')\n"
        "assert summary(experiment.plan, experiment.planner.hardware)\n"
        "assert experiment.outputs and experiment.all_figures and experiment.locations('claims')\n"
        "assert experiment.headlined\n"
        "heavy = {'torch', 'transformers', 'pandas', 'pyarrow', 'scipy', 'numba', 'deepspeed'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow/scripts")}
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, env=environment)
