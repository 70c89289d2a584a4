"""Tables of unlearning for the report: what each method does in each problem, given in numbers."""

import pandas as pd

from palimpsest.sections import KINDS

N_MODELS, N_STRINGS = 32, 10
KEYS = {"model": "m", "language": "L4", "size": 48}
MEASURES = {
    "recollection": "constant",
    "counterfactual": "retraining",
    "contextual": "retraining",
    "bayes": "language",
}


def method(shares, p=0.0025, joint_p=0.0025, placebo=0.2, kept=1.0, steps=0.1, bounded=0, **more):
    """What a method does: one share of the gap for each problem; other values may be lists, too."""
    return {
        "shares": shares,
        "p": p,
        "joint_p": joint_p,
        "placebo": placebo,
        "kept": kept,
        "steps": steps,
        "bounded": bounded,
        **more,
    }


def ends(n=3):
    """Retraining and doing nothing, in n problems."""
    return {
        "none": method([0.0] * n, placebo=0.0, steps=0.0, bounded=8),
        "retrain": method(
            [1.01, 0.98, 1.03][:n], [0.31, 0.77, 0.64][:n], 0.5, [0.18, 0.22, 0.2][:n], steps=1.0
        ),
    }


def tables(methods, n_models=N_MODELS):
    """The tables that the report reads, by their kind; `methods` maps names to `method(...)`."""
    rows = {name: [] for name in ("scores", "tests", "gap_summary", "memorisation")}
    for name, given in methods.items():
        for seed in range(len(given["shares"])):
            here = {
                key: value[seed] if isinstance(value, list) else value
                for key, value in given.items()
            }
            keys = {**KEYS, "seed": seed, "method": name}
            rows["scores"] += scores(keys, here, n_models)
            rows["tests"].append(test(keys, here, n_models))
            rows["gap_summary"] += gaps(keys, here, n_models)
            rows["memorisation"] += memorisation(keys, here)
    found = {f"unlearning_{kind}": pd.DataFrame(values) for kind, values in rows.items()}
    found = {kind: frame[KINDS[kind].names] for kind, frame in found.items()}
    return {**found, "unlearning_ablation": ablation()}


def ablation(**methods):
    """The table of methods with their forgetting quality, whole and by repair alone, per seed.

    The share of the gap is half of the quality, and the controls have a tenth.
    """
    rows = [
        {
            **KEYS,
            "seed": seed,
            "method": name,
            "part": part,
            "n_models": N_MODELS,
            "forgetting_quality": quality,
            "final_score_probability": quality,
            "share": 0.5 * quality,
            "control_share": 0.1,
            "steps_share": 0.1,
        }
        for name, of_parts in methods.items()
        for part, qualities in zip(("whole", "repair"), of_parts, strict=True)
        for seed, quality in enumerate(qualities)
    ]
    return pd.DataFrame(rows, columns=KINDS["unlearning_ablation"].names)


def scores(keys, given, n_models):
    quality = 0.02 + 0.08 * max(0.0, 1 - abs(given["shares"] - 1))
    values = {
        "n_models": n_models,
        "forgetting_quality": quality,
        "final_score": 0.99 * quality,
        "final_score_probability": given["kept"] * quality,
        "steps_share": given["steps"],
        "seconds_share": given["steps"],
        "within_cutoff": given["steps"] <= 0.2 or keys["method"] == "retrain",
        "forget_accuracy": 0.6,
        "forget_accuracy_retrained": 0.6,
    }
    for which in ("retain", "test"):
        for quantity, kept in (("accuracy", 0.99), ("probability", given["kept"])):
            values[f"{which}_{quantity}"] = 0.7 * kept
            values[f"{which}_{quantity}_retrained"] = 0.7
    return [
        {**keys, **values, "setup": "reuse-n-n", "repetition": repetition} for repetition in (0, 1)
    ]


def test(keys, given, n_models):
    return {
        **keys,
        "n_models": n_models,
        "n_strings": N_STRINGS,
        "forgetting_quality": 0.05,
        "null_quality": 0.1,
        "null_lower": 0.08,
        "null_upper": 0.12,
        "p_value": given["p"],
        "relative_quality": given["shares"],
        "excess_epsilon": 0.5,
        "n_told": given["bounded"],
        "n_bounded": given["bounded"],
        "largest_bound": 0.2 * given["bounded"],
        "joint_errors": round(n_models * given["joint_p"]),
        "joint_models": 2 * n_models,
        "joint_p": given["joint_p"],
        "relative_p": float("nan"),
    }


def gaps(keys, given, n_models):
    of_kinds = (("forget", given["shares"]), ("placebo", given["placebo"]))
    return [
        {
            **keys,
            "string_role": kind,
            "share": share,
            "lower": share - 0.1,
            "upper": share + 0.1,
            "lowest": share - 0.4,
            "lower_quartile": share - 0.2,
            "median": share,
            "upper_quartile": share + 0.2,
            "highest": share + 0.9,
            "n_strings": N_STRINGS,
            "n_clear": 0 if pd.isna(share) else N_STRINGS - 1,
            "n_models": n_models,
        }
        for kind, share in of_kinds
        if share is not None
    ]


def memorisation(keys, given):
    """Recollection is asked of half of the strings, contextual memorisation of none."""
    rows = []
    share = 0.0 if pd.isna(given["shares"]) else min(given["shares"], 1)
    for string in range(N_STRINGS):
        for measure, evidence in MEASURES.items():
            asked = {"recollection": string % 2 == 0, "contextual": False}.get(measure, True)
            row = {
                **keys,
                "string_id": f"{string:012x}",
                "measure": measure,
                "evidence": evidence,
                "threshold": 0.3,
                "answerable": asked,
            }
            recited = measure == "recollection"
            before = 0.06 if recited else 0.85 + 0.01 * keys["seed"]
            after = before + share * (0.06 - before)
            rows.append(
                {
                    **row,
                    "string_role": "forget",
                    "before": before,
                    "after": after,
                    "retrained": 0.06,
                }
            )
            if given["placebo"] is not None:
                alike = {"before": 0.05, "after": 0.04, "retrained": 0.05}
                rows.append({**row, "string_role": "placebo", **alike})
    return rows
