"""Diluted streams whose effects are known: outcomes are made from levels, a trend and effects."""

import numpy as np
import pandas as pd

from palimpsest.profiles.dilution_effects import dilution
from palimpsest.profiles.factorial import LATE, Design
from palimpsest.profiles.interventions import DILUTED, DILUTED_WITHOUT, QUARTERS
from palimpsest.profiles.measured import Stream
from palimpsest.traces import Trace

DESIGN = Design(sizes=(80, 160), copies=(1, 4), probes=4, validation=24, cohort_size=10)
RECIPE = {"learning_rate": 1e-3, "batch_size": 5}
PARAMETERS = 1000
KINDS = ("dilution", "dilution_effects")
# Of each factor, from its low to its high level, on the effect at the end of training, in nats
CONTRASTS = {"copies": 1.5, "position": 1.0, "size": -0.8}
LEVEL = 2.0  # mean effect over the eight cells
GENERAL = 3.0  # what all strings gain by training on the probes


def effect(copies: int, position: str, size: int) -> float:
    """The known effect at the end of training: factors add up, so that interactions are 0."""
    high = {"copies": copies == 4, "position": position == LATE, "size": size == 160}
    return LEVEL + sum(CONTRASTS[name] * (is_high - 0.5) for name, is_high in high.items())


def strings(seed: int, size: int) -> pd.DataFrame:
    """The dataset of a stream with probes, as far as the study reads it."""
    rows = {}
    for slot in DESIGN.slots(size):
        rows[slot.probe] = {"cohort": slot.cohort, "split": "panel"}
    for place, row in rows.items():
        row["count"] = DESIGN.arms[place // DESIGN.probes].copies
    others = DESIGN.n_others(size)
    rest = [{"cohort": DESIGN.cohorts(size), "split": "train", "count": 1}] * others
    never = [{"cohort": pd.NA, "split": "validation", "count": 0}] * DESIGN.validation
    table = pd.DataFrame([*(rows[place] for place in sorted(rows)), *never, *rest])
    names = [f"{seed}-{place}" for place in range(len(table))]
    return table.assign(seed=seed, string_id=names, cohort=table["cohort"].astype("Int64"))


def trace_of(seed: int, size: int, variant: str, noise: float, strength: float) -> Trace:
    """The trace of a stream with its probes, or without; `noise` differs between the two."""
    chance = np.random.default_rng([seed, size, variant == DILUTED])
    n = DESIGN.n_probes + DESIGN.validation
    times = np.arange(QUARTERS + 1)
    levels = np.random.default_rng(seed).normal(size=n)
    outcome = -30.0 + times[:, None] + levels * (noise > 0)
    outcome = outcome + noise * chance.normal(size=(len(times), n))
    if variant == DILUTED:
        outcome = outcome + GENERAL * (times > 0)[:, None]
        for place in range(DESIGN.n_probes):
            arm = DESIGN.arms[place // DESIGN.probes]
            is_trained = times >= (QUARTERS if arm.position == LATE else 1)
            outcome[:, place] += strength * effect(*arm, size) * is_trained
    named = {"model": "llama-3.2-1b-twin", "language": "L1", "size": size, "seed": seed}
    return Trace(
        run={**named, "variant": variant},
        epochs=times * DESIGN.quarter(size),
        string_ids=np.array([f"{seed}-{place}" for place in range(n)], dtype=object),
        n_tokens=np.full(n, 10),
        nll=-outcome,
        n_correct=np.full(outcome.shape, 5),
        rank_sum=np.full(outcome.shape, 20),
    )


def stream(seed: int, size: int) -> tuple[Stream, pd.DataFrame]:
    """A stream with probes, and its dataset."""
    made = strings(seed, size)
    manifest = {
        "parameters": PARAMETERS,
        "configuration": {"recipe": {**RECIPE, "epochs": DESIGN.cohorts(size)}},
    }
    return Stream.of(trace_of(seed, size, DILUTED, 0.0, 1.0), made, manifest), made


def table(seeds=range(3), noise: float = 0.3, strength: float = 1.0) -> pd.DataFrame:
    """The table `dilution` of both sizes; with strength 0, nothing has an effect."""
    keys = [(seed, size) for size in DESIGN.sizes for seed in seeds]
    streams = [
        (
            trace_of(*key, DILUTED, noise, strength),
            strings(*key),
            {
                "parameters": PARAMETERS,
                "configuration": {"recipe": {**RECIPE, "epochs": DESIGN.cohorts(key[1])}},
            },
        )
        for key in keys
    ]
    without = [trace_of(*key, DILUTED_WITHOUT, noise, strength) for key in keys]
    return dilution(streams, without)
