"""The rows of memorisation in the table `headline`: values, intervals and their error rate."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from palimpsest.memorisation import headline, kinds
from palimpsest.memorisation.claims import learning_statistics, retraining_statistics
from palimpsest.memorisation.studies import STUDIES

TRADEOFF = STUDIES["tradeoff"].kind
NO_TRADEOFF, NO_RETRAINING = (
    kind.schema.empty_table().to_pandas() for kind in (TRADEOFF, kinds.LEAVE_ONE_OUT)
)
EVIDENCE = {"contextual": "same-frequency", "bayes": "language", "recollection": "constant"}


def tradeoff(trained, unseen, measure="contextual", model="m", language="L1"):
    """A table of the study with a row for each seed, at the epoch of optimal learning or not."""
    of_seeds = pd.DataFrame({"trained": trained, "unseen": unseen}).rename_axis("seed")
    optimum = of_seeds.reset_index().assign(epoch=4)
    # At other epochs, all strings are below the threshold.
    late = optimum.assign(epoch=5, trained=1.0, unseen=1.0)
    rows = pd.concat([late, optimum]).rename(
        columns={"trained": "below_distinct", "unseen": "below_unseen"}
    )
    about = {"model": model, "language": language, "size": 64, "measure": measure}
    return rows.assign(**about, evidence=EVIDENCE[measure], optimal_epoch=4)


def left_out(seeds=(0, 1), language="L1"):
    """A table of strings left out, of which some represent several; one has no measure's start."""
    rows = [
        {
            "model": "m",
            "language": language,
            "size": 64,
            "seed": seed,
            "measure": measure,
            "evidence": evidence,
            "weight": weight,
            "below_at_optimum": float(trained),
            "placebo_below_at_optimum": np.nan if evidence == "replicate" else float(unseen),
        }
        for seed in seeds
        for measure in ("contextual", "counterfactual")
        for evidence in ("retraining", "replicate")
        for weight, trained, unseen in ((3, True, seed == 1), (1, False, True))
    ]
    return pd.DataFrame(rows)


def only(table, **values):
    for column, value in values.items():
        table = table[table[column] == value]
    (row,) = table.to_dict("records")
    return row


def test_a_row_has_the_shares_at_optimal_learning_and_their_difference():
    trained, unseen = np.array([0.5, 0.7, 0.6]), np.array([0.4, 0.4, 0.3])
    table = headline.rows(tradeoff(trained, unseen), NO_RETRAINING)
    row = only(table, measure="contextual")
    assert row["trained"] == pytest.approx(0.6)
    assert row["unseen"] == pytest.approx(1.1 / 3)
    difference = trained - unseen
    reach = t.ppf(0.975, 2) * difference.std(ddof=1) / np.sqrt(3)
    ends = difference.mean() + reach * np.array([-1, 0, 1])
    assert [row[name] for name in ("lower", "difference", "upper")] == pytest.approx(ends)
    assert (row["n_seeds"], row["interval_over"]) == (3, "seeds")
    assert (row["evidence"], row["size"]) == ("same-frequency", 64)


def test_strings_left_out_count_by_what_they_represent():
    """Seed 0: 3 of 4 against 1 of 4; seed 1: 3 of 4 against 4 of 4."""
    row = only(headline.rows(NO_TRADEOFF, left_out()), measure="counterfactual")
    assert (row["trained"], row["unseen"], row["difference"]) == (0.75, 0.625, 0.125)
    assert row["evidence"] == "retraining"
    assert (row["lower"], row["upper"]) == (-1, 1), "the interval is clipped"


@pytest.mark.parametrize("measure", ["contextual", "counterfactual"])
def test_claims_call_the_same_number_beyond_false_alarms(measure):
    """Those by retraining."""
    of_claim = retraining_statistics.excess_over_placebos(left_out(), "below", measure)
    row = only(headline.rows(NO_TRADEOFF, left_out()), measure=measure)
    assert row["difference"] == pytest.approx(of_claim.mean())


