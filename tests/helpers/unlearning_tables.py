"""Small tables of unlearning as the measures would write them, for the tests of what reads them."""

import itertools

import numpy as np
import pandas as pd

from palimpsest.sections import KINDS

MEASURES = ("recollection", "recollection_accuracy", "counterfactual", "contextual", "bayes")
METRICS = (
    "accuracy_gap",
    "mia_accuracy",
    "mia_gap",
    "relearn_epochs",
    "distance_to_original",
    "distance_to_retrained",
    "ks_log_p",
    "extraction",
)
NAMES = (
    "gradient-ascent", "finetune", "random-label", "scrub", "salun", "l1-sparse", "bad-teacher",
    "fanchuan", "kookmin", "seif", "sebastian", "amnesiacs", "sun", "forget",
    "gradient-difference", "negative-preference-optimisation", "simple-npo", "influence",
    "catastrophic-forgetting-k", "exact-unlearning-k", "neggrad-plus", "saliency-masked-ascent",
    "reinitialise-and-distil", "task-arithmetic", "noise-then-repair",
)  # fmt: skip
N_MODELS, N_STRINGS = 32, 20


def methods(n):
    """Some methods between doing nothing and retraining."""
    return ["none", *NAMES[:n], "retrain"]


def strength(method):
    """How well a method forgets, in [0, 1]; decided by its name, so that all tables agree."""
    if method in ("none", "retrain"):
        return float(method == "retrain")
    return ((NAMES.index(method) * 7) % 25 + 1) / 28


def rows(models, names, **columns):
    """A row for every combination of model, method and further values."""
    crossed = {"model": models, "method": names, **columns}
    frame = pd.DataFrame(itertools.product(*crossed.values()), columns=list(crossed))
    return frame.assign(language="L4", size=1024, seed=0, strength=frame["method"].map(strength))


def noise(frame, scale):
    return np.random.default_rng(len(frame)).normal(0, scale, len(frame))


def of_kind(frame, kind):
    return frame[KINDS[kind].names]


def epsilons(models, n, repetitions=3, setups=("reuse-n-n", "bootstrap")):
    strings = [f"{i:012x}" for i in range(N_STRINGS)]
    frame = rows(models, methods(n), setup=setups, repetition=range(repetitions), string_id=strings)
    hard = frame["string_id"].map(lambda name: int(name, 16) / N_STRINGS)
    epsilon = (3.6 * (1.1 - frame["strength"]) * (0.5 + hard) + noise(frame, 0.4)).clip(0.3)
    epsilon = epsilon.where(epsilon < 3.43, 50.0)
    return of_kind(
        frame.assign(
            epsilon=epsilon, attack="single", lower=-np.inf, upper=0.0, fpr=0.1, fnr=0.2
        ),
        "epsilons",
    )  # fmt: skip


def scores(models, n, repetitions=3, setups=("reuse-n-n", "bootstrap")):
    frame = rows(models, methods(n), setup=setups, repetition=range(repetitions))
    end = frame["method"].isin(["none", "retrain"])
    cost = (frame["method"].map(len) % 7) / 10 * ~end
    quality = (0.02 + 0.4 * frame["strength"] + noise(frame, 0.01)).clip(0, 1)
    retain, test = 1 - 0.6 * cost, 1 - cost
    steps = 0.02 + 0.06 * (frame["method"].map(len) % 5)
    steps = steps.mask(frame["method"] == "none", 0.0).mask(frame["method"] == "retrain", 1.0)
    return of_kind(
        frame.assign(
            n_models=N_MODELS,
            forgetting_quality=quality,
            retain_accuracy=0.8 * retain,
            retain_accuracy_retrained=0.8,
            test_accuracy=0.5 * test,
            test_accuracy_retrained=0.5,
            forget_accuracy=0.9 - 0.4 * frame["strength"],
            forget_accuracy_retrained=0.5,
            final_score=quality * retain * test,
            steps_share=steps,
            seconds_share=1.2 * steps,
            within_cutoff=(steps <= 0.2) | end,
        ),
        "unlearning_scores",
    )


