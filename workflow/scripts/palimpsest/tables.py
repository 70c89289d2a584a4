"""The Parquet tables: every schema declared once, written atomically, checked on read.

A table is a pandas frame with exactly the columns of its kind. The kinds are the public contract;
`docs/tables.md` is written from them.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from palimpsest.errors import WRITE_REMEDY, UserError


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type, what it means (with its unit), whether it may be null."""

    name: str
    type: pa.DataType
    meaning: str
    nullable: bool = False


@dataclass(frozen=True)
class Kind:
    """A kind of table: its name, one sentence on its rows, where such tables are, its columns."""

    name: str
    rows: str
    path: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with the kind's name in its metadata."""
        fields = [pa.field(c.name, c.type, nullable=c.nullable) for c in self.columns]
        return pa.schema(fields, metadata={"palimpsest_table": self.name})


_text, _int, _float, _flag = pa.string(), pa.int64(), pa.float64(), pa.bool_()

MODEL = Column("model", _text, "name of the model, a row of config/models.tsv; `-twin` is its twin")
LANGUAGE = Column(
    "language", _text, "name of the language, a file config/languages/{language}.pcfg"
)
SIZE = Column("size", _int, "training strings asked for, copies counted")
SEED = Column("seed", _int, "seed of the sample, the initialisation and the order of the data")
VARIANT = Column(
    "variant",
    _text,
    "base, dedup, dedup-matched, with-s0, without-s0, original, retain, ...; in the folder "
    "leave-one-out without-{string_id}, the run without that training string; in folders of draws "
    "original-{draw} and retain-{draw}, one of many trainings",
)
STRING_ID = Column("string_id", _text, "name of the string: 12 hexadecimal digits of its SHA-256")
EPOCH = Column(
    "epoch", _int, "passes over the training data before the measurement; 0 is untrained"
)
MEASURE = Column(
    "measure",
    _text,
    "recollection, recollection_accuracy, counterfactual, contextual or bayes",
)
EVIDENCE = Column(
    "evidence",
    _text,
    "where the threshold comes from: constant, same-frequency (test strings), retraining "
    "(without the string) or language (exact probabilities)",
)
LOSS = Column("loss", _float, "the model's loss on the string, nats per predicted token")
THRESHOLD = Column(
    "threshold",
    _float,
    "the loss below which the string counts as memorised at this epoch, nats per token "
    "(for recollection_accuracy: the share of wrong tokens)",
)
SCORE = Column("score", _float, "degree of memorisation in [0, 1]; 0 before the start")
START = Column("start", _float, "epoch at which memorisation starts; NaN if it never does", True)
MEAN_SEED = Column(
    "seed", _int, "seed of the run; null: the losses were averaged over the seeds first", True
)
GROUP_SEED = (MODEL, LANGUAGE, SIZE, SEED, VARIANT)
LOG_PROB = Column(
    "log_prob",
    _float,
    "exact log probability, nats, under the language of the training strings (for dedup-matched, "
    "the high-entropy counterpart)",
)
DERIVATION = Column(
    "derivation_log_prob", _float, "log probability of the derivation that produced it, nats", True
)
TEXT = Column("text", _text, "the terminals, separated by spaces")
FRACTION = Column("fraction", _float, "share of the training strings, copies counted, memorised")
WEIGHTED = Column("weighted", _float, "mean score of the training strings, copies counted")
FRACTION_DISTINCT = Column("fraction_distinct", _float, "share of the distinct training strings")
WEIGHTED_DISTINCT = Column("weighted_distinct", _float, "mean score of the distinct strings")
FRACTION_UNSEEN = Column(
    "fraction_unseen",
    _float,
    "share of the distinct test strings that were never trained on which the measure calls "
    "memorised: its false alarms; NaN where no other such string can stand in",
    True,
)
WEIGHTED_UNSEEN = Column(
    "weighted_unseen",
    _float,
    "mean score of the distinct test strings that were never trained on; NaN likewise",
    True,
)
BELOW_UNSEEN = Column(
    "below_unseen",
    _float,
    "share of these strings whose loss is below the threshold at this epoch, whether or not it "
    "stays there; NaN likewise",
    True,
)
BAND = (
    Column("band_first", _float, "epoch at which the first string starts", True),
    Column("band_last", _float, "epoch at which the last started string starts", True),
)
TRAIN_LOSS = Column("train_loss", _float, "loss on the training strings, nats per token")
TEST_LOSS = Column("test_loss", _float, "loss on the test strings, nats per token")
OPTIMAL_TEST = Column(
    "optimal_test_loss", _float, "Bayes-optimal loss on the test strings, nats per token"
)
OPTIMAL_EPOCH = Column(
    "optimal_epoch", _int, "epoch of optimal learning: lowest test loss of this run"
)

