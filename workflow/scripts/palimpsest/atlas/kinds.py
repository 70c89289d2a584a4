"""Kinds of tables of the atlas."""

from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Document, Kind, kinds_in

AMOUNT, START, CROSS, HALVES = "how much", "when", "whose", "whose, of halves"
APART, UNSEEN = "whose, of halves, itself apart", "whose, of halves, unseen strings"
QUESTIONS = (AMOUNT, START, CROSS, HALVES, APART, UNSEEN)
AGAIN, SINGLE = "retraining", "single removals"  # what is no cheap measure
# Methods of attribution by gradients
METHODS = TRACIN, EKFAC, TRAK, MAGIC, CURVATURE = (
    *("tracin", "ek-fac", "trak", "magic"),
    "curvature",
)
BITS, RECOLLECTED, BELOW_OPTIMAL = OUTCOMES = (
    "bits at the end",
    "start of recollection",
    "start below the optimal loss",
)  # of a training, foretold before it
RANK, AUC, TPR = "rank correlation", "AUC", "TPR at 1 % FPR"

FOLDER = "results/atlas/{recipe}/{model}/{language}/n{size}"
OF_RUN = FOLDER + "-seed{seed}"
STRINGS_PAGE = "results/atlas/strings.html"
columns = SHARED.extended("""
removed str: the training string that a training lacks
influence float: loss of the string at the end of a training without `removed`, minus its loss in
    the training on all strings, nats per token; above 0 if `removed` helped
influence_again float: the same with other initial weights and another order of the strings
edit_distance int: least number of symbols (words of a text with blanks) to insert, remove or
    replace to make one of the two strings of the other
self_influence float: loss of the string at the end of a training without it, minus its loss in the
    training on all strings, nats per token
self_influence_again float: the same with other initial weights and another order of the strings
placebo_influence float?: the same difference of a string that none of the trainings has seen, the
    one whose Bayes-optimal loss is nearest; null without such a string
start float?: epoch at which contextual memorisation by retraining starts; null if it never does
start_again float?: the same with other initial weights and another order of the strings
needs str: what a measure needs beside the model: the last epoch's losses, the losses of all epochs,
    the strings, unseen strings, the language, the last weights, these and changed strings (or
    texts in lower case), the weights of all epochs, models of other seeds, every step of the
    training, or retraining
amount float?: how much the string is memorised, by the measure: the higher, the more; null if the
    measure does not apply to the string
measured_start float?: epoch at which memorisation starts, by the measure; null if it never does, or
    if the measure has no starts
question str: how much: which strings lose most without themselves; when: at which epoch
    memorisation starts; whose: which other string lowered the loss of a string; whose, of halves:
    the loss of a string after training on random halves (linear datamodelling score); itself apart:
    the mean of this score over halves that keep the string and over those that lack it; unseen
    strings: this score of strings that no training saw
statistic str: rank correlation (Spearman, with exact retraining), AUC (of the quarter of strings
    with the largest self-influence against the others) or TPR at 1 % FPR (of the same)
value float?: the statistic; null if the exact values or those of the measure are all alike
ceiling float?: the same of retraining once more; null likewise
placebo float?: the same where the exact values are those of the placebos, which no training saw
    (how much), or where the strings of the exact values are shuffled (whose, when: the mean over
    200 shuffles); null likewise
seconds float?: core-seconds that the measure costs for the run's training strings, beside the
    training of the model; null if unknown
cost float?: `seconds` plus those of the model's training, over those of the model's training
n_strings int: number of training strings in the statistic
share_of_ceiling float?: the mean value over the root of the mean ceiling, which is the correlation
    with what two retrainings have in common; null if the ceiling is not above 0, and for other
    statistics than the rank correlation
share_lower float?: lower end of its 95 % interval, over strings and seeds (bootstrap)
share_upper float?: upper end of this interval
outcome str: what is foretold of a string: bits at the end (loss after the last epoch, bits per
    token), or an epoch: start of recollection (loss below a constant) or start below the optimal
    loss (Bayes memorisation); never counts as one measurement after the last epoch
new str: what the earlier runs lack of the run: model, language, size or several of them; seed if
    only the seed is new
""")
RUN = "model language size seed"

GRADIENT_SCORES = Kind(
    "gradient_scores",
    "One row per run, measure by gradients, string and epoch: what the string's gradients say of "
    "it; test strings that are not trained on are measured, too.",
    f"{OF_RUN}/gradient_scores.parquet",
    columns(
        f"{RUN} string_id epoch measure value",
        value="float: estimated self-influence, nats per token; of the gradient norm, nats per "
        "token and unit of the weights",
    ),
)
GRADIENT_EFFECTS = Kind(
    "gradient_effects",
    "One row per run, measure by gradients, training string that is removed and string that is "
    "measured.",
    f"{OF_RUN}/gradient_effects.parquet",
    columns(
        f"{RUN} removed string_id measure value",
        value="float: estimated influence, nats per token; gradient cosine has no unit",
    ),
)
GRADIENT_COSTS = Kind(
    "gradient_costs",
    "One row per run and method by gradients: what it took.",
    f"{OF_RUN}/gradient_costs.parquet",
    columns(
        f"{RUN} method seconds passes",
        method="str: tracin (all its measures together), ek-fac, trak, magic or curvature",
        seconds="float: core-seconds",
        passes="int: passes forward and back of single strings",
    ),
)
OF_GRADIENTS = (GRADIENT_SCORES, GRADIENT_EFFECTS, GRADIENT_COSTS)
GRADIENTS_MANIFEST = f"{OF_RUN}/gradients.manifest.json"

