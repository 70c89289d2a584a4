"""Kinds of tables of memorisation; the kinds of the studies are in the files of the studies."""

from palimpsest.memorisation.columns import (
    BAND,
    BELOW_AT_OPTIMUM,
    BELOW_COVERED,
    BELOW_DISTINCT,
    BELOW_UNSEEN,
    BELOW_UNSEEN_COVERED,
    BESIDE_STAND_INS,
    BROKEN_OF_STRING,
    CHEAP_EVIDENCE,
    COUNTERPART,
    COVERAGE,
    DEPTH_AT_OPTIMUM,
    DEPTH_DISTINCT,
    DEPTH_UNSEEN,
    FRACTION,
    FRACTION_DISTINCT,
    FRACTION_PERFECT,
    FRACTION_UNSEEN,
    INNER_BAND,
    LOSS,
    N_TRAIN,
    OPTIMAL_EPOCH,
    OPTIMAL_TEST,
    QUANTITY,
    SCORE,
    SCORE_AT_END,
    SCORE_AT_OPTIMUM,
    SPREAD,
    START,
    STILL_LEARNING,
    TARGET_COLUMNS,
    TEST_LOSS,
    THRESHOLD,
    THRESHOLD_AT_OPTIMUM,
    TRAIN_LOSS,
    TRAIN_LOSS_DISTINCT,
    WEIGHTED,
    WEIGHTED_DISTINCT,
    WEIGHTED_PERFECT,
    WEIGHTED_UNSEEN,
)
from palimpsest.tables.columns import (
    COUNT,
    EPOCH,
    EVIDENCE,
    GROUP_SEED,
    LANGUAGE,
    LOG_PROB,
    MEASURE,
    MODEL,
    SEED,
    SIZE,
    STRING_ID,
    VARIANT,
)
from palimpsest.tables.kinds import Column, Kind

