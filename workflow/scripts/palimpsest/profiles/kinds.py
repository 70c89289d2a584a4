"""Kinds of tables of memorisation profiles.

A cell is a cohort at a time: the strings of one macro-batch, measured at one checkpoint. In a
stream, cohorts and times count macro-batches, and the strings of cohort g have been trained on from
time g on.
"""

from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind, kinds_in

TRAINED, PLACEBO = "trained", "placebo"
DIFFERENCE, DIFFERENCE_IN_DIFFERENCES = "difference", "difference_in_differences"
LOG_LIKELIHOOD, TOKEN_ACCURACY, NEGATIVE_RANK = "log_likelihood", "token_accuracy", "negative_rank"
BEFORE, AFTER = "before", "after"
TOTAL, SPECIFIC = "total", "specific"
ARCHITECTURAL, INFLUENCE, EXTRACTABLE = "architectural", "influence", "extractable"
REMOVAL = "influence_removal"

FOLDER = "results/profiles/{recipe}/{model}/{language}/n{size}"
OF_ONE_SEED = FOLDER + "-seed{seed}"
OF_PANELS = "results/profiles/panels/{language}"
OF_STUDY = "results/profiles/panels_study/{language}"
STUDY = "panels"  # the name of the only study of panels, in paths
ONE_PANEL, ALL_PANELS = "panel", "panels"
PAIR = "pair"

BAND = "estimate std_error lower upper significant"

