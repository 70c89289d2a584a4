"""Planted worlds for the claims on unlearning: tables in which the truth is known.

Every world has some seeds, each with chance of its own. The tables have only the columns that the
claims read.
"""

import itertools

import numpy as np
import pandas as pd

METHODS = ("finetune", "scrub", "npo", "rmu", "simnpo", "kookmin", "sun", "sebastian")
N_SEEDS, REPETITIONS, STRINGS = 4, 3, 24
SEEDS = range(N_SEEDS)
NOISE = 0.03  # the order of neighbouring methods below is uncertain


def spaced(first, last, methods=METHODS, **ends):
    """A value for every method, equally spaced, and those of the two ends."""
    values = np.linspace(first, last, len(methods))
    return {**dict(zip(methods, values, strict=True)), **ends}


RIGHT = spaced(0.15, 0.7, none=0.05, retrain=0.95)
REVERSED = spaced(0.7, 0.15, none=0.9, retrain=0.05)


def problem(seed):
    return {"model": "m", "language": "L", "size": 48, "seed": seed}


def scaled(values, factor):
    return {name: factor * value for name, value in values.items()}


def of_problems(make, seeds):
    """The rows that `make(chance)` gives for every seed, with the columns of the problem."""
    parts = [make(np.random.default_rng([seed, 13])).assign(**problem(seed)) for seed in seeds]
    return pd.concat(parts, ignore_index=True)


def crossed(values, **columns):
    """A row for every method and combination of further values; `value` is the method's."""
    frame = pd.DataFrame(itertools.product(values, *columns.values()), columns=["method", *columns])
    return frame.assign(value=frame["method"].map(values))


def noisy(frame, noise, chance):
    return frame["value"] + noise * chance.standard_normal(len(frame))


def tests(quality, null, errors, noise, seeds):
    def make(chance):
        frame = crossed(quality)
        share = frame["method"].map(errors) + noise * chance.standard_normal(len(frame))
        return frame.assign(
            forgetting_quality=noisy(frame, noise, chance).clip(0, 1),
            null_quality=null,
            joint_errors=(64 * share.clip(0, 1)).round(),
            joint_models=64,
            joint_p=np.where(share < 0.35, 0.0025, 0.5),
            relative_p=np.nan,
        )

    return of_problems(make, seeds)


def summary(forget, placebo, noise, seeds=SEEDS):
    def make(chance):
        sides = [crossed(forget, string_role=["forget"]), crossed(placebo, string_role=["placebo"])]
        frame = pd.concat(sides, ignore_index=True)
        return frame.assign(share=noisy(frame, noise, chance))

    return of_problems(make, seeds)


def gaps(shares, uneven, noise, seeds=SEEDS):
    """`uneven` is the standard deviation of the true shares over strings, of all but `retrain`."""

    def make(chance):
        frame = crossed(shares, string_role=["forget"], string_id=range(STRINGS))
        own = uneven * chance.standard_normal(len(frame)) * (frame["method"] != "retrain")
        share = noisy(frame, noise, chance) + own
        width = 2 * noise * np.exp(0.1 * chance.standard_normal(len(frame)))
        return frame.assign(share=share, lower=share - width, upper=share + width)

    return of_problems(make, seeds)


def memorisation(after, placebo, noise, seeds=SEEDS):
    def make(chance):
        sides = [
            crossed(values, string_role=[kind], string_id=range(STRINGS))
            for kind, values in (("forget", after), ("placebo", placebo))
        ]
        frame = pd.concat(sides, ignore_index=True)
        kept = {
            "measure": "counterfactual",
            "answerable": True,
            "before": np.where(frame["string_role"] == "forget", 0.9, 0.05),
            "after": noisy(frame, noise, chance),
            "retrained": 0.05,
        }
        asked = frame.assign(**kept)
        other = frame.assign(**{**kept, "measure": "recollection", "after": -1.0})
        return pd.concat([asked, other, asked.assign(answerable=False, after=-1.0)])

    return of_problems(make, seeds)


def with_stitched(values, gain):
    """Kookmin with another's repair phase has more by `gain`, and Fanchuan has less."""
    more = {"kookmin-seif": values["kookmin"] + gain, "fanchuan": 0.5, "fanchuan-seif": 0.5 - gain}
    return {**more, **values}


def scores(full, cheap, utility, noise, gain=0.1, seeds=SEEDS):
    setups = {"full": full, "reuse-n-n": cheap, "bootstrap": cheap}

    def make(chance):
        frame = pd.concat(
            [
                crossed(with_stitched(values, gain), setup=[setup], repetition=range(REPETITIONS))
                for setup, values in setups.items()
            ],
            ignore_index=True,
        )
        kept = frame["method"].map(utility).fillna(1.0)
        quality = noisy(frame, noise, chance).clip(0, 1)
        return frame.assign(
            forgetting_quality=quality,
            retain_probability=0.8 * (kept + noise * chance.standard_normal(len(frame))),
            retain_probability_retrained=0.8,
            test_probability=0.7,
            test_probability_retrained=0.7,
            final_score=quality,
            final_score_probability=quality * kept,
        )

    return of_problems(make, seeds)


