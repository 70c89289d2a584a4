"""An unlearning problem with known results, as the files that the evaluation reads."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from palimpsest import tables
from palimpsest.sections import KINDS
from palimpsest.unlearning.evaluate.samples import read_problem, setups_of
from palimpsest.unlearning.run.setups import n_originals, n_retrained, unlearned_models

KEYS = {"model": "m", "language": "L", "size": 100, "seed": 0}
EPOCHS = np.array([0, 5, 10])
SPLITS = ["train"] * 10 + ["forget"] * 12 + ["validation"] * 3 + ["test"] * 20
TOKENS = 10
LEARNED, UNSEEN = 0.6, 1.5  # nats per token, of strings that were trained on and of others


def dataset():
    """Two retained strings and one forget string are in the test set as well."""
    split = np.array(SPLITS, dtype=object)
    n = len(split)
    count = np.where(np.isin(split, ["train", "forget"]), 1 + np.arange(n) % 3, 0)
    test_count = (split == "test").astype(int)
    test_count[[0, 1, 10]] = 2
    return pd.DataFrame(
        {
            **{key: KEYS[key] for key in ("language", "size", "seed")},
            "variant": "original",
            "string_id": [f"{i:012x}" for i in range(n)],
            "text": [f"a {i}" for i in range(n)],
            "n_tokens": TOKENS,
            "split": split,
            "count": count,
            "test_count": test_count,
            "role": None,
            "group": split,
            "cohort": pd.array([None] * n, dtype="Int64"),
            "log_prob": -np.arange(1.0, n + 1),
            "derivation_log_prob": -np.arange(1.0, n + 1),
            "optimal_loss": 1.0,
        }
    )


STRINGS = dataset()
FORGET = np.array(SPLITS) == "forget"
TRAINED = np.isin(SPLITS, ["train", "forget"])


def losses(chance, n_models, low, spread=0.1):
    """Losses [models, strings] around LEARNED where `low`, else around UNSEEN."""
    around = np.where(low, LEARNED, UNSEEN)
    return around * np.exp(chance.normal(0, spread, (n_models, len(SPLITS))))


def predictions(loss):
    """The columns of predictions of losses [..., strings]: right tokens fall with the loss."""
    tokens = np.full(loss.shape, TOKENS)
    right = np.clip(np.round(TOKENS * (1.8 - loss)), 0, TOKENS).astype(int)
    return {
        "string_id": np.tile(STRINGS["string_id"], loss.size // len(SPLITS)),
        "nll": (loss * TOKENS).ravel(),
        "n_tokens": tokens.ravel(),
        "n_correct": right.ravel(),
        "rank_sum": (2 * tokens - right).ravel(),
    }


def token_scores(loss):
    """The columns of `unlearned` beside the predictions: all are functions of the losses."""
    right = np.clip(np.round(TOKENS * (1.8 - loss)), 0, TOKENS).astype(int)
    return {
        "min_k": (-3 * loss).ravel(),
        "min_k_plus": (-loss).ravel(),
        "n_last_correct": (right // 2).ravel(),
    }


def trace(path, variant, draws, loss):
    """A trace of several draws, losses [draws, strings] at the last epoch and higher before."""
    rising = loss[:, None] * np.array([2.0, 0.9, 1.0])[:, None]
    per_run = len(EPOCHS) * len(SPLITS)
    frame = pd.DataFrame(
        {
            **KEYS,
            "variant": np.repeat([f"{variant}-{draw}" for draw in draws], per_run),
            "epoch": np.tile(np.repeat(EPOCHS, len(SPLITS)), len(draws)),
            **predictions(rising),
        }
    )
    tables.write(path, frame, KINDS["trace"])
    return str(path)


def unlearned(folder, method, keys, loss, steps=4, seconds=2.0, relearn=3.0, limit=10.0):
    """The two tables of a method's models, in a folder as the workflow names it."""
    origins, draws = np.array(keys).T
    frame = pd.DataFrame(
        {
            **KEYS,
            "method": method,
            "origin": np.repeat(origins, len(SPLITS)),
            "unlearning_replicate": np.repeat(draws, len(SPLITS)),
            **predictions(loss),
            **token_scores(loss),
        }
    )
    models = pd.DataFrame(
        {
            **KEYS,
            "method": method,
            "origin": origins,
            "unlearning_replicate": draws,
            "steps": steps,
            "seconds": seconds,
            "distance_to_original": 1.0 + origins,
            "distance_to_retrained": 2.0,
            "relearn_steps": relearn,
            "relearn_limit": np.where(np.isnan(relearn), np.nan, limit),
        }
    )
    part = Path(folder) / "unlearned" / method / f"runs-0-{len(keys) - 1}"
    tables.write(part / "unlearned.parquet", frame, KINDS["unlearned"])
    tables.write(part / "models.parquet", models, KINDS["unlearned_models"])
    return str(part / "unlearned.parquet"), str(part / "models.parquet")


@dataclass
class World:
    """The files of a problem, and the set-ups by which it is evaluated."""

    folder: Path
    setups: tuple
    originals: list
    retrained: list
    dataset: str
    manifests: list
    unlearned: list
    models: list
    innocent: list | tuple = ()

    def problem(self):
        files = self.originals, self.retrained, self.dataset, self.setups, self.innocent
        return read_problem(*files)

    def methods(self, problem, with_tokens=False):
        return problem.methods(self.unlearned, self.models, with_tokens)


def world(
    folder,
    names=("reuse-n-n", "bootstrap"),
    n=16,
    repetitions=3,
    pool=16,
    methods=("good", "shifted"),
    seed=0,
):
    """Original models know the forget strings; `good` models are like retrained models.

    Other models are like original models. `shifted` models are half-way between the two.
    """
    folder, chance = Path(folder), np.random.default_rng(seed)
    setups = setups_of(names, n, repetitions, pool, seed)
    files = {"original": [], "retain": []}
    for variant, low, total in (
        ("original", TRAINED, n_originals(setups)),
        ("retain", TRAINED & ~FORGET, 2 * n_retrained(setups)),
    ):
        for draws in np.array_split(np.arange(total), min(2, total)):
            path = folder / "runs" / f"{variant}-{draws[0]}-{draws[-1]}" / "trace.parquet"
            loss = losses(chance, len(draws), low)
            files[variant].append(trace(path, variant, draws, loss))
    keys = unlearned_models(setups)
    written = []
    for method in methods:
        loss = losses(chance, len(keys), TRAINED & ~(FORGET & (method == "good")))
        if method == "shifted":
            loss[:, FORGET] *= np.sqrt(UNSEEN / LEARNED)
        written.append(unlearned(folder, method, keys, loss))
    strings, manifest = folder / "strings.parquet", folder / "manifest.json"
    tables.write(strings, STRINGS, KINDS["strings"])
    manifest.write_text(json.dumps({"training_seconds": 40.0, "n_runs": 4}))
    return World(
        folder,
        setups,
        files["original"],
        files["retain"],
        str(strings),
        [str(manifest)],
        [files[0] for files in written],
        [files[1] for files in written],
    )


def only(path, kind, keep):
    """Write a table again with only the rows that `keep` selects, in the order of `keep`."""
    frame = tables.read(path, KINDS[kind])
    tables.write(path, frame[keep(frame)], KINDS[kind])
