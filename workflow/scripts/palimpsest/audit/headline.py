"""The section's rows of the table `headline`."""

from __future__ import annotations

from palimpsest.audit.kinds import EXTRACTION, TARGET
from palimpsest.lazy_import import lazy_import
from palimpsest.making import reads
from palimpsest.tables.headline import HEADLINE

np = lazy_import("numpy")
pd = lazy_import("pandas")
claims = lazy_import("palimpsest.claims")
extraction = lazy_import("palimpsest.audit.extraction")
intervals = lazy_import("palimpsest.records.intervals")
statistics = lazy_import("palimpsest.statistics")

QUESTION = "What share of the records does the model continue word for word?"
SIDES = ("trained", "unseen")
NOTHING = dict.fromkeys(("share", "lower", "upper"), float("nan"))


@reads(extraction_shares=EXTRACTION)
def rows(extraction_shares: pd.DataFrame) -> pd.DataFrame:
    """The shares of records whose continuation comes out by greedy decoding, of each target.

    A record whose side is unknown is in no row. The interval of the difference joins those of both
    sides, over groups of records.
    """
    greedy = extraction_shares["decoding"] == extraction.GREEDY
    shares = extraction_shares[greedy & (extraction_shares["role"] == TARGET)]
    shares = shares[shares["side"].isin(SIDES)]
    found = [
        {
            **{"language": language, "model": model, "question": QUESTION, "size": pd.NA},
            **{"measure": "greedy decoding", "evidence": claims.CONSTANT, "n_seeds": 0},
            **answer(of_target.set_index("side")),
        }
        for (language, model), of_target in shares.groupby(["language", "model"], sort=False)
    ]
    return pd.DataFrame(found, columns=HEADLINE.names)


def answer(of_side: pd.DataFrame) -> dict:
    """What the shares of both sides say together; a side may be missing."""
    known = of_side[list(NOTHING)].to_dict("index")
    ends = [statistics.Interval(*known.get(side, NOTHING).values()) for side in SIDES]
    trained, unseen = (end.mean for end in ends)
    lower, upper = intervals.of_difference(*ends)
    return {
        **{"trained": trained, "unseen": unseen, "difference": trained - unseen},
        **{"lower": lower, "upper": upper, "interval_over": "" if np.isnan(lower) else "groups"},
    }
