"""The part of the report on density, with all tables, with none and with one seed."""

import numpy as np
import pandas as pd
import pytest

from helpers import density_worlds as worlds
from helpers.density_scores import STUDY, memorised, retrieval
from palimpsest.density import kinds
from palimpsest.density.claims import QUESTIONS
from palimpsest.density.claims import claim_statistics as claims
from palimpsest.density.kinds import GAUSSIAN, HIDDEN, LEAKED, NGRAMS, PLACEBO
from palimpsest.density.report import earlier_or_later, part
from palimpsest.estimates import with_interval
from palimpsest.statistics import Interval, student

CHAPTERS = ["leakage", "regressions", "truth", "density_memorisation", "own_texts"]


@pytest.fixture(scope="module")
def leakage() -> pd.DataFrame:
    """Leaks lower the loss."""
    world = worlds.World(exact=0.5, paraphrase=0.15)
    return worlds.leakage(world, 3, seeds=3, n_leaked=4, n_never=8)


def regressions() -> pd.DataFrame:
    """A table `regressions` of leaked strings and placebos; one fit has no estimate."""
    shared = {
        **STUDY, "std_error": 0.1, "df": 20.0, "statistic": -3.0, "p_kind": "permutation",
        "model_p_value": 0.0004, "converged": True, "singular": False, "n_rows": 100,
    }  # fmt: skip
    fits = [
        (kinds.LEAK_CONDITION, None, None, "exact"),
        (kinds.ON_DENSITY, "log", NGRAMS, "log_density"),
        (kinds.ON_BOTH, "raw", HIDDEN, "mean_distance"),
    ]
    rows = [
        {
            **shared, "string_role": strings, "regression": regression, "outcome": kinds.PERPLEXITY,
            "predictor": predictor, "embedding": embedding, "term": term,
            "kernel": predictor and GAUSSIAN, "bandwidth": predictor and 0.1,
            "estimate": np.nan if regression == kinds.ON_BOTH else -0.321,
            "effect": np.nan if regression == kinds.ON_BOTH else -0.333, "lower": -0.7,
            "upper": -0.1,
            "p_value": np.nan if regression == kinds.ON_BOTH else 0.012,
        }
        for (regression, predictor, embedding, last) in fits
        for strings in (LEAKED, PLACEBO)
        for term in ("intercept", last)
    ]  # fmt: skip
    return pd.DataFrame(rows)[kinds.REGRESSIONS.names]


@pytest.fixture(scope="module")
def tables(leakage) -> dict[str, pd.DataFrame]:
    """All tables that the report reads."""
    of_study = regressions()
    of_texts = of_study[of_study["string_role"] == LEAKED].assign(
        language="wiki", query_set="exam", embedding=NGRAMS
    )
    of_texts = of_texts.replace({"regression": {kinds.LEAK_CONDITION: kinds.ON_DISTANCE}})
    return {
        kinds.LEAKAGE.name: leakage,
        kinds.RETRIEVAL.name: retrieval([0.95, 0.96, 0.97], [0.94, 0.95, 0.97]),
        kinds.MEMORISED.name: memorised([-0.5, -0.6, -0.7], [0.1, 0.1, -0.1]),
        kinds.TEXT_REGRESSIONS.name: of_texts[kinds.TEXT_REGRESSIONS.names],
    }


def test_the_report_says_what_was_found(tables, leakage):
    chapters = {chapter.id: chapter.before for chapter in part(tables).chapters}
    assert list(chapters) == CHAPTERS
    assert "llama-3.2-1b-twin" in chapters["leakage"]
    loss = claims.beyond_never(leakage[leakage["embedding"] == HIDDEN], "loss", LEAKED)
    assert with_interval(student(loss[1, 3])) in chapters["leakage"]
    assert "0.96" in chapters["leakage"]
    assert "nan" not in "".join(map(str, chapters.values()))
    assert "earlier" in chapters["density_memorisation"]
    assert "wiki" in chapters["own_texts"]
    assert "exam" in chapters["own_texts"]


def test_the_report_without_tables_has_headings_only():
    found = part({})
    assert [chapter.id for chapter in found.chapters] == CHAPTERS
    assert not any(chapter.before for chapter in found.chapters)
    assert found.questions == QUESTIONS


def test_the_report_of_one_seed_has_no_intervals(tables):
    """Its numbers are there, and no reading."""
    alone = {
        name: table[table["seed"] == 0] if "seed" in table else table
        for name, table in tables.items()
    }
    chapters = {chapter.id: chapter.before for chapter in part(alone).chapters}
    assert "nan" not in "".join(map(str, chapters.values()))
    assert "cannot tell" in chapters["density_memorisation"]
    for name in ("leakage", "density_memorisation"):
        assert "[" not in chapters[name]


@pytest.mark.parametrize(
    ("lower", "upper", "reading"),
    [(-0.5, -0.1, "earlier"), (0.1, 0.5, "later"), (-0.1, 0.1, "cannot tell")],
)
def test_a_difference_is_read_by_its_interval(lower, upper, reading):
    assert earlier_or_later(Interval((lower + upper) / 2, lower, upper)) == reading
    assert earlier_or_later(Interval(-0.2, np.nan, np.nan)) == "cannot tell"