FOLDER = "results/memorisation/{model}/{language}/n{size}"
OF_VARIANT = FOLDER + "/{variant}"
STARTS = Kind(
    "starts",
    "One row per seed, training string and measure: when memorisation starts.",
    f"{OF_VARIANT}/starts.parquet",
    (
        *GROUP_SEED,
        STRING_ID,
        COUNT,
        LOG_PROB,
        MEASURE,
        EVIDENCE,
        START,
        THRESHOLD_AT_OPTIMUM,
        SCORE_AT_OPTIMUM,
        SCORE_AT_END,
        BELOW_AT_OPTIMUM,
        DEPTH_AT_OPTIMUM,
        *BESIDE_STAND_INS,
        Column(
            "stand_in_gap",
            float,
            "for same-frequency: distance between the Bayes-optimal losses of the string and the "
            "nearest unseen strings, nats over all its tokens; otherwise NaN",
            True,
        ),
    ),
)
SCORES = Kind(
    "scores",
    "One row per seed, training string, measure and epoch.",
    f"{OF_VARIANT}/scores.parquet",
    (*GROUP_SEED, STRING_ID, MEASURE, EVIDENCE, EPOCH, LOSS, THRESHOLD, SCORE),
)
DATASET = Kind(
    "dataset",
    "One row per seed, measure and epoch: memorisation of the whole training set.",
    f"{OF_VARIANT}/dataset.parquet",
    (
        *GROUP_SEED,
        MEASURE,
        EVIDENCE,
        EPOCH,
        COVERAGE,
        FRACTION,
        WEIGHTED,
        FRACTION_DISTINCT,
        WEIGHTED_DISTINCT,
        BELOW_DISTINCT,
        DEPTH_DISTINCT,
        FRACTION_UNSEEN,
        WEIGHTED_UNSEEN,
        BELOW_UNSEEN,
        DEPTH_UNSEEN,
        BELOW_COVERED,
        BELOW_UNSEEN_COVERED,
        FRACTION_PERFECT,
        WEIGHTED_PERFECT,
        *BAND,
        *INNER_BAND,
        Column(
            "assumption_broken",
            float,
            "share of (string, epoch) pairs whose loss is above the loss without the string "
            "(Lemma 1 assumes that there are none); NaN if the measure does not use that loss",
            True,
        ),
    ),
)
LEARNING = Kind(
    "learning",
    "One row per seed and epoch: losses of the whole training and test sets.",
    f"{OF_VARIANT}/learning.parquet",
    (
        *GROUP_SEED,
        EPOCH,
        TRAIN_LOSS,
        TRAIN_LOSS_DISTINCT,
        TEST_LOSS,
        Column("unseen_loss", float, "loss on test strings that are not in train", True),
        Column("train_accuracy", float, "share of right tokens, training strings"),
        Column("test_accuracy", float, "share of right tokens, test strings"),
        *SPREAD,
        Column("optimal_train_loss", float, "Bayes-optimal loss on the training strings"),
        OPTIMAL_TEST,
        OPTIMAL_EPOCH,
        N_TRAIN,
        STILL_LEARNING,
    ),
)
AVERAGES = Kind(
    "averages",
    "One row per measure, quantity and epoch: mean and spread over the seeds.",
    f"{OF_VARIANT}/averages.parquet",
    (
        MODEL,
        LANGUAGE,
        SIZE,
        VARIANT,
        Column("measure", str, "as in `dataset`; null for a quantity of `learning`", True),
        Column("quantity", str, "a column of the table `dataset` or `learning`"),
        EPOCH,
        Column("n_seeds", int, "number of seeds for which the quantity has a value"),
        Column("mean", float, "mean over these seeds", True),
        Column("std", float, "sample standard deviation over these seeds", True),
        Column("min", float, "smallest value of these seeds", True),
        Column("max", float, "largest value of these seeds", True),
    ),
)
TARGET_SCORES = Kind(
    "target_scores",
    "One row per seed, target string, measure, evidence and epoch: memorisation by "
    "retraining without the string, and by the same-frequency approximation.",
    f"{FOLDER}/exact.parquet",
    TARGET_COLUMNS,
)
AGREEMENT = Kind(
    "agreement",
    "One row per seed, target string and measure: the difference between a cheaper threshold and "
    "exact retraining.",
    f"{FOLDER}/agreement.parquet",
    (
        MODEL,
        LANGUAGE,
        SIZE,
        SEED,
        Column("role", str, "s0, s1, ..."),
        STRING_ID,
        MEASURE,
        CHEAP_EVIDENCE,
        Column(
            "threshold_error",
            float,
            "threshold minus exact threshold, nats per token; this and the following columns are "
            "NaN if the string has no stand-ins",
            True,
        ),
        Column("start_error", float, "start minus exact start, epochs", True),
        Column("score_error", float, "mean absolute difference of the score", True),
        Column(
            "same_verdict", float, "share of epochs with the same verdict (memorised or not)", True
        ),
    ),
)
LEAVE_ONE_OUT = Kind(
    "leave_one_out",
    "One row per seed, training string that is left out, measure and evidence: memorisation by "
    "retraining without the string, by retraining once more, and by the approximations.",
    f"{FOLDER}/leave_one_out.parquet",
    (
        MODEL,
        LANGUAGE,
        SIZE,
        SEED,
        STRING_ID,
        COUNT,
        LOG_PROB,
        Column("weight", float, "number of distinct training strings that the string stands for"),
        MEASURE,
        EVIDENCE,
        Column(
            "threshold",
            float,
            "loss below which the string counts as memorised, nats per token; for counterfactual, "
            "the mean over the epochs, because this threshold changes; NaN if the string has no "
            "stand-ins",
            True,
        ),
        Column(
            "threshold_distance",
            float,
            "distance between this threshold and the threshold by retraining, mean over the "
            "epochs, nats per token; NaN if the string has no stand-ins",
            True,
        ),
        Column(
            "threshold_ratio",
            float,
            "this distance relative to the threshold by retraining; NaN if that threshold is ever "
            "0",
            True,
        ),
        START,
        SCORE_AT_OPTIMUM,
        SCORE_AT_END,
        BELOW_AT_OPTIMUM,
        DEPTH_AT_OPTIMUM,
        Column(
            "placebo_below_at_optimum",
            float,
            "below_at_optimum of a placebo, a string that no run was trained on: the one whose "
            "Bayes-optimal loss is nearest; NaN unless the evidence is a retraining",
            True,
        ),
        Column("placebo_depth_at_optimum", float, "depth_at_optimum of that placebo", True),
        Column(
            "self_influence",
            float,
            "loss when trained without the string minus loss when trained with it, mean over the "
            "epochs, nats per token; NaN for bayes",
            True,
        ),
        BROKEN_OF_STRING,
        OPTIMAL_EPOCH,
        STILL_LEARNING,
        COUNTERPART,
    ),
)
APPROXIMATION = Kind(
    "approximation",
    "One row per seed, group of training strings, measure, evidence, quantity and "
    "statistic: the quality of an approximation of exact retraining.",
    f"{FOLDER}/approximation.parquet",
    (
        MODEL,
        LANGUAGE,
        SIZE,
        SEED,
        Column(
            "group",
            str,
            "all, repeated (strings with several copies in the training data) or single (strings "
            "with one copy)",
        ),
        MEASURE,
        CHEAP_EVIDENCE,
        QUANTITY,
        Column(
            "statistic",
            str,
            "correlation (Spearman, of ranks; strings that never start rank last), "
            "mean_error (approximation minus exact), mean_absolute_error, mean_relative_error (for "
            "thresholds only) or same_verdict (share of strings that both or neither call "
            "memorised); the last two errors of a threshold are over strings and epochs",
        ),
        Column(
            "n_strings",
            int,
            "number of strings in the statistic; errors of a start use only strings that start "
            "both by retraining and by the approximation",
        ),
        Column(
            "value",
            float,
            "value of the statistic, in nats per token, in epochs, or without a unit; NaN if "
            "undefined, for example a correlation of equal values",
            True,
        ),
        Column("lower", float, "lower end of the 95 % bootstrap interval over strings", True),
        Column("upper", float, "upper end of this interval", True),
    ),
)

KINDS = (
    STARTS,
    SCORES,
    DATASET,
    LEARNING,
    AVERAGES,
    TARGET_SCORES,
    AGREEMENT,
    LEAVE_ONE_OUT,
    APPROXIMATION,
)
