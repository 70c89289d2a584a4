"""Probe a stacked model with one step: is it equal to the model, and how much memory is needed?"""

import contextlib
from collections.abc import Callable, Iterator

import numpy as np
import torch

from palimpsest.errors import UserError
from palimpsest.models.build import build
from palimpsest.training.batches import IGNORED
from palimpsest.training.fleet.members import Member
from palimpsest.training.fleet.memory import BACKWARD, GRADIENTS, KEPT, Needs
from palimpsest.training.fleet.stack import Stack

# Spread of the weights in the comparison. Initial weights are so small that attention is nearly
# uniform, which would hide errors in attention.
SPREAD = 0.3
TOLERANCE = 1e-3  # of the largest number compared


def probe(member: Member, device: torch.device) -> Needs:
    """The bytes that a member of a wave needs.

    The stack knows the leaf modules that Hugging Face's classes use, but a class may use its
    parameters in other ways. So the logits and the gradients of a stack with one member are
    compared with those of the model itself, at weights far from zero. This step also counts the
    bytes of the activations for one training batch, so the estimate holds for every architecture.

    Raises `UserError` if the model itself fails, if it cannot be stacked, or if the memory is too
    small for one model.
    """
    batch = _longest_strings(member).to(device)
    with _explained(member, batch, _fails):
        logits, gradients = _of_the_model(member, batch)
    with _explained(member, batch, _cannot_be_stacked):
        return _compare(member, batch, logits, gradients)


@contextlib.contextmanager
def _explained(
    member: Member, batch_BT: torch.Tensor, explain: Callable[[Member, str], UserError]
) -> Iterator[None]:
    """Turn any failure into one line that names its cause."""
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError) as error:
        n_strings, n_tokens = batch_BT.shape
        raise UserError(
            f"{member.run.model}: the memory is too small for one model and a step of {n_strings} "
            f"strings with {n_tokens:,} tokens; give the job more memory, or lower "
            "training/batch_size"
        ) from error
    except Exception as error:
        # The code of a class may fail with any exception.
        kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
        first = str(error).strip().partition("\n")[0]
        raise explain(member, f"{kind}{first}") from error


def _of_the_model(
    member: Member, batch_BT: torch.Tensor
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The logits [tokens, V] and the gradients of Hugging Face's own model."""
    model = _built(member).to(batch_BT.device)
    logits = model(input_ids=batch_BT[:, :-1], use_cache=False).logits.flatten(0, 1)
    targets_N = batch_BT[:, 1:].flatten()
    nll = torch.nn.functional.cross_entropy(logits, targets_N, reduction="sum")
    return logits.detach(), list(torch.autograd.grad(nll, list(model.parameters())))


def _compare(
    member: Member, batch_BT: torch.Tensor, logits: torch.Tensor, gradients: list[torch.Tensor]
) -> Needs:
    """Compare a stack of one model with the model itself; the bytes that a member needs."""
    ids_BT, targets_N = batch_BT[:, :-1], batch_BT[:, 1:].flatten()
    model = _built(member)
    stack = Stack(_built(member), 1, batch_BT.device)
    stack.load(0, model.parameters())
    saved: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        ours = stack(ids_BT.unsqueeze(0)).flatten(0, 2)
        nll = stack.operations.token_nll(ours, targets_N, IGNORED).sum()
    of_stack = torch.autograd.grad(nll, stack.parameters)
    _check_close("logits", ours, logits)
    _check_close("gradients", _flat(of_stack), _flat(gradients))
    kept = stack.theta.nbytes * KEPT + member.material.encoded.ids.nbytes * 2
    in_a_step = int(sum(saved.values()) * (1 + BACKWARD)) + stack.theta.nbytes * GRADIENTS
    if _is_done_by_member(stack, ids_BT, targets_N):
        return Needs(kept, in_a_step)
    return Needs(kept + in_a_step, 0)


def _is_done_by_member(stack: Stack, ids_BT: torch.Tensor, targets_N: torch.Tensor) -> bool:
    """Whether a member's whole step is done before the next member's, in the same memory."""
    with stack.operations.member_by_member(1) as queue:
        nll_N = stack.operations.token_nll(stack(ids_BT[None]).flatten(0, 2), targets_N, IGNORED)
        torch.autograd.grad(nll_N, stack.parameters, torch.ones(len(targets_N)).to(ids_BT.device))
    return queue is not None and queue.whole


def _built(member: Member):
    """The member's model with weights far from zero; the same weights at every call."""
    run, material = member.run, member.material
    model = build(run.row, run.scale, material.vocabulary, material.seed, torch.float32).eval()
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += SPREAD * torch.randn(parameter.shape, generator=draw)
    return model


def _longest_strings(member: Member) -> torch.Tensor:
    """Ids int64[B, T] of the longest strings, as many as in a step, cut to equal length."""
    encoded, count = member.material.encoded, member.recipe.batch_size
    rows = np.resize(np.argsort(-encoded.lengths, kind="stable"), count)
    return torch.from_numpy(encoded.ids[rows][:, : encoded.lengths[rows].min()])


def _flat(tensors) -> torch.Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors])


def _check_close(what: str, ours: torch.Tensor, theirs: torch.Tensor) -> None:
    apart = (ours - theirs).abs().max() / theirs.abs().max()
    if not apart < TOLERANCE:
        raise UserError(f"the {what} of a stacked model are {apart:.1%} off")


def _fails(member: Member, reason: str) -> UserError:
    row = member.run.row
    return UserError(
        f"{member.run.model}: a model of type {row.model_type!r} fails on its strings ({reason}), "
        "whichever engine trains it; correct model_type or the columns twin_* of its row in the "
        "table of models"
    )


def _cannot_be_stacked(member: Member, reason: str) -> UserError:
    name = member.run.model
    return UserError(
        f"{name}: models of type {member.run.row.model_type!r} cannot be stacked ({reason}); train "
        f"it with the other engine: set engine/{name} to deepspeed"
    )
