"""Attacks on membership against published code, on the same losses of the same texts.

python tests/benchmarks/bench_attack_peers.py --peers FOLDER

The folder holds checkouts of the peers: `fast-mia` (github.com/Nikkei/fast-mia), `mimir`
(github.com/iamgroot42/mimir) and `ml_privacy_meter` (github.com/privacytrustlab/ml_privacy_meter).
Measured with their commits 3eb9cbc, 1b6fd64 and e384af8. Their formulas are run and not their
models: what loads a model is replaced, so that neither vLLM nor OpenAI's client is needed. Without
the folder, nothing is compared, and one line says so.

Two Llamas with random weights, with one tokenizer, read people of the language `people`. A row is
the largest difference between our scores and a peer's, after its sign is turned where its scores
are higher for records that are no members.
"""

import sys
import tempfile
import types
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests")]

from rows import Row, at_most, main  # noqa: E402

from helpers import tiny_language_models  # noqa: E402
from palimpsest import audit  # noqa: E402
from palimpsest.audit.membership import ATTACKS  # noqa: E402
from palimpsest.audit.membership.attack import LOWERCASE, Given  # noqa: E402
from palimpsest.audit.membership.rmia import OFFLINE  # noqa: E402
from palimpsest.audit.passes import Pass  # noqa: E402
from palimpsest.audit.versions import versions  # noqa: E402
from palimpsest.languages import Grammar  # noqa: E402
from palimpsest.models.checkpoints import Checkpoint, opened  # noqa: E402

BOUND = 1e-6  # of a score
SHARE = 0.2  # of the tokens, for Min-K%
NO_CONFIGURATION = types.SimpleNamespace(pretokenized=False)


@dataclass(frozen=True)
class LogProb:
    logprob: float


@dataclass(frozen=True)
class Output:
    """What vLLM says of a text: a log probability for each token but the first one."""

    prompt: str
    prompt_logprobs: list


def rows(tiny: bool, peers: str | None = None) -> Iterator[Row]:
    if peers is None:
        print("bench_attack_peers: skipped: name a folder with --peers", file=sys.stderr)
        return
    torch.set_num_threads(2)
    grammar = Grammar.from_file(ROOT / "config/languages/people.pcfg")
    texts = ["".join(person) for person in grammar.sample(24 if tiny else 400, seed=0)]
    with tempfile.TemporaryDirectory() as folder:
        for seed, name in enumerate(("target", "reference")):
            tiny_language_models.write(Path(folder) / name, seed=seed)
        target, reference = (opened(f"{folder}/{name}") for name in ("target", "reference"))
        given = given_of(target, reference, texts)
        yield from of_fast_mia(Path(peers) / "fast-mia", given)
        yield from of_mimir(Path(peers) / "mimir", given, target)
        yield from of_privacy_meter(Path(peers) / "ml_privacy_meter", given)


def given_of(target: Checkpoint, reference: Checkpoint, texts: list[str]) -> Given:
    """What our attacks are given; the second half of the texts are no members."""
    unseen = np.arange(len(texts)) >= len(texts) // 2
    of_texts = [0] * len(texts)
    changed = versions((LOWERCASE,), texts, of_texts, unseen, neighbours=0, prefixes=0)
    return Given(
        texts,
        audit.passed(target, texts, batch_size=1),  # as mimir reads them
        audit.passed(reference, texts),
        {name: audit.passed(target, one.texts, one.prompts) for name, one in changed.items()},
        unseen,
    )


def difference(peer: str, attack: str, given: Given, theirs, keep=slice(None)) -> Row:
    """A row: the largest difference of an attack's scores from a peer's."""
    ours = ATTACKS[attack].score(given)[keep]
    largest = float(np.abs(ours - np.asarray(theirs)[keep]).max())
    return at_most(f"{attack}, difference from {peer}", largest, 0.0, "score", BOUND, ratio=1.0)


