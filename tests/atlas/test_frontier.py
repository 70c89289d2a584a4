"""Exact values, contenders and the frontier, on planted runs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from helpers.atlas_worlds import EPOCHS, N_HALVES, last_pass_of, manifest, planted_run
from palimpsest.atlas import kinds
from palimpsest.atlas.contenders import CONTENDERS, EFFECTS, ITSELF, OF_LANGUAGE
from palimpsest.atlas.frontier import frontier_tables
from palimpsest.atlas.kinds import (
    AGAIN,
    AMOUNT,
    APART,
    AUC,
    CROSS,
    HALVES,
    RANK,
    SINGLE,
    START,
    TPR,
    UNSEEN,
)
from palimpsest.atlas.truth import truth_tables
from palimpsest.errors import UserError

RULES = {"start": "after_last_miss", "loss_threshold": 0.2, "accuracy_threshold": 0.95}


@pytest.fixture(scope="module")
def runs():
    return [planted_run(seed) for seed in (0, 1)]


@pytest.fixture(scope="module")
def exact(runs) -> dict[str, pd.DataFrame]:
    return exact_of(runs)


def exact_of(runs) -> dict[str, pd.DataFrame]:
    return truth_tables(
        [run.trace for run in runs],
        [run.strings for run in runs],
        [run.removals for run in runs],
        [run.again for run in runs],
        "after_last_miss",
    )


def weighed(runs, exact, **more) -> dict[str, pd.DataFrame]:
    return frontier_tables(
        [run.trace for run in runs],
        [run.strings for run in runs],
        [run.tokens for run in runs],
        exact["retrained"],
        exact["influence"],
        exact["halves"],
        [manifest(10.0, 13.0)] * len(runs),
        [manifest(300.0, 500.0, threads=2)] * len(runs),
        **RULES,
        **{
            "last_pass": last_pass_of(runs),
            **more,
        },
    )


@pytest.fixture(scope="module")
def found(runs, exact) -> dict[str, pd.DataFrame]:
    return weighed(runs, exact)


def test_exact_values_are_those_that_were_planted(runs, exact):
    for seed, run in enumerate(runs):
        rows = exact["retrained"][exact["retrained"]["seed"] == seed].set_index("string_id")
        rows = rows.loc[run.ids]
        assert rows["self_influence"].to_numpy() == pytest.approx(np.diag(run.influence))
        again = np.diag(run.influence_again)
        assert rows["self_influence_again"].to_numpy() == pytest.approx(again)
        assert (rows["start"].dropna().isin(EPOCHS)).all()
        pairs = exact["influence"][exact["influence"]["seed"] == seed]
        matrix = pairs.pivot(index="removed", columns="string_id", values="influence")
        assert matrix.loc[run.ids, run.ids].to_numpy() == pytest.approx(run.influence)


def test_the_placebo_is_a_string_that_no_training_saw(runs, exact):
    """Several strings may share a placebo; each has what its own removal did to it."""
    rows = exact["retrained"].groupby("seed")["placebo_influence"]
    for seed, of_seed in rows:
        assert of_seed.to_numpy() == pytest.approx(runs[seed].moved)


def test_placebos_do_not_depend_on_the_tokens_of_a_model(runs):
    """They were chosen by the dataset's losses per token, and only they are measured."""

    def cut_anew(trace):
        n_tokens = trace.n_tokens + 20 * (np.arange(len(trace.n_tokens)) % 3)
        return replace(trace, n_tokens=n_tokens, nll=trace.loss * n_tokens)

    run = runs[0]
    anew = replace(
        run,
        trace=cut_anew(run.trace),
        removals=[*map(cut_anew, run.removals)],
        again=[*map(cut_anew, run.again)],
    )
    found = exact_of([anew])["retrained"].set_index("string_id")["placebo_influence"]
    assert found[run.ids].to_numpy() == pytest.approx(run.moved)


