"""The number format that a precision means on this machine or another."""

from pathlib import Path

import pytest
import torch

from palimpsest.training import precision
from palimpsest.training.precision import dtype_of

FULL, TWIN = "full", "twin"
FP32, BF16 = torch.float32, torch.bfloat16


@pytest.fixture
def machine(monkeypatch):
    """A function that says what the machine has."""

    def set_to(gpu: bool, gpu_bf16: bool = False, processor: bool = False) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: gpu_bf16)
        monkeypatch.setattr(precision, "processor_has_bf16", lambda: processor)

    return set_to


@pytest.mark.parametrize("has_bf16", [False, True])
def test_auto_on_a_gpu_asks_the_gpu(machine, has_bf16):
    machine(gpu=True, gpu_bf16=has_bf16, processor=not has_bf16)
    assert dtype_of("auto", FULL) == dtype_of("auto", TWIN) == (BF16 if has_bf16 else FP32)


@pytest.mark.parametrize("has_bf16", [False, True])
def test_auto_on_a_processor_asks_it_for_pretrained_models_only(machine, has_bf16):
    machine(gpu=False, gpu_bf16=True, processor=has_bf16)
    assert dtype_of("auto", FULL) == (BF16 if has_bf16 else FP32)
    assert dtype_of("auto", TWIN) == FP32


@pytest.mark.parametrize("scale", [FULL, TWIN])
def test_bf16_on_a_processor_without_it_is_fp32_with_a_warning(machine, caplog, scale):
    machine(gpu=False, processor=False)
    assert dtype_of("bf16", scale) == FP32
    (said,) = caplog.messages
    assert "this processor has no bf16" in said
    machine(gpu=False, processor=True)
    assert dtype_of("bf16", scale) == BF16
    assert len(caplog.messages) == 1


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="only Linux lists its flags")
def test_the_processor_is_asked_rightly():
    """torch says the same as the system, and its names are still those that are looked up."""
    flags = set(Path("/proc/cpuinfo").read_text().split())
    assert precision.processor_has_bf16() == bool(flags & {"avx512_bf16", "amx_bf16"})
    if "avx2" in flags:
        assert {"avx512_bf16", "amx_bf16"} <= torch.cpu.get_capabilities().keys()


def test_fp32_is_fp32_everywhere(machine):
    machine(gpu=True, gpu_bf16=True, processor=True)
    assert dtype_of("fp32", FULL) == FP32
