"""What the first page says of texts of a user's own, and the words of their page."""

import pandas as pd

from palimpsest.density import kinds
from palimpsest.density.report import part
from palimpsest.density.sentences import sentences


def density(nearest, embedding=kinds.NGRAMS):
    """The table of a set of queries, with two bandwidths each."""
    rows = [
        {
            "language": "mine",
            "query_set": "queries",
            "segment_id": f"s{place}",
            "id": f"q{place}",
            "embedding": embedding,
            "nearest": value,
            "bandwidth": bandwidth,
        }
        for place, value in enumerate(nearest)
        for bandwidth in (0.1, 1.0)
    ]
    return {kinds.TEXT_DENSITY.name: pd.DataFrame(rows)}


def test_copies_are_counted_and_the_nearest_others_are_named():
    (said,) = sentences(density([0.0, 1.3, 0.31, 0.0, 0.9, 1.2]))
    assert said.text == (
        "Of 6 texts of mine, 2 are in the corpus; the nearest others: q2 (0.31), q4 (0.9), "
        "q5 (1.2)."
    )
    assert "nothing in common have 1.41" in said.note
    (alone,) = sentences(density([0.0], kinds.HIDDEN))
    assert alone.text == "Of 1 text of mine, 1 is in the corpus."
    assert "1.41" not in alone.note
    assert not [*sentences({})]
    answered = {kinds.LEAKAGE.name: pd.DataFrame({"language": ["L1"]})}
    assert not [*sentences(density([0.0]) | answered)]


def test_a_page_of_own_texts_knows_no_exact_probability():
    alone = part(density([0.2])).introduction
    assert "a corpus of your own" in alone
    assert "exact probability" not in alone
    assert "exact probability" in part({}).introduction
