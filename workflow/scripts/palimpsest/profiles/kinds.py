"""Kinds of tables of memorisation profiles.

A cell is a cohort at a time: the strings of one macro-batch, measured at one checkpoint. In a
stream, cohorts and times count macro-batches, and the strings of cohort g have been trained on from
time g on.
"""

from dataclasses import replace

from palimpsest.tables.columns import LANGUAGE, MODEL, SEED, SIZE, STRING_ID
from palimpsest.tables.kinds import Column, Kind
from palimpsest.tables.user_values import LOCAL, NUMBER, ZONED

TRAINED, PLACEBO = "trained", "placebo"
DIFFERENCE, DIFFERENCE_IN_DIFFERENCES = "difference", "difference_in_differences"
LOG_LIKELIHOOD, TOKEN_ACCURACY, NEGATIVE_RANK = "log_likelihood", "token_accuracy", "negative_rank"
BEFORE, AFTER = "before", "after"
TOTAL, SPECIFIC = "total", "specific"
ARCHITECTURAL, INFLUENCE, EXTRACTABLE = "architectural", "influence", "extractable"

FOLDER = "results/profiles/{model}/{language}/n{size}"
OF_ONE_SEED = "results/profiles/{model}/{language}/n{size}-seed{seed}"
OF_PANELS = "results/profiles/panels/{language}"
OF_RUN = (
    MODEL,
    LANGUAGE,
    SIZE,
    SEED,
    Column("parameters", int, "number of parameters of the model as trained"),
)
OUTCOME = Column(
    "outcome",
    str,
    "what is measured of a string: log_likelihood (of the whole string, nats), token_accuracy "
    "(share of right tokens) or negative_rank (minus the mean rank of the true tokens, so that up "
    "is better for all three)",
)
STRINGS_OF = Column(
    "strings",
    str,
    "trained, or placebo: strings that are never trained on, in cohorts with a random time",
)
ESTIMATOR = Column("estimator", str, "difference or difference_in_differences")
COHORT = Column("cohort", int, "macro-batch of the strings, from 1")
TIME = Column("time", int, "macro-batches that were trained on before the measurement")
SINCE = Column(
    "since",
    int,
    "times since the first one after the treatment: 0 is just after; negative before",
)
N_COHORTS = Column("n_cohorts", int, "number of cohorts that have such a time")
ESTIMATE = Column("estimate", float, "estimated effect of training, in units of the outcome")
BANDED = (
    ESTIMATE,
    Column("std_error", float, "its standard error; null in the base period", True),
    Column("lower", float, "lower end of the simultaneous 95 % band", True),
    Column("upper", float, "upper end of the simultaneous 95 % band", True),
    Column("significant", bool, "whether the band excludes 0"),
)
N_SEEDS = Column("n_seeds", int, "number of seeds whose strings are in one panel")
LEARNING_RATE = Column(
    "learning_rate",
    float,
    "mean learning rate of the steps on the cohort; null for placebos",
    True,
)
CELLS = Column("cells", str, "before or after the treatment; without the base period")

