"""Columns of the tables of memorisation that several kinds have."""

from palimpsest.tables.columns import (
    EPOCH,
    EVIDENCE,
    LANGUAGE,
    LOG_PROB,
    MEASURE,
    MODEL,
    SIZE,
    STRING_ID,
)
from palimpsest.tables.kinds import Column

LOSS = Column("loss", float, "the model's loss on the string, nats per predicted token")
THRESHOLD = Column(
    "threshold",
    float,
    "loss below which the string counts as memorised at this epoch, nats per token (for "
    "recollection_accuracy: share of wrong tokens); NaN if the string has no stand-ins",
    True,
)
SCORE = Column(
    "score",
    float,
    "degree of memorisation in [0, 1]; 0 before the start; NaN if the string has no stand-ins",
    True,
)
START = Column(
    "start",
    float,
    "epoch at which memorisation starts; NaN if it never starts, or if the string has no stand-ins",
    True,
)
MEAN_SEED = Column(
    "seed", int, "seed of the run; null: the losses were averaged over the seeds first", True
)
COVERAGE = Column(
    "coverage",
    float,
    "share of the training strings (with copies) that the measure applies to: those with stand-ins "
    "for same-frequency, otherwise all; the other columns are about these strings",
)
FRACTION = Column(
    "fraction",
    float,
    "share of training strings (with copies) that are memorised; NaN if the coverage is 0",
    True,
)
WEIGHTED = Column(
    "weighted",
    float,
    "mean score of the training strings (with copies); NaN if the coverage is 0",
    True,
)
FRACTION_DISTINCT = Column(
    "fraction_distinct",
    float,
    "share of distinct training strings that are memorised; NaN if the coverage is 0",
    True,
)
WEIGHTED_DISTINCT = Column(
    "weighted_distinct",
    float,
    "mean score of the distinct training strings; NaN if the coverage is 0",
    True,
)
BELOW_DISTINCT = Column(
    "below_distinct",
    float,
    "share of the distinct training strings whose loss is below the threshold at this epoch, even "
    "if it rises above the threshold later; NaN if the coverage is 0",
    True,
)
DEPTH_DISTINCT = Column(
    "depth_distinct",
    float,
    "mean over the distinct training strings of the score that they have at this epoch without the "
    "rule for the start; NaN if the coverage is 0",
    True,
)
BELOW_COVERED = Column(
    "below_covered",
    float,
    "`below_distinct` over the strings that have stand-ins, under every measure: on these strings, "
    "measures can be compared; NaN if no string has stand-ins",
    True,
)
BELOW_UNSEEN_COVERED = Column(
    "below_unseen_covered",
    float,
    "`below_unseen` over the unseen strings that have stand-ins, under every measure; NaN if there "
    "are none",
    True,
)
FRACTION_PERFECT = Column(
    "fraction_perfect",
    float,
    "placebo: `fraction` of a model that knows the language and nothing else, whose losses are the "
    "Bayes-optimal ones; NaN for recollection_accuracy",
    True,
)
WEIGHTED_PERFECT = Column("weighted_perfect", float, "`weighted` of such a model", True)
FRACTION_UNSEEN = Column(
    "fraction_unseen",
    float,
    "false alarms: share of the unseen strings (distinct strings that may stand in, because they "
    "were never trained on) that the measure calls memorised; NaN if the measure needs stand-ins "
    "and there are none",
    True,
)
WEIGHTED_UNSEEN = Column(
    "weighted_unseen",
    float,
    "mean score of the unseen strings; NaN if `fraction_unseen` is NaN",
    True,
)
BELOW_UNSEEN = Column(
    "below_unseen",
    float,
    "share of the unseen strings whose loss is below the threshold at this epoch, even if it rises "
    "above the threshold later; NaN if `fraction_unseen` is NaN",
    True,
)
DEPTH_UNSEEN = Column(
    "depth_unseen",
    float,
    "`depth_distinct` of the unseen strings; NaN if `fraction_unseen` is NaN",
    True,
)
BAND = (
    Column("band_first", float, "first epoch at which memorisation of a string starts", True),
    Column("band_last", float, "last epoch at which memorisation of a string starts", True),
    Column(
        "never_starts",
        float,
        "share of the distinct strings whose memorisation never starts; NaN if the coverage is 0",
        True,
    ),
)
INNER_BAND = (
    Column(
        "start_p10",
        float,
        "10 % quantile of the distinct strings' starts, epochs; a string that never starts counts "
        "as starting one epoch after the last; NaN if the coverage is 0",
        True,
    ),
    Column("start_p90", float, "90 % quantile of these starts, epochs", True),
)
TRAIN_LOSS = Column("train_loss", float, "loss on the training strings, nats per token")
TRAIN_LOSS_DISTINCT = Column(
    "train_loss_distinct", float, "loss on the distinct training strings, nats per token"
)
N_TRAIN = Column("n_train", int, "training strings, with copies; an epoch trains on each once")
STILL_LEARNING = Column(
    "still_learning",
    bool,
    "whether the epoch of optimal learning is in the last tenth of the training: the test loss may "
    "not have reached its minimum",
)
TEST_LOSS = Column("test_loss", float, "loss on the test strings, nats per token")
OPTIMAL_TEST = Column(
    "optimal_test_loss", float, "Bayes-optimal loss on the test strings, nats per token"
)
SPREAD = (
    Column(
        "test_loss_distinct",
        float,
        "mean loss of the distinct test strings, each of the same weight, nats per token",
    ),
    Column("test_spread", float, "standard deviation of these losses, nats per token"),
    Column(
        "optimal_test_loss_distinct",
        float,
        "mean Bayes-optimal loss of the distinct test strings, nats per token",
    ),
    Column(
        "optimal_test_spread",
        float,
        "standard deviation of these Bayes-optimal losses: the `test_spread` of a model that knows "
        "the language and nothing else, nats per token",
    ),
)
OPTIMAL_EPOCH = Column(
    "optimal_epoch", int, "epoch of optimal learning: lowest test loss of this run"
)
THRESHOLD_AT_OPTIMUM = Column(
    "threshold_at_optimum",
    float,
    "threshold at the epoch of optimal learning, nats per token (for recollection_accuracy: share "
    "of wrong tokens); NaN if the string has no stand-ins",
    True,
)
SCORE_AT_OPTIMUM = Column(
    "score_at_optimum",
    float,
    "score at the epoch of optimal learning; NaN if the string has no stand-ins",
    True,
)
SCORE_AT_END = Column(
    "score_at_end", float, "score at the last epoch; NaN if the string has no stand-ins", True
)
CHEAP_EVIDENCE = Column(
    "evidence",
    str,
    "same-frequency; language for bayes; replicate: retraining once more, with other initial "
    "weights, which is the ceiling for the others",
)
BELOW_AT_OPTIMUM = Column(
    "below_at_optimum",
    float,
    "1 if the loss is below the threshold at the epoch of optimal learning, even if it rises above "
    "the threshold later, otherwise 0; NaN if the string has no stand-ins",
    True,
)
DEPTH_AT_OPTIMUM = Column(
    "depth_at_optimum",
    float,
    "score at the epoch of optimal learning without the rule for the start; NaN likewise",
    True,
)
BESIDE_STAND_INS = (
    Column(
        "below_unseen",
        float,
        "mean `below_at_optimum` of the string's stand-ins, which were never trained on: unseen "
        "strings of the same Bayes-optimal loss; NaN if the string has no stand-ins, or if these "
        "need stand-ins and have none",
        True,
    ),
    Column("depth_unseen", float, "mean `depth_at_optimum` of the string's stand-ins", True),
)
QUANTITY = Column("quantity", str, "threshold, start, score_at_optimum or score_at_end")
COUNTERPART = Column(
    "counterpart",
    str,
    "the language's counterpart of high entropy, with the same rules; null if it has none",
    True,
)
BROKEN_OF_STRING = Column(
    "assumption_broken",
    float,
    "share of epochs at which the string's loss is above its loss when trained without it",
    True,
)
TARGET_COLUMNS = (
    MODEL,
    LANGUAGE,
    SIZE,
    MEAN_SEED,
    Column("role", str, "s0, s1, ... in order of decreasing frequency"),
    STRING_ID,
    Column("count", int, "copies of the string in the training data that include it"),
    LOG_PROB,
    Column("optimal_loss", float, "Bayes-optimal loss of the string, nats per token"),
    MEASURE,
    EVIDENCE,
    EPOCH,
    LOSS,
    Column(
        "loss_without",
        float,
        "loss of the string when trained without it, or loss of its stand-ins; NaN if not used",
        True,
    ),
    THRESHOLD,
    SCORE,
    START,
    TEST_LOSS,
    BROKEN_OF_STRING,
)
