"""Tables of a whole study of unlearning with several seeds, for the tests of its figures."""

import itertools

import numpy as np
import pandas as pd

from helpers import unlearning_tables as made

N_STRINGS = 9
STAGED = 10  # passes over batches at which a running method is measured
MEMORISED_AFTER = dict(zip(made.MEASURES, (0.1, 0.2, 0.5, 0.7, 0.6), strict=True))
UNASKED = "contextual"  # of the tables here, the measure that is asked of no string


def crossed(models, names, seeds, **columns):
    """A row for every combination, with how well the method forgets, and a string's hardness."""
    frame = made.rows(models, names, problem=list(seeds), **columns)
    frame["seed"] = frame.pop("problem")
    if "string_id" in frame:
        frame["hard"] = frame["string_id"].map(lambda name: int(name, 16) / N_STRINGS)
        frame["string_id"] = frame["string_id"].str[1:] + frame["seed"].astype(str)
    frame["strength"] = frame["strength"] + 0.02 * frame["seed"]
    return frame


STRINGS = [f"{i:012x}" for i in range(N_STRINGS)]
noise = made.noise


def of_kind(frame, kind):
    return made.of_kind(frame, kind)


def of_all_seeds(table, seeds, columns=()):
    """The table of each seed, stacked; `columns` have other values in every seed."""
    parts = []
    for seed in seeds:
        part = table.assign(seed=seed)
        for column in columns:
            part[column] = (part[column] * (1 - 0.07 * seed)).astype(part[column].dtype)
        if "string_id" in part:
            part["string_id"] = part["string_id"].str[1:] + str(seed)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def scores(models, n, seeds, repetitions=3, setups=("reuse-n-n", "bootstrap"), names=None):
    names = names or made.methods(n)
    frame = crossed(models, names, seeds, setup=setups, repetition=range(repetitions))
    end = frame["method"].isin(["none", "retrain"])
    cost = (frame["method"].map(len) % 7) / 10 * ~end + 0.02 * frame["seed"]
    quality = (0.02 + 0.1 * frame["strength"] + noise(frame, 0.004)).clip(0, 1)
    retain, test = 1 - 0.6 * cost, 1 - cost
    likely, unseen = 1 - 0.9 * cost, 1 - 1.3 * cost
    steps = 0.02 + 0.06 * (frame["method"].map(len) % 5)
    steps = steps.mask(frame["method"] == "none", 0.0).mask(frame["method"] == "retrain", 1.0)
    return of_kind(
        frame.assign(
            n_models=made.N_MODELS,
            forgetting_quality=quality,
            retain_accuracy=0.8 * retain,
            retain_accuracy_retrained=0.8,
            test_accuracy=0.5 * test,
            test_accuracy_retrained=0.5,
            forget_accuracy=0.9 - 0.4 * frame["strength"],
            forget_accuracy_retrained=0.5,
            final_score=quality * retain * test,
            retain_probability=0.6 * likely,
            retain_probability_retrained=0.6,
            test_probability=0.3 * unseen,
            test_probability_retrained=0.3,
            final_score_probability=quality * likely * unseen,
            steps_share=steps,
            seconds_share=1.2 * steps,
            within_cutoff=(steps <= 0.2) | end,
        ),
        "unlearning_scores",
    )


def summary(models, n, seeds, repetitions=3, setups=("reuse-n-n", "bootstrap"), names=None):
    found = scores(models, n, seeds, repetitions, setups, names)
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


def tests(models, n, seeds):
    frame = crossed(models, made.methods(n), seeds)
    quality = 0.02 + 0.1 * frame["strength"]
    null = 0.093 + 0.004 * frame["seed"]
    told = frame["method"] != "retrain"
    return of_kind(
        frame.assign(
            n_models=made.N_MODELS,
            n_strings=N_STRINGS,
            forgetting_quality=quality,
            null_quality=null,
            null_lower=null - 0.024,
            null_upper=null + 0.025,
            p_value=np.where(told, 0.0025, 0.88),
            relative_quality=(quality - 0.02) / (null - 0.02),
            excess_epsilon=np.where(told, 1.4, 0.0),
            n_told=np.where(told, N_STRINGS, 0),
            n_bounded=np.where(told, 4, 0),
            largest_bound=np.where(told, 1.2, 0.0),
            joint_errors=np.where(told, 0, 33),
            joint_models=2 * made.N_MODELS,
            joint_p=np.where(told, 0.0025, 0.6),
            relative_p=np.nan,
        ),
        "unlearning_tests",
    )