LAST_PASS = Kind(
    "last_pass",
    "One row per run, model and string of the run's dataset: what a model, after its last epoch, "
    "says of each token; the models are the run's own and those of the other seeds.",
    f"{OF_RUN}/last_pass.parquet",
    columns(
        f"""{RUN} model_seed string_id log_probs means deviations ranks vector seconds
        neighbours neighbours_seconds prefixed prefixed_seconds lowercase lowercase_seconds""",
        model_seed="int: seed of the run that trained the model",
        log_probs="vector: log probability of each predicted token, nats",
        means="vector: mean log probability of a token that the model itself draws in its place, "
        "nats",
        deviations="vector: standard deviation of this log probability, nats",
        ranks="vector: rank of each token among all tokens of the vocabulary, 1 for the most "
        "probable",
        vector="vector: mean of the last hidden states over the string, of length 1",
        seconds="float: core-seconds of the model's pass over all strings",
        neighbours="vector: loss of each of eight strings with other symbols (words of texts) in a "
        "fifth of the places, nats per token; empty for models of other seeds; NaN: not trained "
        "on, or no other symbol",
        neighbours_seconds="float?: core-seconds of the pass over these strings; null without it",
        prefixed="vector: loss of the string after seven unseen strings, or as many as the model "
        "takes, nats per token; empty and NaN as above, NaN if it takes none",
        prefixed_seconds="float?: the same of these strings",
        lowercase="vector: loss of the text in lower case, nats per token; empty for strings of "
        "symbols; else as above",
        lowercase_seconds="float?: the same of these strings",
    ),
)
LAST_PASS_MANIFEST = f"{OF_RUN}/last_pass.manifest.json"
REMOVED_TOKENS = Kind(
    "removed_tokens",
    "One row per run of a language with fields, training and string: the losses of single tokens "
    "after training; of a training without a string, those of this string and of its placebo.",
    f"{OF_RUN}/removed_tokens.parquet",
    columns(
        f"{RUN} again removed string_id log_probs",
        again="bool: whether the training has other initial weights and another order",
        removed="str?: the string that the training lacks; null for that on all strings",
        log_probs="vector: log probability of each predicted token, nats",
    ),
)
REMOVED_TOKENS_MANIFEST = f"{OF_RUN}/removed_tokens.manifest.json"

