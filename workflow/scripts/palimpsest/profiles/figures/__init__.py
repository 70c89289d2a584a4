"""The figures of memorisation profiles.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.
"""

from palimpsest.figures.figure import Figure
from palimpsest.profiles import kinds

PAPER = "Causal Estimation of Memorisation Profiles"
DRAWING = "palimpsest.profiles.figures"
FIGURES = (
    Figure(
        name="profile",
        chapter="profiles",
        title="Memorisation profiles",
        caption=(
            "The effect of training on each macro-batch (row) on the log-likelihood of its strings "
            "at every checkpoint (column), mean over the runs of all seeds; a cell is coloured "
            "only if its simultaneous 95 % band excludes 0. See how far to the right of the "
            "staircase a "
            "row stays coloured, and that nothing to the left of it is."
        ),
        numbers="2",
        paper=PAPER,
        tables=(kinds.POOLED_PROFILE,),
        draw=f"{DRAWING}.heat_maps:profile",
    ),
    Figure(
        name="profile_paths",
        chapter="profiles",
        title="Memorisation paths",
        caption=(
            "The effect of training on each macro-batch over time, from just before its treatment "
            "(one line for each macro-batch, later ones darker), mean over the runs of all seeds. "
            "See how far a line jumps when its strings are trained on, and how fast it falls back."
        ),
        numbers="1",
        paper=PAPER,
        tables=(kinds.POOLED_PROFILE,),
        draw=f"{DRAWING}.lines:paths",
    ),
    Figure(
        name="profile_instantaneous",
        chapter="profiles",
        title="Just after training on a string",
        caption=(
            "The effect of training on each macro-batch just after it, with simultaneous 95 % "
            "bands over the strings of all seeds (top), and the learning rate of its steps "
            "(bottom). See "
            "whether the curves rise and fall with the learning rate, and whether those of larger "
            "models are higher."
        ),
        numbers="3",
        paper=PAPER,
        tables=(kinds.POOLED_PROFILE,),
        draw=f"{DRAWING}.lines:instantaneous",
    ),
    Figure(
        name="profile_persistence",
        chapter="profiles",
        title="How long memorisation lasts",
        caption=(
            "The effect of training, averaged over macro-batches at equal times since their "
            "treatment, with simultaneous 95 % bands (left), and the same for strings that are "
            "never trained on (right). See where a band no longer excludes 0, and whether the "
            "curves fall to a plateau."
        ),
        numbers="4",
        paper=PAPER,
        tables=(kinds.POOLED_PERSISTENCE,),
        draw=f"{DRAWING}.lines:persistence",
    ),
    Figure(
        name="profile_residual",
        chapter="profiles",
        title="What is left at the end of training",
        caption=(
            "The effect of training on each macro-batch at the end of training, with simultaneous "
            "95 % bands; filled markers are significant. See whether the curves rise to the right: "
            "there, strings that were seen late are memorised more."
        ),
        numbers="5",
        paper=PAPER,
        tables=(kinds.POOLED_PROFILE,),
        draw=f"{DRAWING}.lines:residual",
    ),
    Figure(
        name="profile_correlation",
        chapter="profiles",
        title="Profiles of small and large models",
        caption=(
            "Pearson correlation of the profiles of two models over the cells after (left) and "
            "before (right) the treatment: mean over the seeds, with the smallest and the largest "
            "seed. See whether the left numbers are above the right ones: before the treatment "
            "nothing is memorised, and only the errors on common strings are correlated."
        ),
        numbers="6",
        paper=PAPER,
        tables=(kinds.PROFILE_CORRELATION,),
        draw=f"{DRAWING}.matrices:correlation",
    ),
    Figure(
        name="profile_truth",
        chapter="profiles",
        title="The estimators against retraining",
        caption=(
            "Both estimators beside the true effect, by training again without each macro-batch: "
            "the total effect on its strings (top), and what remains of it beyond the effect on "
            "strings in neither run (bottom). See whether the bands of the bias hold 0, which "
            "estimator has the smaller spread and when, and how much of the spread is gone in the "
            "bottom row: no estimate from one run can see what changes for all strings alike."
        ),
        numbers="",
        paper="",
        tables=(kinds.EXACT_PROFILE,),
        draw=f"{DRAWING}.truth:truth",
    ),
    Figure(
        name="profile_notions",
        chapter="profiles",
        title="Other definitions of memorisation",
        caption=(
            "Five notions of memorisation at the end of training (panels), each beyond the same of "
            "strings that are never trained on, against the specific effect of each macro-batch by "
            "training again. See which points follow the dashed line, on which estimate and truth "
            "are equal, and which do not even rise with the truth."
        ),
        numbers="",
        paper="",
        tables=(kinds.NOTIONS,),
        draw=f"{DRAWING}.notions:notions",
    ),
    Figure(
        name="profile_dilution",
        chapter="dilution",
        title="Dilution and order",
        caption=(
            "The specific effect of training on strings at the end of training, by training again "
            "without them, for every number of copies, position and size of the stream (left), "
            "and the contrasts of this factorial, also from one run alone and for strings that "
            "are never trained on (right), with 95 % intervals over the seeds. See whether the "
            "lines fall to the right (dilution), whether late strings are above early ones "
            "(order), and whether the placebos are at 0."
        ),
        numbers="",
        paper="",
        tables=(kinds.DILUTION, kinds.DILUTION_EFFECTS),
        draw=f"{DRAWING}.dilution:dilution",
    ),
    Figure(
        name="panel_profile",
        chapter="profiles",
        title="The profile of a panel",
        caption=(
            "The effect of training on each cohort (row) at every time (column) of a panel that "
            "the configuration names, coloured where the simultaneous 95 % band excludes 0 "
            "(left), and "
            "its average by time since the treatment (right). See how long the effect lasts, and "
            "that nothing is coloured to the left of the staircase."
        ),
        numbers="1 and 4",
        paper=PAPER,
        tables=(kinds.PANEL_PROFILE, kinds.PANEL_PERSISTENCE),
        draw=f"{DRAWING}.heat_maps:panel_profile",
    ),
)
