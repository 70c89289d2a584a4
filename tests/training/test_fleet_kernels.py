"""The compiled operations of the engine fleet, compared with plain PyTorch in float64."""

import math
import os
import random
import shutil
import subprocess
import sys

import numba
import pytest
import torch
from torch.nn import functional

from helpers.commands import SCRIPTS
from palimpsest.training.fleet import kernels, operations
from palimpsest.training.fleet.kernels.queue import _places

ACTIVATIONS = {
    "silu": functional.silu,
    "gelu": functional.gelu,
    "gelu_pytorch_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "relu": functional.relu,
}
NARROW = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "+sse3,+avx,+avx2,+fma"}


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _threads():
    """Leave numba's threads as they were."""
    before = numba.get_num_threads()
    yield
    numba.set_num_threads(before)


def run(function, tensors, grad_out=None):
    """The value of a function, and its gradients by all tensors."""
    tensors = [x.detach().requires_grad_() for x in tensors]
    out = function(*tensors)
    grad_out = torch.randn_like(out) if grad_out is None else grad_out
    return out.detach(), grad_out, torch.autograd.grad(out, tensors, grad_out)


def check(function, reference, tensors, tolerance=1e-6):
    """Compare a function in float32 with its reference in float64, relative to the largest."""
    out, grad_out, grads = run(function, tensors)
    wanted, _, wanted_grads = run(reference, [x.double() for x in tensors], grad_out.double())
    for ours, theirs in zip((out, *grads), (wanted, *wanted_grads), strict=True):
        assert ours.dtype == torch.float32
        assert ours.shape == theirs.shape
        assert (ours - theirs).abs().max() <= tolerance * max(1.0, theirs.abs().max())


def check_members_alone(function, tensors):
    """A member's results are the same to the bit without the others and with two threads."""
    numba.set_num_threads(1)
    out, grad_out, grads = run(function, tensors)
    for member in range(len(out)):
        alone = [x[member : member + 1] for x in tensors]
        out_1, _, grads_1 = run(function, alone, grad_out[member : member + 1])
        for ours, theirs in zip((out_1, *grads_1), (out, *grads), strict=True):
            assert torch.equal(ours[0], theirs[member])
    if numba.config.NUMBA_NUM_THREADS > 1:
        numba.set_num_threads(2)
        out_2, _, grads_2 = run(function, tensors, grad_out)
        for ours, theirs in zip((out_2, *grads_2), (out, *grads), strict=True):
            assert torch.equal(ours, theirs)


# Linear layers


def plain_linear(x, weight, bias=None):
    y = x @ weight.transpose(1, 2)
    return y if bias is None else y + bias.unsqueeze(1)


@pytest.mark.parametrize(
    ("rows", "inputs", "outputs"),
    [
        (1, 1, 1),
        (1, 64, 64),
        (7, 5, 3),
        (7, 64, 11),
        (23, 17, 33),
        (97, 32, 80),
        (100, 170, 64),
        (193, 48, 170),
        (576, 64, 170),
        (50, 129, 257),
    ],
)
@pytest.mark.parametrize("biased", [False, True])
def test_linear(rows, inputs, outputs, biased):
    tensors = [torch.randn(3, rows, inputs), torch.randn(3, outputs, inputs)]
    tensors += [torch.randn(3, outputs)] if biased else []
    check(kernels.linear, plain_linear, tensors, tolerance=3e-6)


def test_linear_of_parameters_that_are_views_of_longer_rows():
    theta_MP = torch.randn(3, 1000)
    weight, bias = theta_MP[:, 7:547].view(3, 30, 18), theta_MP[:, 900:930]
    x = torch.randn(3, 18, 40).transpose(1, 2)
    y = kernels.linear(x, weight, bias)
    assert torch.allclose(y, plain_linear(x, weight, bias), atol=1e-5)


def test_linear_needs_no_gradient_of_its_input():
    x, weight = torch.randn(2, 9, 8), torch.randn(2, 5, 8).requires_grad_()
    (dw,) = torch.autograd.grad(kernels.linear(x, weight).sum(), (weight,))
    assert torch.allclose(dw, x.sum(1, keepdim=True).expand(2, 5, 8), atol=1e-5)


def test_a_member_s_linear_layer_is_its_own():
    tensors = [torch.randn(3, 61, 64), torch.randn(3, 37, 64), torch.randn(3, 37)]
    check_members_alone(kernels.linear, tensors)


