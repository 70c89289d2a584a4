"""Kinds of tables of training-data density.

A query is a string whose density is estimated, and the corpus are the training strings of a run,
with copies. An embedding is a vector for a string. A setting of an estimator is an embedding with a
kernel and a bandwidth, or an embedding with a number of neighbours.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.
"""

from dataclasses import replace

from palimpsest.tables.columns import (
    EVIDENCE,
    GROUP_SEED,
    LANGUAGE,
    MEASURE,
    MODEL,
    SEED,
    SIZE,
    STRING_ID,
)
from palimpsest.tables.kinds import VECTOR, Column, Kind

KERNELS = GAUSSIAN, EXPONENTIAL = ("gaussian", "exponential")
HIDDEN, NGRAMS = "hidden", "ngrams"
EMBEDDINGS_OF_STRINGS = (HIDDEN, NGRAMS)
LEAKED, NEVER, PLACEBO = "leaked", "never", "placebo"
DISTRACTOR = "distractor"
TRAINED, UNSEEN = "trained", "unseen"
TOP_K, LENGTH = "top-k distance", "length"
PERPLEXITY, ACCURACY = "perplexity", "accuracy"
LEAK_CONDITION, ON_DENSITY, ON_BOTH = "leak condition", "density", "density and distance"
ON_DISTANCE = "distance"
# For texts: the density over a random sample of the corpus alone
ON_RANDOM = "random part of density"

RUN = "results/density/{model}/{language}/n{size}-seed{seed}/{variant}"
FOLDER = "results/density/{model}/{language}/n{size}"
OF_VARIANT = FOLDER + "/{variant}"
OF_TEXT = "results/density/texts/{language}"
OF_SEED = (MODEL, LANGUAGE, SIZE, SEED)
EMBEDDING = Column(
    "embedding",
    str,
    "hidden (mean of the last hidden states of the model under study, of length 1) or ngrams "
    "(counts of one to three symbols in a row, of length 1); for a text, the model's name",
)
KERNEL = Column("kernel", str, "gaussian or exponential")
BANDWIDTH = Column("bandwidth", float, "bandwidth of the kernel, in units of the embedding")
OF_SETTING = [EMBEDDING.name, KERNEL.name, BANDWIDTH.name]  # the columns of an estimator's setting
DENSITIES = (
    KERNEL,
    BANDWIDTH,
    Column("log_density", float, "log of the exact density; the kernel is 1 at distance 0"),
    Column(
        "log_local",
        float,
        "log of the density over the k nearest training strings alone; null without an "
        "approximation",
        True,
    ),
    Column(
        "log_random",
        float,
        "log of the density over a random sample of the other training strings; null without an "
        "approximation",
        True,
    ),
    Column(
        "log_approximate",
        float,
        "log of both parts together (algorithm 1); null without an approximation",
        True,
    ),
)
DISTANCES = (
    Column("k", int, "number of nearest training strings, with copies"),
    Column("nearest", float, "distance to the nearest training string; exactly 0 for a copy"),
    Column("mean_distance", float, "mean distance to the k nearest training strings"),
)
ESTIMATOR = Column("estimator", str, "gaussian, exponential, top-k distance or length")
SETTING = Column(
    "setting",
    float,
    "bandwidth of a kernel, or number of neighbours; null for an estimator without a setting",
    True,
)
EXACT = Column("exact", int, "copies of each leaked string among the training strings: 0 or 1")
PARAPHRASES = Column(
    "paraphrases",
    int,
    "number of paraphrases of each leaked string among the training strings: 0 to 3",
)
N_STRINGS = Column("n_strings", int, "number of strings")

