"""The kind of the table with the claims of all sections and their verdicts."""

from palimpsest import paths
from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind

columns = SHARED.extended("""
question str: key of the question that the claim answers
claim str: the claim, in one sentence
statistic str: the statistic that tests the claim, in words
agrees_if str: region of the statistic in which the claim holds
coverage float?: lowest share of the training strings (with copies; for the study frequency, of a
    group's distinct strings) that have stand-ins, over the runs that are used; null: the claim does
    not rest on stand-ins, or the table does not say
models str: the models in the mean, parted by commas; empty: the statistic is not computed by
    model
n_models int: number of models in the mean
n_models_hold int?: number of models whose own mean over the seeds lies in the region; null: the
    statistic is not computed by model
n_families int?: number of families of these models; null: the statistic is not computed by model
n_families_hold int?: number of families whose own mean over the seeds and the family's models lies
    in the region
n_seeds int: number of seeds with a defined statistic; 1 also if one number is of all seeds
    together; 0: not tested
estimate float?: mean of the statistic over the seeds
interval_over str: what varies in the interval: seeds, strings or models; empty: no interval
lower float?: lower end of the 95 % interval, clipped to the range of the statistic
upper float?: upper end of the interval, clipped in the same way
p_value float?: two-sided p-value of the test that the statistic lies on the nearest bound of the
    region, not corrected; Student's t test, below 0.05 if the verdict is agrees or disagrees; if
    all seeds are alike, the exact test that the note names: of orders, or of signs, which is
    0.0625 for five seeds; null if no test is known, and for rows by construction
p_holm float?: p_value corrected for testing all rows of this table that have one (Holm)
verdict str: agrees, disagrees or cannot tell
verdict_models str: the verdict over models and seeds, about models like these: agrees or disagrees
    if the verdict over seeds does and, by the sign test, most models lie on its side; empty: fewer
    than five models, or the statistic is not computed by model
note str: why the verdict is cannot tell, or what would decide it; runs that may still be learning;
    and numbers to read the estimate by. Parted by semicolons
seeds_needed int?: if the verdict is cannot tell: about how many seeds would decide it, if the
    estimate and the spread between seeds stay as they are; null if no number up to 1,000 would, or
    if it cannot be estimated
power float: probability that a study of this size decides, if the truth is this estimate with this
    spread; for choosing the claims of another study, with other seeds: it says nothing new of this
    one
by_construction bool: whether the definitions alone decide the verdict; such rows are not counted in
    the headline of the report
""")
CLAIMS = Kind(
    "claims",
    "One row per claim and language on which it was tested.",
    paths.CLAIMS,
    columns(
        """
        question claim statistic agrees_if evidence coverage language models n_models n_models_hold
        n_families n_families_hold n_seeds estimate interval_over lower upper p_value p_holm verdict
        verdict_models note seeds_needed power by_construction
        """,
        evidence="str: what decides that a string is memorised or forgotten: constant, retraining,"
        " same-frequency (stand-ins), language (exact probabilities), reference model (trained on "
        "other data), or several of them; no threshold if the statistic is about losses or counts "
        "alone",
        language="str: language on which the claim was tested",
    ),
)