# Attention


def plain_attention(query, key, value, scaling, softcap=None):
    """[S, T, H, d] of [S, H, T, d]."""
    scores = query @ key.transpose(2, 3) * scaling
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    later = torch.ones(scores.shape[2:], dtype=torch.bool).triu(1)
    return (scores.masked_fill(later, -math.inf).softmax(-1) @ value).transpose(1, 2)


def by_head(attend, heads, *more):
    """Attention of tensors [S, T, H * d], as a model calls it."""

    def function(*tensors):
        views = [x.view(*x.shape[:2], heads, -1).transpose(1, 2) for x in tensors]
        return attend(*views, *more)

    return function


@pytest.mark.parametrize("length", [1, 7, 24, 72, 130])
@pytest.mark.parametrize(("heads", "width"), [(2, 8), (1, 12), (4, 16), (2, 24), (1, 64)])
@pytest.mark.parametrize("softcap", [None, 5.0])
def test_attention(length, heads, width, softcap):
    tensors = [2 * torch.randn(3, length, heads * width) for _ in range(3)]
    ours = by_head(kernels.attention, heads, width**-0.5, softcap)
    theirs = by_head(plain_attention, heads, width**-0.5, softcap)
    check(ours, theirs, tensors, tolerance=1e-5)


def test_attention_of_one_tensor_that_holds_all_three():
    """Some models have one projection for queries, keys and values."""

    def of(attend):
        return lambda x: attend(*x.view(2, 40, 3, 36).transpose(1, 2).chunk(3, dim=-1), 0.3)

    check(of(kernels.attention), of(plain_attention), [torch.randn(2, 40, 108)], tolerance=3e-6)


def test_attention_holds_out_against_large_scores():
    tensors = [100 * torch.randn(1, 30, 16), *torch.randn(2, 1, 30, 16)]
    ours, theirs = (by_head(a, 1, 1.0) for a in (kernels.attention, plain_attention))
    check(ours, theirs, tensors, tolerance=1e-3)


def test_a_sequence_s_attention_is_its_own():
    tensors = [torch.randn(5, 50, 32) for _ in range(3)]
    check_members_alone(by_head(kernels.attention, 2, 0.25), tensors)


def test_attention_looks_at_nothing_later():
    query, key, value = (torch.randn(1, 2, 60, 16) for _ in range(3))
    before = kernels.attention(query, key, value, 0.25)
    key[:, :, 41:], value[:, :, 41:] = 1e9, 1e9
    after = kernels.attention(query, key, value, 0.25)
    assert torch.equal(before[:, :41], after[:, :41])


# Rotary positions


