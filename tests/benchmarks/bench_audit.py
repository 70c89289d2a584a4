"""Speed of an audit: one pass against a bare one, all attacks, and one more candidate.

make pretrained && python tests/benchmarks/bench_audit.py

The target is SmolLM2 135M and its reference is Gemma 3 270M, in float32 on all cores. Candidates
are 64 tokens of texts of the language `people`. A pass gives the log probability, mean, deviation
and rank of every token; it takes turns with the forward pass alone, and with the forward pass and
its cross-entropy. An audit of all attacks (8 neighbours of each candidate, 7 records before it, and
32 tokens of greedy decoding) is made for some candidates, and its time is multiplied. With one more
candidate, the answers that are new are counted.
"""

import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

THREADS = len(os.sched_getaffinity(0))
os.environ["OMP_NUM_THREADS"] = str(THREADS)

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests")]

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import torch  # noqa: E402
from rows import Row, at_most, in_turns, main, shown  # noqa: E402

from helpers import tiny_language_models  # noqa: E402
from palimpsest import tables  # noqa: E402
from palimpsest.audit.asking import Audited, AuditJob, asked  # noqa: E402
from palimpsest.audit.measuring import AT_ONCE, measured_tokens  # noqa: E402
from palimpsest.audit.membership import ATTACKS  # noqa: E402
from palimpsest.corpora.kinds import CORPUS  # noqa: E402
from palimpsest.languages import Grammar  # noqa: E402
from palimpsest.launch import keep_freed_memory  # noqa: E402
from palimpsest.models.answers import Answers  # noqa: E402
from palimpsest.models.checkpoints import Checkpoint, opened  # noqa: E402
from palimpsest.training.batches import TokenisedStrings  # noqa: E402
from palimpsest.training.texts import encode_records  # noqa: E402

MODELS = {"SmolLM2 135M": "smollm2-135m-instruct", "Gemma 3 270M": "gemma-3-270m"}
TOKENS, PROMPT = 64, 32
CANDIDATES = 1_000  # of which an audit may take some minutes
MINUTES = 10
MOST_OF_A_PASS = 1.3  # times the forward pass alone
MOST_FOR_ONE_MORE = 2.0  # times the answers about one candidate
ROUNDS = 5


def rows(tiny: bool) -> Iterator[Row]:
    torch.set_num_threads(THREADS)
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        models = models_in(Path(folder), tiny)
        n = 12 if tiny else 48
        texts = candidates(models["SmolLM2 135M"], n + 1, 12 if tiny else TOKENS)
        for title, model in models.items():
            yield from of_one_pass(title, opened(model), texts[:AT_ONCE], 1 if tiny else ROUNDS)
        yield from of_an_audit(Path(folder), list(models.values()), texts, 4 if tiny else PROMPT)


def models_in(folder: Path, tiny: bool) -> dict[str, str]:
    """The folders of the models; at the tiny size, of random weights."""
    if tiny:
        return {
            title: tiny_language_models.write(folder / name, seed=seed)
            for seed, (title, name) in enumerate(MODELS.items())
        }
    found = {title: ROOT / "results/pretrained" / name for title, name in MODELS.items()}
    if missing := [path for path in found.values() if not (path / "config.json").exists()]:
        print(f"bench_audit: skipped: no {missing[0]}: make pretrained", file=sys.stderr)
        sys.exit()
    return {title: str(path) for title, path in found.items()}


def candidates(model: str, n: int, n_tokens: int) -> list[str]:
    """Texts of some tokens of a model, cut from people one after another."""
    tokenizer = opened(model).tokenizer
    grammar = Grammar.from_file(ROOT / "config/languages/people.pcfg")
    people = " ".join("".join(person) for person in grammar.sample(10 * n, seed=0))
    ids = tokenizer(people, add_special_tokens=False, verbose=False).input_ids
    return [
        tokenizer.decode(ids[first : first + n_tokens])
        for first in range(0, n * n_tokens, n_tokens)
    ]


def of_one_pass(title: str, checkpoint: Checkpoint, texts: list[str], rounds: int) -> Iterator[Row]:
    encoded = encode_records(checkpoint, texts)
    with torch.no_grad():
        bare = in_turns(
            lambda _: measured_tokens(checkpoint, encoded, AT_ONCE),
            lambda _: forward(checkpoint, encoded),
            rounds,
        )
        with_loss = in_turns(
            lambda _: measured_tokens(checkpoint, encoded, AT_ONCE),
            lambda _: cross_entropy(checkpoint, encoded),
            rounds,
        )
    medians = np.median(bare, axis=0)
    ratio = statistics.median(bare[:, 0] / bare[:, 1])
    name = f"{title}: a pass over a forward pass alone"
    yield at_most(name, ratio, 1.0, "x", MOST_OF_A_PASS)
    ratio = statistics.median(with_loss[:, 0] / with_loss[:, 1])
    yield shown(f"{title}: over a forward pass with its loss", ratio, 1.0, "x", 1 / ratio)
    yield shown(f"{title}: {len(texts)} texts", *medians, "s", medians[1] / medians[0])


def forward(checkpoint: Checkpoint, encoded: TokenisedStrings) -> torch.Tensor:
    batch = encoded.batch(np.arange(len(encoded.lengths)), checkpoint.device)
    return checkpoint.model(
        input_ids=batch.ids_BT, attention_mask=batch.mask_BT, use_cache=False
    ).logits


def cross_entropy(checkpoint: Checkpoint, encoded: TokenisedStrings) -> torch.Tensor:
    batch = encoded.batch(np.arange(len(encoded.lengths)), checkpoint.device)
    logits = forward(checkpoint, encoded)
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), batch.targets_BT.flatten(), reduction="none"
    )


def of_an_audit(folder: Path, models: list[str], texts: list[str], prompt: int) -> Iterator[Row]:
    target, reference = models
    file = folder / "answers.sqlite"
    seconds, n_answers = [], []
    for n in (len(texts) - 1, len(texts)):
        corpus = folder / f"{n}.parquet"
        write_corpus(corpus, texts[:n])
        job = AuditJob(
            "people",
            "target",
            str(corpus),
            "",
            "",
            target,
            [("reference", reference)],
            list(ATTACKS),
            prompt=prompt,
            continuation=prompt,
        )
        begin = time.perf_counter()
        asked(job, Audited.of(job), AT_ONCE, Answers(file))
        seconds.append(time.perf_counter() - begin)
        with sqlite3.connect(file) as database:
            n_answers += database.execute("SELECT COUNT(*) FROM answers").fetchone()
    first = len(texts) - 1
    minutes = seconds[0] / first * CANDIDATES / 60
    yield at_most(
        f"{CANDIDATES:,} candidates, all attacks, from {first}",
        minutes,
        MINUTES,
        "minutes",
        MINUTES,
    )
    per_candidate = n_answers[0] / first
    more = (n_answers[1] - n_answers[0]) / per_candidate
    name = f"one more candidate than {first}, in candidates"
    yield at_most(name, more, first + 1, "", MOST_FOR_ONE_MORE)
    yield shown("its seconds; peer: all again", *seconds[::-1], "s", seconds[0] / seconds[1])


def write_corpus(path: Path, texts: list[str]) -> None:
    ids = [f"r{place}" for place in range(len(texts))]
    frame = pd.DataFrame({"id": ids, "group": ids, "text": texts, "copies": 1})
    frame["trained"] = pd.array([place % 2 == 0 for place in range(len(texts))], "boolean")
    tables.write(path, frame.reindex(columns=CORPUS.names), CORPUS)


if __name__ == "__main__":
    sys.exit(main(rows))