def transfer(light, gain, noise, seeds=SEEDS):
    """`light` are the final scores with light tuning, which is better than none by `gain`."""

    def make(chance):
        frame = crossed(light, tuning=["direct", "light"])
        frame["value"] -= gain * (frame["tuning"] == "direct")
        return frame.assign(final_score=noisy(frame, noise, chance))

    return of_problems(make, seeds)


def one_fails(values):
    """The scores of methods of which one of the competition's is behind all others."""
    return {**values, "kookmin": 0.05}


def effects(held_out, same, few, noise, pools, seeds=SEEDS):
    """`pools` are the qualities with the smallest and with the largest pool of the bootstrap."""
    cases = {
        ("attacker", "held-out", 16.0): held_out,
        ("attacker", "same", 16.0): same,
        ("n", "held-out", 16.0): held_out,
        ("n", "held-out", 4.0): few,
        ("pool", "same", 16.0): pools[0],
        ("pool", "same", 128.0): pools[1],
    }

    def make(chance):
        parts = []
        for (effect, attacker, value), qualities in cases.items():
            frame = crossed(qualities, repetition=range(REPETITIONS))
            quality = noisy(frame, noise, chance).clip(0, 1)
            named = {"effect": effect, "attacker": attacker, "level": value}
            parts.append(frame.assign(forgetting_quality=quality, **named))
        return pd.concat(parts)

    return of_problems(make, seeds)


def metrics(gaps_of, steps, noise, seeds=SEEDS):
    def make(chance):
        parts = [
            crossed(values, metric=[metric])
            for metric, values in (
                ("accuracy_gap", gaps_of),
                ("mia_gap", gaps_of),
                ("relearn_steps", steps),
            )
        ]
        frame = pd.concat(parts, ignore_index=True)
        reference = np.where(frame["metric"] == "relearn_steps", 10.0, 0.0)
        return frame.assign(estimate=noisy(frame, noise, chance), reference=reference)

    return of_problems(make, seeds)