INFLUENCE = Kind(
    "influence",
    "One row per run, training string that is removed and training string that is measured: what "
    "the removal does, by retraining.",
    f"{FOLDER}/influence.parquet",
    columns(f"{RUN} removed string_id influence influence_again edit_distance"),
)
TRUTH = Kind(
    "retrained",
    "One row per run and training string: memorisation by retraining without the string.",
    f"{FOLDER}/retrained.parquet",
    columns(
        f"""{RUN} string_id count log_prob self_influence self_influence_again placebo_influence
        start start_again"""
    ),
)
HALF_RUNS = Kind(
    "halves",
    "One row per run, random half of the training strings and string: its loss at the end of "
    "training on this half; the placebos, which no training saw, are among the strings.",
    f"{FOLDER}/halves.parquet",
    columns(
        f"{RUN} half string_id kept loss loss_again",
        half="int: number of the random half",
        kept="bool: whether the half has the string",
        loss="float: loss at the end of training on the half, nats per token",
        loss_again="float: the same with other initial weights and another order",
    ),
)
CURVES = Kind(
    "curves",
    "One row per run, training string that is removed and measured epoch: its loss with and "
    "without it in the training.",
    f"{FOLDER}/curves.parquet",
    columns(
        f"{RUN} string_id epoch loss loss_without placebo_loss",
        loss="float: loss of the string in the training on all strings, nats per token",
        loss_without="float: its loss in the training without it",
        placebo_loss="float?: in the training on all strings, the loss of a string that is in no "
        "training, the one whose Bayes-optimal loss is nearest; null without such a string",
    ),
)
FIELDS = Kind(
    "retrained_fields",
    "One row per run of a language with fields, training string and field of its text: what the "
    "field loses without the string. The sum over a string's rows is its self-influence times its "
    "tokens.",
    f"{FOLDER}/retrained_fields.parquet",
    columns(
        f"""{RUN} string_id field begin determined optimal loss loss_without field_influence
        field_influence_again placebo_field_influence""",
        field="str?: name of the field in the grammar; null: tokens without a letter of a field",
        begin="int?: letters of the text before the field; null without a field",
        determined="bool: whether the text before the field leaves one value for it; false without "
        "a field",
        optimal="float: Bayes-optimal loss of the letters of the field's tokens, nats",
        loss="float: the field's loss at the end of the training on all strings, nats",
        loss_without="float: its loss at the end of the training without the string, nats",
        field_influence="float: the difference, nats",
        field_influence_again="float: the same with other initial weights and another order",
        placebo_field_influence="float?: the same of this field of a string that no training saw; "
        "null without such a string, or if it has no such field",
    ),
)
CONTENDERS = Kind(
    "contenders",
    "One row per run, cheap measure and training string: what the measure says of the string.",
    f"{FOLDER}/contenders.parquet",
    columns(f"{RUN} measure needs string_id amount measured_start"),
)
FRONTIER = Kind(
    "frontier",
    "One row per run, cheap measure, question and statistic: how well the measure agrees with "
    "exact retraining, and what it costs.",
    f"{FOLDER}/frontier.parquet",
    columns(f"{RUN} measure needs question statistic value ceiling placebo n_strings seconds cost"),
)
ATLAS = Kind(
    "atlas",
    "One row per model, language, size, cheap measure, question and statistic: the mean over the "
    "seeds of the table `frontier`, with an interval.",
    f"{FOLDER}/atlas.parquet",
    columns(
        """model language size measure needs question statistic value lower upper n_seeds ceiling
        placebo share_of_ceiling share_lower share_upper cost""",
        lower="float?: lower end of the 95 % interval, over strings and seeds (bootstrap)",
        upper="float?: upper end of this interval",
        n_seeds="int: number of seeds in which the statistic is defined",
    ),
)
OF_FIELDS = (REMOVED_TOKENS, FIELDS)  # of languages with fields only
OF_CELLS = tuple(kind for kind in kinds_in(globals()) if kind not in OF_FIELDS)
CONFORMAL = Kind(
    "conformal",
    "One row per run and what its calibration lacks: how often intervals of the exact "
    "self-influence, from cheap measures, have the exact value.",
    "results/atlas/{language}/conformal.parquet",
    columns(
        f"""{RUN} held_out level n_strings shift told_apart refused coverage width single
        single_coverage single_width""",
        held_out="str: what the calibration does not share with these strings: string (half of the "
        "distinct strings of all runs), seed, language, family (of the model) or size",
        told_apart="bool: whether `shift` is above 0.95; nothing should then be said of the "
        "strings",
        level="float: the probability that is stated",
        refused="float: share of the strings whose prediction is outside the range of the "
        "calibration; the next columns are about the others",
        shift="float: AUC of telling the run's strings from those of the calibration by the cheap "
        "measures; 0.5: they are alike (exchangeable)",
        coverage="float?: share of the strings whose interval has the exact value; null if all are "
        "refused",
        width="float?: median width of the intervals, nats per token; null likewise",
        single="str: the best single measure, by the calibration",
        single_coverage="float?: coverage of intervals by this measure alone",
        single_width="float?: width of these intervals",
    ),
)

FORETOLD = Kind(
    "foretold",
    "One row per later run, outcome and training string: what is foretold from earlier runs, "
    "before the run is trained.",
    f"{OF_RUN}/foretold.parquet",
    columns(
        f"{RUN} string_id outcome new predicted lower upper by_rarity by_mean",
        predicted="float: the outcome that is foretold",
        lower="float?: lower end of the 90 % interval; null if the earlier runs have nothing that "
        "is as new",
        upper="float?: upper end of this interval",
        by_rarity="float: the same prediction from the run and the string's exact probability only",
        by_mean="float: from the run only, the same for all strings",
    ),
)
PROMISE = Document("promise", f"{OF_RUN}/promise.json")
FORETELLING = Kind(
    "foretelling",
    "One row per later run and outcome: how well the run was foretold.",
    f"{FOLDER}/foretelling.parquet",
    columns(
        f"""{RUN} outcome new foretold_before sha256 written started n_strings r_squared
        r_squared_by_rarity r_squared_by_mean placebo rank_correlation coverage width never""",
        foretold_before="bool: whether the manifest of the run says that its training began after "
        "these predictions were written, in one piece",
        sha256="str: SHA-256 of the predictions, in the run's promise.json",
        written="str: when these predictions were written, UTC",
        started="str: when the training began, UTC; empty if its manifest does not say so",
        n_strings="int: number of training strings",
        r_squared="float?: 1 minus the squared errors over those of the run's own mean; null if "
        "all strings of the run are alike",
        r_squared_by_rarity="float?: the same of `by_rarity`",
        r_squared_by_mean="float?: the same of `by_mean`",
        placebo="float?: the same of predictions under the names of other strings of the run; the "
        "mean over 200 shuffles",
        rank_correlation="float?: Spearman's, of prediction and outcome",
        coverage="float?: share of the strings whose interval has the outcome; null without "
        "intervals",
        width="float?: median width of the intervals, in the unit of the outcome",
        never="float: share of the strings that never start; 0 for bits",
    ),
)
OF_FORETELLING = (FORETOLD, PROMISE, FORETELLING)

KINDS = kinds_in(globals())