columns = SHARED.extended("""
string_role str: trained, or placebo: strings that are never trained on, with a random cohort or,
    for dilution, in a random arm
estimator str: difference or difference_in_differences
outcome str: what is measured of a string: log_likelihood (of the whole string, nats),
    token_accuracy (share of right tokens) or negative_rank (minus the mean rank of the true tokens,
    so that up is better for all three)
cohort int: macro-batch of the strings, from 1
time int: macro-batches that were trained on before the measurement
learning_rate float?: mean learning rate of the steps on the cohort; null for placebos
other_rate float: the same in the second recipe
other_estimate float: effect in the second recipe, nats
before float?: estimate two times before the treatment, where the truth is 0; null for the first
    cohort
other_before float?: the same in the second recipe
estimate float: estimated effect of training, in units of the outcome
std_error float?: its standard error; null in the base period
lower float?: lower end of the simultaneous 95 % band
upper float?: upper end of the simultaneous 95 % band
significant bool: whether the band excludes 0
since int: times since the first one after the treatment: 0 is just after; negative before
n_cohorts int: number of cohorts that have such a time
n_seeds int: number of seeds whose strings are in one panel
total float: mean effect on the strings: with the cohort minus without it, in units of the outcome
general float: the same of validation strings, which are in neither run
specific float: total minus general: what training on the cohort did to its strings beyond what it
    did to all strings
specific_std_error float: its standard error over the strings
truth str: total or specific: see the table `exact_profile`
cells str: before or after the treatment; without the base period
n_cells int: number of cells
effect float: mean truth
bias float: mean of estimate minus truth
std float: standard deviation of estimate minus truth
rmse float: root mean square of estimate minus truth
coverage float: share of the cells whose band holds the truth
all_covered bool: whether the bands of all cells hold the truth
n_last_right int: the longest end of the string, in tokens, that greedy decoding gives from all
    tokens before it: a string is (k, l)-extractable, with k the number of tokens before the last l,
    if this is at least l
without int: macro-batch whose place other strings take
influence float: log-likelihood of the string under the trained model, minus that under its weights
    moved to where they would be without the macro-batch, nats
residual float: unsolved share of the linear system; 0 is exact
removal float: as `influence`, with nothing in the place of the macro-batch, as in the paper, nats
removal_residual float: unsolved share of the linear system of `removal`
notion str: difference or difference_in_differences (from one run), architectural (means over models
    that are trained with and without the macro-batch), influence (first-order approximation of
    training again), or extractable (share of strings whose last tokens greedy decoding gives)
unit str: of estimate and placebo: nats of log-likelihood, or share of strings
placebo float: the same for strings that are never trained on; 0 for the two estimators from one
    run, whose comparison these strings are
other str: name of the second model
correlation float?: Pearson correlation over the cells; null if undefined
within_lags float?: the same after the mean of the cells at each time since the treatment is
    subtracted
copies int: copies of each string in the stream; of placebos: by assignment
position str: early or late: the first or the last quarter of the stream
quarter int: quarters of the stream that were trained on before, 0 to 4
n_strings int: number of distinct strings
difference float: their mean outcome minus that of other strings that are never trained on, in the
    run with the probes, in units of the outcome
contrast str: mean: over all cells; copies, position, size: more minus fewer copies, late minus
    early, larger minus smaller stream, averaged over the other factors; copies x size: by how much
    the contrast of one factor grows with the other; and so on
panel str: name of the panel in the configuration
row int: place of the string in its file, from 0
weights str: hash of the checkpoint's weights (SHA-256)
log_likelihood float: of the whole string, nats
token_accuracy float: share of right tokens
negative_rank float: minus the mean rank of the true tokens; the best is -1
compared str: panel (one by itself), panels (mean over all, of the order) or pair (the larger model
    minus the smaller one)
part str: instantaneous, persistent or residual (mean effects), instantaneous_order or
    residual_order (later minus earlier half of the cohorts), fading (last minus second third of a
    cohort's later times), fallen (last third minus just after the treatment), or a share of the
    instantaneous effect: persistent_share, fading_share or fallen_share
degrees float: degrees of freedom of Student's interval
n_shared int: number of units that both panels have
corrected float?: the same beyond the errors of both profiles; null where a profile does not vary
    beyond its errors; before the treatment, covariance over the standard deviations after it
within_lower float?: lower end of the 95 % interval of `within_lags`
within_upper float?: its upper end
kind_of_time str: what times are: a number, a date without a time zone or a date with a time zone
is_loss bool: whether the outcome is minus a loss
""")
PROFILE = Kind(
    "profile",
    "One row per seed, kind of strings, estimator, outcome, cohort and time: the effect of "
    "training on the cohort. A band is simultaneous over the cells of one seed, estimator and "
    "outcome.",
    f"{FOLDER}/profile.parquet",
    columns(f"""
        model language size seed parameters string_role estimator outcome cohort time learning_rate
        {BAND}
    """),
)
PERSISTENCE = Kind(
    "persistence",
    "One row per seed, kind of strings, outcome and time since treatment: the effect by difference-"
    "in-differences, averaged over cohorts, with a band of its own.",
    f"{FOLDER}/persistence.parquet",
    columns(f"model language size seed parameters string_role outcome since n_cohorts {BAND}"),
)
POOLED_PROFILE = Kind(
    "pooled_profile",
    "One row per kind of strings, estimator, outcome, cohort and time: the mean effect over the "
    "runs of all seeds, with bands over the strings of these runs.",
    f"{FOLDER}/pooled_profile.parquet",
    columns(f"""
        model language size parameters n_seeds string_role estimator outcome cohort time
        learning_rate {BAND}
    """),
)
POOLED_PERSISTENCE = Kind(
    "pooled_persistence",
    "One row per kind of strings, outcome and time since treatment: the mean of the table "
    "`persistence` over the runs of all seeds, with bands over the strings of these runs.",
    f"{FOLDER}/pooled_persistence.parquet",
    columns(f"model language size parameters n_seeds string_role outcome since n_cohorts {BAND}"),
)
EXACT_PROFILE = Kind(
    "exact_profile",
    "One row per seed, estimator, outcome, cohort and time: the true effect on the measured "
    "strings of the cohort, by training again without the cohort, and the estimate beside it.",
    f"{FOLDER}/exact_profile.parquet",
    columns(f"""
        model language size seed parameters outcome cohort time total general specific
        specific_std_error estimator {BAND}
    """),
)
ESTIMATOR_ERRORS = Kind(
    "estimator_errors",
    "One row per seed, estimator, outcome, kind of truth and side of the treatment: errors of the "
    "estimates against the truth, over cohorts and times.",
    f"{FOLDER}/estimator_errors.parquet",
    columns("""
        model language size seed parameters estimator outcome truth cells n_cells effect bias std
        rmse coverage all_covered
    """),
)
CONTINUATIONS = Kind(
    "continuations",
    "One row per measured string of a stream: what greedy decoding by the trained model gives.",
    f"{OF_ONE_SEED}/continuations.parquet",
    columns("model language size seed string_id n_tokens n_last_right"),
)
INFLUENCES = Kind(
    "influences",
    "One row per macro-batch and measured string of it, and per macro-batch and validation string "
    "that stands for no other string: the effect of training on the macro-batch, by an influence "
    "function.",
    f"{OF_ONE_SEED}/influences.parquet",
    columns(
        "model language size seed without string_id influence residual removal removal_residual"
    ),
)
NOTIONS = Kind(
    "notions",
    "One row per seed, macro-batch and notion of memorisation, at the end of training: the "
    "estimate, the same for strings that are never trained on, and the true effect beside both.",
    f"{FOLDER}/notions.parquet",
    columns(
        "model language size seed parameters cohort notion unit estimate placebo total specific",
        estimate="float: mean over the measured strings of the macro-batch",
        total="float: total effect by training again without the macro-batch, nats",
        specific="float: its specific effect (table `exact_profile`), nats",
    ),
)
PROFILE_CORRELATION = Kind(
    "profile_correlation",
    "One row per pair of models, seed, outcome and side of the treatment: the correlation of their "
    "profiles by difference-in-differences. The second model has at least as many parameters.",
    "results/profiles/correlations/{language}/n{size}.parquet",
    columns(
        "language size seed model other outcome cells n_cells correlation within_lags",
        model="str: name of the first model",
    ),
)
PROFILE_SCHEDULES = Kind(
    "profile_schedules",
    "One row per seed and cohort of a stream that was trained in two recipes: its log-likelihood's "
    "effect just after the treatment by difference-in-differences, in each; in the path, `recipe` "
    "is the second one.",
    f"{FOLDER}/schedules.parquet",
    columns(
        """
        model language size seed cohort learning_rate other_rate estimate other_estimate before
        other_before
        """,
        learning_rate="float: mean learning rate of the steps on the cohort, in the first recipe",
        estimate="float: effect in the first recipe, nats",
    ),
)
OF_DILUTION = "results/profiles/dilution/{recipe}/{model}/{language}"
DILUTION = Kind(
    "dilution",
    "One row per seed, size of the stream, kind of strings, number of copies, position, outcome "
    "and quarter of the stream: the effect of training on the strings, by training again without "
    "the probes of all arms, and the estimate of one run. The size counts training strings, with "
    "their copies.",
    f"{OF_DILUTION}/dilution.parquet",
    columns(
        """
        model language size seed parameters string_role copies position outcome quarter n_strings
        difference total general specific learning_rate
        """,
        total="float: mean effect on the strings: with the probes of all arms minus without them",
        general="float: the same of other strings, which are in neither run",
        specific="float: total minus general",
    ),
)
DILUTION_EFFECTS = Kind(
    "dilution_effects",
    "One row per kind of strings, outcome, effect and contrast of the factorial at the end of "
    "training: mean over the seeds, with a Student interval. Of each factor, the smallest and the "
    "largest level are compared.",
    f"{OF_DILUTION}/effects.parquet",
    columns(
        "model language string_role outcome effect contrast n_seeds estimate lower upper",
        effect="str: total, specific or difference: see the table `dilution`",
        n_seeds="int: number of seeds",
        estimate="float: mean over the seeds, in units of the outcome",
        lower="float?: lower end of the 95 % interval over the seeds",
        upper="float?: upper end of the 95 % interval over the seeds",
    ),
)
OF_A_FILE = "str: the panel's column that holds the outcome"
PANEL_PROFILE = Kind(
    "panel_profile",
    "One row per outcome, estimator, cohort and time of a panel that the configuration names; in "
    "the path, `language` is the name of the panel.",
    f"{OF_PANELS}/profile.parquet",
    columns(
        f"panel outcome estimator cohort time kind_of_time is_loss {BAND}",
        outcome=OF_A_FILE,
        cohort="float: time at which the units are treated, or the first measurement after it; a "
        "date is in days since 1970-01-01, in UTC if it has a time zone",
        time="float: time of the measurement, in the same unit",
    ),
)
PANEL_PERSISTENCE = Kind(
    "panel_persistence",
    "One row per outcome and time since treatment of a panel that the configuration names: the "
    "effect by difference-in-differences, averaged over cohorts.",
    f"{OF_PANELS}/persistence.parquet",
    columns(f"panel outcome since n_cohorts {BAND}", outcome=OF_A_FILE),
)
UNIT = "str: the string's name in its table, or the first 32 digits of the SHA-256 of its tokens"
PANEL_ROWS = Kind(
    "panel_rows",
    "One row per string that is measured under the checkpoints of a panel; in the path, `language` "
    "is the name of the panel.",
    f"{OF_PANELS}/rows.parquet",
    columns(
        "row unit cohort",
        unit=UNIT,
        cohort="float?: step at which the string is trained on; null if it never is",
    ),
)
PANEL_OUTCOMES = Kind(
    "panel_outcomes",
    "One row per string under one checkpoint of a panel; in the path, `language` is the name of "
    "the panel, and `model` is the step of the checkpoint.",
    f"{OF_PANELS}/checkpoints/{{model}}.parquet",
    columns(
        "panel time row nll n_tokens n_correct rank_sum weights",
        time="float: step of the checkpoint",
    ),
)
MEASURED_PANEL = Kind(
    "measured_panel",
    "One row per string and checkpoint of a panel that was made from checkpoints: a panel as users "
    "bring them, with three outcomes; in the path, `language` is the name of the panel.",
    f"{OF_PANELS}/panel.parquet",
    columns(
        "unit time cohort log_likelihood token_accuracy negative_rank",
        unit=UNIT,
        time="float: step of the checkpoint",
        cohort="float?: step at which the string is trained on; null if it never is",
    ),
)
OF_ALL = "of all panels, from that of the smallest model to that of the largest; in the path, "
OF_ALL += "`language` is `panels`."
PANELS_PROFILE = Kind(
    "panels_profile",
    f"The tables `panel_profile` {OF_ALL}",
    f"{OF_STUDY}/profile.parquet",
    columns(
        f"language panel outcome estimator cohort time kind_of_time is_loss {BAND}",
        outcome=OF_A_FILE,
        cohort="float: as in the table `panel_profile`",
        time="float: time of the measurement, in the same unit",
    ),
)
PANELS_PERSISTENCE = Kind(
    "panels_persistence",
    f"The tables `panel_persistence` {OF_ALL}",
    f"{OF_STUDY}/persistence.parquet",
    columns(f"language panel outcome since n_cohorts {BAND}", outcome=OF_A_FILE),
)
PANELS_EFFECTS = Kind(
    "panels_effects",
    "One row per kind of units, comparison and part of the profiles of panels, by difference-in-"
    "differences, with Student's interval over units; of the order, it is over units and cohorts. "
    "It speaks of other strings, and not of other trainings.",
    f"{OF_STUDY}/effects.parquet",
    columns(
        """
        language string_role compared panel other part estimate std_error degrees lower upper
        """,
        string_role="str: trained, or placebo: half of the units never treated, with random "
        "cohorts",
        panel="str?: name of the panel; null for a mean over panels",
        other="str?: of a pair: the panel of the larger model, from which `panel` is subtracted",
        estimate="float: in units of the outcome; a share has no unit",
        std_error="float: its standard error",
        lower="float: lower end of the 95 % interval",
        upper="float: upper end of the 95 % interval",
    ),
)
PANELS_CORRELATION = Kind(
    "panels_correlation",
    "One row per pair of panels and side of the treatment: the correlation of their profiles by "
    "difference-in-differences over cells, as estimated, and without the errors of the profiles.",
    f"{OF_STUDY}/correlation.parquet",
    columns(
        """
        language panel other n_shared cells n_cells correlation corrected lower upper
        within_lags within_lower within_upper
        """,
        other="str: name of the panel of the larger model",
        lower="float?: lower end of its 95 % interval over units",
        upper="float?: upper end of its 95 % interval over units",
        within_lags="float?: as `corrected`, after the mean of the cells at each time since the "
        "treatment is subtracted",
    ),
)
KINDS = kinds_in(globals())
