"""Planted studies with a known truth: six models, five seeds, and chance in every run.

In the world `paper`, every claim of the paper is right. In the worlds `wrong` and `also wrong`, all
claims that can be wrong are wrong; there are two such worlds, because some claims cannot be wrong
together. The worlds keep what the code guarantees: starts and scores of the targets are measured on
loss curves, fractions of strings never fall from one epoch to the next, shares lie between 0 and 1,
and the repeated strings of a training set are repeated in a larger one.
"""

import numpy as np
import pandas as pd

from palimpsest import memorisation

EPOCHS = np.arange(11)
SEEDS = range(5)
MODELS = ("m0", "m1", "m2", "m3", "m4", "m5")
WORLDS = ("paper", "wrong", "also wrong")
COUNTS = (8, 4, 2)  # of the targets
RECOLLECTED = 0.2  # nats per token


def stack(rows):
    """Rows of every model and seed; `rows` takes the run's columns and a generator of chance."""
    found = [
        (row, max(map(np.size, row.values())))
        for seed in SEEDS
        for number, model in enumerate(MODELS)
        for row in rows(
            {"model": model, "size": 64, "variant": "base", "seed": seed},
            np.random.default_rng([seed, number]),
        )
    ]
    return pd.DataFrame(
        {
            name: np.concatenate([np.broadcast_to(row[name], n) for row, n in found])
            for name in found[0][0]
        }
    )


def share(level, chance, spread=0.01):
    """A share near a level."""
    return np.clip(level + spread * chance.standard_normal(), 0, 1)


# Three targets of decreasing frequency.


def paper_curves(chance, place):
    """Frequent strings have a low threshold, so they cross it last, but are recollected first."""
    thresholds, later = np.array([0.3, 0.4, 0.5]), np.array([2, 1, 0])
    if place in {("m0", 1), ("m3", 4)}:
        thresholds, later = thresholds[[1, 0, 2]], later[[1, 0, 2]]
    thresholds = thresholds * (1 + 0.02 * chance.standard_normal(3))
    crosses, falls = (3, 3) if place == ("m2", 3) else (3, 4)
    without = np.where(EPOCHS[:, None] == 2, 1.0, 1.15) * thresholds
    without[:2] = 3 * thresholds, 1.5 * thresholds
    loss = without.copy()
    loss[1, 0] *= 1 + 0.005 * chance.standard_normal()
    for target in range(3):
        below_counterfactual, below_contextual = crosses + later[target], falls + later[target]
        n_falling = 9 - below_contextual
        curve = np.full(len(EPOCHS), 0.48)
        curve[below_counterfactual:below_contextual] = 1.07
        curve[below_contextual:9] = np.linspace(0.93, 0.48, n_falling, endpoint=False)
        if place == ("m4", 0):  # here recollection and contextual memorisation start together
            curve[below_contextual:] = 0.3
        curve = curve * (1 + 0.02 * chance.standard_normal(len(EPOCHS))) * thresholds[target]
        loss[below_counterfactual:, target] = curve[below_counterfactual:]
    return loss, without


def wrong_curves(chance, place):
    """All measures start at one drop of the loss, rare strings first; then the loss rises."""
    thresholds, starts = np.array([0.7, 0.6, 0.5]), np.array([6, 5, 4])
    if place == ("m3", 4):
        thresholds, starts = thresholds[[1, 0, 2]], starts[[1, 0, 2]]
    rise = 1 + 0.001 * EPOCHS[:, None] + 2 * (EPOCHS[:, None] == 0)
    without = rise * thresholds * (1 + 0.02 * chance.standard_normal(3))
    worse = chance.random(without.shape) < 0.8  # training on a string raises its loss
    loss = without * np.where(worse, 1.3, 1.0)
    for target, start in enumerate(starts):
        risen = 0.02 + 0.02 * (EPOCHS[start:] - start) + 0.008 * chance.standard_normal(11 - start)
        loss[start:, target] = np.abs(risen)
    return loss, without


