"""The number format of a model's weights under the engine `deepspeed`."""

import logging

import torch

log = logging.getLogger("palimpsest")


def dtype_of(precision: str, scale: str) -> torch.dtype:
    """The format of a precision: `fp32`, `bf16` or `auto`.

    `auto` means bf16 where it is fast and loses little: on a GPU that has it and, for a pretrained
    model (scale `full`), on a processor that has it. A twin on a processor is too small to gain.
    A processor without bf16 takes several times as long in bf16 as in fp32. There, bf16 becomes
    fp32, with a warning.
    """
    if precision == "fp32":
        return torch.float32
    if torch.cuda.is_available():
        has_bf16 = precision == "bf16" or torch.cuda.is_bf16_supported()
    elif precision == "bf16":
        has_bf16 = processor_has_bf16()
        if not has_bf16:
            log.warning(
                "recipes: precision: this processor has no bf16 (avx512_bf16 or amx_bf16), so "
                "fp32 is used; set fp32 to be rid of this warning"
            )
    else:
        has_bf16 = scale == "full" and processor_has_bf16()
    return torch.bfloat16 if has_bf16 else torch.float32


def processor_has_bf16() -> bool:
    """Whether the processor has instructions for matrix products in bf16."""
    has = torch.cpu.get_capabilities()
    return any(has.get(name, False) for name in ("avx512_bf16", "amx_bf16"))