COUNT = Column("count", _int, "how often in the training multiset")
SCORE_AT_OPTIMUM = Column("score_at_optimum", _float, "score at the epoch of optimal learning")
SCORE_AT_END = Column("score_at_end", _float, "score at the last epoch")
CHEAP_EVIDENCE = Column("evidence", _text, "same-frequency, or language for bayes")
QUANTITY = Column("quantity", _text, "threshold, start, score_at_optimum or score_at_end")
BROKEN_OF_STRING = Column(
    "assumption_broken",
    _float,
    "share of the string's epochs whose loss is above the loss without it",
    True,
)

PROBLEM = (MODEL, LANGUAGE, SIZE, SEED)
METHOD = Column(
    "method",
    _text,
    "the unlearning method, a name of the table of methods; none is the original model, retrain "
    "another retrained one",
)
SETUP = Column("setup", _text, "full, reuse-n-n, reuse-n-1 or bootstrap")
REPETITION = Column("repetition", _int, "which of the repetitions of the evaluation, from 0")
UNLEARNED_MODEL = (
    *PROBLEM,
    METHOD,
    Column("origin", _int, "draw of the model that it started from"),
    Column("draw", _int, "which of the unlearnings of that model, from 0"),
)
QUALITY = Column("forgetting_quality", _float, "mean of the forget strings' points, in [0, 1]")
PREDICTED = (
    Column("nll", _float, "nats, summed over the predicted tokens"),
    Column("n_tokens", _int, "predicted tokens"),
    Column("n_correct", _int, "tokens whose most probable prediction is right"),
    Column("rank_sum", _int, "sum of the ranks of the true tokens; best rank is 1"),
)

TARGET_COLUMNS = (
    MODEL,
    LANGUAGE,
    SIZE,
    MEAN_SEED,
    Column("role", _text, "s0, s1, ... in order of decreasing frequency"),
    STRING_ID,
    Column("count", _int, "how often the string is in the training data with it"),
    LOG_PROB,
    Column("optimal_loss", _float, "Bayes-optimal loss of the string, nats per token"),
    MEASURE,
    EVIDENCE,
    EPOCH,
    LOSS,
    Column(
        "loss_without",
        _float,
        "loss when trained without it (or of its stand-ins); NaN if not used",
        True,
    ),
    THRESHOLD,
    SCORE,
    START,
    TEST_LOSS,
    BROKEN_OF_STRING,
)

KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "language_sample",
            "One row per distinct string of a sample of the language.",
            "results/languages/{language}/sample.parquet",
            (
                LANGUAGE,
                STRING_ID,
                TEXT,
                Column("length", _int, "number of terminals"),
                Column("count", _int, "how often it came up in the sample"),
                LOG_PROB,
                DERIVATION,
            ),
        ),
        Kind(
            "targets",
            "One row per target string: the strings that are left out and put back, most "
            "frequent first.",
            "results/languages/{language}/targets.parquet",
            (LANGUAGE, Column("role", _text, "s0, s1, ..."), STRING_ID, TEXT, LOG_PROB),
        ),
        Kind(
            "strings",
            "One row per distinct string of a dataset.",
            "results/datasets/{language}/n{size}-seed{seed}/{variant}/strings.parquet",
            (
                LANGUAGE,
                SIZE,
                SEED,
                VARIANT,
                STRING_ID,
                TEXT,
                Column("n_tokens", _int, "predicted tokens"),
                Column(
                    "split",
                    _text,
                    "train (count > 0), test, or held_out (only measured); in original and retain "
                    "also forget (to be forgotten) and validation",
                ),
                COUNT,
                Column(
                    "test_count",
                    _int,
                    "how often in the test set; a train string with test_count > 0 was seen in "
                    "training, so it measures learning and never stands in for another string",
                ),
                Column("role", _text, "s0, s1, ... for a target string", True),
                Column("group", _text, "what is forgotten or retained together", True),
                LOG_PROB,
                DERIVATION,
                Column(
                    "optimal_loss",
                    _float,
                    "Bayes-optimal loss under the same language, nats per predicted token",
                ),
            ),
        ),
        Kind(
            "trace",
            "One row per epoch and string: how well the model predicts it. In the folder "
            "leave-one-out one run per training string stands after another.",
            "results/runs/{model}/{language}/n{size}-seed{seed}/{variant}/trace.parquet",
            (
                *GROUP_SEED,
                EPOCH,
                STRING_ID,
                *PREDICTED,
            ),
        ),
        Kind(
            "starts",
            "One row per seed, training string and measure: when memorisation starts.",
            "results/memorisation/{model}/{language}/n{size}/{variant}/starts.parquet",
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
                    _float,
                    "same-frequency: distance of the stand-ins' log probability, nats; else NaN",
                    True,
                ),
            ),
        ),
        Kind(
            "scores",
            "One row per seed, training string, measure and epoch.",
            "results/memorisation/{model}/{language}/n{size}/{variant}/scores.parquet",
            (*GROUP_SEED, STRING_ID, MEASURE, EVIDENCE, EPOCH, LOSS, THRESHOLD, SCORE),
        ),
        Kind(
            "dataset",
            "One row per seed, measure and epoch: memorisation of the whole training set.",
            "results/memorisation/{model}/{language}/n{size}/{variant}/dataset.parquet",
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
                    _float,
                    "share of (string, epoch) pairs of the run whose loss is above the loss "
                    "without the string (Lemma 1 assumes none); NaN where it does not apply",
                    True,
                ),
            ),
        ),
        Kind(
            "learning",
            "One row per seed and epoch: losses of the whole training and test sets.",
            "results/memorisation/{model}/{language}/n{size}/{variant}/learning.parquet",
            (
                *GROUP_SEED,
                EPOCH,
                TRAIN_LOSS,
                TEST_LOSS,
                Column("unseen_loss", _float, "loss on test strings that are not in train", True),
                Column("train_accuracy", _float, "share of right tokens, training strings"),
                Column("test_accuracy", _float, "share of right tokens, test strings"),
                Column(
                    "test_spread",
                    _float,
                    "standard deviation of the loss over distinct test strings, nats per token",
                ),
                Column("optimal_train_loss", _float, "Bayes-optimal loss on the training strings"),
                OPTIMAL_TEST,
                OPTIMAL_EPOCH,
            ),
        ),
        Kind(
            "averages",
            "One row per measure, quantity and epoch: mean and spread over the seeds.",
            "results/memorisation/{model}/{language}/n{size}/{variant}/averages.parquet",
            (
                MODEL,
                LANGUAGE,
                SIZE,
                VARIANT,
                Column(
                    "measure", _text, "as in `dataset`; null for a quantity of `learning`", True
                ),
                Column("quantity", _text, "a column of the table `dataset` or `learning`"),
                EPOCH,
                Column("n_seeds", _int, "seeds for which the quantity has a value"),
                Column("mean", _float, "over these seeds", True),
                Column("std", _float, "standard deviation over them, of a sample", True),
                Column("min", _float, "smallest of them", True),
                Column("max", _float, "largest of them", True),
            ),
        ),
        Kind(
            "target_scores",
            "One row per seed, target string, measure, evidence and epoch: memorisation by "
            "retraining without the string, beside the same-frequency approximation.",
            "results/memorisation/{model}/{language}/n{size}/exact.parquet",
            TARGET_COLUMNS,
        ),
        Kind(
            "agreement",
            "One row per seed, target string and measure: how far a cheaper threshold is from "
            "exact retraining.",
            "results/memorisation/{model}/{language}/n{size}/agreement.parquet",
            (
                MODEL,
                LANGUAGE,
                SIZE,
                SEED,
                Column("role", _text, "s0, s1, ..."),
                STRING_ID,
                MEASURE,
                CHEAP_EVIDENCE,
                Column("threshold_error", _float, "threshold minus the exact one, nats per token"),
                Column("start_error", _float, "start minus the exact start, epochs", True),
                Column("score_error", _float, "mean absolute difference of the score"),
                Column(
                    "same_verdict",
                    _float,
                    "share of epochs with the same verdict (memorised or not)",
                ),
            ),
        ),
        Kind(
            "leave_one_out",
            "One row per seed, training string, measure and evidence: memorisation by retraining "
            "without the string, beside the approximations.",
            "results/memorisation/{model}/{language}/n{size}/leave_one_out.parquet",
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
                    _float,
                    "the loss below which the string counts as memorised, nats per token; for "
                    "counterfactual, whose threshold changes, its mean over the epochs",
                ),
                Column(
                    "threshold_distance",
                    _float,
                    "distance of the threshold from that by retraining, mean over the epochs, "
                    "nats per token",
                ),
                Column(
                    "threshold_ratio",
                    _float,
                    "the same relative to the threshold by retraining; NaN if that is ever 0",
                    True,
                ),
                START,
                SCORE_AT_OPTIMUM,
                SCORE_AT_END,
                Column(
                    "self_influence",
                    _float,
                    "loss without the string minus the loss with it, mean over the epochs, nats "
                    "per token; NaN for bayes",
                    True,
                ),
                BROKEN_OF_STRING,
            ),
        ),
        Kind(
            "approximation",
            "One row per seed, group of training strings, measure, evidence, quantity and "
            "statistic: how good an approximation of exact retraining is.",
            "results/memorisation/{model}/{language}/n{size}/approximation.parquet",
            (
                MODEL,
                LANGUAGE,
                SIZE,
                SEED,
                Column(
                    "group",
                    _text,
                    "all, or the strings that are repeated in the training data or single in it",
                ),
                MEASURE,
                CHEAP_EVIDENCE,
                QUANTITY,
                Column(
                    "statistic",
                    _text,
                    "correlation (Spearman, of ranks; strings that never start rank last), "
                    "mean_error (approximation minus exact), mean_absolute_error and, of "
                    "thresholds, mean_relative_error, both over strings and epochs; same_verdict "
                    "(share of strings that both or neither call memorised)",
                ),
                Column(
                    "n_strings",
                    _int,
                    "strings behind it; errors of a start are over those that start in both",
                ),
                Column(
                    "value",
                    _float,
                    "in nats per token, epochs, or without a unit; NaN if undefined, as the "
                    "correlation of equal values is",
                    True,
                ),
                Column("lower", _float, "lower end of its 95 % bootstrap interval", True),
                Column("upper", _float, "upper end; the strings are what is resampled", True),
            ),
        ),
        Kind(
            "disagreement",
            "One row per model, seed, target string, measure, evidence and epoch: the tables "
            "`target_scores`, stacked.",
            "results/studies/disagreement/{language}.parquet",
            TARGET_COLUMNS,
        ),
        Kind(
            "exact",
            "One row per model, seed, training string, measure, evidence and quantity: the "
            "approximation beside exact retraining.",
            "results/studies/exact/{language}.parquet",
            (
                MODEL,
                LANGUAGE,
                SIZE,
                SEED,
                STRING_ID,
                COUNT,
                LOG_PROB,
                MEASURE,
                CHEAP_EVIDENCE,
                QUANTITY,
                Column("exact", _float, "by retraining without the string; NaN: no start", True),
                Column("approximate", _float, "by the cheaper threshold; NaN: no start", True),
                Column(
                    "correlation",
                    _float,
                    "Spearman rank correlation of the two over the run's strings; NaN if undefined",
                    True,
                ),
            ),
        ),
        Kind(
            "tradeoff",
            "One row per model, seed, measure and epoch, with the losses beside it.",
            "results/studies/tradeoff/{language}.parquet",
            (
                *GROUP_SEED,
                MEASURE,
                EPOCH,
                FRACTION,
                WEIGHTED,
                FRACTION_DISTINCT,
                WEIGHTED_DISTINCT,
                FRACTION_UNSEEN,
                WEIGHTED_UNSEEN,
                BELOW_UNSEEN,
                TRAIN_LOSS,
                TEST_LOSS,
                OPTIMAL_TEST,
                OPTIMAL_EPOCH,
                *BAND,
            ),
        ),
        Kind(
            "frequency",
            "One row per model, seed, measure, group and epoch.",
            "results/studies/frequency/{language}.parquet",
            (
                *GROUP_SEED,
                MEASURE,
                Column("group", _text, "top or bottom: most or least frequent distinct strings"),
                EPOCH,
                Column("n_strings", _int, "distinct strings in the group"),
                Column("loss", _float, "mean loss of the group, nats per token"),
                FRACTION_DISTINCT,
                WEIGHTED_DISTINCT,
                OPTIMAL_EPOCH,
            ),
        ),
        Kind(
            "deduplication",
            "One row per model, seed, variant, measure and epoch.",
            "results/studies/deduplication/{language}.parquet",
            (
                *GROUP_SEED,
                MEASURE,
                EPOCH,
                FRACTION_DISTINCT,
                WEIGHTED_DISTINCT,
                FRACTION_UNSEEN,
                TRAIN_LOSS,
                TEST_LOSS,
                Column("test_spread", _float, "standard deviation of the loss over test strings"),
                OPTIMAL_EPOCH,
                Column("start_p10", _float, "10 % quantile of the strings' starts, epochs", True),
                Column("start_p90", _float, "90 % quantile of the strings' starts, epochs", True),
            ),
        ),
        Kind(
            "training_size",
            "One row per model, seed, size and measure, at the epoch of optimal learning.",
            "results/studies/training_size/{language}.parquet",
            (
                *GROUP_SEED,
                MEASURE,
                OPTIMAL_EPOCH,
                TEST_LOSS,
                OPTIMAL_TEST,
                FRACTION,
                WEIGHTED,
                Column("n_repeated", _int, "distinct training strings that occur more than once"),
                Column(
                    "weighted_repeated",
                    _float,
                    "mean score of the distinct strings that occur more than once",
                    True,
                ),
            ),
        ),
        Kind(
            "model_size",
            "One row per model, seed, measure and epoch.",
            "results/studies/model_size/{language}.parquet",
            (
                *GROUP_SEED,
                Column("family", _text, "family of the model"),
                Column("parameters", _int, "number of parameters of the model as trained"),
                MEASURE,
                EPOCH,
                TEST_LOSS,
                OPTIMAL_TEST,
                FRACTION,
                WEIGHTED,
                OPTIMAL_EPOCH,
            ),
        ),
        Kind(
            "claims",
            "One row per claim of the paper that this study can test.",
            "results/claims.parquet",
            (
                Column("question", _text, "RQ1 ... RQ9, approximation or bayes"),
                Column("claim", _text, "the claim, in one sentence"),
                Column("statistic", _text, "what is computed to test it"),
                Column("agrees_if", _text, "the region of the statistic in which the claim holds"),
                Column("language", _text, "language on which it was tested"),
                Column("n_models", _int, "models averaged over"),
                Column(
                    "n_seeds",
                    _int,
                    "seeds behind the interval; where it is of one seed, it is over the strings",
                ),
                Column("estimate", _float, "mean over the seeds", True),
                Column("lower", _float, "lower end of the 95 % interval", True),
                Column("upper", _float, "upper end of the 95 % interval", True),
                Column("verdict", _text, "agrees, disagrees or cannot tell"),
                Column(
                    "by_construction",
                    _flag,
                    "true where the definitions alone decide it; not counted in the headline",
                ),
            ),
        ),
        Kind(
            "unlearned",
            "One row per unlearned model and string: how well the model predicts it.",
            "results/unlearning/{model}/{language}/n{size}-seed{seed}/unlearned/{method}/"
            "runs-{first}-{last}/unlearned.parquet",
            (
                *UNLEARNED_MODEL,
                STRING_ID,
                *PREDICTED,
            ),
        ),
        Kind(
            "unlearned_models",
            "One row per unlearned model: what it cost, how far it went and how fast it relearns.",
            "results/unlearning/{model}/{language}/n{size}-seed{seed}/unlearned/{method}/"
            "runs-{first}-{last}/models.parquet",
            (
                *UNLEARNED_MODEL,
                Column("steps", _int, "passes forward and back over a batch, all phases together"),
                Column("seconds", _float, "wall time of the unlearning, its share of a wave's"),
                Column(
                    "distance_to_original",
                    _float,
                    "L2 distance of its weights from the original model of its number; null "
                    "if there is none",
                    True,
                ),
                Column(
                    "distance_to_retrained",
                    _float,
                    "L2 distance of its weights from the retrained model of its number",
                ),
                Column(
                    "relearn_epochs",
                    _float,
                    "epochs of training on the forget set until its loss there is as low as the "
                    "original's; infinite if not within unlearning/relearn/epochs; null if not "
                    "tried",
                    True,
                ),
            ),
        ),
        Kind(
            "epsilons",
            "One row per method, set-up, repetition and forget string: the strongest attack that "
            "tells unlearned models from retrained ones.",
            "results/unlearning/{model}/{language}/n{size}-seed{seed}/epsilons.parquet",
            (
                *PROBLEM,
                METHOD,
                SETUP,
                REPETITION,
                STRING_ID,
                Column("epsilon", _float, "of (epsilon, delta)-unlearning, at most 50"),
                Column(
                    "attack",
                    _text,
                    "single or double: how many thresholds the attack has; none: every attack is "
                    "discarded; narrow: told apart by the width of a sample (thresholds: grid)",
                ),
                Column(
                    "lower",
                    _float,
                    "lower threshold on the logit-scaled confidence; -inf: none; null: no attack",
                    True,
                ),
                Column("upper", _float, "upper threshold; null likewise", True),
                Column("fpr", _float, "false positive rate of the attack; null likewise", True),
                Column("fnr", _float, "false negative rate of the attack; null likewise", True),
            ),
        ),
        Kind(
            "unlearning_scores",
            "One row per method, set-up and repetition: forgetting, utility and cost.",
            "results/unlearning/{model}/{language}/n{size}-seed{seed}/scores.parquet",
            (
                *PROBLEM,
                METHOD,
                SETUP,
                REPETITION,
                Column("n_models", _int, "unlearned models, and as many retrained ones"),
                QUALITY,
                Column("retain_accuracy", _float, "share of right tokens, retained strings"),
                Column("retain_accuracy_retrained", _float, "the same of the retrained models"),
                Column("test_accuracy", _float, "share of right tokens, test strings"),
                Column("test_accuracy_retrained", _float, "the same of the retrained models"),
                Column("forget_accuracy", _float, "share of right tokens, forget strings"),
                Column("forget_accuracy_retrained", _float, "the same of the retrained models"),
                Column("final_score", _float, "quality times both ratios of accuracy"),
                Column(
                    "steps_share", _float, "its training steps, as a share of those of retraining"
                ),
                Column("seconds_share", _float, "its wall time, as a share of retraining's"),
                Column(
                    "within_cutoff",
                    _flag,
                    "whether the share of steps is within unlearning/cutoff; true of none and "
                    "retrain, the two ends",
                ),
            ),
        ),
        Kind(
            "unlearning_summary",
            "One row per method, set-up and quantity of the scores: its mean over repetitions.",
            "results/unlearning/{model}/{language}/n{size}-seed{seed}/summary.parquet",
            (
                *PROBLEM,
                METHOD,
                SETUP,
                Column("quantity", _text, "a column of `unlearning_scores`"),
                Column("n_repetitions", _int, "repetitions behind the interval"),
                Column("mean", _float, "over the repetitions"),
                Column(
                    "lower",
                    _float,
                    "lower end of the 95 % Student interval; null: one repetition, or none of the "
                    "models is drawn anew (none, retrain and the accuracy of retrained models "
                    "under reuse-n-n and reuse-n-1)",
                    True,
                ),
                Column("upper", _float, "upper end of the interval; null likewise", True),
            ),
        ),
        Kind(
            "unlearning_effects",
            "One row per method and way of evaluating: how the forgetting quality depends on it.",
            "results/unlearning/{model}/{language}/n{size}-seed{seed}/effects.parquet",
            (
                *PROBLEM,
                METHOD,
                Column(
                    "effect",
                    _text,
                    "attacker (fitted and evaluated on the same models or on others), n (models "
                    "that evaluate a fitted attacker), pool or repetitions (of the bootstrap)",
                ),
                Column("attacker", _text, "same or held-out: the models that evaluate it"),
                Column("value", _float, "models, of which each distribution has as many; the pool"),
                REPETITION,
                QUALITY,
            ),
        ),
        Kind(
            "unlearning_metrics",
            "One row per method and metric: other measures of forgetting from the literature.",
            "results/unlearning/{model}/{language}/n{size}-seed{seed}/metrics.parquet",
            (
                *PROBLEM,
                METHOD,
                Column(
                    "metric",
                    _text,
                    "accuracy_gap, mia_accuracy, mia_gap, relearn_epochs, distance_to_original, "
                    "distance_to_retrained, ks_log_p or extraction",
                ),
                Column("estimate", _float, "mean over the models", True),
                Column("lower", _float, "lower end of the 95 % interval", True),
                Column("upper", _float, "upper end of the 95 % interval", True),
                Column(
                    "reference",
                    _float,
                    "what retrained models have: the value that ideal unlearning has",
                    True,
                ),
                Column("n_models", _int, "models behind the estimate"),
            ),
        ),
        Kind(
            "unlearning_memorisation",
            "One row per method, forget string and measure of memorisation: whether unlearning "
            "removes it.",
            "results/unlearning/{model}/{language}/n{size}-seed{seed}/memorisation.parquet",
            (
                *PROBLEM,
                METHOD,
                STRING_ID,
                MEASURE,
                EVIDENCE,
                Column(
                    "threshold",
                    _float,
                    "the loss below which the string counts as memorised, nats per token (for "
                    "recollection_accuracy: the share of wrong tokens)",
                ),
                Column("before", _float, "share of the original models that memorise it"),
                Column("after", _float, "share of the unlearned models that do"),
                Column("retrained", _float, "share of the retrained models that do: the ideal"),
                Column("score_before", _float, "mean score of the original models"),
                Column("score_after", _float, "mean score of the unlearned models"),
                Column("score_retrained", _float, "mean score of the retrained models"),
            ),
        ),
        Kind(
            "unlearning_hardness",
            "One row per forget string: how hard it is to forget, over all methods.",
            "results/unlearning/{model}/{language}/n{size}-seed{seed}/hardness.parquet",
            (
                *PROBLEM,
                STRING_ID,
                COUNT,
                LOG_PROB,
                Column("epsilon_sum", _float, "sum over the methods of its mean epsilon"),
                Column("n_methods", _int, "methods in the sum; none and retrain are not"),
                Column(
                    "loss_gap",
                    _float,
                    "mean loss of retrained less that of original models, nats per token",
                ),
            ),
        ),
        Kind(
            "unlearning_agreement",
            "One row per pair of methods: whether they find the same strings hard.",
            "results/unlearning/{model}/{language}/n{size}-seed{seed}/agreement.parquet",
            (
                *PROBLEM,
                METHOD,
                Column("other", _text, "the other method"),
                Column("n_strings", _int, "forget strings compared"),
                Column("pearson", _float, "correlation of their epsilons; null: no spread", True),
                Column("spearman", _float, "correlation of their ranks; null: no spread", True),
            ),
        ),
        Kind(
            "unlearning_tuning",
            "One row per point of a method's grid: its scores, the best point first.",
            "results/unlearning/{model}/{language}/n{size}-seed{seed}/tuning.parquet",
            (
                *PROBLEM,
                METHOD,
                Column("point", _text, "name of the point: the method's, and its number"),
                Column("settings", _text, "its values, as JSON"),
                QUALITY,
                Column("final_score", _float, "mean over the repetitions"),
                Column("within_cutoff", _flag, "whether it is fast enough to count"),
            ),
        ),
        Kind(
            "plan",
            "One row per run; of leave-one-out, one per seed for all its trainings. What each is "
            "expected to need (docs/plan.md).",
            "results/plan.parquet",
            (
                *GROUP_SEED,
                Column("engine", _text, "fleet or deepspeed"),
                Column("trainings", _int, "trainings in the row: 1, or of leave-one-out at most"),
                Column("parameters", _int, "of the model at its scale; of a twin, in closed form"),
                Column("gpus", _int, "GPUs that its job asks for"),
                Column(
                    "gpu_memory_gb",
                    _float,
                    "memory on each GPU, GB (10^9 bytes); null for twins, which fit anywhere",
                    True,
                ),
                Column("main_memory_gb", _float, "main memory of its job, GB, without margin"),
                Column("hours", _float, "how long it takes, without margin"),
                Column("training_hours", _float, "of these, training"),
                Column("measuring_hours", _float, "of these, measuring the strings"),
                Column("checkpoint_hours", _float, "of these, writing checkpoints"),
                Column("gpu_hours", _float, "hours times GPUs"),
                Column(
                    "basis",
                    _text,
                    "where the hours come from: measured (finished runs of the model; checkpoints "
                    "count as measuring) or assumed",
                ),
                Column("disk_gb", _float, "what it leaves: trace and, if wanted, weights, GB"),
                Column("state_gb", _float, "checkpoints on disk while it is under way, GB"),
                Column("done", _flag, "whether its trace and manifest are there"),
            ),
        ),
    )
}


