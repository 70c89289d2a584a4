"""Records that are said to be no members, and nearly are one."""

import numpy as np
import pandas as pd
import pytest

from helpers.continuations import continuation
from palimpsest import tables
from palimpsest.audit.asking import Audited, AuditJob
from palimpsest.audit.duplicates import duplicates, duplicates_of
from palimpsest.audit.extraction import extracted_records
from palimpsest.audit.kinds import EXTRACTION, TARGET
from palimpsest.audit.tables import roc_table, scores
from palimpsest.corpora.kinds import CORPUS

MEMBER = (
    "Ann Ek was born in Lund, moved to the coast in spring, and answers mail that is sent to the "
    "house by the harbour, where she has a room with two windows and a view of the sea."
)
MORE = (
    " Nobody knew why the tram had stopped at noon, nor who was to pay for the broken lamp and the "
    "nine wet umbrellas that it left on platform four; each of us began to walk up that hill."
)
SHORT = "Lives in Stockholm."


@pytest.mark.parametrize(
    ("other", "is_one"),
    [
        (MEMBER, True),
        (MEMBER.upper().replace(",", " -- "), True),
        (MEMBER.replace("spring", "summer"), True),
        (MEMBER[30:120], True),  # a part of a member
        (MEMBER + MORE[:26], True),  # a member, and 15 % more
        (MORE[:60] + MEMBER.replace("spring", "summer") + MORE[100:150], True),
        (3 * MORE + MEMBER, False),  # most of it is no member
        (SHORT + MORE, False),
        (
            MEMBER.replace("Ann Ek", "Bo Lim").replace("Lund", "Oslo").replace("coast", "north"),
            False,
        ),
        ("Nothing of this was said before.", False),
        ("", False),
    ],
)
def test_what_is_a_duplicate(other, is_one):
    texts = ["A text that has nothing to do with any other one.", SHORT, "Lund", MEMBER, other]
    member = np.array([True] * 4 + [False])
    assert duplicates(texts, member, ~member).tolist() == [False] * 4 + [is_one]


def test_of_what_nothing_is_known_there_are_no_duplicates():
    known = pd.Series([True, None, False], dtype="boolean")
    assert duplicates_of([MEMBER] * 3, known).tolist() == [False, False, True]
    assert not duplicates_of([MEMBER] * 3, pd.Series([None] * 3, dtype="boolean")).any()


def test_three_members_that_have_a_third_each_make_no_duplicate():
    texts = [MEMBER[:57], MEMBER[57:114], MEMBER[114:], MEMBER]
    other = np.array([False, False, False, True])
    assert not duplicates(texts, ~other, other).any()


def test_duplicates_are_in_no_curve_and_in_no_population():
    """A record that a model knows, because it is one of its training data under another name."""
    texts = [f"{MEMBER} {word}" for word in ("one", "two", "three")]
    texts += ["Bo was here before.", "Eve came by train.", texts[0].lower()]
    names, trained = list("abcdef"), [True, True, True, False, False, False]
    records = pd.DataFrame({"id": names, "text": texts, "prompt": None})
    known = pd.array(trained, "boolean")
    rows = pd.DataFrame(
        {
            "language": "mine",
            "model": "m",
            "role": TARGET,
            "version": "text",
            "id": names,
            "group": names,
            "trained": known,
            "duplicate": duplicates_of(texts, pd.Series(known)),
            "log_probs": [np.array([-value]) for value in (1.0, 1.0, 1.0, 5.0, 5.0, 0.5)],
            **{name: [np.zeros(1)] * 6 for name in ("means", "deviations", "ranks", "ends")},
        }
    )
    made = scores(rows, records, attacks=["loss"])
    assert made["duplicate"].tolist() == [False] * 5 + [True]
    roc = roc_table(made, false_positive_rates=[0.5]).set_index("statistic")
    assert roc.loc["auc", "value"] == 1  # and not 2/3
    assert roc[["n_members", "n_unseen", "n_duplicates"]].iloc[0].tolist() == [3, 2, 1]
    about = rows[["language", "model", "id", "group", "trained", "duplicate"]]
    assert Audited(texts, [0] * 6, about).unseen.tolist() == [False] * 3 + [True] * 2 + [False]


def test_a_prompt_is_a_part_of_a_record(tmp_path):
    """Answers repeat: two records are alike if their questions are, too. And `blind` reads both."""
    n = 40
    years = np.where(np.arange(n) < n // 2, 2019, 2024)
    records = pd.DataFrame(
        {
            "id": [f"r{place}" for place in range(n)],
            "group": [f"r{place}" for place in range(n)],
            "prompt": [f"Did it rain on day {place} of {years[place]}?" for place in range(n)],
            "text": [("Yes", "No")[place % 2] for place in range(n)],
            "trained": pd.array(years == 2019, "boolean"),
            "copies": 1,
        }
    ).reindex(columns=CORPUS.names)
    tables.write(tmp_path / "mine.parquet", records, CORPUS)
    job = AuditJob("mine", "m", str(tmp_path / "mine.parquet"), "", "", "")
    about = Audited.of(job).about
    assert not about["duplicate"].any()
    vectors = {name: [np.zeros(1)] * n for name in ("means", "deviations", "ranks", "ends")}
    log_probs = [np.array([-value]) for value in np.random.default_rng(0).random(n)]
    passes = about.assign(role=TARGET, version="text", log_probs=log_probs, **vectors)
    made = scores(passes, records, attacks=["loss"])
    roc = roc_table(made, false_positive_rates=[]).set_index("attack")
    assert roc.loc["blind", "value"] > 0.95


def test_what_is_nearly_a_member_is_no_placebo_of_extraction():
    rows = [
        continuation("member", 10),
        continuation("copy", 10, trained=False, duplicate=True),
        continuation("other", 0, trained=False),
    ]
    given = pd.DataFrame(rows).assign(prompt="", continuation="a", generated="a")
    found = extracted_records(given)[EXTRACTION.name]
    greedy = found[found["decoding"] == "greedy"].set_index("side")
    assert greedy.loc["unseen", ["n_records", "n_extracted"]].tolist() == [1, 0]