def also_wrong_curves(chance, place):
    """Frequent strings first under every measure, and scores that differ."""
    starts, levels = np.array([2, 3, 4]), np.array([0.3, 0.9, 0.6])
    if place in {("m0", 1), ("m3", 4)}:
        starts = starts[[1, 0, 2]]
    thresholds = np.array([0.7, 0.6, 0.5]) * (1 + 0.02 * chance.standard_normal(3))
    without = (1 + 0.1 * np.maximum(EPOCHS - 1, 0))[:, None] * thresholds
    without[0] = 3 * thresholds
    loss = without.copy()
    for target, start in enumerate(starts):
        noise = 1 + 0.02 * chance.standard_normal(11 - start)
        loss[start:, target] = levels[target] * noise * thresholds[target]
    if place == ("m1", 2):
        loss[3, 2] = 0.9 * without[3, 2]  # below the counterfactual threshold only
    return loss, without


EVIDENCES = {
    "recollection": ["constant"],
    "recollection_accuracy": ["constant"],
    "bayes": ["language"],
}
CURVES = dict(zip(WORLDS, (paper_curves, wrong_curves, also_wrong_curves), strict=True))


def disagreement(world):
    """Targets whose starts and scores are measured on their loss curves."""

    def rows(run, chance):
        loss, without = CURVES[world](chance, (run["model"], run["seed"]))
        recollected = memorisation.recollection(loss, RECOLLECTED)
        measured = {
            "recollection": recollected,
            "recollection_accuracy": recollected,
            "counterfactual": memorisation.counterfactual(loss, without),
            "contextual": memorisation.contextual(loss, without),
        }
        broken = memorisation.lemma_assumption_broken(loss, without)[0]
        stand_in = without * (1.02 if world == "paper" else 2.0)
        stand_in = stand_in * (1 + 0.005 * chance.standard_normal())
        test_loss = 0.4 * (1 + 0.01 * chance.standard_normal())
        measured["bayes"] = measured["contextual"]
        for target, count in enumerate(COUNTS):
            for measure, found in measured.items():
                for evidence in EVIDENCES.get(measure, ["retraining", "same-frequency"]):
                    used = without if evidence == "retraining" else stand_in
                    yield {
                        **run,
                        "language": "L",
                        "role": f"s{target}",
                        "count": count,
                        "log_prob": float(np.log(count)),
                        "measure": measure,
                        "evidence": evidence,
                        "epoch": EPOCHS,
                        "score": found.score[:, target],
                        "start": found.start[target],
                        "threshold": used[:, target].min(),
                        "loss_without": used[:, target],
                        "test_loss": test_loss,
                        "assumption_broken": broken[target],
                    }

    return stack(rows)


# Whole training sets.


