"""Kinds of tables of memorisation; the studies have theirs beside them."""

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
LOSS = Column("loss", float, "the model's loss on the string, nats per predicted token")
THRESHOLD = Column(
    "threshold",
    float,
    "the loss below which the string counts as memorised at this epoch, nats per token "
    "(for recollection_accuracy: the share of wrong tokens)",
)
SCORE = Column("score", float, "degree of memorisation in [0, 1]; 0 before the start")
START = Column("start", float, "epoch at which memorisation starts; NaN if it never does", True)
MEAN_SEED = Column(
    "seed", int, "seed of the run; null: the losses were averaged over the seeds first", True
)
FRACTION = Column("fraction", float, "share of the training strings, copies counted, memorised")
WEIGHTED = Column("weighted", float, "mean score of the training strings, copies counted")
FRACTION_DISTINCT = Column("fraction_distinct", float, "share of the distinct training strings")
WEIGHTED_DISTINCT = Column("weighted_distinct", float, "mean score of the distinct strings")
FRACTION_UNSEEN = Column(
    "fraction_unseen",
    float,
    "share of the distinct test strings that were never trained on which the measure calls "
    "memorised: its false alarms; NaN where no other such string can stand in",
    True,
)
WEIGHTED_UNSEEN = Column(
    "weighted_unseen",
    float,
    "mean score of the distinct test strings that were never trained on; NaN where "
    "`fraction_unseen` is",
    True,
)
BELOW_UNSEEN = Column(
    "below_unseen",
    float,
    "share of these strings whose loss is below the threshold at this epoch, whether or not it "
    "stays there; NaN where `fraction_unseen` is",
    True,
)
BAND = (
    Column("band_first", float, "epoch at which the first string starts", True),
    Column("band_last", float, "epoch at which the last started string starts", True),
)
TRAIN_LOSS = Column("train_loss", float, "loss on the training strings, nats per token")
TEST_LOSS = Column("test_loss", float, "loss on the test strings, nats per token")
OPTIMAL_TEST = Column(
    "optimal_test_loss", float, "Bayes-optimal loss on the test strings, nats per token"
)
OPTIMAL_EPOCH = Column(
    "optimal_epoch", int, "epoch of optimal learning: lowest test loss of this run"
)
SCORE_AT_OPTIMUM = Column("score_at_optimum", float, "score at the epoch of optimal learning")
SCORE_AT_END = Column("score_at_end", float, "score at the last epoch")
CHEAP_EVIDENCE = Column("evidence", str, "same-frequency, or language for bayes")
QUANTITY = Column("quantity", str, "threshold, start, score_at_optimum or score_at_end")
BROKEN_OF_STRING = Column(
    "assumption_broken",
    float,
    "share of the string's epochs whose loss is above the loss without it",
    True,
)
TARGET_COLUMNS = (
    MODEL,
    LANGUAGE,
    SIZE,
    MEAN_SEED,
    Column("role", str, "s0, s1, ... in order of decreasing frequency"),
    STRING_ID,
    Column("count", int, "how often the string is in the training data with it"),
    LOG_PROB,
    Column("optimal_loss", float, "Bayes-optimal loss of the string, nats per token"),
    MEASURE,
    EVIDENCE,
    EPOCH,
    LOSS,
    Column(
        "loss_without",
        float,
        "loss when trained without it (or of its stand-ins); NaN if not used",
        True,
    ),
    THRESHOLD,
    SCORE,
    START,
    TEST_LOSS,
    BROKEN_OF_STRING,
)
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
        SCORE_AT_OPTIMUM,
        SCORE_AT_END,
        Column(
            "stand_in_gap",
            float,
            "same-frequency: distance of the stand-ins' log probability, nats; else NaN",
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
        FRACTION,
        WEIGHTED,
        FRACTION_DISTINCT,
        WEIGHTED_DISTINCT,
        FRACTION_UNSEEN,
        WEIGHTED_UNSEEN,
        BELOW_UNSEEN,
        *BAND,
        Column(
            "assumption_broken",
            float,
            "share of (string, epoch) pairs of the run whose loss is above the loss "
            "without the string (Lemma 1 assumes none); NaN where it does not apply",
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
        TEST_LOSS,
        Column("unseen_loss", float, "loss on test strings that are not in train", True),
        Column("train_accuracy", float, "share of right tokens, training strings"),
        Column("test_accuracy", float, "share of right tokens, test strings"),
        Column(
            "test_spread",
            float,
            "standard deviation of the loss over distinct test strings, nats per token",
        ),
        Column("optimal_train_loss", float, "Bayes-optimal loss on the training strings"),
        OPTIMAL_TEST,
        OPTIMAL_EPOCH,
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
        Column("n_seeds", int, "seeds for which the quantity has a value"),
        Column("mean", float, "over these seeds", True),
        Column("std", float, "standard deviation over them, of a sample", True),
        Column("min", float, "smallest of them", True),
        Column("max", float, "largest of them", True),
    ),
)
TARGET_SCORES = Kind(
    "target_scores",
    "One row per seed, target string, measure, evidence and epoch: memorisation by "
    "retraining without the string, beside the same-frequency approximation.",
    f"{FOLDER}/exact.parquet",
    TARGET_COLUMNS,
)
AGREEMENT = Kind(
    "agreement",
    "One row per seed, target string and measure: how far a cheaper threshold is from "
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
        Column("threshold_error", float, "threshold minus the exact one, nats per token"),
        Column("start_error", float, "start minus the exact start, epochs", True),
        Column("score_error", float, "mean absolute difference of the score"),
        Column(
            "same_verdict",
            float,
            "share of epochs with the same verdict (memorised or not)",
        ),
    ),
)
LEAVE_ONE_OUT = Kind(
    "leave_one_out",
    "One row per seed, training string, measure and evidence: memorisation by retraining "
    "without the string, beside the approximations.",
    f"{FOLDER}/leave_one_out.parquet",
    (
        MODEL,
        LANGUAGE,
        SIZE,
        SEED,
        STRING_ID,
        COUNT,
        LOG_PROB,
        MEASURE,
        EVIDENCE,
        Column(
            "threshold",
            float,
            "the loss below which the string counts as memorised, nats per token; for "
            "counterfactual, whose threshold changes, its mean over the epochs",
        ),
        Column(
            "threshold_distance",
            float,
            "distance of the threshold from that by retraining, mean over the epochs, "
            "nats per token",
        ),
        Column(
            "threshold_ratio",
            float,
            "the same relative to the threshold by retraining; NaN if that is ever 0",
            True,
        ),
        START,
        SCORE_AT_OPTIMUM,
        SCORE_AT_END,
        Column(
            "self_influence",
            float,
            "loss without the string minus the loss with it, mean over the epochs, nats "
            "per token; NaN for bayes",
            True,
        ),
        BROKEN_OF_STRING,
    ),
)
APPROXIMATION = Kind(
    "approximation",
    "One row per seed, group of training strings, measure, evidence, quantity and "
    "statistic: how good an approximation of exact retraining is.",
    f"{FOLDER}/approximation.parquet",
    (
        MODEL,
        LANGUAGE,
        SIZE,
        SEED,
        Column(
            "group",
            str,
            "all, or the strings that are repeated in the training data or single in it",
        ),
        MEASURE,
        CHEAP_EVIDENCE,
        QUANTITY,
        Column(
            "statistic",
            str,
            "correlation (Spearman, of ranks; strings that never start rank last), "
            "mean_error (approximation minus exact), mean_absolute_error and, of "
            "thresholds, mean_relative_error, both over strings and epochs; same_verdict "
            "(share of strings that both or neither call memorised)",
        ),
        Column(
            "n_strings",
            int,
            "strings behind it; errors of a start are over those that start in both",
        ),
        Column(
            "value",
            float,
            "in nats per token, epochs, or without a unit; NaN if undefined, as the "
            "correlation of equal values is",
            True,
        ),
        Column("lower", float, "lower end of its 95 % bootstrap interval", True),
        Column("upper", float, "upper end; the strings are what is resampled", True),
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
