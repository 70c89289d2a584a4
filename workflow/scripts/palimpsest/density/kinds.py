"""Kinds of tables of training-data density.

A query is a string whose density is estimated, and the corpus are the training strings of a run,
with copies. An embedding is a vector for a string. A setting of an estimator is an embedding with a
kernel and a bandwidth, or an embedding with a number of neighbours.
"""

from functools import partial

from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind, kinds_in

KERNELS = GAUSSIAN, EXPONENTIAL = ("gaussian", "exponential")
EMBEDDINGS_OF_STRINGS = HIDDEN, NGRAMS = ("hidden", "ngrams")
TESTED = LEAKED, PLACEBO, NEVER = ("leaked", "placebo", "never")  # roles of test strings
CHOICE = "choice"
TRAINED, UNSEEN = "trained", "unseen"
TOP_K, LENGTH = "top-k distance", "length"
PERPLEXITY, ACCURACY = "perplexity", "accuracy"
RESPONSE = "response perplexity"
# The outcomes of a text, and their columns in the table `text_density`
OUTCOMES_OF_TEXT = {PERPLEXITY: "perplexity", RESPONSE: "response_perplexity"}
LEAK_CONDITION, ON_DENSITY, ON_BOTH = "leak condition", "density", "density and distance"
ON_DISTANCE = "distance"
# For texts: the density over a random sample of the corpus alone
ON_RANDOM = "random part of density"

FOLDER = "results/density/{recipe}/{model}/{language}/n{size}"
RUN = FOLDER + "-seed{seed}/{variant}"
OF_VARIANT = FOLDER + "/{variant}"
OF_TEXT = "results/density/texts/{language}"
# The corpus of a text, or its queries: a new set of queries leaves the corpus as it is.
OF_ROLE = f"{OF_TEXT}/{{role}}"