def tradeoff(world):
    """A language of low entropy, its counterpart of high entropy, and this in two alphabets."""
    right = world == "paper"
    band = {"high": (4, 6), "low": (1, 9)} if right else {"high": (1, 9), "low": (4, 6)}
    optimum = 5 if right else 10
    levels = {
        "high": {"recollection": 0.05, "counterfactual": 0.97, "contextual": 0.95, "bayes": 0.9},
        "low": {"recollection": 0.95, "counterfactual": 0.8, "contextual": 0.6, "bayes": 0.5},
    }
    if not right:
        levels = {
            "high": {"recollection": 0.9, "counterfactual": 0.02, "contextual": 0.02, "bayes": 0.2},
            "low": {"recollection": 0.1, "counterfactual": 0.02, "contextual": 0.02, "bayes": 0.2},
        }
    # Where the paper is wrong, strings that were never trained on look just as memorised.
    false_alarms = 0.01 if right else 0.2

    def rows(run, chance):
        for language in ("high", "low", "L5", "L7"):
            entropy = 0.2 if language == "low" else 0.5
            kind = language if language in levels else "high"
            best = min(optimum + chance.choice([0, 0, 0, 1]), 10)
            first = band[kind][0] + chance.choice([-1, 0, 0, 0])
            last = band[kind][1]
            if (run["model"], run["seed"]) in {("m1", 0), ("m4", 3)}:
                last = best - 1 if right else best
            # Before the band begins the paper's high-entropy language is learned, its low is not.
            # Where the paper is wrong, the low-entropy language is learned at once.
            learned = np.abs(EPOCHS - best) <= 4
            if not right and language == "low":
                learned |= EPOCHS > 0
            for measure, level in levels[kind].items():
                if not right and language == "L7":
                    level += 0.3 if level < 0.5 else -0.3
                fraction = np.clip(EPOCHS / best, 0, 1) * share(level, chance)
                yield {
                    **run,
                    "language": language,
                    "measure": measure,
                    "epoch": EPOCHS,
                    "share_memorised": fraction,
                    "mean_score": fraction / 2,
                    "share_memorised_distinct": fraction,
                    "mean_score_distinct": fraction / 2,
                    "share_memorised_unseen": share(false_alarms, chance, 0.003),
                    "mean_score_unseen": share(false_alarms / 2, chance, 0.003),
                    "share_memorised_perfect": 0.0,
                    "below_distinct": fraction,
                    "margin_distinct": fraction / 2,
                    "below_unseen": share(false_alarms, chance, 0.003),
                    "margin_unseen": share(false_alarms / 2, chance, 0.003),
                    "below_covered": fraction,
                    "below_unseen_covered": share(false_alarms, chance, 0.003),
                    "coverage": 1.0 if measure in ("recollection", "bayes") else 0.9,
                    "still_learning": (run["model"], run["seed"]) == ("m1", 2),
                    "counterpart": "high" if language == "low" else None,
                    "test_loss": entropy
                    * np.where(learned, 1.0, 1.5)
                    * np.where(best == EPOCHS, 1.0, 1.01 + 0.01 * chance.random(11)),
                    "optimal_test_loss": entropy,
                    "optimal_epoch": best,
                    "band_first": float(first),
                    "band_last": float(last),
                    "never_starts": 0.0,
                    "start_p10": first + 0.1,
                    "start_p90": last - 0.1,
                }

    return stack(rows)


def frequency(world):
    """The most and the least frequent strings, at optimal learning."""
    levels = {
        "top": {"recollection": 0.1, "counterfactual": 0.9, "contextual": 0.9},
        "bottom": {"recollection": 0.2, "counterfactual": 0.1, "contextual": 0.1},
    }
    if world == "paper":
        levels = {
            "top": {"recollection": 0.9, "counterfactual": 0.82, "contextual": 0.5},
            "bottom": {"recollection": 0.1, "counterfactual": 0.8, "contextual": 0.55},
        }
    # Frequent strings are recollected more often even if they were never trained on.
    unseen = {"top": 0.4, "bottom": 0.05}

    def rows(run, chance):
        for group, of_measure in levels.items():
            for measure, level in of_measure.items():
                fraction = share(level, chance)
                yield {
                    **run,
                    "language": "L",
                    "measure": measure,
                    "group": group,
                    "epoch": EPOCHS,
                    "share_memorised_distinct": fraction,
                    "mean_score_distinct": fraction / 2,
                    "below_matched": fraction,
                    "margin_matched": fraction / 2,
                    "below_unseen_matched": unseen[group] if measure == "recollection" else 0.1,
                    "margin_unseen_matched": 0.05,
                    "coverage": 0.95,
                    "optimal_epoch": 5,
                }

    return stack(rows)


def deduplication(world):
    """Starts, optimal learning and losses of the base, the deduplicated and the matched data."""
    starts, optimum, spread, fraction, loss = (
        {"base": (4, 9), "dedup": (4, 4.5), "dedup-matched": (4, 6)},
        {"base": 5, "dedup": 3, "dedup-matched": 6},
        {"base": 0.2, "dedup": 0.02, "dedup-matched": 0.1},
        0.02,
        {"base": 0.5, "dedup": 0.3, "dedup-matched": 0.7},
    )
    if world == "paper":
        starts, optimum, spread, fraction, loss = (
            {"base": (2, 6), "dedup": (4, 9), "dedup-matched": (5, 6)},
            {"base": 5, "dedup": 8, "dedup-matched": 6},
            {"base": 0.2, "dedup": 0.19, "dedup-matched": 0.02},
            0.5,
            {"base": 0.5, "dedup": 0.7, "dedup-matched": 0.7},
        )

    def rows(run, chance):
        for variant, (early, late) in starts.items():
            best = optimum[variant] + chance.choice([0, 0, 0, 1])
            for measure in ("recollection", "contextual"):
                begin, length = early + 0.3 * chance.random(), late - early + 0.1 * chance.random()
                yield {
                    **run,
                    "variant": variant,
                    "language": "L",
                    "measure": measure,
                    "epoch": EPOCHS,
                    "below_distinct": share(fraction, chance),
                    "below_unseen": share(0.1, chance),
                    "train_loss_distinct": loss[variant] * (1 + 0.01 * chance.standard_normal()),
                    "n_train": 64 if variant == "base" else 48,
                    "test_spread": spread[variant] * (1 + 0.01 * chance.standard_normal()),
                    "optimal_epoch": best,
                    "start_p10": begin,
                    "start_p90": begin + length,
                }

    return stack(rows)