def summary(models, n, repetitions=3, setups=("reuse-n-n", "bootstrap")):
    found = scores(models, n, repetitions, setups)
    keys = ["model", "language", "size", "seed", "method", "setup"]
    quantities = [name for name in found.columns if found[name].dtype == float]
    long = found.melt(keys, quantities, "quantity")
    frame = long.groupby([*keys, "quantity"], sort=False)["value"].agg(["mean", "std", "count"])
    frame = frame.reset_index().rename(columns={"count": "n_repetitions"})
    reach = 4.3 * frame["std"] / np.sqrt(frame["n_repetitions"])
    of_ends = frame["method"].isin(["none", "retrain"])
    of_ends |= frame["quantity"].str.endswith("_retrained")
    reach = reach.mask(of_ends & frame["setup"].isin(["reuse-n-n", "reuse-n-1"]))
    frame = frame.assign(lower=frame["mean"] - reach, upper=frame["mean"] + reach)
    return of_kind(frame, "unlearning_summary")


def effects(models, n, repetitions=3):
    cases = [("attacker", "same", 16.0), ("attacker", "held-out", 16.0)]
    cases += [("n", "held-out", float(value)) for value in (4, 8, 16)]
    cases += [("pool", "same", float(value)) for value in (8, 16, 32)]
    cases += [("repetitions", "same", float(value)) for value in (2, 5, 10, 20)]
    frame = rows(models, methods(n), case=cases, repetition=range(repetitions))
    frame["effect"], frame["attacker"], frame["level"] = zip(*frame.pop("case"), strict=True)
    quality = 0.1 + 0.5 * frame["strength"] - 0.02 * np.log2(frame["level"])
    quality += 0.05 * (frame["attacker"] == "held-out") + noise(frame, 0.01)
    return of_kind(frame.assign(forgetting_quality=quality.clip(0, 1)), "unlearning_effects")


def metrics(models, n):
    frame = rows(models, methods(n), metric=METRICS)
    scale = frame["metric"].map(
        dict(zip(METRICS, (0.4, 0.8, 0.3, 8, 30, 40, -60, 0.9), strict=True))
    )
    spread = frame["method"].map(len) % 5 / 8
    estimate = scale * (1.05 - frame["strength"] + spread)
    return of_kind(
        frame.assign(
            estimate=estimate,
            lower=estimate - 0.03 * scale.abs(),
            upper=estimate + 0.03 * scale.abs(),
            reference=0.05 * scale,
            reference_lower=(0.05 - 0.02 * scale.gt(0)) * scale,
            reference_upper=(0.05 + 0.02 * scale.gt(0)) * scale,
            differs=(estimate - 0.05 * scale).abs() > 0.04 * scale.abs(),
            n_models=N_MODELS,
        ),
        "unlearning_metrics",
    )


def memorisation(models, n):
    strings = [f"{i:012x}" for i in range(N_STRINGS)]
    frame = rows(models, methods(n), string_id=strings, measure=MEASURES)
    left = frame["measure"].map(dict(zip(MEASURES, (0.1, 0.2, 0.5, 0.7, 0.6), strict=True)))
    hard = frame["string_id"].map(lambda name: int(name, 16) / N_STRINGS)
    before, retrained = 0.6 + 0.4 * hard, 0.15 * hard
    gone = frame["strength"] * (1 - left) / 0.9
    after = (before - gone * (before - retrained)).clip(0, 1)
    after = after.mask(frame["method"] == "retrain", retrained)
    return of_kind(
        frame.assign(
            evidence=frame["measure"].map({"bayes": "language", "contextual": "retraining",
                                           "counterfactual": "retraining"}).fillna("constant"),
            threshold=0.2,
            before=before,
            after=after,
            retrained=retrained,
            score_before=before / 2,
            score_after=after / 2,
            score_retrained=retrained / 2,
        ),
        "unlearning_memorisation",
    )  # fmt: skip


def hardness(models, n):
    frame = rows(models, ["none"], string_id=[f"{i:012x}" for i in range(N_STRINGS)])
    rank = frame["string_id"].map(lambda name: int(name, 16) / N_STRINGS)
    return of_kind(
        frame.assign(
            count=1 + (rank * 10).astype(int),
            log_prob=-8.0,
            epsilon_sum=n * (0.6 + 3 * rank**2),
            n_methods=n,
            loss_gap=0.1 + rank + noise(frame, 0.1),
        ),
        "unlearning_hardness",
    )