columns = SHARED.extended("""
vector vector: mean over the string of the last hidden states, of length 1
embedding str: hidden (mean of the last hidden states of the model under study, of length 1) or
    ngrams (counts of one to three symbols in a row, of length 1); for a text, also the name of a
    model of sentences; null in a regression without density, and for the estimator `length`
kernel str: gaussian or exponential; null in a regression without density
bandwidth float: bandwidth of the kernel, in units of the embedding; null in a regression without
    density
log_density float: log of the exact density; the kernel is 1 at distance 0
log_local float?: log of the density over the k nearest training strings alone; null without an
    approximation, and in a corpus that is too small for one
log_random float?: log of the density over a random sample of the other training strings; null
    likewise
log_approximate float?: log of both parts together (algorithm 1); null likewise
local_share float?: share of the local part in the density of both parts together; null without an
    approximation
log_density_others float?: for a training string: log of the exact density of the other training
    strings (one copy of the string itself is left out); null for any other string
k int: number of nearest training strings, with copies
nearest float: distance to the nearest training string; exactly 0 for a copy
mean_distance float: mean distance to the k nearest training strings
group str: the rule with which the string's derivation begins
length int: number of symbols
string_role str: leaked: in the training strings of some runs; never: in none; placebo: also in
    none, and treated by regressions as if leaked
n_copies int: copies of each leaked string among the training strings: 0 or 1
paraphrases int: number of paraphrases of each leaked string among the training strings: 0 to 3
effective_epochs int: epochs times the copies and paraphrases of the string among the training
    strings
loss float: at the end of training, nats per predicted token
perplexity float: exp(loss)
answer_right bool?: whether the string is more probable, for the model, than with any other answer:
    the last symbols with which strings of the language end, or the choices of a question; null if
    the language has no right answers
n_choices int?: number of answers to choose from, the right one included; null likewise
estimator str: gaussian, exponential, top-k distance or length
bandwidth_or_k float?: bandwidth of a kernel, or number of neighbours; null for an estimator without
    a setting
auc float: probability that a leaked string has the higher density than one that is never leaked;
    ties count half
placebo float: the same of placebos against other strings never leaked
n_strings int: number of strings
recall float: share of a string's copies and paraphrases among the k nearest
ndcg float: normalised discounted cumulative gain of the k nearest
chance float: expected recall of a random order
left_out str: the rule whose strings are not trained on
regression str: what performance is regressed on: leak condition, density, density and distance or,
    for texts, distance or random part of density
outcome str: perplexity (its regressions are linear) or accuracy (logistic)
predictor str?: the form of the density: raw or log; null without density
term str: the fixed effect
estimate float?: change of perplexity, or of the log odds, per unit of the term; densities and
    distances are in standard deviations; null if the outcome or a term does not vary, or if the fit
    did not converge
std_error float?: its standard error, by the model
df float?: degrees of freedom (Satterthwaite); null for accuracy
statistic float?: t or z, by the model
p_value float?: p-value; null if the outcome or a term does not vary; permutations need no estimate
p_kind str: source of `p_value`: permutation, Satterthwaite t or Wald z
model_p_value float?: p-value of Satterthwaite's t or Wald's z, as in the paper; too small where a
    string's rows depend on each other more than the model knows
converged bool: whether the fit converged
singular bool: whether the variance of some random effect is 0
n_rows int: number of rows of the regression
effect float?: the effect of the term at which exchanging strings of one seed and group changes
    nothing; near the estimate, which compares groups and seeds as well; null without a fit
lower float?: lower end of its 95 % interval over the strings
upper float?: upper end
part str: what is binned: exact, local or random density, or the mean distance to the k nearest
bin int: number of the bin, from 1; bins hold equally many strings
mean_x float: mean log density, or mean distance, of the bin's strings
mean_y float: mean perplexity, or share of right answers, of the bin's strings
shortest int: shortest length in the window
longest int: longest length in the window
correlation float?: Spearman's, of the density (or minus the distance) and the exact log
    probability; null if one of them does not vary
given_length float?: the same, partial: of what ranks have beyond a smooth curve on that of the
    length; null if the length does not vary
given_log_prob float?: the same, partial: at equal exact probability of the string
association float?: Somers' D of the support and the start, over pairs of strings with different
    starts; of the support, what its rank has beyond a smooth curve on that of the exact
    probability; null if all starts are equal
association_censored float?: the same, for comparing trained with unseen strings: in one of them,
    the latest starts count as never, so that both have about the same share of strings that never
    start; null if all starts are then equal, or if the other kind is not measured
share_never_memorised float: share of the strings that are never memorised
share_censored float: share of the strings that count as never in `association_censored`
role str: corpus or query
query_set str: name of the set of queries in `density/texts`; queries, if there is only one
response str?: the response to the query; null for none
response_perplexity float?: exp(loss per token) of the response to the query, given the query; null
    without a response or a language model
segment_id str: name of the segment: that of its text, as of a string
text str: the words, separated by blanks
n_words int: number of words
n_characters int: number of characters
document int: number of the first text with the segment in the file, from 1
id str: name of this text: that in its column id, or that of its file without the ending; without
    either, the number of its line or row
n_unknown int?: how many of them its tokenizer does not know; null without a language model
""")
# Columns of the regressions and of the bins, of strings and of texts
REGRESSED = (
    "kernel? bandwidth? term estimate std_error df statistic p_value p_kind model_p_value "
    "converged singular n_rows"
)
BINS = "bin mean_x outcome mean_y lower upper shortest longest n_strings"
OF_SETTING = ["embedding", "kernel", "bandwidth"]  # the columns of an estimator's setting
of_text = partial(columns, language="str: name of the text in the block `density/texts`")
EMBEDDINGS = Kind(
    "embeddings",
    "One row per string of a dataset: the vector of length 1 that the trained model gives it.",
    f"{RUN}/embeddings.parquet",
    columns("model language size seed variant string_id vector"),
)
DENSITY = Kind(
    "density",
    "One row per string that is measured, embedding, kernel and bandwidth: the density of the "
    "training strings at the string. The string itself counts, if it is a training string.",
    f"{RUN}/density.parquet",
    columns("""
        model language size seed variant string_id embedding kernel bandwidth log_density log_local
        log_random log_approximate log_density_others
    """),
)
NEIGHBOURS = Kind(
    "neighbours",
    "One row per string that is measured, embedding and number of neighbours.",
    f"{RUN}/neighbours.parquet",
    columns("model language size seed variant string_id embedding k nearest mean_distance"),
)
LEAKAGE = Kind(
    "leakage",
    "One row per run of the factorial, test string and embedding: whether the string was leaked, "
    "how dense the training data is around it, and how well the model does on it.",
    f"{FOLDER}/leakage.parquet",
    columns("""
        model language size seed variant string_id group length string_role n_copies paraphrases
        effective_epochs loss perplexity answer_right n_choices embedding kernel bandwidth
        log_density nearest mean_distance
    """),
)
SEPARATION = Kind(
    "separation",
    "One row per seed, condition of the factorial and setting of an estimator: how well density "
    "tells leaked test strings from others of the same run.",
    f"{FOLDER}/separation.parquet",
    columns("""
        model language size seed n_copies paraphrases embedding estimator bandwidth_or_k auc placebo
        n_strings
    """),
)
RETRIEVAL = Kind(
    "retrieval",
    "One row per seed, embedding and k, for the run with copies and all paraphrases: how much of "
    "what was leaked the search for neighbours finds.",
    f"{FOLDER}/retrieval.parquet",
    columns(
        "model language size seed embedding k recall ndcg chance n_strings",
        k="int: number of nearest training strings",
    ),
)
LEFT_OUT = Kind(
    "left_out",
    "One row per seed, production that is left out, group of test strings, embedding, kernel and "
    "bandwidth: what changes against training on all productions.",
    f"{FOLDER}/left_out.parquet",
    columns(
        """
        model language size seed left_out group embedding kernel bandwidth n_strings log_density
        loss answer_right
        """,
        group="str: the rule of the test strings",
        log_density="float: mean change of the log density",
        loss="float: mean change of the loss, nats per token",
        answer_right="float?: change of the share of right answers; null if there are none",
    ),
)
REGRESSIONS = Kind(
    "regressions",
    "One row per regression and fixed effect, over the runs of all seeds.",
    f"{FOLDER}/regressions.parquet",
    columns(
        f"""
        model language size string_role regression outcome predictor embedding? {REGRESSED}
        effect lower upper
        """,
        string_role="str: leaked (the test strings), or placebo: none is really leaked",
        lower="float?: lower end of the 95 % interval of exchanging strings",
    ),
)
DENSITY_BINS = Kind(
    "density_bins",
    "One row per embedding, kernel, bandwidth, part, outcome and bin: performance on test strings "
    "of all runs of the factorial, from sparse to dense.",
    f"{FOLDER}/bins.parquet",
    columns(f"model language size embedding kernel bandwidth part {BINS}"),
)
BY_HEART = Kind(
    "by_heart",
    "One row per seed, condition of the factorial, kind of test strings and measured epoch: the "
    "share of right answers.",
    f"{FOLDER}/by_heart.parquet",
    columns(
        """
        model language size seed n_copies paraphrases string_role epoch loss answer_right n_strings
        """,
        loss="float: mean over the strings, nats per predicted token",
        answer_right="float?: share of right answers; null if the language has none",
    ),
)
TRUTH = Kind(
    "truth",
    "One row per seed, kind of strings, embedding and setting of an estimator: whether the "
    "estimator orders strings as the language's exact probabilities do.",
    f"{OF_VARIANT}/truth.parquet",
    columns(
        """
        model language size seed variant string_role embedding? estimator bandwidth_or_k correlation
        given_length n_strings
        """,
        string_role="str: trained: the distinct training strings, whose own copies count; or "
        "unseen: strings never trained on",
    ),
)
MEMORISED = Kind(
    "memorised",
    "One row per seed, kind of strings, measure, embedding, kernel and bandwidth: are densely "
    "supported strings memorised earlier? Only strings with one copy count, and a string does not "
    "support itself.",
    f"{OF_VARIANT}/memorised.parquet",
    columns(
        """
        model language size seed variant string_role measure evidence embedding kernel bandwidth
        correlation given_log_prob association association_censored share_never_memorised
        share_censored n_strings
        """,
        string_role="str: trained; or unseen: strings never trained on, by the same measure",
        correlation="float?: Spearman's, of the log density and the epoch at which memorisation "
        "starts (never is the latest); null if one of them does not vary",
    ),
)
SEGMENTS = Kind(
    "segments",
    "One row per distinct segment of a text's corpus, or of each of its sets of queries: a window "
    "of words, or a whole query that has a response.",
    f"{OF_ROLE}/segments.parquet",
    of_text(
        """
        language role query_set segment_id text response n_words n_characters document id count
        """,
        count="int: copies of the segment",
        query_set="str?: name of the set of queries; null for the corpus",
    ),
)
TEXT_EMBEDDINGS = Kind(
    "text_embeddings",
    "One row per segment: its vector of length 1 and, for queries, the model's loss.",
    f"{OF_ROLE}/embeddings.parquet",
    of_text(
        """
        language role query_set segment_id embedding vector count n_tokens n_unknown nll
        response_tokens response_nll
        """,
        query_set="str?: name of the set of queries; null for the corpus",
        response_tokens="int?: number of predicted tokens of the response; null without one",
        response_nll="float?: negative log likelihood of the response given the query, nats",
        count="int: copies of the segment",
        vector="vector: the embedding, of length 1",
        n_tokens="int?: number of predicted tokens; null without a language model",
        nll="float?: negative log likelihood, nats; null without a language model",
    ),
)
TEXT_DENSITY = Kind(
    "text_density",
    "One row per query, kernel and bandwidth: the density of the corpus at the query.",
    f"{OF_TEXT}/density.parquet",
    of_text(
        """
        language query_set segment_id id text embedding n_characters document perplexity
        response_perplexity kernel bandwidth log_density log_local log_random log_approximate
        local_share k nearest mean_distance
        """,
        log_density="float?: log of the exact density; null if only algorithm 1 was asked for",
        perplexity="float?: of the query; null without a language model",
    ),
)
TEXT_BINS = Kind(
    "text_bins",
    "One row per set of queries, kernel, bandwidth, part, outcome and bin: perplexity of queries "
    "of similar length and of their responses, from sparse to dense; a text without a language "
    "model has no rows.",
    f"{OF_TEXT}/bins.parquet",
    of_text(
        f"language query_set embedding kernel bandwidth part {BINS}",
        outcome="str: perplexity (of the query) or response perplexity (of the response to it)",
    ),
)
TEXT_REGRESSIONS = Kind(
    "text_regressions",
    "One row per set of queries, outcome, regression and fixed effect; a text without a language "
    "model has no rows.",
    f"{OF_TEXT}/regressions.parquet",
    of_text(
        f"language query_set regression outcome predictor embedding {REGRESSED}",
        outcome="str: perplexity (of the query) or response perplexity (of the response to it)",
    ),
)
KINDS = kinds_in(globals())
# Of the runs of a factorial, made by one job
OF_FACTORIAL = (LEAKAGE, SEPARATION, RETRIEVAL, DENSITY_BINS, BY_HEART)
