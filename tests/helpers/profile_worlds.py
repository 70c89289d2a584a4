"""Streams whose profile is known: outcomes are made from a trend, levels and effects."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd

from helpers import dilution_worlds
from palimpsest.profiles.correlation import correlations
from palimpsest.profiles.dilution_effects import dilution_effects
from palimpsest.profiles.estimators import LossWarning, difference_in_differences
from palimpsest.profiles.interventions import STREAM, stream_without
from palimpsest.profiles.measured import Stream
from palimpsest.profiles.notions import beside_other_notions
from palimpsest.profiles.panel import NEVER, Panel
from palimpsest.profiles.profile import pooled_tables, tables_of_seeds
from palimpsest.profiles.truth import beside_truth, errors
from palimpsest.regimes import of_replicate
from palimpsest.traces import Trace

COHORTS, PANEL, VALIDATION, SIZE = 4, 6, 24, 40
MODELS = {"llama-3.2-1b-twin": 1000, "llama-3.2-3b-twin": 2000, "llama-3.1-8b-twin": 4000}
RATES = {cohort: 1e-3 * (COHORTS + 1 - cohort) for cohort in range(1, COHORTS + 1)}
KINDS = (
    "profile",
    "persistence",
    "pooled_profile",
    "pooled_persistence",
    "exact_profile",
    "estimator_errors",
    "profile_correlation",
    "notions",
    *dilution_worlds.KINDS,
)
REPLICATES = 2


def strings(seed: int) -> pd.DataFrame:
    """The measured strings of a stream, as far as profiles read them."""
    cohorts = [*np.repeat(np.arange(1, COHORTS + 1), PANEL), *[pd.NA] * VALIDATION]
    return pd.DataFrame(
        {
            "seed": seed,
            "string_id": [f"{seed}-{place}" for place in range(len(cohorts))],
            "cohort": pd.array(cohorts, dtype="Int64"),
            "split": ["panel"] * COHORTS * PANEL + ["validation"] * VALIDATION,
        }
    )


def effect(strength: float, cohort: int, time: int) -> float:
    """A known effect, larger for early cohorts, which fades."""
    return strength * (COHORTS + 1 - cohort) / (1 + time - cohort) ** 2 if time >= cohort else 0.0


def trace_of(model: str, seed: int, strength: float, noise: float, general: float, without=None):
    """The trace of a stream, or of the stream without a cohort.

    Without a cohort, its strings lose their effect, and from then on all strings lose `general`.
    """
    chance = np.random.default_rng([seed, MODELS[model]])
    table = strings(seed)
    times = np.arange(COHORTS + 1)
    cohorts = table["cohort"].to_numpy(dtype=float, na_value=np.inf)
    shape = len(times), len(table)
    outcome = -30 + times[:, None] + 2 * chance.normal(size=len(table))
    outcome = outcome + noise * np.cumsum(chance.normal(size=shape), axis=0)
    for place, cohort in enumerate(cohorts):
        if np.isfinite(cohort) and cohort != without:
            outcome[:, place] += [effect(strength, cohort, time) for time in times]
    if without is not None:
        outcome[without:] -= general
    kept = np.flatnonzero(np.isinf(cohorts) | (cohorts == without if without else True))
    variant = STREAM if without is None else stream_without(without)
    named = {"model": model, "language": "L1", "size": SIZE, "seed": seed, "variant": variant}
    nll = -outcome[:, kept]
    n_tokens = np.full(len(kept), 10)
    return Trace(
        run=named,
        epochs=times,
        string_ids=table["string_id"].to_numpy(dtype=object)[kept],
        n_tokens=n_tokens,
        nll=nll,
        n_correct=np.clip(10 - nll // 8, 0, 10),
        rank_sum=10 + nll,
    )


def replicates(model: str, seeds, strength: float, general: float, noise: float) -> list[Trace]:
    """Further trainings of the streams, with and without each cohort."""
    made = []
    for seed in seeds:
        for without in (None, *range(1, COHORTS + 1)):
            own = strength + noise * (-1) ** seed if without is None else strength
            trace = trace_of(model, seed, own, 0.0, general, without)
            for number in range(REPLICATES):
                variant = of_replicate(trace.run["variant"], number)
                # What a replicate does to all strings
                shift = 10.0 * number if without is None else -10.0 * number
                made.append(
                    replace(trace, run={**trace.run, "variant": variant}, nll=trace.nll + shift)
                )
    return made


def continuations(seeds, noise: float) -> pd.DataFrame:
    """The last 3 tokens of every second trained string, and of every fourth unseen one.

    With noise, even seeds have one right unseen string less.
    """
    table = pd.concat([strings(seed) for seed in seeds], ignore_index=True)
    place = table.groupby(["seed", "split"]).cumcount()
    right = np.where(table["split"] == "panel", place % 2 == 0, place % 4 == 0)
    right &= ~((noise > 0) & (table["split"] != "panel") & (place == 0) & (table["seed"] % 2 == 0))
    return pd.DataFrame(
        {
            "seed": table["seed"],
            "string_id": table["string_id"],
            "n_tokens": 10,
            "n_last_right": np.where(right, 3, 2),
        }
    )


def influences(seeds, strength: float, noise: float) -> pd.DataFrame:
    """Half of the true effect, and 0.1 on unseen strings; plain removal takes 2 from all."""
    rows = []
    for seed in seeds:
        table = strings(seed)
        for cohort in range(1, COHORTS + 1):
            own = table["cohort"].eq(cohort).fillna(False).astype(bool)
            for name, is_own in zip(table["string_id"], own, strict=True):
                if is_own or table.loc[table["string_id"] == name, "split"].item() == "validation":
                    value = 0.1 + 0.1 * noise * (-1) ** seed * is_own
                    value += 0.5 * effect(strength, cohort, COHORTS) if is_own else 0
                    rows.append((seed, cohort, name, value, value - 2.0))
    columns = ["seed", "without", "string_id", "influence", "removal"]
    return pd.DataFrame(rows, columns=columns)


def streams(model: str, seeds=(0, 1, 2), strength=1.0, noise=0.3) -> list[Stream]:
    """The streams of a model, one for each seed."""
    return [
        Stream(
            trace_of(model, seed, strength, noise, 0.0),
            strings(seed)["cohort"].to_numpy(dtype=float, na_value=np.inf),
            RATES,
            MODELS[model],
        )
        for seed in seeds
    ]


def two_models(study: int, effects=(None, None), seeds=5) -> pd.DataFrame:
    """The correlations of two models that are measured on the same strings, with common errors.

    `effects` are those of each model: of a cohort, a time since its treatment and a random source.
    """
    rows = []
    for seed in range(seeds):
        chance = np.random.default_rng([study, seed])
        cohorts = np.r_[np.repeat(np.arange(1.0, 9), 16), np.full(32, NEVER)]
        times = np.arange(9.0)
        common = np.cumsum(chance.normal(size=(len(cohorts), len(times))), axis=1)
        for place, effect_of in enumerate(effects):
            outcome = common + 0.5 * np.cumsum(chance.normal(size=common.shape), axis=1)
            for cohort in range(1, 9) if effect_of else ():
                own = [effect_of(cohort, since) for since in range(9 - cohort)]
                outcome[np.ix_(cohorts == cohort, times >= cohort)] += own
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LossWarning)
                cells = difference_in_differences(Panel(times, cohorts, outcome), n=1)
            about = {"language": "L1", "size": SIZE, "seed": seed, "outcome": "log_likelihood"}
            about |= {"estimator": "difference_in_differences", "string_role": "trained"}
            rows.append(cells.assign(model="ab"[place], parameters=place, **about))
    return correlations(pd.concat(rows, ignore_index=True))


def world(seeds=(0, 1, 2), noise=0.3, general=1.0) -> dict[str, pd.DataFrame]:
    """All tables of a section in which effects grow with the model, by the names of their kinds.

    The largest model is also trained without each cohort.
    """
    found: dict[str, list[pd.DataFrame]] = {name: [] for name in KINDS}
    for place, model in enumerate(MODELS):
        made = streams(model, seeds, strength=place + 1, noise=noise)
        for name, table in {**tables_of_seeds(made, PANEL), **pooled_tables(made, PANEL)}.items():
            found[name].append(table)
    compared = beside_truth(
        found["profile"][-1],
        [stream.trace for stream in made],
        pd.concat([strings(seed) for seed in seeds]),
        [
            trace_of(model, seed, len(MODELS), noise, general, cohort)
            for seed in seeds
            for cohort in range(1, COHORTS + 1)
        ],
    )
    found["exact_profile"].append(compared)
    found["estimator_errors"].append(errors(compared))
    found["notions"].append(
        beside_other_notions(
            found["profile"][-1],
            compared,
            pd.concat([strings(seed) for seed in seeds]),
            replicates(model, seeds, len(MODELS), general, noise),
            continuations(seeds, noise),
            influences(seeds, len(MODELS), noise),
            length=3,
        )
    )
    found["profile_correlation"].append(correlations(pd.concat(found["profile"])))
    found["dilution"].append(dilution_worlds.table())
    found["dilution_effects"].append(dilution_effects(found["dilution"][0]))
    return {name: pd.concat(tables, ignore_index=True) for name, tables in found.items()}