def gaps(models, n, seeds):
    frame = crossed(models, made.methods(n), seeds, string_role=["forget", "placebo"],
                    string_id=STRINGS)  # fmt: skip
    placebo = frame["string_role"] == "placebo"
    share = 1.6 * frame["strength"] + (frame["hard"] - 0.5) * 1.6 * frame["strength"]
    share = share.mask(frame["method"] == "none", 0.0) + noise(frame, 0.06)
    share = share.mask(frame["method"] == "finetune", 4 * frame["hard"])
    share = share.mask(frame["method"] == "retrain", 1 + 0.2 * (frame["hard"] - 0.5))
    # The easiest string has no clear gap; that of placebos is never clear.
    share = share.mask(placebo | (frame["hard"] == 0))
    before = 0.4 + 0.5 * frame["hard"]
    return of_kind(
        frame.assign(
            before=before,
            retrained=before + 1,
            after=before + share.fillna(0),
            share=share,
            lower=share - 0.1,
            upper=share + 0.1,
        ),
        "unlearning_gaps",
    )


def gap_summary(models, n, seeds):
    found = gaps(models, n, seeds)
    keys = ["model", "language", "size", "seed", "method", "string_role"]
    shares = found.groupby(keys, sort=False)["share"]
    frame = shares.agg(["mean", "std", "min", "median", "max", "count"]).reset_index()
    placebo = frame["string_role"] == "placebo"
    share = frame["mean"].mask(placebo, 0.04 * frame["method"].map(len) % 0.3)
    error = (frame["std"] / 3).mask(placebo, 0.04)
    return of_kind(
        frame.assign(
            share=share,
            lower=share - 2.2 * error,
            upper=share + 2.2 * error,
            lowest=frame["min"],
            lower_quartile=frame["min"],
            upper_quartile=frame["max"],
            highest=frame["max"],
            n_strings=N_STRINGS,
            n_clear=frame["count"],
            n_models=made.N_MODELS,
        ),
        "unlearning_gap_summary",
    )


def memorisation(models, n, seeds):
    frame = crossed(models, made.methods(n), seeds, string_role=["forget", "placebo"],
                    string_id=STRINGS, measure=made.MEASURES)  # fmt: skip
    hard, placebo = frame["hard"], frame["string_role"] == "placebo"
    retrained = 0.15 * hard
    before = (0.6 + 0.4 * hard - 0.03 * frame["seed"]).mask(placebo, retrained)
    gone = frame["strength"] * (1 - frame["measure"].map(MEMORISED_AFTER)) / 0.9
    after = (before - gone * (before - retrained)).clip(0, 1)
    evidence = {"bayes": "language", "contextual": "retraining", "counterfactual": "retraining"}
    return of_kind(
        frame.assign(
            evidence=frame["measure"].map(evidence).fillna("constant"),
            threshold=0.2,
            answerable=(frame["measure"] != UNASKED)
            & (~frame["measure"].str.startswith("recollection") | (hard > 0.5)),
            before=before,
            after=after.mask(frame["method"] == "retrain", retrained),
            retrained=retrained,
        ),
        "unlearning_memorisation",
    )


def stages(models, n, seeds):
    """Methods in two phases, which are measured every few passes; then rounding and relearning."""
    names = made.methods(n)
    moments = [("unlearning", None, 0)]
    moments += [("unlearning", "1" if k <= 4 else "2.1", k) for k in range(1, STAGED + 1)]
    moments += [("4-bit", None, 0), *(("relearning", None, k) for k in range(6))]
    frame = crossed(models, names, seeds, origin=range(3), moment=moments)
    frame["stage"], frame["phase"], frame["passes"] = zip(*frame.pop("moment"), strict=True)
    ends = frame["method"].isin(["none", "retrain"])
    frame = frame[~ends | (frame["stage"] != "unlearning")].reset_index(drop=True)
    unlearning, again = (frame["stage"] == name for name in ("unlearning", "relearning"))
    full = 1.5 * frame["strength"].clip(0, 1) + noise(frame, 0.01) + 0.05 * frame["seed"]
    done = (frame["passes"] / STAGED).where(unlearning, 1.0)
    forget = 0.5 + full * done
    forget = forget.where(~again, forget * np.exp(-0.25 * frame["passes"]))
    forget = forget.mask(frame["stage"] == "4-bit", forget - 0.15 * frame["strength"])
    return of_kind(
        frame.assign(
            unlearning_replicate=0,
            forget_loss=forget,
            retain_loss=(0.4 + 0.1 * done).where(~again),
            unseen_loss=(1.2 + 0.1 * done**2 + 0.02 * frame["seed"]).where(~again),
        ),
        "unlearning_stages",
    )


