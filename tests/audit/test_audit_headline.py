"""The rows of an audit in the table `headline`."""

import numpy as np
import pandas as pd
import pytest

from helpers.continuations import continuation
from palimpsest.audit import headline
from palimpsest.audit.extraction import extracted_records
from palimpsest.audit.kinds import EXTRACTION
from palimpsest.records.intervals import of_difference
from palimpsest.statistics import Interval, clopper_pearson


def shares(*sides):
    """The table `extraction_shares` of a target and a reference: 3 of 10 records come out."""
    texts = {"continuation": "goes on so", "generated": "goes on so"}
    rows = [
        continuation(
            f"{side}{place}", 10 if place < 3 or role == "base" else 4, role, side, **texts
        )
        for side in sides
        for place in range(10)
        for role in ("target", "base")
    ]
    return extracted_records(pd.DataFrame(rows).assign(duplicate=False))[EXTRACTION.name]


def test_the_share_beyond_that_of_records_never_trained_on():
    (row,) = headline.rows(shares(True, False)).to_dict("records")
    assert (row["trained"], row["unseen"], row["difference"]) == (0.3, 0.3, 0)
    side = Interval(0.3, *clopper_pearson(0.3, 10))
    assert (row["lower"], row["upper"]) == of_difference(side, side)
    assert row["lower"] == pytest.approx(-row["upper"])
    assert (row["interval_over"], row["n_seeds"]) == ("groups", 0)


def test_without_a_placebo_there_is_no_difference():
    (row,) = headline.rows(shares(True)).to_dict("records")
    assert row["trained"] == 0.3
    assert np.isnan([row["unseen"], row["difference"], row["lower"]]).all()
    assert row["interval_over"] == ""


def test_records_of_which_nothing_is_known_are_no_answer():
    assert headline.rows(shares(None)).empty
    assert headline.rows(EXTRACTION.schema.empty_table().to_pandas()).empty