def plain_rotary(x, cos, sin):
    turned = cos.shape[-1]
    first, second = x[..., : turned // 2], x[..., turned // 2 : turned]
    swapped = torch.cat((-second, first), dim=-1)
    return torch.cat((x[..., :turned] * cos + swapped * sin, x[..., turned:]), dim=-1)


@pytest.mark.parametrize(("width", "turned"), [(8, 8), (16, 16), (24, 6), (64, 64), (80, 40)])
def test_rotary(width, turned):
    cos, sin = torch.randn(2, 9, turned)

    def ours(query, key):
        query, key = (x.transpose(1, 2) for x in (query, key))
        return torch.cat(kernels.apply_rotary(query, key, cos, sin), dim=1)

    def theirs(query, key):
        both = torch.cat((query, key), dim=2).transpose(1, 2)
        return plain_rotary(both, cos.double(), sin.double())

    check(ours, theirs, [torch.randn(2, 9, 3, width), torch.randn(2, 9, 1, width)])


def test_rotary_leaves_rows_where_attention_finds_them():
    query, key = (torch.randn(2, 9, heads, 16).transpose(1, 2) for heads in (3, 1))
    for y in kernels.apply_rotary(query, key, *torch.randn(2, 9, 16)):
        assert y.transpose(1, 2).is_contiguous()


def test_rotary_reads_what_is_not_in_rows():
    """If queries and keys are not in rows, the kernel makes copies; the result is the same."""
    query, key = torch.randn(2, 2, 3, 16, 9).transpose(3, 4)
    cos, sin = torch.randn(2, 9, 16)
    for x, y in zip((query, key), kernels.apply_rotary(query, key, cos, sin), strict=True):
        assert torch.allclose(y, plain_rotary(x, cos, sin), atol=1e-5)


# Norms


def plain_rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight.unsqueeze(1)


def plain_layer_norm(x, weight, bias, eps):
    normal = functional.layer_norm(x, x.shape[-1:], eps=eps)
    return normal * weight.unsqueeze(1) + bias.unsqueeze(1)


SIZES = [(1, 5), (7, 32), (33, 48), (576, 64), (11, 97)]


@pytest.mark.parametrize(("rows", "width"), SIZES)
@pytest.mark.parametrize("eps", [1e-6, 0.5])
def test_rms_norm(rows, width, eps):
    tensors = [torch.randn(3, rows, width), torch.randn(3, width)]
    norms = kernels.rms_norm, plain_rms_norm
    check(*(lambda x, w, norm=norm: norm(x, w, eps) for norm in norms), tensors)
    for module in (kernels, operations):
        ours = lambda x, w, module=module: module.rms_norm(x, w, eps, 1.0)  # noqa: E731
        check(ours, lambda x, w: plain_rms_norm(x, 1 + w, eps), tensors)


@pytest.mark.parametrize(("rows", "width"), SIZES)
@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_layer_norm(rows, width, eps):
    tensors = [3 + torch.randn(3, rows, width), torch.randn(3, width), torch.randn(3, width)]
    norms = kernels.layer_norm, plain_layer_norm
    check(*(lambda x, w, b, norm=norm: norm(x, w, b, eps) for norm in norms), tensors, 3e-6)


def test_a_member_s_norms_are_its_own():
    x, weight, bias = torch.randn(3, 61, 48), torch.randn(3, 48), torch.randn(3, 48)
    check_members_alone(lambda x, w: kernels.rms_norm(x, w, 1e-6), [x, weight])
    check_members_alone(lambda x, w, b: kernels.layer_norm(x, w, b, 1e-6), [x, weight, bias])


# Activations


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(1,), (3, 7, 11), (2, 100, 170)])
def test_activations(name, shape):
    function, tensors = ACTIVATIONS[name], [4 * torch.randn(shape), torch.randn(shape)]
    check(lambda x: kernels.activate(x, name), function, tensors[:1])
    check(lambda x, up: kernels.gated(x, up, name), lambda x, up: function(x) * up, tensors)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_have_the_right_limits(name):
    x = torch.tensor([-1e15, -1e4, -200.0, -90.0, 0.0, 90.0, 200.0, 1e4, 1e15])
    out, _, (dx,) = run(lambda x: kernels.activate(x, name), [x], torch.ones(9))
    assert torch.allclose(out, x.clamp(min=0.0), rtol=1e-6, atol=1e-30)
    slopes = dx[torch.arange(9) != 4]
    assert torch.allclose(slopes, (x[x != 0] > 0).float(), atol=1e-30)


def test_silu_is_exact_relative_to_itself():
    """So the exponential function is exact, too, if its result is a normal float32."""
    x = torch.linspace(-85.0, 85.0, 200_001)
    wanted = functional.silu(x.double())
    error = (kernels.activate(x, "silu") - wanted).abs() / wanted.abs().clamp(min=1e-37)
    assert error.max() < 4e-7


def test_not_a_number_stays_so():
    x = torch.full((20,), math.nan)
    for name in ("silu", "gelu_pytorch_tanh", "gelu"):
        assert kernels.activate(x, name).isnan().all()


# Feed-forward layers


def plain_gated(x, gate, up, down, name):
    inner = ACTIVATIONS[name](plain_linear(x, gate)) * plain_linear(x, up)
    return plain_linear(inner, down)


def plain_feed_forward(x, up, up_bias, down, down_bias, name):
    return plain_linear(ACTIVATIONS[name](plain_linear(x, up, up_bias)), down, down_bias)


FEED_FORWARD = {
    (kernels.gated_feed_forward, operations.gated_feed_forward): plain_gated,
    (kernels.feed_forward, operations.feed_forward): plain_feed_forward,
}


