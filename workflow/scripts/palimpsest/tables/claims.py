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
        Column("language", str, "language on which the claim was tested"),
        Column("n_models", int, "number of models in the mean"),
        Column("n_seeds", int, "number of seeds with a defined statistic; 0: not tested"),
        Column("estimate", float, "mean of the statistic over the seeds", True),
        Column(
            "interval_over",
            str,
            "what varies in the interval: seeds, strings or models; empty: no interval",
        ),
        Column("lower", float, "lower end of the 95 % interval", True),
        Column("upper", float, "upper end of the 95 % interval", True),
        Column("verdict", str, "agrees, disagrees or cannot tell"),
        Column(
            "by_construction",
            bool,
            "whether the definitions alone decide the verdict; such rows are not counted in the "
            "headline of the report",
        ),
    ),
)