def thresholds(world):
    """Three thresholds; in the wrong worlds they count alike, and losses cross more than once."""
    step = 0.4 if world == "paper" else 0.05

    def rows(run, chance):
        for place, threshold in enumerate((0.1, 0.2, 0.4)):
            for_good = share(0.1 + step * place, chance, 0.02)
            for rule in ("after_last_miss", "first_crossing"):
                more = 0 if rule == "after_last_miss" or world == "paper" else 0.3
                yield {
                    **run,
                    "language": "L",
                    "loss_threshold": threshold,
                    "start_rule": rule,
                    "epoch": 3,
                    "optimal_epoch": 3,
                    "share_memorised": for_good + more + 0.01 * more * chance.random(),
                    "share_memorised_unseen": 0.01,
                }

    return stack(rows)


# Training sets and models of several sizes.


def training_size(world):
    """Three nested training sets per seed; in the world `also wrong`, learning improves."""
    direction = 1 if world == "paper" else -1
    learns = -1 if world == "wrong" else 1

    def rows(run, chance):
        n_repeated = chance.integers(5, 9, 3).cumsum()
        for step, size in enumerate((16, 64, 256)):
            for measure in ("recollection", "counterfactual", "contextual"):
                rises = direction if measure == "recollection" else -direction
                score = [share(0.5 + rises * 0.1 * step, chance, 0.05) for _ in range(2)]
                yield {
                    **run,
                    "language": "L",
                    "size": size,
                    "measure": measure,
                    "test_loss": 1 - learns * 0.1 * step + 0.05 * chance.standard_normal(),
                    "mean_score": score[0],
                    "n_repeated": n_repeated[step],
                    "mean_score_repeated": np.nan if size == 16 else score[1],
                    "mean_score_unseen": 0.05,
                    "margin_distinct": score[0],
                    "margin_unseen": share(0.1, chance),
                    "margin_repeated": np.nan if size == 16 else score[1],
                    "margin_repeated_unseen": np.nan if size == 16 else 0.1,
                    "threshold_shared": 0.4 - direction * 0.05 * step + 0.01 * chance.random(),
                }

    return stack(rows)


def model_size(world):
    """Families of two models; the larger model learns better."""
    direction = 1 if world == "paper" else -1

    def rows(run, chance):
        for step in range(2):
            for measure in ("recollection", "counterfactual", "contextual"):
                rises = direction if measure == "recollection" else -direction
                score = share(0.5 + rises * 0.1 * step, chance, 0.03)
                yield {
                    **run,
                    "model": f"{run['model']}-{step}",
                    "family": run["model"],
                    "language": "L",
                    "measure": measure,
                    "epoch": EPOCHS,
                    "test_loss": 0.5 - 0.1 * step,
                    "mean_score": score,
                    "mean_score_unseen": 0.05,
                    "margin_distinct": score,
                    "margin_unseen": 0.1,
                    "optimal_epoch": 5,
                }

    return stack(rows)


# Cheaper thresholds.


def agreement(world):
    """Two targets whose threshold errors have opposite signs."""
    error, same = (0.01, 0.95) if world == "paper" else (0.5, 0.5)

    def rows(run, chance):
        for measure in ("counterfactual", "contextual", "bayes"):
            errors = error * (1 + 0.05 * chance.standard_normal(2))
            yield {
                **run,
                "language": "L",
                "measure": measure,
                "threshold_error": errors * [1, -1],
                "same_verdict": share(same, chance),
            }

    return stack(rows)