def agreement(models, n):
    pairs = list(itertools.combinations(NAMES[:n], 2))
    frame = rows(models, ["none"], pair=pairs).drop(columns="method")
    frame["method"], frame["other"] = zip(*frame.pop("pair"), strict=True)
    apart = (frame["method"].map(strength) - frame["other"].map(strength)).abs()
    frame = frame.assign(n_strings=N_STRINGS, pearson=1 - apart, spearman=1 - 1.6 * apart)
    undefined = frame["other"] == "scrub"
    frame["spearman"] = frame["spearman"].mask(undefined)
    frame["pearson"] = frame["pearson"].mask(undefined)
    return of_kind(frame, "unlearning_agreement")


def tests(models, n):
    frame = rows(models, methods(n))
    p_value = (0.9 * frame["strength"] ** 4).clip(1 / 401)
    return of_kind(
        frame.assign(
            n_models=N_MODELS,
            n_strings=N_STRINGS,
            forgetting_quality=0.02 + 0.08 * frame["strength"],
            null_quality=0.1,
            null_lower=0.08,
            null_upper=0.13,
            p_value=p_value,
            relative_quality=frame["strength"],
            excess_epsilon=2 * (1 - frame["strength"]),
            n_told=(N_STRINGS * (1 - frame["strength"])).astype(int),
            n_bounded=(N_STRINGS * (1 - frame["strength"]) / 2).astype(int),
            largest_bound=2.1 * (1 - frame["strength"]),
            joint_errors=(N_MODELS * frame["strength"]).astype(int),
            joint_models=2 * N_MODELS,
            joint_p=p_value,
            relative_p=np.nan,
        ),
        "unlearning_tests",
    )


def string_tests(models, n):
    frame = rows(models, methods(n), string_id=[f"{i:012x}" for i in range(N_STRINGS)])
    excess = 2 * (1 - frame["strength"]) + noise(frame, 0.2)
    p_value = np.exp(-3 * excess.clip(0))
    return of_kind(
        frame.assign(
            epsilon=2.0 + excess,
            floor=2.0,
            excess=excess,
            p_value=p_value,
            q_value=(1.5 * p_value).clip(0, 1),
            lower_bound=(excess - 1).clip(0),
        ),
        "unlearning_string_tests",
    )


def gaps(models, n):
    strings = [f"{i:012x}" for i in range(N_STRINGS)]
    frame = rows(models, methods(n), string_role=("forget", "placebo"), string_id=strings)
    forgotten = frame["string_role"] == "forget"
    share = frame["strength"].where(forgotten, 0.1 * frame["strength"]) + noise(frame, 0.15)
    return of_kind(
        frame.assign(
            before=0.4,
            after=0.4 + 0.6 * share,
            retrained=1.0,
            share=share.where(forgotten),
            lower=(share - 0.1).where(forgotten),
            upper=(share + 0.1).where(forgotten),
        ),
        "unlearning_gaps",
    )


def gap_summary(models, n):
    frame = rows(models, methods(n), string_role=("forget", "placebo", "retained"))
    share = frame["strength"].where(frame["string_role"] == "forget", 0.1 * frame["strength"])
    return of_kind(
        frame.assign(
            share=share,
            lower=share - 0.1,
            upper=share + 0.1,
            lowest=share - 0.4,
            lower_quartile=share - 0.15,
            median=share,
            upper_quartile=share + 0.15,
            highest=share + 0.5,
            n_strings=N_STRINGS,
            n_clear=N_STRINGS - 2,
            n_models=N_MODELS,
        ),
        "unlearning_gap_summary",
    )


TABLES = {
    "epsilons": epsilons,
    "unlearning_scores": scores,
    "unlearning_summary": summary,
    "unlearning_effects": effects,
    "unlearning_metrics": metrics,
    "unlearning_memorisation": memorisation,
    "unlearning_tests": tests,
    "unlearning_string_tests": string_tests,
    "unlearning_gaps": gaps,
    "unlearning_gap_summary": gap_summary,
    "unlearning_hardness": hardness,
    "unlearning_agreement": agreement,
}