def feed_forward_tensors(plain, rows, inputs, inner, outputs):
    """Three members' arguments of a feed-forward layer, of about the size that layers have."""
    x, w1, w2 = (torch.randn(3, n, inputs) for n in (rows, inner, inner))
    down = torch.randn(3, outputs, inner) / inner**0.5
    w1, w2 = w1 / inputs**0.5, w2 / inputs**0.5
    if plain is plain_gated:
        return [x, w1, w2, down]
    return [x, w1, torch.randn(3, inner), down, torch.randn(3, outputs)]


@pytest.mark.parametrize(("functions", "plain"), FEED_FORWARD.items())
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (97, 20, 33, 7), (200, 64, 170, 64)])
@pytest.mark.parametrize("threads", [1, 2])
def test_feed_forward(functions, plain, name, sizes, threads):
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    for function in functions:
        check(
            lambda *x, function=function: function(*x, name),
            lambda *x: plain(*x, name),
            feed_forward_tensors(plain, *sizes),
            tolerance=3e-6,
        )


@pytest.mark.parametrize(("functions", "plain"), FEED_FORWARD.items())
def test_a_member_s_feed_forward_layer_is_its_own(functions, plain):
    tensors = feed_forward_tensors(plain, 205, 48, 85, 40)
    check_members_alone(lambda *x: functions[0](*x, "silu"), tensors)


# Embeddings


def test_embedding():
    ids = torch.randint(0, 7, (3, 40))

    def theirs(weight):
        return torch.stack([functional.embedding(i, w) for i, w in zip(ids, weight, strict=True)])

    for module in (kernels, operations):
        check(lambda w, m=module: m.embedding(ids, w), theirs, [torch.randn(3, 7, 20)])


# A queue


def mixed(module, ids, weight, other, gain, number):
    """Operations of stacked models, and of PyTorch between them, as classes of models have them."""
    x = module.embedding(ids, weight) * number
    y = module.rms_norm(x, gain, 1e-6)
    x = x + module.linear(y, other)
    joint = module.linear(x, other).view(6, 5, 2, 12).transpose(1, 2)
    turned = module.attention(*joint.chunk(3, dim=-1), 0.5, None)
    x = turned.reshape(3, 10, 8).repeat(1, 1, 3) + x / 3.0
    return torch.tanh(x)


MIXED = (3, 9, 24), (3, 24, 24), (3, 24)


