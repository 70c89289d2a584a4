"""Records of one's own under a checkpoint, against a bare PyTorch loop over the same batches.

python tests/benchmarks/bench_records.py
make pretrained && python tests/benchmarks/bench_records.py --model results/pretrained/NAME

The checkpoint is a Llama of 20 million parameters with random weights: what counts is the work for
a record, and not what the model knows. With `--model`, it is the one in a folder, and there are
more records. The records are cut from texts of the language `people`. Both sides read the weights
in float32 and take turns, in pairs, on a GPU if there is one; ours loads the model each time.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests")]

from rows import Row, at_least, at_most, in_turns, main  # noqa: E402

from helpers.tiny_language_models import write  # noqa: E402
from palimpsest import records  # noqa: E402
from palimpsest.languages import Grammar  # noqa: E402
from palimpsest.records import checkpoint  # noqa: E402

SIZES = {
    "hidden_size": 384,
    "intermediate_size": 1024,
    "num_hidden_layers": 10,
    "num_attention_heads": 6,
    "max_position_embeddings": 1024,
    "vocab_size": 8192,
}
ROUNDS = 3
ON_GPU = torch.cuda.is_available()


def write_records(path: Path, n: int, tokenizer) -> records.Records:
    """Records of 60 to 140 tokens."""
    lengths = np.random.default_rng(0).integers(60, 140, n)
    grammar = Grammar.from_file(ROOT / "config/languages/people.pcfg")
    people = " ".join("".join(person) for person in grammar.sample(10 * n, seed=0))
    ids = tokenizer(people, add_special_tokens=False, verbose=False).input_ids
    ends = lengths.cumsum()
    assert len(ids) >= ends[-1]
    with path.open("w") as file:
        for place, (length, end) in enumerate(zip(lengths, ends, strict=True)):
            text = tokenizer.decode(ids[end - length : end])
            file.write(json.dumps({"text": text, "trained": place % 2 == 0}) + "\n")
    return records.read_records(path)


def bare_loop(given: records.Records, tokenizer, model) -> np.ndarray:
    """Nll of every record: sorted by length, padded, cross-entropy; nothing else."""
    start = tokenizer.bos_token_id
    rows = [
        [start, *ids] for ids in tokenizer(list(given.texts), add_special_tokens=False).input_ids
    ]
    order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
    nll = np.zeros(len(rows))
    with torch.no_grad():
        for first in range(0, len(order), checkpoint.AT_ONCE):
            batch = order[first : first + checkpoint.AT_ONCE]
            longest = max(len(rows[row]) for row in batch)
            ids = torch.zeros(len(batch), longest, dtype=torch.long)
            mask = torch.zeros_like(ids)
            for place, row in enumerate(batch):
                ids[place, : len(rows[row])] = torch.tensor(rows[row])
                mask[place, : len(rows[row])] = 1
            ids, mask = ids.to(model.device), mask.to(model.device)
            logits = model(
                input_ids=ids[:, :-1], attention_mask=mask[:, :-1], use_cache=False
            ).logits
            loss = torch.nn.functional.cross_entropy(
                logits.transpose(1, 2), ids[:, 1:], reduction="none"
            )
            nll[batch] = (loss * mask[:, 1:]).sum(1).cpu().numpy()
    return nll


def rows(tiny: bool, given_model: str | None = None) -> Iterator[Row]:
    """Records per second, the share of padding, and verdicts from a file."""
    # On a GPU, loading would take most of the time of few records.
    n = 8 if tiny else 4000 if ON_GPU else 300 if given_model else 200
    sizes = {**SIZES, **({"num_hidden_layers": 1, "hidden_size": 48} if tiny else {})}
    with tempfile.TemporaryDirectory() as folder:
        model = given_model or write(Path(folder) / "model", **sizes)
        tokenizer = AutoTokenizer.from_pretrained(model)
        given = write_records(Path(folder) / "records.jsonl", n, tokenizer)
        loaded = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
        loaded = loaded.to("cuda" if ON_GPU else "cpu")
        found, expected = [], []
        seconds = in_turns(
            lambda _: found.append(checkpoint.losses_under(given, model)),
            lambda _: expected.append(bare_loop(given, tokenizer, loaded)),
            1 if tiny else ROUNDS,
        )
        np.testing.assert_allclose(found[-1].nll, expected[-1], rtol=1e-4)
        n_tokens = found[-1].n_tokens
        ours, peers = np.median(seconds, axis=0)
        yield at_least(
            f"{n} records of {n_tokens.mean():.0f} tokens, loading counted; peer: PyTorch loop",
            n / ours,
            n / peers,
            "records/s",
            target_ratio=0.95,
            ratio=statistics.median(seconds[:, 1] / seconds[:, 0]),
        )
        lengths = np.sort(n_tokens)
        batches = [lengths[i : i + checkpoint.AT_ONCE] for i in range(0, n, checkpoint.AT_ONCE)]
        padded = sum(len(batch) * batch.max() for batch in batches)
        waste = 100 * (padded - lengths.sum()) / padded
        unsorted = 100 * (1 - lengths.mean() / lengths.max())
        yield at_most("padding; peer: all as long as the longest", waste, unsorted, "%", 5)
        if not given_model:
            begin = time.perf_counter()
            records.answers(records.measure(given, model), loss_threshold=None)
            seconds = time.perf_counter() - begin
            yield at_most(f"{n} records, from file to verdicts", seconds, peers, "s", 120)


if __name__ == "__main__":
    sys.exit(main(rows, "--model", "folder of a model and its tokenizer"))