def write(path: str | Path, frame: pd.DataFrame, kind: str) -> None:
    """Write a table atomically: a reader sees the old file or the whole new one, never a part.

    Raises `UserError` naming the column if the frame does not have exactly the kind's columns, or
    has a null where none is allowed, or if the disk or folder refuses the file.
    """
    write_parts(path, [frame], kind)


def write_parts(path: str | Path, frames: Iterable[pd.DataFrame], kind: str) -> None:
    """Write a table as `write` does, from parts that need not be in memory together."""
    schema = KINDS[kind].schema
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd") as writer,
    ):
        for frame in frames:
            check_columns(path, list(frame.columns), kind)
            for field in schema:
                if not field.nullable and frame[field.name].isna().any():
                    raise UserError(
                        f"{path}: column {field.name!r} of a {kind} table must not be null"
                    )
            table = pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False)
            writer.write_table(table)


def read(path: str | Path, kind: str) -> pd.DataFrame:
    """Read a table and check that it is whole and of the kind.

    Raises `UserError` with the remedy if the file is missing, truncated or of another kind.
    """
    return read_arrow(path, kind).to_pandas()


def read_arrow(
    path: str | Path,
    kind: str,
    columns: list[str] | None = None,
    filters: list[tuple] | None = None,
) -> pa.Table:
    """Read a table as `read` does, and of it only some columns, and the rows that pass filters.

    `filters` are pyarrow's: (column, operator, value), all of which must hold.
    """
    try:
        schema = pq.read_schema(path)
        check_columns(path, schema.names, kind)
        table = pq.read_table(path, columns=columns, filters=filters, partitioning=None)
    except FileNotFoundError:
        raise UserError(
            f"{path}: no such table; make it with: snakemake --cores 1 {path}"
        ) from None
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"{path}: not a complete Parquet file ({Path(path).stat().st_size:,} bytes: "
            f"{str(error).splitlines()[0]}); delete it and rerun: snakemake --cores 1 {path}"
        ) from None
    for field in KINDS[kind].schema:
        if schema.field(field.name).type != field.type:
            raise UserError(
                f"{path}: column {field.name!r} is {schema.field(field.name).type}, "
                f"must be {field.type}; delete it and rerun: snakemake --cores 1 {path}"
            )
    return table