def test_a_half_tells_what_it_keeps(runs, exact):
    halves = exact["halves"]
    assert halves.groupby("seed")["half"].nunique().tolist() == [N_HALVES] * 2
    trained = halves["string_id"].isin(exact["retrained"]["string_id"])
    kept = halves[trained].groupby(["seed", "half"])["kept"].mean()
    assert ((kept > 0.4) & (kept < 0.7)).all()
    assert (~trained).any()
    assert not halves.loc[~trained, "kept"].any()


def test_the_tables_are_of_their_kinds(exact, found):
    for name, frame in {**exact, **found}.items():
        (kind,) = (kind for kind in kinds.KINDS if kind.name == name)
        assert set(frame.columns) == set(kind.names)


def test_retraining_once_more_is_the_ceiling(runs, found):
    rows = found["frontier"]
    of_amounts = rows[(rows["question"] == AMOUNT) & (rows["statistic"] == RANK)]
    again = of_amounts[of_amounts["measure"] == AGAIN].set_index("seed")["value"]
    for seed, run in enumerate(runs):
        expected = spearmanr(np.diag(run.influence), np.diag(run.influence_again))[0]
        assert again[seed] == pytest.approx(expected)
        ceilings = of_amounts.loc[of_amounts["seed"] == seed, "ceiling"]
        assert (ceilings == again[seed]).all()
    assert set(rows.loc[rows["question"] == AMOUNT, "statistic"]) == {RANK, AUC, TPR}


def test_every_contender_answers_its_questions(found):
    rows = found["frontier"]
    asked = rows.groupby("question")["measure"].agg(set)
    of_symbols = {contender.name for contender in CONTENDERS} - {"lowercase"}
    assert asked[AMOUNT] == {AGAIN, *of_symbols}
    assert asked[START] <= {AGAIN, *(of.name for of in CONTENDERS if of.start)}
    effects = EFFECTS.keys() - OF_LANGUAGE  # planted strings have no grammar
    assert asked[CROSS] == {AGAIN, *effects} - {ITSELF}
    assert asked[HALVES] == {AGAIN, SINGLE, *effects}
    assert asked[APART] == asked[HALVES] - {ITSELF}
    assert asked[UNSEEN] == {AGAIN, *effects} - {ITSELF}


def test_effects_that_add_up_are_found_by_the_sum_of_single_removals(found):
    rows = found["frontier"].set_index(["question", "measure", "statistic"])["value"]
    assert (rows[HALVES, SINGLE, RANK] > 0.99).all()
    assert (rows[APART, SINGLE, RANK] > 0.99).all()


def test_knowing_which_halves_have_a_string_is_half_of_the_score(found):
    """Where a string's own effect is the largest, who else has one hardly matters to the score."""
    rows = found["frontier"].set_index(["question", "measure", "statistic"])["value"]
    assert (rows[HALVES, ITSELF, RANK] > 0.6).all()
    assert (rows[APART, "near_strings", RANK].abs() < 0.4).all()


def test_placebos_find_nothing(found):
    rows = found["frontier"]
    placebos = rows.loc[rows["measure"].isin([AGAIN, SINGLE]), "placebo"].dropna()
    assert placebos.abs().mean() < 0.35


def test_costs_are_in_trainings_of_the_model(found):
    rows = found["frontier"].drop_duplicates("measure").set_index("measure")
    assert rows.loc[AGAIN, "seconds"] == 1000.0
    assert rows.loc[AGAIN, "cost"] == 101.0
    assert rows.loc["copies", "cost"] == 1.0
    assert rows.loc["min_k", "seconds"] == pytest.approx(1.0)  # one of three measurements
    assert rows.loc["contextual", "seconds"] == pytest.approx(3.0)
    # One of two passes; and both, with the training of the reference
    assert rows.loc["min_k_plus", "seconds"] == pytest.approx(2.0)
    assert rows.loc["rmia", "seconds"] == pytest.approx(4.0 + 10.0)
    # A pass over the strings, and one over the changed strings
    assert rows.loc["neighbours", "seconds"] == pytest.approx(2.0 + 8.0)
    assert rows.loc["recall", "seconds"] == pytest.approx(2.0 + 5.0)


