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
    "unlearning method, a name in the table of methods; none: the original model; retrain: a "
    "further retrained model",
)
SETUP = Column("setup", str, "full, reuse-n-n, reuse-n-1 or bootstrap")
REPETITION = Column("repetition", int, "repetition of the evaluation, counted from 0")
UNLEARNED_MODEL = (
    *PROBLEM,
    METHOD,
    Column("origin", int, "replicate of the model that the unlearning started from"),
    Column("draw", int, "number of the unlearning of that model, counted from 0"),
)
QUALITY = Column("forgetting_quality", float, "mean of the forget strings' points, in [0, 1]")
UNLEARNED = Kind(
    "unlearned",
    "One row per unlearned model and string: how well the model predicts the string.",
    f"{UNLEARNED_FOLDER}/unlearned.parquet",
    (
        *UNLEARNED_MODEL,
        STRING_ID,
        *PREDICTED,
    ),
)
UNLEARNED_MODELS = Kind(
    "unlearned_models",
    "One row per unlearned model: its cost, the distance of its weights, and how fast it relearns.",
    f"{UNLEARNED_FOLDER}/models.parquet",
    (
        *UNLEARNED_MODEL,
        Column("steps", int, "forward and backward passes over a batch, in all phases together"),
        Column(
            "seconds",
            float,
            "wall time of the unlearning; models that unlearn together share their time equally",
        ),
        Column(
            "distance_to_original",
            float,
            "L2 distance of its weights from the original model of the same number; null if there "
            "is no such model",
            True,
        ),
        Column(
            "distance_to_retrained",
            float,
            "L2 distance of its weights from the retrained model of the same number",
        ),
        Column(
            "relearn_epochs",
            float,
            "epochs of training on the forget set until the loss on this set is as low as the "
            "original model's; infinite: not within unlearning/relearn/epochs; null: not tried",
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
            "single or double: number of thresholds of the attack; none: every attack is "
            "discarded; narrow: one sample is far narrower than the other (thresholds: grid)",
        ),
        Column(
            "lower",
            float,
            "lower threshold on the logit-scaled confidence; -inf: no threshold; null: no attack",
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
        Column("n_models", int, "number of unlearned models; there are as many retrained models"),
        QUALITY,
        Column("retain_accuracy", float, "share of right tokens, retained strings"),
        Column("retain_accuracy_retrained", float, "the same for the retrained models"),
        Column("test_accuracy", float, "share of right tokens, test strings"),
        Column("test_accuracy_retrained", float, "the same for the retrained models"),
        Column("forget_accuracy", float, "share of right tokens, forget strings"),
        Column("forget_accuracy_retrained", float, "the same for the retrained models"),
        Column(
            "final_score",
            float,
            "forgetting quality times two ratios of accuracy, unlearned to retrained: on retained "
            "and on test strings",
        ),
        Column("steps_share", float, "training steps, divided by the steps of retraining"),
        Column("seconds_share", float, "wall time, divided by the wall time of retraining"),
        Column(
            "within_cutoff",
            bool,
            "whether the share of steps is within unlearning/cutoff; true for none and retrain, "
            "the two ends",
        ),
    ),
)
SUMMARY = Kind(
    "unlearning_summary",
    "One row per method, set-up and quantity of the scores: the mean over the repetitions.",
    f"{FOLDER}/summary.parquet",
    (
        *PROBLEM,
        METHOD,
        SETUP,
        Column("quantity", str, "a column of `unlearning_scores`"),
        Column("n_repetitions", int, "number of repetitions"),
        Column("mean", float, "mean over the repetitions"),
        Column(
            "lower",
            float,
            "lower end of the 95 % Student interval; null: one repetition, or all repetitions use "
            "the same models (none, retrain and the accuracy of retrained models under reuse-n-n "
            "and reuse-n-1)",
            True,
        ),
        Column("upper", float, "upper end of the interval; null where `lower` is", True),
    ),
)
EFFECTS = Kind(
    "unlearning_effects",
    "One row per method and way of evaluating: the forgetting quality under this evaluation.",
    f"{FOLDER}/effects.parquet",
    (
        *PROBLEM,
        METHOD,
        Column(
            "effect",
            str,
            "attacker (judged on the models that it was fitted on, or on other models), n (number "
            "of models that judge an attacker), pool or repetitions (of the bootstrap)",
        ),
        Column("attacker", str, "models that judge the attacker: same as its fit, or held-out"),
        Column(
            "value",
            float,
            "for attacker and n: number of models of each distribution; for pool: size of the "
            "pool; for repetitions: number of repetitions compared",
        ),
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
            "value of the metric for retrained models, that is, for ideal unlearning",
            True,
        ),
        Column("n_models", int, "number of models in the estimate"),
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
        Column("before", float, "share of the original models that memorise the string"),
        Column("after", float, "share of the unlearned models that memorise the string"),
        Column(
            "retrained", float, "share of the retrained models that memorise the string: the ideal"
        ),
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
        Column("epsilon_sum", float, "sum over the methods of the string's mean epsilon"),
        Column("n_methods", int, "number of methods in the sum; none and retrain are left out"),
        Column(
            "loss_gap",
            float,
            "mean loss of retrained models minus mean loss of original models, nats per token",
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
        Column(
            "pearson",
            float,
            "correlation of their epsilons; null: a method has equal epsilons, or too few strings",
            True,
        ),
        Column("spearman", float, "correlation of the ranks; null: as for pearson", True),
    ),
)
TUNING = Kind(
    "unlearning_tuning",
    "One row per point of a method's grid: its scores, the best point first.",
    f"{FOLDER}/tuning.parquet",
    (
        *PROBLEM,
        METHOD,
        Column("point", str, "name of the point: the method and a number"),
        Column("settings", str, "values that the point sets, as JSON"),
        QUALITY,
        Column("final_score", float, "mean over the repetitions"),
        Column("within_cutoff", bool, "whether every repetition is within unlearning/cutoff"),
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
