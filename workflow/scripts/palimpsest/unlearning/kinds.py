"""Kinds of tables of unlearning."""

from palimpsest.tables.columns import (
    COUNT,
    EVIDENCE,
    KNOWN_LOG_PROB,
    LANGUAGE,
    MEASURE,
    MODEL,
    PREDICTED,
    SEED,
    SIZE,
    STRING_ID,
)
from palimpsest.tables.kinds import Column, Kind

FOLDER = "results/unlearning/{model}/{language}/n{size}-seed{seed}"
UNLEARNED_FOLDER = f"{FOLDER}/unlearned/{{method}}/runs-{{first}}-{{last}}"
PROBLEM = (MODEL, LANGUAGE, SIZE, SEED)
METHOD = Column(
    "method",
    str,
    "the unlearning method, a name of the table of methods; none is the original model, retrain "
    "another retrained one",
)
SETUP = Column("setup", str, "full, reuse-n-n, reuse-n-1 or bootstrap")
REPETITION = Column("repetition", int, "which of the repetitions of the evaluation, from 0")
UNLEARNED_MODEL = (
    *PROBLEM,
    METHOD,
    Column("origin", int, "draw of the model that it started from"),
    Column("draw", int, "which of the unlearnings of that model, from 0"),
)
QUALITY = Column("forgetting_quality", float, "mean of the forget strings' points, in [0, 1]")
UNLEARNED = Kind(
    "unlearned",
    "One row per unlearned model and string: how well the model predicts it.",
    f"{UNLEARNED_FOLDER}/unlearned.parquet",
    (
        *UNLEARNED_MODEL,
        STRING_ID,
        *PREDICTED,
    ),
)
UNLEARNED_MODELS = Kind(
    "unlearned_models",
    "One row per unlearned model: what it cost, how far it went and how fast it relearns.",
    f"{UNLEARNED_FOLDER}/models.parquet",
    (
        *UNLEARNED_MODEL,
        Column("steps", int, "passes forward and back over a batch, all phases together"),
        Column("seconds", float, "wall time of the unlearning, its share of a wave's"),
        Column(
            "distance_to_original",
            float,
            "L2 distance of its weights from the original model of its number; null "
            "if there is none",
            True,
        ),
        Column(
            "distance_to_retrained",
            float,
            "L2 distance of its weights from the retrained model of its number",
        ),
        Column(
            "relearn_epochs",
            float,
            "epochs of training on the forget set until its loss there is as low as the "
            "original's; infinite if not within unlearning/relearn/epochs; null if not "
            "tried",
            True,
        ),
    ),
)
EPSILONS = Kind(
    "epsilons",
    "One row per method, set-up, repetition and forget string: the strongest attack that "
    "tells unlearned models from retrained ones.",
    f"{FOLDER}/epsilons.parquet",
    (
        *PROBLEM,
        METHOD,
        SETUP,
        REPETITION,
        STRING_ID,
        Column("epsilon", float, "of (epsilon, delta)-unlearning, at most 50"),
        Column(
            "attack",
            str,
            "single or double: how many thresholds the attack has; none: every attack is "
            "discarded; narrow: told apart by the width of a sample (thresholds: grid)",
        ),
        Column(
            "lower",
            float,
            "lower threshold on the logit-scaled confidence; -inf: none; null: no attack",
            True,
        ),
        Column("upper", float, "upper threshold; null: no attack", True),
        Column("fpr", float, "false positive rate of the attack; null: no attack", True),
        Column("fnr", float, "false negative rate of the attack; null: no attack", True),
    ),
)
SCORES = Kind(
    "unlearning_scores",
    "One row per method, set-up and repetition: forgetting, utility and cost.",
    f"{FOLDER}/scores.parquet",
    (
        *PROBLEM,
        METHOD,
        SETUP,
        REPETITION,
        Column("n_models", int, "unlearned models, and as many retrained ones"),
        QUALITY,
        Column("retain_accuracy", float, "share of right tokens, retained strings"),
        Column("retain_accuracy_retrained", float, "the same of the retrained models"),
        Column("test_accuracy", float, "share of right tokens, test strings"),
        Column("test_accuracy_retrained", float, "the same of the retrained models"),
        Column("forget_accuracy", float, "share of right tokens, forget strings"),
        Column("forget_accuracy_retrained", float, "the same of the retrained models"),
        Column("final_score", float, "quality times both ratios of accuracy"),
        Column("steps_share", float, "its training steps, as a share of those of retraining"),
        Column("seconds_share", float, "its wall time, as a share of retraining's"),
        Column(
            "within_cutoff",
            bool,
            "whether the share of steps is within unlearning/cutoff; true of none and "
            "retrain, the two ends",
        ),
    ),
)
SUMMARY = Kind(
    "unlearning_summary",
    "One row per method, set-up and quantity of the scores: its mean over repetitions.",
    f"{FOLDER}/summary.parquet",
    (
        *PROBLEM,
        METHOD,
        SETUP,
        Column("quantity", str, "a column of `unlearning_scores`"),
        Column("n_repetitions", int, "repetitions behind the interval"),
        Column("mean", float, "over the repetitions"),
        Column(
            "lower",
            float,
            "lower end of the 95 % Student interval; null: one repetition, or none of the "
            "models is drawn anew (none, retrain and the accuracy of retrained models "
            "under reuse-n-n and reuse-n-1)",
            True,
        ),
        Column("upper", float, "upper end of the interval; null where `lower` is", True),
    ),
)
EFFECTS = Kind(
    "unlearning_effects",
    "One row per method and way of evaluating: how the forgetting quality depends on it.",
    f"{FOLDER}/effects.parquet",
    (
        *PROBLEM,
        METHOD,
        Column(
            "effect",
            str,
            "attacker (fitted and evaluated on the same models or on others), n (models "
            "that evaluate a fitted attacker), pool or repetitions (of the bootstrap)",
        ),
        Column("attacker", str, "same or held-out: the models that evaluate it"),
        Column("value", float, "models, of which each distribution has as many; the pool"),
        REPETITION,
        QUALITY,
    ),
)
METRICS = Kind(
    "unlearning_metrics",
    "One row per method and metric: other measures of forgetting from the literature.",
    f"{FOLDER}/metrics.parquet",
    (
        *PROBLEM,
        METHOD,
        Column(
            "metric",
            str,
            "accuracy_gap, mia_accuracy, mia_gap, relearn_epochs, distance_to_original, "
            "distance_to_retrained, ks_log_p or extraction",
        ),
        Column("estimate", float, "mean over the models", True),
        Column("lower", float, "lower end of the 95 % interval", True),
        Column("upper", float, "upper end of the 95 % interval", True),
        Column(
            "reference",
            float,
            "what retrained models have: the value that ideal unlearning has",
            True,
        ),
        Column("n_models", int, "models behind the estimate"),
    ),
)
MEMORISATION = Kind(
    "unlearning_memorisation",
    "One row per method, forget string and measure of memorisation: whether unlearning removes it.",
    f"{FOLDER}/memorisation.parquet",
    (
        *PROBLEM,
        METHOD,
        STRING_ID,
        MEASURE,
        EVIDENCE,
        Column(
            "threshold",
            float,
            "the loss below which the string counts as memorised, nats per token (for "
            "recollection_accuracy: the share of wrong tokens)",
        ),
        Column("before", float, "share of the original models that memorise it"),
        Column("after", float, "share of the unlearned models that do"),
        Column("retrained", float, "share of the retrained models that do: the ideal"),
        Column("score_before", float, "mean score of the original models"),
        Column("score_after", float, "mean score of the unlearned models"),
        Column("score_retrained", float, "mean score of the retrained models"),
    ),
)
HARDNESS = Kind(
    "unlearning_hardness",
    "One row per forget string: how hard it is to forget, over all methods.",
    f"{FOLDER}/hardness.parquet",
    (
        *PROBLEM,
        STRING_ID,
        COUNT,
        KNOWN_LOG_PROB,
        Column("epsilon_sum", float, "sum over the methods of its mean epsilon"),
        Column("n_methods", int, "methods in the sum; none and retrain are not"),
        Column(
            "loss_gap",
            float,
            "mean loss of retrained less that of original models, nats per token",
        ),
    ),
)
AGREEMENT = Kind(
    "unlearning_agreement",
    "One row per pair of methods: whether they find the same strings hard.",
    f"{FOLDER}/agreement.parquet",
    (
        *PROBLEM,
        METHOD,
        Column("other", str, "the other method"),
        Column("n_strings", int, "forget strings compared"),
        Column("pearson", float, "correlation of their epsilons; null: no spread", True),
        Column("spearman", float, "correlation of their ranks; null: no spread", True),
    ),
)
TUNING = Kind(
    "unlearning_tuning",
    "One row per point of a method's grid: its scores, the best point first.",
    f"{FOLDER}/tuning.parquet",
    (
        *PROBLEM,
        METHOD,
        Column("point", str, "name of the point: the method's, and its number"),
        Column("settings", str, "its values, as JSON"),
        QUALITY,
        Column("final_score", float, "mean over the repetitions"),
        Column("within_cutoff", bool, "whether it is fast enough to count"),
    ),
)

KINDS = (
    UNLEARNED,
    UNLEARNED_MODELS,
    EPSILONS,
    SCORES,
    SUMMARY,
    EFFECTS,
    METRICS,
    MEMORISATION,
    HARDNESS,
    AGREEMENT,
    TUNING,
)
