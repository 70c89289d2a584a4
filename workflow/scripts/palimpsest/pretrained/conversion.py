"""Converting a model's GGUF file into a folder as Hugging Face's `save_pretrained` leaves it."""

import importlib.metadata
import json
import platform
from dataclasses import asdict
from pathlib import Path

import accelerate
import gguf
import safetensors
import torch
import transformers

from palimpsest.pretrained.catalogue import Pretrained
from palimpsest.pretrained.packages import join, replacing

GGUF = "model.gguf"
MANIFEST = "manifest.json"
# transformers reads GGUF with accelerate and gguf.
LIBRARIES = (accelerate, gguf, safetensors, torch, transformers)


def convert(model: Pretrained, parts: list[Path], folder: str | Path) -> None:
    """Make the folder of a model: configuration, tokenizer, float32 weights and a manifest.

    `parts` are the files of the model's parts. An existing folder is replaced once the new one is
    complete. Raises `UserError` if the GGUF file has another checksum, or if the folder cannot be
    written.
    """
    with replacing(Path(folder), safetensors.SafetensorError) as work:
        join(model, parts, work / GGUF)
        tokenizer = transformers.AutoTokenizer.from_pretrained(work, gguf_file=GGUF)
        tokenizer.save_pretrained(work)
        weights = _plain(
            transformers.AutoModelForCausalLM.from_pretrained(
                work, gguf_file=GGUF, dtype=torch.float32
            )
        )
        weights.save_pretrained(work)
        (work / GGUF).unlink()
        # safetensors leaves its files to their owner alone.
        for path in work.glob("*.safetensors"):
            path.chmod((work / "config.json").stat().st_mode)
        manifest = json.dumps(_manifest(model, weights.num_parameters()), indent=2)
        (work / MANIFEST).write_text(manifest + "\n")


def _plain(quantised: transformers.PreTrainedModel) -> transformers.PreTrainedModel:
    """The same model as its class builds it; a model read from GGUF refuses to be saved."""
    del quantised.config.quantization_config
    plain = type(quantised)(quantised.config)
    plain.load_state_dict(quantised.state_dict())
    return plain


def _manifest(model: Pretrained, parameters: int) -> dict:
    versions = {one.__name__: importlib.metadata.version(one.__name__) for one in LIBRARIES}
    return {
        "model": model.name,
        "source": [asdict(part) for part in model.parts],
        "gguf_sha256": model.sha256,
        "licence": model.licence,
        "quantisation": f"the weights were quantised to {model.quantisation}",
        "dtype": "float32",
        "parameters": parameters,
        "packages": {"python": platform.python_version(), **versions},
    }
