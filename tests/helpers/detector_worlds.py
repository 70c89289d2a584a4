"""Records in pairs whose truth is known, and what detectors make of them."""

import numpy as np
import pandas as pd

from palimpsest.audit.detectors import detected
from palimpsest.audit.kinds import EXTRACTED


def pairs_of(n, chance, shift=0.0, copies=(1,)):
    """Records in pairs, whose members have scores that are higher by `shift` times the copies."""
    group = np.repeat(np.arange(n), 2)
    member = np.tile([True, False], n)
    of_pair = np.repeat(np.resize(copies, n), 2)
    score = chance.normal(size=2 * n) + shift * of_pair * member
    return pd.DataFrame(
        {
            "id": [f"{pair}{'ab'[side]}" for pair, side in zip(group, member * 1, strict=True)],
            "group": group.astype(str),
            "trained": member,
            "copies": of_pair,
            "score": score,
        }
    )


def world(shift, n=60, seed=0):
    """The tables of a target with one attack, extraction and a retraining that find `shift`."""
    chance = np.random.default_rng(seed)
    rows = pairs_of(n, chance, shift, copies=(1, 4))
    about = rows[["id", "group", "trained"]].assign(language="mine", model="m")
    scores = pd.concat(
        about.assign(
            attack=name, duplicate=False, score=pairs_of(n, chance, shift, (1, 4))["score"]
        )
        for name in ("loss", "rmia/base")
    )
    extracted = about.assign(
        role="target",
        duplicate=False,
        n_tokens=10,
        accuracy=1.0 * (rows["score"] > 2),
        log10_samples=np.maximum(5 - rows["score"], 0),
        span="",
        span_letters=0,
    )
    other = extracted.assign(role="base", accuracy=0.0)
    answers = about.assign(
        model="twin", seed=0, measure="contextual", evidence="retraining",
        loss=3 - rows["score"].clip(upper=3), threshold=3.0,
    )  # fmt: skip
    extracted = pd.concat([extracted, other])[EXTRACTED.names]
    return scores, extracted, rows[["id", "copies"]], [answers]


def judged(shift, coin=True):
    """The table `detectors` of a target whose members have scores that are higher by `shift`."""
    about = {"retrained": "twin", "seed": 0, "coin": coin}
    return detected(*world(shift), **about, false_positive_rates=[0.05, 0.001])