def test_without_a_last_pass_its_contenders_are_left_out(runs, exact):
    found = weighed(runs[:1], one_run(exact, 0), last_pass=None)["frontier"]
    measures = set(found["measure"])
    left_out = {"min_k_plus", "rmia", "discoverable", "hidden_density", "neighbours", "recall"}
    assert not left_out & measures
    assert {"extraction", "difference_in_differences", "ngram_density"} < measures


def test_a_measure_without_a_value_of_a_string_leaves_it_to_the_others(found):
    """Strings of another seed have no reference; LiRA needs two references, and has one."""
    rows = found["frontier"]
    rows = rows[(rows["question"] == AMOUNT) & (rows["statistic"] == RANK)]
    n_strings = rows.groupby("measure")["n_strings"].min()
    assert n_strings["lira"] == 0
    assert 0 < n_strings["rmia"] < n_strings["min_k_plus"] == n_strings[AGAIN]
    assert rows.loc[rows["measure"] == "lira", "value"].isna().all()


def one_run(exact: dict[str, pd.DataFrame], seed: int) -> dict[str, pd.DataFrame]:
    return {name: table[table["seed"] == seed] for name, table in exact.items()}


def test_intervals_are_around_the_means(found):
    rows = found["atlas"].dropna(subset=["lower"])
    assert len(rows) > 15
    assert ((rows["lower"] <= rows["value"]) & (rows["value"] <= rows["upper"])).mean() > 0.9
    own = rows[(rows["measure"] == AGAIN) & (rows["share_of_ceiling"].notna())]
    assert own["share_of_ceiling"].tolist() == pytest.approx(np.sqrt(own["ceiling"]).tolist())
    assert (own["share_upper"] <= 1.0).all()


def test_gradients_are_contenders_like_others(runs, exact):
    """Scores after the last epoch count; strings that were never trained on are left out."""
    about = {"model": "m", "language": "L2", "size": 24}
    scores, effects = [], []
    for seed, run in enumerate(runs):
        known = exact["retrained"].query("seed == @seed")
        amounts = known.set_index("string_id")["self_influence"]
        unseen = run.strings.loc[run.strings["count"] == 0, "string_id"].iloc[:2]
        ids = [*amounts.index, *unseen]
        for epoch, sign in ((5, -1), (10, 1)):
            values = [*(sign * amounts), 9, 9]
            rows = pd.DataFrame({"string_id": ids, "epoch": epoch, "value": values})
            scores.append(rows.assign(**about, seed=seed, measure="tracin"))
        pairs = exact["influence"].query("seed == @seed")
        rows = pairs[["removed", "string_id"]].assign(value=pairs["influence"])
        effects.append(rows.assign(**about, seed=seed, measure="tracin"))
    costs = pd.DataFrame({**about, "seed": [0, 1], "method": "tracin", "seconds": 20.0})
    found = weighed(
        runs,
        exact,
        gradient_scores=pd.concat(scores),
        gradient_effects=pd.concat(effects),
        gradient_costs=costs,
    )["frontier"]
    own = found[(found["measure"] == "tracin") & (found["statistic"] == RANK)]
    values = own.groupby("question")["value"].min()
    assert values[AMOUNT] == values[CROSS] == pytest.approx(1.0)
    assert values[HALVES] > 0.99
    assert (own["cost"] == 3.0).all()


def test_a_training_that_is_missing_is_named(runs):
    run = runs[0]
    lacking = replace(run, again=[run.again[0], *run.again[2:]])
    with pytest.raises(UserError, match=f"no training without {run.ids[0]}"):
        exact_of([lacking])
    with pytest.raises(UserError, match="is not the training on all strings"):
        exact_of([replace(run, again=run.again[1:])])
    with pytest.raises(UserError, match="16 halves, and 15 others once more"):
        exact_of([replace(run, again=run.again[:-1])])