def confidences(models, n, seeds, names=None):
    names = [*(names or made.methods(n)), "retrained"]
    chance = np.random.default_rng(0)
    parts = []
    for model, name, seed, place in itertools.product(models, names, seeds, (0, 4, 8)):
        strength = 1.0 if name == "retrained" else made.strength(name)
        parts.append(
            pd.DataFrame(
                {
                    "model": model, "language": "L4", "size": 1024, "seed": seed, "method": name,
                    "origin": np.arange(made.N_MODELS), "unlearning_replicate": 0,
                    "string_id": f"{STRINGS[place][1:]}{seed}",
                    "confidence": chance.normal(1.5 - 2 * strength - 0.1 * place, 0.4,
                                                made.N_MODELS),
                }
            )
        )  # fmt: skip
    return of_kind(pd.concat(parts, ignore_index=True), "unlearning_confidences")


def hardness(models, n, seeds):
    frame = crossed(models, ["none"], seeds, string_id=STRINGS)
    return of_kind(
        frame.assign(
            count=1 + (frame["hard"] * 10).astype(int),
            log_prob=-8.0,
            epsilon_sum=n * (0.6 + 3 * frame["hard"] ** 2 + 0.1 * frame["seed"]),
            n_methods=n,
            loss_gap=0.1 + frame["hard"] + noise(frame, 0.05),
        ),
        "unlearning_hardness",
    )


def tuning(n):
    """Sixteen settings per method: some are not allowed, one has losses that are not finite."""
    rows = []
    for method in made.NAMES[:n]:
        chance = np.random.default_rng(len(method))
        far = np.sort(chance.uniform(0, 1.6, 16))
        retain = 1 + 0.5 * (1.4 - far).clip(0) ** 2 + chance.uniform(0, 0.2, 16)
        far[0], retain[0] = np.inf, np.inf
        allowed = retain <= 1.25
        best = np.flatnonzero(allowed)[:1] if allowed.any() else [int(retain.argmin())]
        rows.append(
            pd.DataFrame(
                {
                    "method": method,
                    "point": [f"{method}-{k}" for k in range(16)],
                    "settings": "{}",
                    "final_score": (0.3 * (1 - far)).clip(0),
                    "forgetting_quality": (0.4 * (1 - far)).clip(0),
                    "distance_left": far,
                    "gap_closed": 1 - far,
                    "retain_ratio": retain,
                    "unseen_ratio": retain - 0.02,
                    "steps_share": 0.1,
                    "n_problems": 2,
                    "allowed": allowed,
                    "chosen": np.isin(np.arange(16), best),
                }
            )
        )
    return of_kind(pd.concat(rows, ignore_index=True), "unlearning_tuning")


def transfer(models, n, seeds):
    frame = crossed(models, made.NAMES[:n], seeds, tuning=["direct", "light"])
    score = 0.05 + 0.1 * frame["strength"] + 0.1 * (frame["tuning"] == "light")
    return of_kind(
        frame.assign(
            point=np.where(frame["tuning"] == "light", "repair-3", "direct"),
            settings="{}",
            forgetting_quality=score,
            final_score=score,
            distance_left=0.4,
            gap_closed=0.6,
            retain_ratio=1.1,
            unseen_ratio=1.05,
            n_models=32,
        ),
        "unlearning_transfer",
    )


def epsilons(models, n, seeds, *args):
    return of_all_seeds(made.epsilons(models, n, *args), seeds)


def effects(models, n, seeds):
    return of_all_seeds(made.effects(models, n), seeds, ["forgetting_quality"])


def metrics(models, n, seeds):
    columns = ["estimate", "lower", "upper", "reference", "reference_lower", "reference_upper"]
    return of_all_seeds(made.metrics(models, n), seeds, columns)


def agreement(models, n, seeds):
    return of_all_seeds(made.agreement(models, n), seeds, ["spearman"])


TABLES = {
    "epsilons": epsilons,
    "unlearning_scores": scores,
    "unlearning_summary": summary,
    "unlearning_effects": effects,
    "unlearning_tests": tests,
    "unlearning_metrics": metrics,
    "unlearning_memorisation": memorisation,
    "unlearning_gaps": gaps,
    "unlearning_gap_summary": gap_summary,
    "unlearning_stages": stages,
    "unlearning_hardness": hardness,
    "unlearning_confidences": confidences,
    "unlearning_agreement": agreement,
    "unlearning_transfer": transfer,
}
