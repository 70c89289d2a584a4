"""Kinds of tables of unlearning."""

from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind

FOLDER = "results/unlearning/{recipe}/{model}/{language}/n{size}-seed{seed}"
UNLEARNED_FOLDER = f"{FOLDER}/unlearned/{{method}}/runs-{{first}}-{{last}}"
UNLEARNED_MANIFEST = f"{UNLEARNED_FOLDER}/manifest.json"
MODEL_FOLDER = f"{FOLDER}/unlearned/{{method}}/model-{{origin}}"  # of Hugging Face
PROBED_MANIFEST = f"{FOLDER}/judge/{{method}}/manifest.json"
SEARCH_FOLDER = f"{FOLDER}/search/{{method}}"
SEARCH_MANIFEST = f"{SEARCH_FOLDER}/manifest.json"
TRANSFER_FOLDER = f"{FOLDER}/transfer/{{method}}"
TRANSFER_SEARCHED = f"{TRANSFER_FOLDER}/searched.parquet"
TRANSFER_MANIFEST = f"{TRANSFER_FOLDER}/manifest.json"
TUNED = "results/unlearning/tuned.yaml"
columns = SHARED.extended("""
method str: unlearning method, a name in the table of methods; none: the original model; retrain: a
    further retrained model; innocent, in tests and in the summary of gaps only: retrained models by
    unlearning/innocent_recipe
origin int: replicate of the model that the unlearning started from
unlearning_replicate int: number of the unlearning of that model, counted from 0
min_k float: mean log probability, nats, of the 20 % least probable tokens, at least one (Min-K%
    Prob)
min_k_plus float: the same mean of log probabilities that are standardised by the mean and the
    standard deviation of log p under the model's own prediction (Min-K%++)
n_last_correct int: number of tokens at the end of the string that are all predicted right; divided
    by n_tokens, the extraction strength
steps int: forward and backward passes over a batch, in all phases together
seconds float: wall time of the unlearning; models that unlearn together share their time equally
distance_to_original float?: L2 distance of its weights from the original model of the same number;
    null if there is no such model
distance_to_retrained float: L2 distance of its weights from the retrained model of the same number
relearn_steps float?: optimiser steps of training on the forget set until the loss on this set is as
    low as the original model's; infinite: not within `relearn_limit` steps; null: not tried
relearn_limit float?: number of optimiser steps of relearning that were tried; null: not tried
stage str: unlearning: while the method runs; 4-bit: the unlearned model with its weights rounded to
    4 bits; relearning: while it is trained on the forget set again
phase str?: place of the phase in the method, such as 2.1; null: before the first phase, and in
    other stages
passes int: forward and backward passes over a batch since the start of the stage
forget_loss float: loss over the forget strings, nats per token
retain_loss float?: the same, retained strings; null: not measured
unseen_loss float?: the same, some test strings that no model was trained on; null: not measured
point str: name of the point: the method and a number
loss float: of the string, nats per token; infinite: no longer finite
setup str: full, reuse-n-n, reuse-n-1 or bootstrap
repetition int: repetition of the evaluation, counted from 0
epsilon float: of (epsilon, delta)-unlearning, at most 50
attack str: single or double: number of thresholds of the attack; none: every attack is discarded;
    narrow: one sample is far narrower than the other (thresholds: grid)
lower float?: lower threshold on the logit-scaled confidence; -inf: no threshold; null: no attack
upper float?: upper end of the interval; null where `lower` is
fpr float?: false positive rate of the attack; null: no attack
fnr float?: false negative rate of the attack; null: no attack
n_models int: number of unlearned models; there are as many retrained models
forgetting_quality float: mean of the forget strings' points, in [0, 1]
retain_accuracy float: share of right tokens, retained strings
retain_accuracy_retrained float: the same for the retrained models
test_accuracy float: share of right tokens, test strings
test_accuracy_retrained float: the same for the retrained models
forget_accuracy float: share of right tokens, forget strings
forget_accuracy_retrained float: the same for the retrained models
final_score float: forgetting quality times two ratios of accuracy, unlearned to retrained: on
    retained and on test strings
retain_probability float: mean over the retained strings of the geometric mean of the token
    probabilities
retain_probability_retrained float: the same for the retrained models
test_probability float: the same mean, test strings
test_probability_retrained float: the same for the retrained models
final_score_probability float: the final score with these probabilities in the place of accuracies
steps_share float: training steps, divided by the steps of retraining
seconds_share float: wall time, divided by the wall time of retraining
within_cutoff bool: whether the share of steps is within unlearning/cutoff; true for none and
    retrain, the two ends
quantity str: a column of `unlearning_scores`
n_repetitions int: number of repetitions
mean float: mean over the repetitions
effect str: attacker (judged on the models that it was fitted on, or on other models), n (number of
    models that judge an attacker), pool or repetitions (of the bootstrap)
attacker str: models that judge the attacker: same as its fit, or held-out
level float: for attacker and n: number of models of each distribution; for pool: size of the pool;
    for repetitions: number of repetitions compared
n_strings int: number of forget strings
null_quality float?: mean forgetting quality of relabelled models; null: several of the models come
    from one original model (reuse-n-1)
null_lower float?: 2.5 % of the relabellings have a lower quality; null if `null_quality`
    is
null_upper float?: 2.5 % of the relabellings have a higher quality; null if
    `null_quality` is
p_value float?: share of the relabellings whose forgetting quality is as low as the method's; null
    if `null_quality` is
relative_quality float?: place of the quality between doing nothing (0) and relabelled models (1);
    null if `null_quality` is, or if doing nothing is not below relabelled models
excess_epsilon float?: mean epsilon above its floor, over the forget strings; epsilons are clipped
    at ceil(ln(n - 1)); null if `null_quality` is
n_told int?: number of forget strings by which the models are told from retrained models, with a
    false discovery rate of 5 %; null if `null_quality` is
n_bounded int?: number of forget strings whose lower bound of epsilon is above 0; null if
    `null_quality` is
largest_bound float?: largest lower bound of epsilon of a forget string; null if `null_quality`
    is
joint_errors int?: models that the joint attacker tells wrongly; null if `null_quality` is
joint_models int?: unlearned and retrained models together; null if `null_quality` is
joint_p float?: share of the relabellings in which the joint attacker makes as few errors; null
    if `null_quality` is
relative_p float?: p-value of the models being further from retrained models than innocent models
    are, which differ in their recipe only; null if `null_quality` is, without innocent models, and
    for these
floor float?: mean epsilon of relabelled models, clipped at ceil(ln(n - 1)); null: several of the
    models come from one original model (reuse-n-1)
excess float?: epsilon, clipped as `floor` is, minus its floor; null if `floor` is
q_value float?: p-value corrected over the forget strings (Benjamini and Hochberg); null if
    `floor` is
lower_bound float?: epsilon is at least this, with 95 % confidence; null if `floor` is
metric str: accuracy_gap, mia_gap, mia_accuracy, auc_loss, auc_zlib, auc_calibrated, leak_at_1,
    leak_at_100, auc_min_k, auc_min_k_plus, extraction, extraction_strength, privleak,
    privleak_loss, ks_log_p, relearn_steps, relearn_not_reached, relearn_log_p, distance_to_original
    or distance_to_retrained
estimate float?: mean over the models
reference float?: value of the metric for retrained models, that is, for ideal unlearning
string_role str: forget: the forget strings; placebo: for each of them, an unseen string that is as
    hard; retained: for each of them, a retained training string that is as hard (shares of the gap
    only)
threshold float: the loss below which the string counts as memorised, nats per token (for
    recollection_accuracy: the share of wrong tokens)
answerable bool: whether the measure can answer for the string: recollection only if the
    Bayes-optimal loss is above the threshold, contextual memorisation only if its threshold is not
    that of counterfactual memorisation
before float: share of the original models that memorise the string
after float: share of the unlearned models that memorise the string
retrained float: share of further retrained models that memorise the string: the goal
share float?: share of the gap closed: (after - before) / (retrained - before), for a placebo and a
    retained string with the gap of its forget string; null: no clear gap
lowest float?: lowest share of a string; null: no string has a clear gap
lower_quartile float?: a quarter of the strings have a lower share
median float?: median share of the strings
upper_quartile float?: a quarter of the strings have a higher share
highest float?: highest share of a string
n_clear int: number of strings with a clear gap
source str: training seed: between original models; unlearning seed: between unlearnings of one
    original model. none and retrain have the first only
variance float?: variance of one model's share of the gap closed that is due to the source; null: no
    clear gap, or one unlearning of each original model
n_trainings int: number of original (or, for retrain, retrained) models
n_unlearnings int: number of unlearnings of each; 1 for the two ends
epsilon_sum float: sum over the methods of the string's mean epsilon
n_methods int: number of methods in the sum; none and retrain are left out
loss_gap float: mean loss of retrained models minus mean loss of original models, nats per token
confidence float: logit-scaled confidence of the model in the string, log(p / (1 - p))
other str: the other method
pearson float?: correlation of their epsilons; null: a method has equal epsilons, or too few strings
spearman float?: correlation of the ranks; null: as for pearson
part str: whole: the method; repair: its repair phases alone, without its erase phases
control_share float?: the larger of the shares on placebos and on retained strings, of the gap of
    their forget strings; null: no clear gap
settings str: values that the point sets, as JSON
tuning str: direct: with the settings that the method has; light: with the learning rates that are
    best on problems of the same kind
score float: forgetting quality times two ratios of probabilities of tokens (geometric means) to
    those of the original models: on retained and on unseen strings
distance_left float: mean distance of the forget strings' losses from those of retrained models, as
    a share of the original models' distance; 0 is ideal, 1 is doing nothing; infinite: a loss is no
    longer finite
gap_closed float: rise of the forget strings' loss, as a share of the rise to retrained models; 1 is
    ideal
retain_ratio float: loss of retained strings, divided by the original models' loss
unseen_ratio float: loss of unseen test strings, divided by the original models' loss
n_problems int: number of problems of the search
statistic str: auc: how often a model has more than a retrained one; called: share of the
    models that are called trained on the strings, at 5 %; dose: rank correlation with the share of
    the forget strings in training; kept_4_bit, kept_relearned and kept_patched: of the models that
    are called so, the share that still is with weights of 4 bits, after relearning other strings,
    and with the lower layers of an original model; returned_4_bit, returned_relearned and
    returned_patched: of the models that are not called so, the share that is then; undone_patched:
    the share of the rise of the loss that these layers undo; study: share of comparisons of a few
    models with retrained models that tell them apart
n_compared int: number of models that the estimate is about, over all problems; of study, of
    comparisons that share no model
placebo float?: the same estimate on strings that no model was trained on; of kept_ and returned_,
    on the forget strings, of retrained models; null: undefined, as where models are patched:
    the layers of an original fit the models that came from it alone
placebo_lower float?: lower end of its interval
placebo_upper float?: upper end of its interval
allowed bool: whether the cost is within the cut-off
chosen bool: whether the point is its method's best
""")
UNLEARNED = Kind(
    "unlearned",
    "One row per unlearned model and string: how well the model predicts the string.",
    f"{UNLEARNED_FOLDER}/unlearned.parquet",
    columns("""
        model language size seed method origin unlearning_replicate string_id nll n_tokens n_correct
        rank_sum min_k min_k_plus n_last_correct
    """),
)
UNLEARNED_MODELS = Kind(
    "unlearned_models",
    "One row per unlearned model: its cost, the distance of its weights, and how fast it relearns.",
    f"{UNLEARNED_FOLDER}/models.parquet",
    columns("""
        model language size seed method origin unlearning_replicate steps seconds
        distance_to_original distance_to_retrained relearn_steps relearn_limit
    """),
)
STAGES = Kind(
    "unlearning_stages",
    "One row per model and moment: losses while a method runs, with weights of 4 bits, and while "
    "the forget set is learned again.",
    f"{UNLEARNED_FOLDER}/stages.parquet",
    columns("""
        model language size seed method origin unlearning_replicate stage phase passes forget_loss
        retain_loss unseen_loss
    """),
)
SEARCHED = Kind(
    "unlearning_searched",
    "One row per point of a method's grid, model and forget string: losses after unlearning.",
    f"{SEARCH_FOLDER}/searched.parquet",
    columns(
        """
        model language size seed method point origin string_id loss retain_loss unseen_loss steps
        """,
        retain_loss="float: of the retained strings, nats per token",
        unseen_loss="float: of some test strings that no model was trained on",
    ),
)
PROBED = Kind(
    "unlearning_probed",
    "One row per model, stage and string: how well models predict that judge metrics.",
    f"{FOLDER}/judge/{{method}}/probed.parquet",
    columns(
        """
        model language size seed method stage origin string_id nll n_tokens n_correct rank_sum min_k
        min_k_plus n_last_correct
        """,
        method="str: none: original models; traced: models that are trained on an eighth of the "
        "strings to forget; retrain: retrained models; or an unlearning method",
        stage="str: unlearning: the models as they are; 4-bit: with weights rounded to 4 bits; "
        "relearning: after training on every second forget string; patching: with embeddings and "
        "the lower half of the layers of an original model",
    ),
)
JUDGED = Kind(
    "unlearning_judged",
    "One row per metric, statistic and kind of models: whether the metric tells what models were "
    "trained on.",
    "results/unlearning/{recipe}/{model}/{language}/judged-n{size}.parquet",
    columns(
        """
        model language size metric statistic method n_compared n_problems estimate lower upper
        placebo placebo_lower placebo_upper
        """,
        metric="str: a metric of the table unlearning_metrics; loss, accuracy, relearned_loss (of "
        "the strings that are learned again, afterwards) or forgetting_quality",
        method="str: the models that the estimate is about: none: original models; traced: models "
        "that are trained on an eighth of the strings to forget; retrain: further retrained "
        "models; or an unlearning method",
        estimate="float: mean over the problems",
        lower="float?: lower end of the 95 % interval over the problems; null: one problem, or all "
        "are alike",
        n_problems="int: number of problems in which the estimate is defined",
    ),
)
EPSILONS = Kind(
    "epsilons",
    "One row per method, set-up, repetition and forget string: the strongest attack that "
    "tells unlearned models from retrained ones.",
    f"{FOLDER}/epsilons.parquet",
    columns(
        """
        model language size seed method setup repetition string_id epsilon attack lower upper fpr
        fnr
        """,
        upper="float?: upper threshold; null: no attack",
    ),
)
SCORES = Kind(
    "unlearning_scores",
    "One row per method, set-up and repetition: forgetting, utility and cost.",
    f"{FOLDER}/scores.parquet",
    columns("""
        model language size seed method setup repetition n_models forgetting_quality retain_accuracy
        retain_accuracy_retrained test_accuracy test_accuracy_retrained forget_accuracy
        forget_accuracy_retrained final_score retain_probability retain_probability_retrained
        test_probability test_probability_retrained final_score_probability steps_share
        seconds_share within_cutoff
    """),
)
TESTS = Kind(
    "unlearning_tests",
    "One row per method: whether its models can be told from retrained models, tested by "
    "relabelling models.",
    f"{FOLDER}/tests.parquet",
    columns("""
        model language size seed method n_models n_strings forgetting_quality null_quality
        null_lower null_upper p_value relative_quality excess_epsilon n_told n_bounded largest_bound
        joint_errors joint_models joint_p relative_p
    """),
)
STRING_TESTS = Kind(
    "unlearning_string_tests",
    "One row per method and forget string: epsilon against its floor, and what is certain of it.",
    f"{FOLDER}/string_tests.parquet",
    columns(
        """
        model language size seed method string_id epsilon floor excess p_value q_value lower_bound
        """,
        p_value="float?: share of the relabellings with an epsilon at least as large; null if "
        "`floor` is",
    ),
)
SUMMARY = Kind(
    "unlearning_summary",
    "One row per method, set-up and quantity of the scores: the mean over the repetitions.",
    f"{FOLDER}/summary.parquet",
    columns(
        "model language size seed method setup quantity n_repetitions mean lower upper",
        lower="float?: lower end of the 95 % Student interval; null: one repetition, or all "
        "repetitions use the same models (none, retrain and the accuracy of retrained models "
        "under reuse-n-n and reuse-n-1)",
    ),
)
EFFECTS = Kind(
    "unlearning_effects",
    "One row per method and way of evaluating: the forgetting quality under this evaluation.",
    f"{FOLDER}/effects.parquet",
    columns("""
        model language size seed method effect attacker level repetition forgetting_quality
    """),
)
METRICS = Kind(
    "unlearning_metrics",
    "One row per method and metric: other measures of forgetting from the literature.",
    f"{FOLDER}/metrics.parquet",
    columns(
        "model language size seed method metric estimate lower upper reference reference_lower "
        "reference_upper differs n_models",
        lower="float?: lower end of the 95 % interval",
        reference_lower="float?: lower end of the 95 % interval of the reference; null where it "
        "is a number that does not depend on chance, and likewise for fewer than two models",
        reference_upper="float?: its upper end; null likewise",
        differs="bool?: whether the estimate differs from the reference, by a test at 5 % that "
        "counts the chance of both; null without an interval, and where both are of the same "
        "models",
        n_models="int: number of models in the estimate",
    ),
)
MEMORISATION = Kind(
    "unlearning_memorisation",
    "One row per method, forget string and measure of memorisation: whether unlearning removes it.",
    f"{FOLDER}/memorisation.parquet",
    columns("""
        model language size seed method string_role string_id measure evidence threshold answerable
        before after retrained
    """),
)
GAPS = Kind(
    "unlearning_gaps",
    "One row per method and string: losses before and after unlearning, and the share of the way "
    "to the retrained models.",
    f"{FOLDER}/gaps.parquet",
    columns(
        """
        model language size seed method string_role string_id before after retrained share lower
        upper
        """,
        before="float: mean loss of the original models, nats per token",
        after="float: mean loss of the unlearned models, nats per token",
        retrained="float: mean loss of the retrained models, nats per token",
        lower="float?: lower end of its 95 % interval over the models; also null: several of the "
        "models come from one original model (reuse-n-1)",
    ),
)
GAP_SUMMARY = Kind(
    "unlearning_gap_summary",
    "One row per method and kind of strings: the share of the gap closed, over strings and models.",
    f"{FOLDER}/gap_summary.parquet",
    columns(
        """
        model language size seed method string_role share lower upper lowest lower_quartile median
        upper_quartile highest n_strings n_clear n_models
        """,
        share="float?: share of the gap closed: the rise of the loss, summed over the strings, "
        "divided by the gap to retraining, summed over the forget strings (for the others, "
        "too)",
        lower="float?: lower end of its 95 % interval, over strings and models; null: several of "
        "the models come from one original model (reuse-n-1), or fewer than two clear gaps",
        n_strings="int: number of strings",
        n_models="int: number of unlearned models",
    ),
)
VARIANCE = Kind(
    "unlearning_variance",
    "One row per method and source of variance of the share of the gap closed by single models.",
    f"{FOLDER}/variance.parquet",
    columns(
        """
        model language size seed method source variance share lower upper n_trainings n_unlearnings
        """,
        share="float?: this variance, divided by the sum over both sources; null: also for the two"
        " ends, and without any variance",
        lower="float?: lower end of the 95 % interval of `share`; null if `share` is",
    ),
)
HARDNESS = Kind(
    "unlearning_hardness",
    "One row per forget string: how hard it is to forget, over all methods.",
    f"{FOLDER}/hardness.parquet",
    columns("""
        model language size seed string_id count log_prob? epsilon_sum n_methods loss_gap
    """),
)
CONFIDENCES = Kind(
    "unlearning_confidences",
    "One row per model and forget string, for three strings: the hardest to forget, the one of "
    "median hardness and the easiest.",
    f"{FOLDER}/confidences.parquet",
    columns(
        "model language size seed method origin unlearning_replicate string_id confidence",
        method="str: unlearning method; none: the original model; retrained: a retrained model "
        "that the methods are compared with; retrain: a further retrained model",
    ),
)
AGREEMENT = Kind(
    "unlearning_agreement",
    "One row per pair of methods: whether they find the same strings hard.",
    f"{FOLDER}/agreement.parquet",
    columns(
        "model language size seed method other n_strings pearson spearman",
        n_strings="int: forget strings compared",
    ),
)
ABLATION = Kind(
    "unlearning_ablation",
    "Two rows per method with erase and repair phases: the whole method, and its repair phases "
    "alone.",
    f"{FOLDER}/ablation.parquet",
    columns(
        """
        model language size seed method part n_models forgetting_quality final_score_probability
        share control_share steps_share
        """,
        share="float?: share of the gap closed on the forget strings; null: no clear gap",
    ),
)
TUNING = Kind(
    "unlearning_tuning",
    "One row per point of a method's grid: how it did on the problems of the search, best first.",
    "results/unlearning/tuning.parquet",
    columns(
        """
        method point settings final_score forgetting_quality distance_left gap_closed retain_ratio
        unseen_ratio steps_share n_problems allowed chosen
        """,
        final_score="float: forgetting quality times two ratios of token probability, unlearned to "
        "retrained: on retained and on unseen strings",
        forgetting_quality="float: 0 if a loss is no longer finite",
        steps_share="float: passes over batches, divided by the steps of retraining",
    ),
)

TRANSFER = Kind(
    "unlearning_transfer",
    "One row per method, way of tuning and seed: how the method does on another problem than that "
    "of its tuning.",
    "results/unlearning/{recipe}/{model}/{language}/transfer-n{size}.parquet",
    columns(
        """
        model language size seed method tuning point settings forgetting_quality final_score
        distance_left gap_closed retain_ratio unseen_ratio n_models
        """,
        settings="str: the factors of its rates, by the role of the phase, as JSON",
        distance_left="float: distance of the forget strings' losses from those of retrained "
        "models, as a share of the original models' distance; 0 is ideal, 1 is doing nothing",
    ),
)

KINDS = (
    UNLEARNED,
    UNLEARNED_MODELS,
    STAGES,
    SEARCHED,
    EPSILONS,
    SCORES,
    SUMMARY,
    EFFECTS,
    TESTS,
    STRING_TESTS,
    METRICS,
    MEMORISATION,
    GAPS,
    GAP_SUMMARY,
    VARIANCE,
    HARDNESS,
    CONFIDENCES,
    AGREEMENT,
    ABLATION,
    TUNING,
    TRANSFER,
    PROBED,
    JUDGED,
)