PROFILE = Kind(
    "profile",
    "One row per seed, kind of strings, estimator, outcome, cohort and time: the effect of "
    "training on the cohort. A band is simultaneous over the cells of one seed, estimator and "
    "outcome.",
    f"{FOLDER}/profile.parquet",
    (
        *OF_RUN,
        STRINGS_OF,
        ESTIMATOR,
        OUTCOME,
        COHORT,
        TIME,
        LEARNING_RATE,
        *BANDED,
    ),
)
PERSISTENCE = Kind(
    "persistence",
    "One row per seed, kind of strings, outcome and time since treatment: the effect by difference-"
    "in-differences, averaged over cohorts, with a band of its own.",
    f"{FOLDER}/persistence.parquet",
    (*OF_RUN, STRINGS_OF, OUTCOME, SINCE, N_COHORTS, *BANDED),
)
OF_MODEL = tuple(column for column in OF_RUN if column is not SEED)
POOLED_PROFILE = Kind(
    "pooled_profile",
    "One row per kind of strings, estimator, outcome, cohort and time: the mean effect over the "
    "runs of all seeds, with bands over the strings of these runs.",
    f"{FOLDER}/pooled_profile.parquet",
    (*OF_MODEL, N_SEEDS, STRINGS_OF, ESTIMATOR, OUTCOME, COHORT, TIME, LEARNING_RATE, *BANDED),
)
POOLED_PERSISTENCE = Kind(
    "pooled_persistence",
    "One row per kind of strings, outcome and time since treatment: the mean of the table "
    "`persistence` over the runs of all seeds, with bands over the strings of these runs.",
    f"{FOLDER}/pooled_persistence.parquet",
    (*OF_MODEL, N_SEEDS, STRINGS_OF, OUTCOME, SINCE, N_COHORTS, *BANDED),
)
EXACT_PROFILE = Kind(
    "exact_profile",
    "One row per seed, estimator, outcome, cohort and time: the true effect on the measured "
    "strings of the cohort, by training again without the cohort, and the estimate beside it.",
    f"{FOLDER}/exact_profile.parquet",
    (
        *OF_RUN,
        OUTCOME,
        COHORT,
        TIME,
        Column(
            "total",
            float,
            "mean effect on the strings: with the cohort minus without it, in units of the outcome",
        ),
        Column("general", float, "the same of validation strings, which are in neither run"),
        Column(
            "specific",
            float,
            "total minus general: what training on the cohort did to its strings beyond what it "
            "did to all strings",
        ),
        Column("specific_std_error", float, "its standard error over the strings"),
        ESTIMATOR,
        *BANDED,
    ),
)
ESTIMATOR_ERRORS = Kind(
    "estimator_errors",
    "One row per seed, estimator, outcome, kind of truth and side of the treatment: errors of the "
    "estimates against the truth, over cohorts and times.",
    f"{FOLDER}/estimator_errors.parquet",
    (
        *OF_RUN,
        ESTIMATOR,
        OUTCOME,
        Column("truth", str, "total or specific: see the table `exact_profile`"),
        CELLS,
        Column("n_cells", int, "number of cells"),
        Column("effect", float, "mean truth"),
        Column("bias", float, "mean of estimate minus truth"),
        Column("std", float, "standard deviation of estimate minus truth"),
        Column("rmse", float, "root mean square of estimate minus truth"),
        Column("coverage", float, "share of the cells whose band holds the truth"),
        Column("all_covered", bool, "whether the bands of all cells hold the truth"),
    ),
)
CONTINUATIONS = Kind(
    "continuations",
    "One row per measured string of a stream: what greedy decoding by the trained model gives.",
    f"{OF_ONE_SEED}/continuations.parquet",
    (
        MODEL,
        LANGUAGE,
        SIZE,
        SEED,
        STRING_ID,
        Column("n_tokens", int, "number of predicted tokens of the string"),
        Column(
            "n_last_right",
            int,
            "the longest end of the string, in tokens, that greedy decoding gives from all tokens "
            "before it: a string is (k, l)-extractable, with k the number of tokens before the "
            "last l, if this is at least l",
        ),
    ),
)
INFLUENCES = Kind(
    "influences",
    "One row per macro-batch and measured string of it, and per macro-batch and validation string "
    "that stands for no other string: the effect of training on the macro-batch, by an influence "
    "function.",
    f"{OF_ONE_SEED}/influences.parquet",
    (
        MODEL,
        LANGUAGE,
        SIZE,
        SEED,
        Column("without", int, "macro-batch whose place other strings take"),
        STRING_ID,
        Column(
            "influence",
            float,
            "log-likelihood of the string under the trained model, minus that under its weights "
            "moved to where they would be without the macro-batch, nats",
        ),
        Column("residual", float, "unsolved share of the linear system; 0 is exact"),
    ),
)
NOTIONS = Kind(
    "notions",
    "One row per seed, macro-batch and notion of memorisation, at the end of training: the "
    "estimate, the same for strings that are never trained on, and the true effect beside both.",
    f"{FOLDER}/notions.parquet",
    (
        *OF_RUN,
        COHORT,
        Column(
            "notion",
            str,
            "difference or difference_in_differences (from one run), architectural (means over "
            "models that are trained with and without the macro-batch), influence (first-order "
            "approximation of training again), or extractable (share of strings whose last tokens "
            "greedy decoding gives)",
        ),
        Column("unit", str, "of estimate and placebo: nats of log-likelihood, or share of strings"),
        Column("estimate", float, "mean over the measured strings of the macro-batch"),
        Column(
            "placebo",
            float,
            "the same for strings that are never trained on; 0 for the two estimators from one "
            "run, whose comparison these strings are",
        ),
        Column("total", float, "total effect by training again without the macro-batch, nats"),
        Column("specific", float, "its specific effect (table `exact_profile`), nats"),
    ),
)
PROFILE_CORRELATION = Kind(
    "profile_correlation",
    "One row per pair of models, seed, outcome and side of the treatment: the correlation of their "
    "profiles by difference-in-differences. The second model has at least as many parameters.",
    "results/profiles/correlations/{language}/n{size}.parquet",
    (
        LANGUAGE,
        SIZE,
        SEED,
        replace(MODEL, meaning="name of the first model"),
        Column("other", str, "name of the second model"),
        OUTCOME,
        CELLS,
        Column("n_cells", int, "number of cells"),
        Column("correlation", float, "Pearson correlation over the cells; null if undefined", True),
    ),
)
OF_DILUTION = "results/profiles/dilution/{model}/{language}"
DILUTED_STRINGS = Column(
    "strings",
    str,
    "trained, or placebo: strings that are never trained on, assigned to the arms at random",
)
DILUTION = Kind(
    "dilution",
    "One row per seed, size of the stream, kind of strings, number of copies, position, outcome "
    "and quarter of the stream: the effect of training on the strings, by training again without "
    "the probes of all arms, and the estimate of one run. The size counts training strings, with "
    "their copies.",
    f"{OF_DILUTION}/dilution.parquet",
    (
        *OF_RUN,
        DILUTED_STRINGS,
        Column("copies", int, "copies of each string in the stream; of placebos: by assignment"),
        Column("position", str, "early or late: the first or the last quarter of the stream"),
        OUTCOME,
        Column("quarter", int, "quarters of the stream that were trained on before, 0 to 4"),
        Column("n_strings", int, "number of distinct strings"),
        Column(
            "difference",
            float,
            "their mean outcome minus that of other strings that are never trained on, in the run "
            "with the probes, in units of the outcome",
        ),
        Column(
            "total",
            float,
            "mean effect on the strings: with the probes of all arms minus without them",
        ),
        Column("general", float, "the same of other strings, which are in neither run"),
        Column("specific", float, "total minus general"),
        LEARNING_RATE,
    ),
)
DILUTION_EFFECTS = Kind(
    "dilution_effects",
    "One row per kind of strings, outcome, effect and contrast of the factorial at the end of "
    "training: mean over the seeds, with a Student interval. Of each factor, the smallest and the "
    "largest level are compared.",
    f"{OF_DILUTION}/effects.parquet",
    (
        MODEL,
        LANGUAGE,
        DILUTED_STRINGS,
        OUTCOME,
        Column("effect", str, "total, specific or difference: see the table `dilution`"),
        Column(
            "contrast",
            str,
            "mean: over all cells; copies, position, size: more minus fewer copies, late minus "
            "early, larger minus smaller stream, averaged over the other factors; copies x size: "
            "by how much the contrast of one factor grows with the other; and so on",
        ),
        Column("n_seeds", int, "number of seeds"),
        Column("estimate", float, "mean over the seeds, in units of the outcome"),
        Column("lower", float, "lower end of the 95 % interval over the seeds", True),
        Column("upper", float, "upper end of the 95 % interval over the seeds", True),
    ),
)
PANEL = Column("panel", str, "name of the panel in the configuration")
PANEL_PROFILE = Kind(
    "panel_profile",
    "One row per estimator, cohort and time of a panel that the configuration names; in the path, "
    "`language` is the name of the panel.",
    f"{OF_PANELS}/profile.parquet",
    (
        PANEL,
        ESTIMATOR,
        Column(
            "cohort",
            float,
            "time at which the units are treated, or the first measurement after it; a date is in "
            "days since 1970-01-01, in UTC if it has a time zone",
        ),
        Column("time", float, "time of the measurement, in the same unit"),
        Column("kind_of_time", str, f"what times are: {NUMBER}, {LOCAL} or {ZONED}"),
        Column("is_loss", bool, "whether the outcome is minus a loss"),
        *BANDED,
    ),
)
PANEL_PERSISTENCE = Kind(
    "panel_persistence",
    "One row per time since treatment of a panel that the configuration names: the effect by "
    "difference-in-differences, averaged over cohorts.",
    f"{OF_PANELS}/persistence.parquet",
    (PANEL, SINCE, N_COHORTS, *BANDED),
)
KINDS = (
    PROFILE,
    PERSISTENCE,
    POOLED_PROFILE,
    POOLED_PERSISTENCE,
    EXACT_PROFILE,
    ESTIMATOR_ERRORS,
    CONTINUATIONS,
    INFLUENCES,
    NOTIONS,
    PROFILE_CORRELATION,
    DILUTION,
    DILUTION_EFFECTS,
    PANEL_PROFILE,
    PANEL_PERSISTENCE,
)
