"""The table of claims and their verdicts, which the claims of all sections stand in."""

from palimpsest import paths
from palimpsest.tables.kinds import Column, Kind

CLAIMS = Kind(
    "claims",
    "One row per claim and language on which it was tested.",
    paths.CLAIMS,
    (
        Column("question", str, "key of the question that the claim answers"),
        Column("claim", str, "the claim, in one sentence"),
        Column("statistic", str, "what is computed to test it"),
        Column("agrees_if", str, "the region of the statistic in which the claim holds"),
        Column("language", str, "language on which it was tested"),
        Column("n_models", int, "models averaged over"),
        Column("n_seeds", int, "seeds in which the statistic is defined; 0: not tested"),
        Column("estimate", float, "the statistic, mean over the seeds", True),
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
            "true where the definitions alone decide it; not counted in the headline",
        ),
    ),
)