def epsilons_of(
    chance,
    hard,
    own,
    noise=1.0,
    flips=False,
    opposite=False,
    n_strings=STRINGS,
    setup="full",
    methods=METHODS,
):
    """Epsilons that a string's hardness raises: for all methods, for one of them, and by chance.

    With `flips`, a method finds strings easy in one repetition and hard in another. With
    `opposite`, a method finds strings easy that the next method finds hard. `retrain` is only
    chance, the same in every repetition, and shares the chance of the reference with the methods.
    Under another set-up than full, so much chance of the original models is in all methods as there
    is chance of the reference, and the same in every repetition.
    """
    for_all, reference = chance.standard_normal((2, n_strings))
    originals = 0.5 * chance.standard_normal(n_strings) * (setup != "full")
    parts = []
    for place, method in enumerate((*methods, "retrain")):
        for_one, same = chance.standard_normal((2, n_strings))
        for repetition in range(REPETITIONS):
            sign = (-1) ** (repetition + place // 2) if flips else 1
            sign *= (-1) ** place if opposite else 1
            anew = chance.standard_normal(n_strings)
            value = sign * (hard * for_all + own * for_one) + 0.5 * reference + noise * anew
            value = value + originals
            if method == "retrain":
                value = 0.5 * reference + noise * same
            named = {"method": method, "setup": setup, "repetition": repetition}
            strings = range(n_strings)
            parts.append(
                pd.DataFrame({**named, "string_id": strings, "epsilon": np.exp(value / 3)})
            )
    return pd.concat(parts, ignore_index=True)


def epsilons(hard, own, seeds=SEEDS, **more):
    return of_problems(lambda chance: epsilons_of(chance, hard, own, **more), seeds)


def ablation(whole, repair, noise, seeds=SEEDS, methods=("scrub",)):
    """Each value is the forgetting quality, and half of it the share beyond the controls."""

    def make(chance):
        frame = pd.concat(
            [crossed(dict.fromkeys(methods, value)).assign(part=part)
             for part, value in (("whole", whole), ("repair", repair))]
        )  # fmt: skip
        return frame.assign(
            forgetting_quality=noisy(frame, noise, chance).clip(0, 1),
            share=0.5 * noisy(frame, noise, chance) + 0.1,
            control_share=0.1,
        )

    return of_problems(make, seeds)


SHARES = spaced(0.4, 0.9, none=0.0, retrain=1.0)
COSTS, CHEAPER = spaced(0.98, 0.8), spaced(0.8, 0.98)
FEW_STEPS = spaced(4.0, 5.0, none=0.0, retrain=10.0)


def errors(value, retrain, methods=METHODS):
    """Shares of errors of the joint attacker."""
    return {**spaced(value, value, methods, none=0.0), "retrain": retrain}


def right(noise=NOISE, methods=METHODS, seeds=SEEDS):
    """All claims hold. The first of `methods` forget least; the last cost most."""
    quality = spaced(0.15, 0.7, methods, none=0.05, retrain=0.95)
    shares = spaced(0.4, 0.9, methods, none=0.0, retrain=1.0)
    few_steps = spaced(4.0, 5.0, methods, none=0.0, retrain=10.0)
    costs = spaced(0.98, 0.8, methods)
    lower, pools = scaled(quality, 0.9), (scaled(quality, 0.6), quality)
    return {
        "unlearning_tests": tests(quality, 0.95, errors(0.1, 0.5, methods), noise, seeds),
        "unlearning_gap_summary": summary(shares, scaled(shares, 0.1), noise, seeds),
        "unlearning_gaps": gaps(shares, 0.3, 0.05, seeds),
        "unlearning_memorisation": memorisation(quality, scaled(quality, 0.1), noise, seeds),
        "unlearning_scores": scores(quality, quality, costs, noise, seeds=seeds),
        "unlearning_effects": effects(quality, lower, quality, noise, pools, seeds),
        "epsilons": epsilons(2.5, 1.0, seeds, methods=methods),
        "unlearning_metrics": metrics(quality, few_steps, noise, seeds),
        "unlearning_transfer": transfer(one_fails(quality), 0.2, noise, seeds),
        "unlearning_ablation": ablation(0.7, 0.2, noise, seeds),
    }


def wrong(noise=NOISE):
    """The claims fail that can fail together."""
    many_steps = {name: 20 - steps for name, steps in FEW_STEPS.items()}
    return {
        "unlearning_tests": tests(REVERSED, 0.05, errors(0.6, 0.4), noise, SEEDS),
        "unlearning_gap_summary": summary(scaled(SHARES, -1), scaled(SHARES, 0.1), noise),
        "unlearning_gaps": equal_shares(gaps(SHARES, 0.0, 0.05)),
        "unlearning_memorisation": memorisation(scaled(RIGHT, 0.1), RIGHT, noise),
        "unlearning_scores": scores(
            REVERSED | {"none": 0.0, "retrain": 1.0}, RIGHT, {}, noise, gain=-0.1
        ),
        "unlearning_effects": effects(REVERSED, spaced(0.8, 0.9), RIGHT, noise, (REVERSED, RIGHT)),
        "epsilons": epsilons(2.0, 0.0, noise=0.3, opposite=True),
        "unlearning_metrics": metrics(RIGHT, many_steps, noise),
        "unlearning_ablation": ablation(0.2, 0.7, noise),
        "unlearning_transfer": transfer(REVERSED, -0.2, noise),
    }


def also_wrong(noise=NOISE):
    """Forgetting is free, and the accuracy gap orders methods as forgetting quality does.

    The share of the gap closed orders methods in reverse.
    """
    return {
        "unlearning_gap_summary": summary(SHARES, scaled(SHARES, 0.1), noise),
        "unlearning_scores": scores(REVERSED, REVERSED, CHEAPER, 2.5 * noise),
        "unlearning_metrics": metrics(scaled(REVERSED, -1), FEW_STEPS, 0.001),
        "unlearning_transfer": transfer(RIGHT, 0.0, noise),
        "epsilons": epsilons(2.0, 0.0, noise=0.3, flips=True),
    }


def third_wrong(noise=NOISE):
    """The costs of methods turn round from seed to seed, so they are no property of a method."""
    table = scores(RIGHT, RIGHT, {}, noise)
    cost = 1 - table["method"].map(COSTS).fillna(1.0)
    kept = table["retain_probability"] + np.where(table["seed"] % 2, cost, -cost)
    return {"unlearning_scores": table.assign(retain_probability=kept)}


def unclear(noise=0.6):
    """Chance is larger than any difference."""
    return {
        "unlearning_tests": tests(RIGHT, 0.4, errors(0.5, 0.5), noise, SEEDS),
        "unlearning_gap_summary": summary(scaled(SHARES, 0.1), scaled(SHARES, 0.1), noise),
        "unlearning_gaps": gaps(SHARES, 0.0, 0.05),
        "unlearning_memorisation": memorisation(scaled(RIGHT, 0.1), scaled(RIGHT, 0.1), noise),
        "unlearning_scores": scores(RIGHT, RIGHT, {}, noise),
        "unlearning_effects": effects(RIGHT, RIGHT, RIGHT, noise, (RIGHT, RIGHT)),
        "epsilons": epsilons(0.0, 0.0, n_strings=9),
        "unlearning_metrics": metrics(RIGHT, spaced(10.0, 10.0, retrain=10.0), noise),
        "unlearning_ablation": ablation(0.4, 0.4, noise),
        "unlearning_transfer": transfer(RIGHT, 0.0, noise),
    }


def equal_shares(table):
    """Every method closes the gap of all strings alike, up to a hundredth of retraining's noise."""
    mean = table.groupby(["seed", "method"])["share"].transform("mean")
    even = table["method"] != "retrain"
    return table.assign(share=table["share"].where(~even, mean + 0.01 * (table["share"] - mean)))