def test_claims_by_stand_ins_call_the_same_number_beyond_false_alarms():
    study = tradeoff([0.5, 0.7], [0.1, 0.4], "bayes")
    of_claim = learning_statistics.excess_at_optimum(study, "below", "bayes")
    row = only(headline.rows(study, NO_RETRAINING), measure="bayes")
    assert row["difference"] == pytest.approx(of_claim.mean())


def test_the_strongest_evidence_comes_first():
    """For each language and model: retraining, stand-ins, exact probabilities, the loss alone."""
    studies = [
        tradeoff([0.5], [0.4], measure, model)
        for model in ("n", "m")
        for measure in ("recollection", "bayes", "contextual")
    ]
    table = headline.rows(pd.concat(studies), left_out())
    shown = [" ".join(row) for row in table[["model", "measure", "evidence"]].to_numpy()]
    assert shown == [
        "m contextual retraining",
        "m counterfactual retraining",
        "m contextual same-frequency",
        "m bayes language",
        "m recollection constant",
        "n contextual same-frequency",
        "n bayes language",
        "n recollection constant",
    ]


def test_a_measure_of_a_user_s_own_has_its_row_after_the_others():
    own = tradeoff([0.5], [0.4]).assign(measure="mine")
    table = headline.rows(pd.concat([own, tradeoff([0.5], [0.4])]), NO_RETRAINING)
    assert table["measure"].tolist() == ["contextual", "mine"]


def test_one_seed_has_no_interval():
    row = only(headline.rows(tradeoff([0.5], [0.4]), NO_RETRAINING), n_seeds=1)
    assert row["difference"] == pytest.approx(0.1)
    assert np.isnan([row["lower"], row["upper"]]).all()
    assert row["interval_over"] == ""


def test_seeds_that_are_all_alike_have_no_interval():
    """One of no width would say more than these seeds can."""
    row = only(headline.rows(tradeoff([0.6, 0.7, 0.8], [0.5, 0.6, 0.7]), NO_RETRAINING))
    assert row["difference"] == pytest.approx(0.1)
    assert np.isnan([row["lower"], row["upper"]]).all()
    assert (row["n_seeds"], row["interval_over"]) == (3, "")


def test_a_seed_without_a_placebo_takes_away_the_interval():
    """The shares are those of the seeds that have both, so they differ by the difference."""
    row = only(headline.rows(tradeoff([0.5, 0.9], [0.4, np.nan]), NO_RETRAINING), n_seeds=1)
    assert (row["trained"], row["unseen"]) == (0.5, 0.4)
    assert np.isnan(row["lower"])


def test_without_any_placebo_the_share_stands_alone():
    row = only(headline.rows(tradeoff([0.5, 0.9], [np.nan] * 2), NO_RETRAINING), n_seeds=2)
    assert row["trained"] == pytest.approx(0.7)
    assert np.isnan([row["unseen"], row["difference"], row["lower"]]).all()


def test_without_studies_there_is_no_row():
    assert headline.rows(NO_TRADEOFF, NO_RETRAINING).empty


def test_without_memorisation_one_interval_in_twenty_misses_zero():
    """A thousand worlds in which strings are below the threshold whether or not trained on.

    The share of such strings differs between the seeds, as it does between datasets.
    """
    draws = np.random.default_rng(0)
    level = draws.uniform(0.2, 0.6, (1000, 5))
    trained, unseen = (draws.binomial(n, level) / n for n in (60, 200))
    worlds = [
        tradeoff(*shares, language=f"W{number}")
        for number, shares in enumerate(zip(trained, unseen, strict=True))
    ]
    table = headline.rows(pd.concat(worlds), NO_RETRAINING)
    assert len(table) == 1000
    misses = ((table["lower"] > 0) | (table["upper"] < 0)).mean()
    assert 0.03 < misses < 0.07