@pytest.mark.parametrize("strange", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_queue_computes_the_same(strange, threads):
    """With an operation that no kernel does, and with members that threads do not share evenly."""
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    ids = torch.randint(0, 9, (3, 10))
    tensors = [(torch.randn(shape) / 4).requires_grad_() for shape in MIXED]
    found, grad_out = {}, torch.randn(3, 10, 24)
    for module in (operations, kernels):
        theta_MP = torch.zeros(3, sum(x[0].numel() for x in tensors))
        with module.member_by_member(3) as queue:
            y = mixed(module, ids, *tensors, 2.0)
            y = torch.sin(y) if strange else module.activate(y, "silu")
            grads = torch.autograd.grad(y, tensors, grad_out)
            first, second = torch.zeros(2, *theta_MP.shape)
            rates = torch.ones(3), torch.ones(3), 0.9, 0.99, 1e-2, 0.1, 1e9
            module.adamw_(theta_MP, module.flat(grads), first, second, *rates)
        assert queue is None or not queue.calls
        found[module] = first
    largest = found[operations].abs().max()
    assert largest > 0
    assert (found[operations] - found[kernels]).abs().max() < 1e-5 * largest


def test_a_queue_says_whether_it_was_whole():
    for operation, whole in ((torch.tanh, True), (torch.sin, False)):
        with kernels.member_by_member(3) as queue:
            operation(kernels.activate(torch.randn(3, 5), "silu"))
        assert queue.whole is whole


def test_a_program_repeats_the_work_of_a_queue():
    """With other ids and other weights in the same memory; not after an operation of PyTorch."""
    ids, weight = torch.zeros(2, 5, dtype=torch.int64), torch.randn(2, 9, 20).requires_grad_()
    theta_MP, first, second = torch.zeros(3, 2, 180)
    ones, programs = torch.ones(2, 5, 20), []
    for strange in (True, False):
        with kernels.member_by_member(2, ids, weight) as queue:
            y = kernels.embedding(ids, weight * 2.0 if strange else weight)
            grads = torch.autograd.grad(kernels.activate(y, "silu"), (weight,), ones)
            rates = torch.ones(2), torch.ones(2), 0.0, 0.99, 1e-2, 0.1, 1e9
            kernels.adamw_(theta_MP, kernels.flat(grads), first, second, *rates)
        programs.append(queue.program)
    refused, program = programs
    assert refused is None
    ids.copy_(torch.randint(0, 9, (2, 5)))
    weight.detach().copy_(torch.randn(2, 9, 20))
    program.run()
    y = torch.stack([w[i] for w, i in zip(weight, ids, strict=True)])
    (expected,) = torch.autograd.grad(functional.silu(y).sum(), (weight,))
    assert torch.allclose(first, expected.flatten(1), atol=1e-6)


def test_a_member_in_a_queue_is_its_own():
    ids, tensors = torch.randint(0, 9, (4, 10)), [torch.randn(4, *shape[1:]) for shape in MIXED]

    def first_moments(members):
        own = [x[members].requires_grad_() for x in tensors]
        count, size = len(own[0]), sum(x[0].numel() for x in own)
        theta_MP, first, second = torch.zeros(3, count, size)
        with kernels.member_by_member(count):
            y = kernels.activate(mixed_of(ids[members], own, count), "silu")
            grads = torch.autograd.grad(y, own, torch.ones(count, 10, 24))
            rates = torch.ones(count), torch.ones(count), 0.9, 0.99, 1e-2, 0.1, 1e9
            kernels.adamw_(theta_MP, kernels.flat(grads), first, second, *rates)
        return first

    def mixed_of(ids, own, count):
        x = kernels.embedding(ids, own[0]) * 2.0
        return x + kernels.linear(kernels.rms_norm(x, own[2], 1e-6), own[1])

    numba.set_num_threads(1)
    together = first_moments(slice(4))
    assert together.abs().max() > 0
    for member in range(4):
        assert torch.equal(first_moments(slice(member, member + 1))[0], together[member])
    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    assert torch.equal(first_moments(slice(4)), together)
    assert torch.equal(first_moments(slice(3)), together[:3])  # kernel by kernel


def test_tensors_that_are_needed_at_once_have_places_of_their_own():
    draw = random.Random(0)
    for _ in range(50):
        firsts = sorted(draw.choices(range(30), k=40))
        lives = tuple((draw.randint(1, 999), first, first + draw.randint(0, 9)) for first in firsts)
        places, size = _places(lives)
        taken = {}
        for place, (count, first, last) in zip(places, lives, strict=True):
            assert 0 <= place <= place + count <= size
            for call in range(first, last + 1):
                for begin, end in taken.setdefault(call, []):
                    assert place >= end or place + count <= begin
                taken[call].append((place, place + count))


# The loss


@pytest.mark.parametrize(("rows", "vocabulary"), [(1, 2), (1500, 11), (40, 16), (40, 67)])
def test_token_nll(rows, vocabulary):
    targets = torch.randint(0, vocabulary, (rows,))
    targets[1::5] = -100

    def theirs(logits):
        return functional.cross_entropy(logits, targets, reduction="none")

    logits = 5 * torch.randn(rows, vocabulary)
    check(lambda x: kernels.token_nll(x, targets, -100), theirs, [logits])
    assert (kernels.token_nll(logits, targets, -100)[1::5] == 0).all()


# The optimiser


def test_adamw_is_that_of_torch_after_clipping():
    rates, steps = [1e-3, 3e-2, 0.0], 5
    theta_MP = torch.randn(3, 1003)[:, 1:1002]
    first_MP, second_MP = torch.zeros(2, 3, 1001)
    parameters = [theta_MP[m].clone().requires_grad_() for m in range(3)]
    options = {"betas": (0.9, 0.99), "eps": 1e-7, "weight_decay": 0.1}
    optimisers = [
        torch.optim.AdamW([p], lr=rate, **options)
        for p, rate in zip(parameters, rates, strict=True)
    ]
    for step in range(1, steps + 1):
        # The first member's gradient is never clipped, the others' are.
        grad_MP = torch.randn(3, 1001) * torch.tensor([1e-2, 0.1, 10.0]).unsqueeze(1)
        for parameter, optimiser, grad in zip(parameters, optimisers, grad_MP, strict=True):
            parameter.grad = grad.clone()
            torch.nn.utils.clip_grad_norm_([parameter], 1.0)
            optimiser.step()
        count = torch.full((3,), step)
        rate_M = torch.tensor(rates, dtype=torch.float64)
        given = theta_MP, grad_MP, first_MP, second_MP, rate_M, count, 0.9, 0.99, 1e-7, 0.1, 1.0
        kernels.adamw_(*given)
    for member, (parameter, optimiser) in enumerate(zip(parameters, optimisers, strict=True)):
        state = optimiser.state[parameter]
        assert torch.allclose(theta_MP[member], parameter, rtol=1e-6, atol=1e-7)
        assert torch.allclose(first_MP[member], state["exp_avg"], rtol=1e-5, atol=1e-7)
        assert torch.allclose(second_MP[member], state["exp_avg_sq"], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("count", [1, 7, 777, 1024])
def test_a_member_s_step_is_its_own(count):
    """Whatever the others are, wherever its numbers begin and however many threads there are."""
    arrays = list(torch.rand(4, 3, count))
    rate_M, step_M = torch.tensor([1e-3, 2e-3, 3e-3]), torch.tensor([1, 20, 300])
    numbers = 0.9, 0.999, 1e-8, 0.01, 1.0

    def step(arrays, members, threads):
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
        kernels.adamw_(*arrays, rate_M[members], step_M[members], *numbers)
        return arrays

    together = step([x.clone() for x in arrays], slice(3), threads=1)
    assert not torch.equal(together[0], arrays[0])
    for ours, theirs in zip(
        step([x.clone() for x in arrays], slice(3), threads=2), together, strict=True
    ):
        assert torch.equal(ours, theirs)
    for member in range(3):
        part = slice(member, member + 1)
        alone = step([x[part].clone() for x in arrays], part, threads=1)
        for ours, theirs in zip(alone, together, strict=True):
            assert torch.equal(ours[0], theirs[member])


# Everything


@pytest.mark.parametrize(
    "call",
    [
        lambda x: kernels.linear(x.double(), x),
        lambda x: kernels.linear(x, torch.randn(2, 3, 5)),
        lambda x: kernels.rms_norm(x, torch.randn(2, 3), 1e-6),
        lambda x: kernels.gated(x, x[:, :1], "silu"),
        lambda x: kernels.gated_feed_forward(x, x, x, x[:, :, :3], "silu"),
        lambda x: kernels.feed_forward(x, x, x[0], x, x[0], "silu"),
        lambda x: kernels.token_nll(x[0], torch.zeros(4), -100),
    ],
)
def test_what_kernels_cannot_read_is_refused(call):
    with pytest.raises((TypeError, ValueError), match=r"a kernel (needs|was)"):
        call(torch.randn(2, 4, 4))


@pytest.mark.parametrize("target", [-1, 4])
def test_a_target_outside_of_the_vocabulary_is_refused(target):
    """A kernel would read another number from memory."""
    targets = torch.tensor([0, -100, target])
    with pytest.raises(IndexError, match=f"target {target} is not below 4"):
        kernels.token_nll(torch.randn(3, 4), targets, -100)


ACTIVATE = """
import torch
from palimpsest.training.fleet import kernels
print(kernels.activate(torch.ones(1), "silu").item())
"""


@pytest.mark.slow
def test_what_numba_keeps_is_compiled_again_after_a_change_in_another_file(tmp_path):
    """The exponential function is in one file, a kernel that it is compiled into in another."""
    shutil.copytree(SCRIPTS / "palimpsest", tmp_path / "palimpsest")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", ACTIVATE]
    before = subprocess.check_output(command, env=environment, cwd=tmp_path, text=True)
    assert float(before) == pytest.approx(1 / (1 + math.exp(-1)))
    file = tmp_path / "palimpsest/training/fleet/kernels/simd.py"
    constant = "LOG2_E = 1.4426950408889634"
    assert constant in file.read_text()
    file.write_text(file.read_text().replace(constant, "LOG2_E = 0.0"))
    after = subprocess.check_output(command, env=environment, cwd=tmp_path, text=True)
    assert after != before


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("NUMBA_CPU_NAME") is not None or not kernels.WIDE, reason="is narrow itself"
)
def test_machines_with_narrow_registers():
    """The linear layers, attention and activations again, compiled for half as wide vectors."""
    some = "linear and 170 or attention and 24 or activations and shape2 or feed_forward and 97"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", some]
    done = subprocess.run(command, env={**os.environ, **NARROW}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
