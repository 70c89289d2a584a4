"""When memory runs out: the next attempt at a job takes less, or the job ends in one line."""

import pytest
import torch

from palimpsest.errors import OutOfMemory, UserError
from palimpsest.jobs.memory import less_next_time
from palimpsest.training.attempts import Attempts, Passes

ASKED = {"micro_batch_size": 8, "evaluation_batch_size": 64}


def run_out(attempts, passes=None, measuring=False, cuts_batches=True, error=None):
    """A job whose memory runs out."""
    with less_next_time(
        attempts, "deepspeed", passes or Passes(8, 64), lambda: measuring, cuts_batches
    ):
        raise error or torch.OutOfMemoryError("CUDA out of memory")


@pytest.fixture
def attempts(tmp_path):
    return Attempts(tmp_path / "note.json", ASKED)


@pytest.mark.parametrize(
    ("measuring", "doing", "less"),
    [(False, "training with 8", Passes(4, 64, 1)), (True, "measuring with 64", Passes(8, 32, 1))],
)
@pytest.mark.parametrize(
    "error", [None, RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")]
)
def test_half_as_many_strings_are_noted(attempts, measuring, doing, less, error):
    with pytest.raises(OutOfMemory, match=f"while {doing} strings per forward pass; the next"):
        run_out(attempts, measuring=measuring, error=error)
    assert attempts.passes() == less


def test_a_batch_that_cannot_be_cut_ends_the_job(attempts):
    """Measuring may still use smaller batches."""
    with pytest.raises(
        UserError, match=r"a whole batch, which cannot be split; in the recipe, raise proc"
    ):
        run_out(attempts, cuts_batches=False)
    assert attempts.passes() == Passes(8, 64)
    with pytest.raises(OutOfMemory):
        run_out(attempts, measuring=True, cuts_batches=False)


def test_one_string_is_the_least(attempts):
    with pytest.raises(
        UserError, match="with one string per forward pass; in the recipe, raise proc"
    ):
        run_out(attempts, Passes(1, 64))


def test_other_errors_are_passed_on(attempts):
    """Without a record of attempts (for example, for a fleet), every error is passed on."""
    with pytest.raises(RuntimeError, match="something else"):
        run_out(attempts, error=RuntimeError("something else"))
    with pytest.raises(torch.OutOfMemoryError):
        run_out(None)
    with less_next_time(attempts, "deepspeed", Passes(8, 64), lambda: False):
        pass
    assert attempts.passes() == Passes(8, 64)