def of_fast_mia(folder: Path, given: Given) -> Iterator[Row]:
    stand_in("vllm", "LLM", "SamplingParams")
    stand_in("vllm.distributed.parallel_state", "destroy_model_parallel")
    stand_in("vllm.lora.request", "LoRARequest")
    stand_in("vllm.outputs", "RequestOutput")
    stand_in("vllm.transformers_utils.tokenizer", "AnyTokenizer")
    sys.path.insert(0, str(folder))
    lowered = [text.lower() for text in given.texts]
    of_model = {
        "target": outputs(given.texts, given.target) | outputs(lowered, given.changed[LOWERCASE]),
        "reference": outputs(given.texts, given.reference),
    }
    for name, module, method, settings in (
        ("zlib", "zlib", "ZlibMethod", {}),
        ("min_k", "mink", "MinKMethod", {"ratio": SHARE}),
    ):
        method = getattr(import_module(f"src.methods.{module}"), method)(settings)
        theirs = [method.process_output(of_model["target"][text]) for text in given.texts]
        yield difference("fast-mia", name, given, theirs)
    lower = import_module("src.methods.lower").LowerMethod({})
    lower.get_outputs = lambda texts, model, *_: [of_model[model][text] for text in texts]
    yield difference("fast-mia", "lowercase", given, lower.run(given.texts, "target", None))


def outputs(texts: list[str], found: Pass) -> dict[str, Output]:
    """What vLLM would say of texts, if its losses were ours."""
    of_texts = zip(texts, found.split(found.log_prob), strict=True)
    return {
        text: Output(text, [None, *({0: LogProb(value)} for value in values)])
        for text, values in of_texts
    }


def of_mimir(folder: Path, given: Given, target: Checkpoint) -> Iterator[Row]:
    stand_in("mimir.models", "Model", "ReferenceModel")
    stand_in("mimir.config", "ExperimentConfig")
    sys.modules["mimir"] = package("mimir", folder / "mimir")
    attacks = {
        "min_k": import_module("mimir.attacks.min_k").MinKProbAttack,
        "min_k_plus": import_module("mimir.attacks.min_k_plus_plus").MinKPlusPlusAttack,
        "zlib": import_module("mimir.attacks.zlib").ZLIBAttack,
    }
    likely = given.target.split(given.target.log_prob)
    whole = [distributions(target, text) for text in given.texts]
    for name, attack in attacks.items():
        made = attack(NO_CONFIGURATION, None)
        theirs = [
            -made.attack(text, probs=list(own), all_probs=of_all, loss=-own.mean(), k=SHARE)
            for text, own, of_all in zip(given.texts, likely, whole, strict=True)
        ]
        yield difference("mimir", name, given, theirs)


@torch.no_grad()
def distributions(target: Checkpoint, text: str) -> torch.Tensor:
    """float64[tokens, vocabulary]: log probabilities of the next token, one text at a time."""
    ids = target.tokenizer(text, add_special_tokens=False).input_ids
    given = torch.tensor([[target.tokenizer.bos_token_id, *ids]])
    logits = target.model(input_ids=given[:, :-1]).logits[0].double()
    return logits.log_softmax(-1)


def of_privacy_meter(folder: Path, given: Given) -> Iterator[Row]:
    sys.path.insert(0, str(folder))
    run_rmia = import_module("modules.mia.attacks.rmia").run_rmia
    target, reference = (
        np.exp(-found.nll / found.n_tokens) for found in (given.target, given.reference)
    )
    inside = given.population
    theirs = run_rmia(
        target,
        reference[:, None],
        np.zeros((len(target), 1), dtype=bool),
        target[inside],
        reference[inside, None],
        OFFLINE,
    )
    # They compare a record of the population with itself, too, so those are not compared here.
    yield difference("privacy meter", "rmia", given, theirs, ~inside)


def stand_in(name: str, *classes: str) -> None:
    """A module of this name, with empty classes, so that a peer's code can be imported."""
    parts = name.split(".")
    for n in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:n]), package(".".join(parts[:n])))
    for one in classes:
        setattr(sys.modules[name], one, type(one, (), {}))


def package(name: str, folder: Path | None = None) -> types.ModuleType:
    made = types.ModuleType(name)
    made.__path__ = [] if folder is None else [str(folder)]
    return made


if __name__ == "__main__":
    sys.exit(main(rows, "--peers", "folder with checkouts of the peers"))