EMBEDDINGS = Kind(
    "embeddings",
    "One row per string of a dataset: the vector of length 1 that the trained model gives it.",
    f"{RUN}/embeddings.parquet",
    (
        *GROUP_SEED,
        STRING_ID,
        Column("vector", VECTOR, "mean over the string of the last hidden states, of length 1"),
    ),
)
DENSITY = Kind(
    "density",
    "One row per string that is measured, embedding, kernel and bandwidth: the density of the "
    "training strings at the string. The string itself counts, if it is a training string.",
    f"{RUN}/density.parquet",
    (
        *GROUP_SEED,
        STRING_ID,
        EMBEDDING,
        *DENSITIES,
        Column(
            "log_density_others",
            float,
            "for a training string: log of the exact density of the other training strings (one "
            "copy of the string itself is left out); null for any other string",
            True,
        ),
    ),
)
NEIGHBOURS = Kind(
    "neighbours",
    "One row per string that is measured, embedding and number of neighbours.",
    f"{RUN}/neighbours.parquet",
    (*GROUP_SEED, STRING_ID, EMBEDDING, *DISTANCES),
)
LEAKAGE = Kind(
    "leakage",
    "One row per run of the factorial, test string and embedding: whether the string was leaked, "
    "how dense the training data is around it, and how well the model does on it.",
    f"{FOLDER}/leakage.parquet",
    (
        *GROUP_SEED,
        STRING_ID,
        Column("group", str, "the rule with which the string's derivation begins"),
        Column("length", int, "number of symbols"),
        Column(
            "strings",
            str,
            "leaked: in the training strings of some runs; never: in none; placebo: also in none, "
            "and treated by regressions as if leaked",
        ),
        EXACT,
        PARAPHRASES,
        Column(
            "effective_epochs",
            int,
            "epochs times the copies and paraphrases of the string among the training strings",
        ),
        Column("loss", float, "at the end of training, nats per predicted token"),
        Column("perplexity", float, "exp(loss)"),
        Column(
            "answer_right",
            bool,
            "whether the loss is below that of the string's distractor, a paraphrase that is never "
            "trained on: a question with two answers",
        ),
        EMBEDDING,
        KERNEL,
        BANDWIDTH,
        Column("log_density", float, "log of the exact density, at this kernel and bandwidth"),
        Column("mean_distance", float, "mean distance to the k nearest training strings"),
    ),
)
SEPARATION = Kind(
    "separation",
    "One row per seed, condition of the factorial and setting of an estimator: how well density "
    "tells leaked test strings from others of the same run.",
    f"{FOLDER}/separation.parquet",
    (
        *OF_SEED,
        EXACT,
        PARAPHRASES,
        EMBEDDING,
        ESTIMATOR,
        SETTING,
        Column(
            "auc",
            float,
            "probability that a leaked string has the higher density than one that is never "
            "leaked; ties count half",
        ),
        Column("placebo", float, "the same of placebos against other strings never leaked"),
        N_STRINGS,
    ),
)
RETRIEVAL = Kind(
    "retrieval",
    "One row per seed, embedding and k, for the run with copies and all paraphrases: how much of "
    "what was leaked the search for neighbours finds.",
    f"{FOLDER}/retrieval.parquet",
    (
        *OF_SEED,
        EMBEDDING,
        Column("k", int, "number of nearest training strings"),
        Column("recall", float, "share of a string's copies and paraphrases among the k nearest"),
        Column("ndcg", float, "normalised discounted cumulative gain of the k nearest"),
        Column("chance", float, "expected recall of a random order"),
        N_STRINGS,
    ),
)
LEFT_OUT = Kind(
    "left_out",
    "One row per seed, production that is left out, group of test strings, embedding, kernel and "
    "bandwidth: what changes against training on all productions.",
    f"{FOLDER}/left_out.parquet",
    (
        *OF_SEED,
        Column("left_out", str, "the rule whose strings are not trained on"),
        Column("group", str, "the rule of the test strings"),
        EMBEDDING,
        KERNEL,
        BANDWIDTH,
        N_STRINGS,
        Column("log_density", float, "mean change of the log density"),
        Column("loss", float, "mean change of the loss, nats per token"),
        Column("answer_right", float, "change of the share of right answers"),
    ),
)
REGRESSED = (
    Column(
        "regression",
        str,
        "what performance is regressed on: leak condition, density, density and distance or, for "
        "texts, distance or random part of density",
    ),
    Column("outcome", str, "perplexity (linear) or accuracy (logistic)"),
    Column("predictor", str, "the form of the density: raw or log; null without density", True),
    EMBEDDING,
    replace(KERNEL, meaning=f"{KERNEL.meaning}; null without density", nullable=True),
    replace(BANDWIDTH, meaning=f"{BANDWIDTH.meaning}; null without density", nullable=True),
    Column("term", str, "the fixed effect"),
    Column(
        "estimate",
        float,
        "change of perplexity, or of the log odds, per unit of the term; densities and distances "
        "are in standard deviations; null if the outcome or a term does not vary, or if the fit "
        "did not converge",
        True,
    ),
    Column("std_error", float, "its standard error, by the model", True),
    Column("df", float, "degrees of freedom (Satterthwaite); null for accuracy", True),
    Column("statistic", float, "t or z, by the model", True),
    Column(
        "p_value",
        float,
        "p-value; null if the outcome or a term does not vary; permutations need no estimate",
        True,
    ),
    Column("p_kind", str, "source of `p_value`: permutation, Satterthwaite t or Wald z"),
    Column(
        "model_p_value",
        float,
        "p-value of Satterthwaite's t or Wald's z, as in the paper; too small where a string's "
        "rows depend on each other more than the model knows",
        True,
    ),
    Column("converged", bool, "whether the fit converged"),
    Column("singular", bool, "whether the variance of some random effect is 0"),
    Column("n_rows", int, "number of rows of the regression"),
)
REGRESSIONS = Kind(
    "regressions",
    "One row per regression and fixed effect, over the runs of all seeds.",
    f"{FOLDER}/regressions.parquet",
    (
        MODEL,
        LANGUAGE,
        SIZE,
        Column("strings", str, "leaked (the test strings), or placebo: none is really leaked"),
        *(
            replace(column, meaning=f"{column.meaning}; null without density", nullable=True)
            if column == EMBEDDING
            else column
            for column in REGRESSED
        ),
        Column(
            "effect",
            float,
            "the effect of the term at which exchanging strings of one seed and group changes "
            "nothing; near the estimate, which compares groups and seeds as well; null without a "
            "fit",
            True,
        ),
        Column("lower", float, "lower end of the 95 % interval of exchanging strings", True),
        Column("upper", float, "upper end", True),
    ),
)
BINS = (
    Column("bin", int, "number of the bin, from 1; bins hold equally many strings"),
    Column("mean_x", float, "mean log density, or mean distance, of the bin's strings"),
    Column("outcome", str, "perplexity or accuracy"),
    Column("mean_y", float, "mean perplexity, or share of right answers, of the bin's strings"),
    Column("lower", float, "lower end of its 95 % interval over the strings", True),
    Column("upper", float, "upper end", True),
    Column("shortest", int, "shortest length in the window"),
    Column("longest", int, "longest length in the window"),
    N_STRINGS,
)
PART = Column(
    "part",
    str,
    "what is binned: exact, local or random density, or the mean distance to the k nearest",
)
DENSITY_BINS = Kind(
    "density_bins",
    "One row per embedding, kernel, bandwidth, part, outcome and bin: performance on test strings "
    "of all runs of the factorial, from sparse to dense.",
    f"{FOLDER}/bins.parquet",
    (MODEL, LANGUAGE, SIZE, EMBEDDING, KERNEL, BANDWIDTH, PART, *BINS),
)
TRUTH = Kind(
    "truth",
    "One row per seed, kind of strings, embedding and setting of an estimator: whether the "
    "estimator orders strings as the language's exact probabilities do.",
    f"{OF_VARIANT}/truth.parquet",
    (
        *GROUP_SEED,
        Column(
            "strings",
            str,
            "trained: the distinct training strings, whose own copies count; or unseen: strings "
            "never trained on",
        ),
        replace(EMBEDDING, meaning=f"{EMBEDDING.meaning}; null for `length`", nullable=True),
        ESTIMATOR,
        SETTING,
        Column(
            "correlation",
            float,
            "Spearman's, of the density (or minus the distance) and the exact log probability; "
            "null if one of them does not vary",
            True,
        ),
        Column(
            "given_length",
            float,
            "the same, partial: of what ranks have beyond a smooth curve on that of the length; "
            "null if the length does not vary",
            True,
        ),
        N_STRINGS,
    ),
)
MEMORISED = Kind(
    "memorised",
    "One row per seed, kind of strings, measure, embedding, kernel and bandwidth: are densely "
    "supported strings memorised earlier? Only strings with one copy count, and a string does not "
    "support itself.",
    f"{OF_VARIANT}/memorised.parquet",
    (
        *GROUP_SEED,
        Column(
            "strings",
            str,
            "trained; or unseen: strings never trained on, by the same measure",
        ),
        MEASURE,
        EVIDENCE,
        EMBEDDING,
        KERNEL,
        BANDWIDTH,
        Column(
            "correlation",
            float,
            "Spearman's, of the log density and the epoch at which memorisation starts (never is "
            "the latest); null if one of them does not vary",
            True,
        ),
        Column(
            "given_log_prob",
            float,
            "the same, partial: at equal exact probability of the string",
            True,
        ),
        Column(
            "association",
            float,
            "Somers' D of the support and the start, over pairs of strings with different starts; "
            "of the support, what its rank has beyond a smooth curve on that of the exact "
            "probability; null if all starts are equal",
            True,
        ),
        Column(
            "comparable",
            float,
            "the same, for comparing trained with unseen strings: in one of them, the latest "
            "starts count as never, so that both have about the same share of strings that never "
            "start; null if all starts are then equal, or if the other kind is not measured",
            True,
        ),
        Column("never", float, "share of the strings that are never memorised"),
        Column("never_or_late", float, "share of the strings that count as never in `comparable`"),
        N_STRINGS,
    ),
)
NAME_OF_TEXT = replace(LANGUAGE, meaning="name of the text in the block `density/texts`")
SEGMENT = Column("segment_id", str, "name of the segment: that of its text, as of a string")
DOCUMENT = Column("document", int, "number of the first text with the segment in the file, from 1")
SEGMENTS = Kind(
    "segments",
    "One row per distinct segment of a text: a window of words.",
    f"{OF_TEXT}/segments.parquet",
    (
        NAME_OF_TEXT,
        Column("role", str, "corpus or query"),
        SEGMENT,
        Column("text", str, "the words, separated by blanks"),
        Column("n_words", int, "number of words"),
        Column("n_characters", int, "number of characters"),
        DOCUMENT,
        Column("count", int, "copies of the segment"),
    ),
)
TEXT_EMBEDDINGS = Kind(
    "text_embeddings",
    "One row per segment: its vector of length 1 and, for queries, the model's loss.",
    f"{OF_TEXT}/embeddings.parquet",
    (
        NAME_OF_TEXT,
        Column("role", str, "corpus or query"),
        SEGMENT,
        EMBEDDING,
        Column("vector", VECTOR, "the embedding, of length 1"),
        Column("n_tokens", int, "number of predicted tokens; null without a language model", True),
        Column(
            "n_unknown", int, "how many of them its tokenizer does not know; null likewise", True
        ),
        Column("nll", float, "negative log likelihood, nats; null without a language model", True),
    ),
)
TEXT_DENSITY = Kind(
    "text_density",
    "One row per query, kernel and bandwidth: the density of the corpus at the query.",
    f"{OF_TEXT}/density.parquet",
    (
        NAME_OF_TEXT,
        SEGMENT,
        EMBEDDING,
        Column("n_characters", int, "length of the query"),
        DOCUMENT,
        Column("perplexity", float, "of the query; null without a language model", True),
        *DENSITIES,
        *DISTANCES,
    ),
)
TEXT_BINS = Kind(
    "text_bins",
    "One row per kernel, bandwidth, part and bin: perplexity of queries of similar length, from "
    "sparse to dense; a text without a language model has no rows.",
    f"{OF_TEXT}/bins.parquet",
    (NAME_OF_TEXT, EMBEDDING, KERNEL, BANDWIDTH, PART, *BINS),
)
TEXT_REGRESSIONS = Kind(
    "text_regressions",
    "One row per regression and fixed effect; a text without a language model has no rows.",
    f"{OF_TEXT}/regressions.parquet",
    (NAME_OF_TEXT, *REGRESSED),
)
KINDS = (
    EMBEDDINGS,
    DENSITY,
    NEIGHBOURS,
    LEAKAGE,
    SEPARATION,
    RETRIEVAL,
    LEFT_OUT,
    REGRESSIONS,
    DENSITY_BINS,
    TRUTH,
    MEMORISED,
    SEGMENTS,
    TEXT_EMBEDDINGS,
    TEXT_DENSITY,
    TEXT_BINS,
    TEXT_REGRESSIONS,
)
# Of the runs of a factorial, made by one job
OF_FACTORIAL = (LEAKAGE, SEPARATION, RETRIEVAL, DENSITY_BINS)
