"""Kinds of tables of memorisation; the kinds of the studies are in the files of the studies."""

from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind, kinds_in

FOLDER = "results/memorisation/{recipe}/{model}/{language}/n{size}"
OF_VARIANT = FOLDER + "/{variant}"
OF_RUN = FOLDER + "-seed{seed}/{variant}"
columns = SHARED.extended("""
start float?: epoch at which memorisation starts; NaN if it never starts, or if the string has no
    stand-ins
threshold_at_optimum float?: threshold at the epoch of optimal learning, nats per token (for
    recollection_accuracy: share of wrong tokens); NaN if the string has no stand-ins
score_at_optimum float?: score at the epoch of optimal learning; NaN if the string has no stand-ins
score_at_end float?: score at the last epoch; NaN if the string has no stand-ins
below_at_optimum float?: 1 if the loss is below the threshold at the epoch of optimal learning, even
    if it rises above the threshold later, otherwise 0; NaN if the string has no stand-ins
margin_at_optimum float?: score at the epoch of optimal learning without the rule for the start; NaN
    if the string has no stand-ins
below_unseen float?: share of the unseen strings whose loss is below the threshold at this epoch,
    even if it rises above the threshold later; NaN if `share_memorised_unseen` is NaN
margin_unseen float?: `margin_distinct` of the unseen strings; NaN if `share_memorised_unseen` is
    NaN
stand_in_gap float?: for same-frequency: distance between the Bayes-optimal losses of the string and
    the nearest unseen strings, nats over all its tokens; otherwise NaN
loss float: the model's loss on the string, nats per predicted token
threshold float?: loss below which the string counts as memorised at this epoch, nats per token (for
    recollection_accuracy: share of wrong tokens); NaN if the string has no stand-ins
score float?: degree of memorisation in [0, 1]; 0 before the start; NaN if the string has no
    stand-ins
expected_score float?: of rows without a seed: the mean over the seeds of their scores, which is the
    paper's expectation over datasets; NaN in rows of a seed
coverage float: share of the training strings (with copies) that the measure applies to: those with
    stand-ins for same-frequency, otherwise all; the other columns are about these strings
share_memorised float?: share of training strings (with copies) that are memorised; NaN if the
    coverage is 0
mean_score float?: mean score of the training strings (with copies); NaN if the coverage is 0
share_memorised_distinct float?: share of distinct training strings that are memorised; NaN if the
    coverage is 0
mean_score_distinct float?: mean score of the distinct training strings; NaN if the coverage is 0
below_distinct float?: share of the distinct training strings whose loss is below the threshold at
    this epoch, even if it rises above the threshold later; NaN if the coverage is 0
margin_distinct float?: mean over the distinct training strings of the score that they have at this
    epoch without the rule for the start; NaN if the coverage is 0
share_memorised_unseen float?: false alarms: share of the unseen strings (distinct strings that may
    stand in, because they were never trained on) that the measure calls memorised; NaN if the
    measure needs stand-ins and there are none
mean_score_unseen float?: mean score of the unseen strings; NaN if `share_memorised_unseen` is NaN
below_covered float?: `below_distinct` over the strings that have stand-ins, under every measure: on
    these strings, measures can be compared; NaN if no string has stand-ins
below_unseen_covered float?: `below_unseen` over the unseen strings that have stand-ins, under every
    measure; NaN if there are none
share_memorised_perfect float?: placebo: `share_memorised` of a model that knows the language and
    nothing else, whose losses are the Bayes-optimal ones; NaN for recollection_accuracy
mean_score_perfect float?: `mean_score` of such a model
band_first float?: first epoch at which memorisation of a string starts
band_last float?: last epoch at which memorisation of a string starts
never_starts float?: share of the distinct strings whose memorisation never starts; NaN if the
    coverage is 0
start_p10 float?: 10 % quantile of the distinct strings' starts, epochs; a string that never starts
    counts as starting one epoch after the last; NaN if the coverage is 0
start_p90 float?: 90 % quantile of these starts, epochs
assumption_broken float?: share of epochs at which the string's loss is above its loss when trained
    without it
train_loss float: loss on the training strings, nats per token
train_loss_distinct float: loss on the distinct training strings, nats per token
test_loss float: loss on the test strings, nats per token
unseen_loss float?: loss on test strings that are not in train
train_accuracy float: share of right tokens, training strings
test_accuracy float: share of right tokens, test strings
test_loss_distinct float: mean loss of the distinct test strings, each of the same weight, nats per
    token
test_spread float: standard deviation of these losses, nats per token
optimal_test_loss_distinct float: mean Bayes-optimal loss of the distinct test strings, nats per
    token
optimal_test_spread float: standard deviation of these Bayes-optimal losses: the `test_spread` of a
    model that knows the language and nothing else, nats per token
optimal_train_loss float: Bayes-optimal loss on the training strings
optimal_test_loss float: Bayes-optimal loss on the test strings, nats per token
optimal_epoch int: epoch of optimal learning: lowest test loss of this run
n_train int: training strings, with copies; an epoch trains on each once
still_learning bool: whether the epoch of optimal learning is in the last tenth of the training: the
    test loss may not have reached its minimum
quantity str: threshold, start, score_at_optimum or score_at_end
n_seeds int: number of seeds for which the quantity has a value
mean float?: mean over these seeds
std float?: sample standard deviation over these seeds
min float?: smallest value of these seeds
max float?: largest value of these seeds
role str: s0, s1, ... in order of decreasing frequency
optimal_loss float: Bayes-optimal loss of the string, nats per token
loss_without float?: loss of the string when trained without it, or loss of its stand-ins; NaN if
    not used
threshold_error float?: threshold minus exact threshold, nats per token; this and the following
    columns are NaN if the string has no stand-ins
start_error float?: start minus exact start, epochs
score_error float?: mean absolute difference of the score
same_verdict float?: share of epochs with the same verdict (memorised or not)
weight float: number of distinct training strings that the string stands for
threshold_distance float?: distance between this threshold and the threshold by retraining, mean
    over the epochs, nats per token; NaN if the string has no stand-ins
threshold_ratio float?: this distance relative to the threshold by retraining; NaN if that threshold
    is ever 0
placebo_below_at_optimum float?: below_at_optimum of a placebo, a string that no run was trained on:
    the one whose Bayes-optimal loss is nearest; NaN unless the evidence is a retraining
placebo_margin_at_optimum float?: margin_at_optimum of that placebo
self_influence float?: loss when trained without the string minus loss when trained with it, mean
    over the epochs, nats per token; NaN for bayes
counterpart str?: the language's counterpart of high entropy, with the same rules; null if it has
    none
group str: all, repeated (strings with several copies in the training data) or single (strings with
    one copy)
statistic str: correlation (Spearman, of ranks; strings that never start rank last), mean_error
    (approximation minus exact), mean_absolute_error, mean_relative_error (for thresholds only) or
    same_verdict (share of strings that both or neither call memorised); the last two errors of a
    threshold are over strings and epochs
n_strings int: number of strings in the statistic; errors of a start use only strings that start
    both by retraining and by the approximation
value float?: value of the statistic, in nats per token, in epochs, or without a unit; NaN if
    undefined, for example a correlation of equal values
lower float?: lower end of the 95 % bootstrap interval over strings
upper float?: upper end of this interval
probability float: probability that a string is among k samples (without a predicted end: that a
    sample begins with it), mean over the strings
n_unseen int: distinct strings that were never trained on: the placebo
bits float: mean over the distinct training strings of log2 of the probability under the model minus
    log2 of the probability under the language, bits per string
bits_unseen float?: the same mean over the unseen strings; NaN if there are none
""")
CHEAP_EVIDENCE = (
    "str: same-frequency; language for bayes; replicate: retraining once more, with other initial "
    "weights, which is the ceiling for the others"
)
STARTS = Kind(
    "starts",
    "One row per seed, training string and measure: when memorisation starts.",
    f"{OF_VARIANT}/starts.parquet",
    columns(
        """
        model language size seed variant string_id count log_prob measure evidence start
        threshold_at_optimum score_at_optimum score_at_end below_at_optimum margin_at_optimum
        below_unseen margin_unseen stand_in_gap
        """,
        below_unseen="float?: mean `below_at_optimum` of the string's stand-ins, which were never "
        "trained on: unseen strings of the same Bayes-optimal loss; NaN if the string has no "
        "stand-ins, or if these need stand-ins and have none",
        margin_unseen="float?: mean `margin_at_optimum` of the string's stand-ins",
    ),
)
SCORES = Kind(
    "scores",
    "One row per seed, training string, measure and epoch.",
    f"{OF_VARIANT}/scores.parquet",
    columns("""
        model language size seed variant string_id measure evidence epoch loss threshold score
    """),
)
TRAINING_SET = Kind(
    "training_set",
    "One row per seed, measure and epoch: memorisation of the whole training set.",
    f"{OF_VARIANT}/training_set.parquet",
    columns(
        """
        model language size seed variant measure evidence epoch coverage share_memorised mean_score
        share_memorised_distinct mean_score_distinct below_distinct margin_distinct
        share_memorised_unseen mean_score_unseen below_unseen margin_unseen below_covered
        below_unseen_covered share_memorised_perfect mean_score_perfect band_first band_last
        never_starts start_p10 start_p90 assumption_broken
        """,
        assumption_broken="float?: share of (string, epoch) pairs whose loss is above the loss "
        "without the string (Lemma 1 assumes that there are none); NaN if the measure does not"
        " use that loss",
    ),
)
LEARNING = Kind(
    "learning",
    "One row per seed and epoch: losses of the whole training and test sets.",
    f"{OF_VARIANT}/learning.parquet",
    columns("""
        model language size seed variant epoch train_loss train_loss_distinct test_loss unseen_loss
        train_accuracy test_accuracy test_loss_distinct test_spread optimal_test_loss_distinct
        optimal_test_spread optimal_train_loss optimal_test_loss optimal_epoch n_train
        still_learning
    """),
)
AVERAGES = Kind(
    "averages",
    "One row per measure, quantity and epoch: mean and spread over the seeds.",
    f"{OF_VARIANT}/averages.parquet",
    columns(
        "model language size variant measure quantity epoch n_seeds mean std min max",
        measure="str?: as in `training_set`; null for a quantity of `learning`",
        quantity="str: a column of the table `training_set` or `learning`",
    ),
)
TARGET_SCORES = Kind(
    "target_scores",
    "One row per seed, target string, measure, evidence and epoch: memorisation by "
    "retraining without the string, and by the same-frequency approximation.",
    f"{FOLDER}/target_scores.parquet",
    columns(
        """
        model language size seed role string_id count log_prob optimal_loss measure evidence epoch
        loss loss_without threshold score expected_score start test_loss assumption_broken
        """,
        seed="int?: seed of the run; null: the losses were averaged over the seeds first",
        count="int: copies of the string in the training data that include it",
    ),
)
AGREEMENT = Kind(
    "agreement",
    "One row per seed, target string and measure: the difference between a cheaper threshold and "
    "exact retraining.",
    f"{FOLDER}/agreement.parquet",
    columns(
        """
        model language size seed role string_id measure evidence threshold_error start_error
        score_error same_verdict
        """,
        evidence=CHEAP_EVIDENCE,
    ),
)
LEAVE_ONE_OUT = Kind(
    "leave_one_out",
    "One row per seed, training string that is left out, measure and evidence: memorisation by "
    "retraining without the string, by retraining once more, and by the approximations.",
    f"{FOLDER}/leave_one_out.parquet",
    columns(
        """
        model language size seed string_id count log_prob weight measure evidence threshold
        threshold_distance threshold_ratio start score_at_optimum score_at_end below_at_optimum
        margin_at_optimum placebo_below_at_optimum placebo_margin_at_optimum self_influence
        assumption_broken optimal_epoch still_learning counterpart
        """,
        threshold="float?: loss below which the string counts as memorised, nats per token; for "
        "counterfactual, the mean over the epochs, because this threshold changes; NaN if the "
        "string has no stand-ins",
    ),
)
APPROXIMATION = Kind(
    "approximation",
    "One row per seed, group of training strings, measure, evidence, quantity and "
    "statistic: the quality of an approximation of exact retraining.",
    f"{FOLDER}/approximation.parquet",
    columns(
        """
        model language size seed group measure evidence quantity statistic n_strings value lower
        upper
        """,
        evidence=CHEAP_EVIDENCE,
    ),
)
# Columns that name a field of a string
OF_FIELD = {
    "field": "str: name of the field in the grammar",
    "begin": "int: first letter of the field in the text; 0 is the text's first",
}
FIELD_VALUES = Kind(
    "field_values",
    "Losses of the values that open fields of some strings can have, under the model of a run. One "
    "row per string and field.",
    f"{OF_RUN}/field_values.parquet",
    columns(
        "model language size seed variant string_id field begin n_values nll losses",
        **OF_FIELD,
        n_values="int: number of values that the field can have",
        nll="float: the model's loss of the text up to the end of the field, nats",
        losses="vector: the losses of these texts with another value in the field's place, nats; "
        "all other values, or a sample of them",
    ),
)
KINDS = kinds_in(globals())