def read_all(paths: list[str], kind: str) -> pd.DataFrame:
    """Read several tables of one kind and stack them; of none, an empty one."""
    if not paths:
        return KINDS[kind].schema.empty_table().to_pandas()
    return pd.concat([read(path, kind) for path in paths], ignore_index=True)


def check_columns(path: str | Path, columns: list[str], kind: str) -> None:
    """Raise `UserError` unless `columns` are those of the kind."""
    wanted = KINDS[kind].schema.names
    missing = [name for name in wanted if name not in columns]
    unknown = [name for name in columns if name not in wanted]
    if missing or unknown:
        parts = [f"lacks {', '.join(missing)}"] if missing else []
        parts += [f"has unknown {', '.join(unknown)}"] if unknown else []
        raise UserError(
            f"{path}: not a {kind} table: it {' and '.join(parts)}; "
            f"delete it and rerun: snakemake --cores 1 {path}"
        )


def write_json(path: str | Path, content: dict) -> None:
    """Write a JSON file atomically, keys in the order given."""
    with replacing(path) as temporary:
        Path(temporary).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[str]:
    """Yield a temporary path beside `path`; on success move it there, on failure leave nothing."""
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=path.suffix)
        os.close(handle)
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())
        _flush(temporary)
        os.replace(temporary, path)
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]
        raise UserError(f"{path}: cannot be written: {reason}; {WRITE_REMEDY}") from None
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


def _flush(path: str) -> None:
    """Have the disk hold a file's content before its name: a power cut must not leave it empty."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    """The process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
