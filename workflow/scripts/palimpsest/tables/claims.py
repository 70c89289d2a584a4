"""The kind of the table with the claims of all sections and their verdicts."""

from palimpsest import paths
from palimpsest.tables.kinds import Column, Kind

CLAIMS = Kind(
    "claims",
    "One row per claim and language on which it was tested.",
    paths.CLAIMS,
    (
        Column("question", str, "key of the question that the claim answers"),
        Column("claim", str, "the claim, in one sentence"),
        Column("statistic", str, "the statistic that tests the claim, in words"),
        Column("agrees_if", str, "region of the statistic in which the claim holds"),
        Column(
            "evidence",
            str,
            "what decides that a string is memorised or forgotten: constant, retraining, "
            "same-frequency (stand-ins), language (exact probabilities), or several of them; no "
            "threshold if the statistic is about losses or counts alone",
        ),
        Column(
            "coverage",
            float,
            "lowest share of the training strings (with copies; for the study frequency, of a "
            "group's distinct strings) that have stand-ins, over the runs that are used; null: the "
            "claim does not rest on stand-ins, or the table does not say",
            True,
        ),
        Column("language", str, "language on which the claim was tested"),
        Column("n_models", int, "number of models in the mean"),
        Column(
            "n_models_hold",
            int,
            "number of models whose own mean over the seeds lies in the region; null: the "
            "statistic is not computed by model",
            True,
        ),
        Column(
            "n_families",
            int,
            "number of families of these models; null: the statistic is not computed by model",
            True,
        ),
        Column(
            "n_families_hold",
            int,
            "number of families whose own mean over the seeds and the family's models lies in the "
            "region",
            True,
        ),
        Column(
            "n_seeds",
            int,
            "number of seeds with a defined statistic; 1 also if one number is of all seeds "
            "together; 0: not tested",
        ),
        Column("estimate", float, "mean of the statistic over the seeds", True),
        Column(
            "interval_over",
            str,
            "what varies in the interval: seeds, strings or models; empty: no interval",
        ),
        Column(
            "lower",
            float,
            "lower end of the 95 % interval, clipped to the range of the statistic",
            True,
        ),
        Column("upper", float, "upper end of the interval, clipped in the same way", True),
        Column(
            "p_value",
            float,
            "two-sided p-value of Student's t test that the statistic lies on the nearest bound of "
            "the region, not corrected; below 0.05 if the verdict is agrees or disagrees; null if "
            "the interval is not over seeds or has no width, and for rows by construction",
            True,
        ),
        Column(
            "p_holm",
            float,
            "p_value corrected for testing all rows of this table that have one (Holm)",
            True,
        ),
        Column("verdict", str, "agrees, disagrees or cannot tell"),
        Column(
            "note",
            str,
            "why the verdict is cannot tell, or what would decide it; runs that may still be "
            "learning; and numbers to read the estimate by. Parted by semicolons",
        ),
        Column(
            "seeds_needed",
            int,
            "if the verdict is cannot tell: about how many seeds would decide it, if the estimate "
            "and the spread between seeds stay as they are; null if no number up to 1,000 would, "
            "or if it cannot be estimated",
            True,
        ),
        Column(
            "by_construction",
            bool,
            "whether the definitions alone decide the verdict; such rows are not counted in the "
            "headline of the report",
        ),
    ),
)