def approximation(world):
    """Every statistic of the strings' approximation, with an interval over the strings.

    Retraining once more agrees with retraining; in the worlds in which claims are wrong, it does
    not agree well, and the approximations agree less.
    """
    value = {
        "correlation": 0.95,
        "mean_error": 0.01,
        "mean_absolute_error": 0.01,
        "mean_relative_error": 0.02,
        "same_verdict": 0.95,
    }
    if world != "paper":
        value = {**dict.fromkeys(value, 0.5), "correlation": 0.1, "same_verdict": 0.4}
    more = 0.01 if world == "paper" else 0.3  # agreement of retraining once more
    evidences = [
        ("counterfactual", "same-frequency", 0),
        ("counterfactual", "replicate", more),
        ("contextual", "same-frequency", 0),
        ("contextual", "replicate", more),
        ("bayes", "language", 0),
    ]

    def rows(run, chance):
        for measure, evidence, better in evidences:
            for quantity in ("threshold", "start", "score_at_optimum", "score_at_end"):
                for statistic, level in value.items():
                    found = level + better + 0.002 * chance.random()
                    yield {
                        **run,
                        "language": "L",
                        "group": ["all", "single"],
                        "measure": measure,
                        "evidence": evidence,
                        "quantity": quantity,
                        "statistic": statistic,
                        # The single strings are not what the claims are about.
                        "value": [found, 99.0],
                        "lower": [found - 0.005, 99.0],
                        "upper": [found + 0.005, 99.0],
                    }

    return stack(rows)


def leave_one_out(world):
    """Sixty strings by retraining: half of them repeated, in a language and its counterpart.

    `shares` are the shares of the repeated and of the other strings that are memorised.
    """
    shares = {
        "paper": {"low": (0.5, 0.5), "high": (0.97, 0.97)},
        "wrong": {"low": (0.97, 0.97), "high": (0.5, 0.5)},
        "also wrong": {"low": (0.9, 0.4), "high": (0.5, 0.5)},
    }[world]
    depths = (0.3, 0.4) if world == "paper" else (0.5, 0.3)
    placebo = 0.2 if world == "paper" else 1.0
    repeated = np.arange(60) < 30

    def rows(run, chance):
        for language, (frequent, rare) in shares.items():
            for measure in ("counterfactual", "contextual"):
                flips = chance.random(60) < 0.02
                memorised = np.where(
                    repeated, np.arange(60) < 30 * frequent, np.arange(60) - 30 < 30 * rare
                )
                memorised = (memorised ^ flips).astype(float)
                score = memorised * np.where(repeated, *depths)
                yield {
                    **run,
                    "language": language,
                    "counterpart": "high" if language == "low" else None,
                    "count": np.where(repeated, 3, 1),
                    "string_id": [f"{language}{place}" for place in range(60)],
                    "weight": np.full(60, 1.0),
                    "measure": measure,
                    "evidence": "retraining",
                    "score_at_optimum": score,
                    "below_at_optimum": memorised,
                    "margin_at_optimum": score,
                    "placebo_below_at_optimum": (np.arange(60) % 10 < 10 * placebo).astype(float),
                    "placebo_margin_at_optimum": np.full(60, 0.6 * placebo),
                }

    return stack(rows)


def adapters(world):
    """At equal test loss, adapters memorise less in the world `paper`, and otherwise more."""
    less = 0.2 if world == "paper" else -0.2

    def rows(run, chance):
        yield {
            **run,
            "language": "L",
            "reference": "full",
            "equal_test_loss": 0.8,
            "train_loss_distinct": 0.5 + less / 2 + 0.05 * chance.standard_normal(),
            "reference_train_loss_distinct": 0.5 - less / 2 + 0.05 * chance.standard_normal(),
        }

    return stack(rows)


STUDIES = {
    "disagreement": disagreement,
    "tradeoff": tradeoff,
    "thresholds": thresholds,
    "frequency": frequency,
    "deduplication": deduplication,
    "training_size": training_size,
    "model_size": model_size,
    "adapters": adapters,
}
