"""Regressions of performance on leaks and on density."""

import numpy as np
import pandas as pd
import pytest

from helpers import density_worlds
from helpers.density_worlds import World
from palimpsest import tables
from palimpsest.density import label_permutations, mixed_models, regressions
from palimpsest.density.kinds import (
    ACCURACY,
    HIDDEN,
    LEAK_CONDITION,
    LEAKED,
    ON_DENSITY,
    ON_DISTANCE,
    ON_RANDOM,
    PERPLEXITY,
    PLACEBO,
    REGRESSIONS,
    TEXT_REGRESSIONS,
)
from palimpsest.errors import UserError

KEY = ["string_role", "regression", "outcome", "predictor", "embedding", "term"]
NUMBERS = ["estimate", "std_error", "statistic", "model_p_value"]
LINEAR = "paraphrases, linear"
HELPFUL = World(exact=0.15, paraphrase=0.1)


def study(world=HELPFUL, draw=0, seeds=2, **options):
    """A small study with one embedding."""
    options = {"n_leaked": 8, "n_never": 16, "embeddings": (HIDDEN,)} | options
    return density_worlds.leakage(world, draw, seeds, **options)


def chosen(table, **values):
    """The rows with these values."""
    for name, value in values.items():
        table = table[table[name] == value]
    return table


def only(table, **values):
    """The only row with these values."""
    (row,) = chosen(table, **values).itertuples()
    return row


@pytest.fixture(scope="module")
def leakage():
    """A study in which leaks help."""
    return study()


@pytest.fixture(scope="module")
def found(leakage):
    """The regressions of the study in which leaks help."""
    return regressions.regress(leakage)


# The models


def levels(n=240, seed=0):
    """An outcome with levels of 24 strings, a term that varies inside strings, and the strings."""
    chance = np.random.default_rng(seed)
    strings = np.arange(n) % 24
    term = chance.normal(size=n) + 0.5 * (strings % 3)
    outcome = 2 + 0.3 * term + 0.7 * chance.normal(size=24)[strings] + chance.normal(size=n)
    return outcome, term[:, None], {"string": strings}


def test_a_linear_fit_is_that_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    outcome, term, intercepts = levels()
    ours = mixed_models.fit(outcome, term, intercepts)
    peer = sm.MixedLM(outcome, sm.add_constant(term), groups=intercepts["string"]).fit()
    np.testing.assert_allclose(ours.estimates, peer.fe_params, rtol=1e-4)
    np.testing.assert_allclose(ours.std_errors, peer.bse_fe, rtol=1e-2)
    assert ours.spreads["string"] == pytest.approx(np.sqrt(peer.cov_re.item()), rel=1e-2)
    assert ours.residual**2 == pytest.approx(peer.scale, rel=1e-3)
    assert ours.converged
    assert not ours.singular


def test_crossed_intercepts_are_those_of_statsmodels():
    """Its variance components inside one group of all rows."""
    sm = pytest.importorskip("statsmodels.api")
    outcome, term, intercepts = levels()
    runs = np.arange(len(outcome)) // 24
    outcome = outcome + np.random.default_rng(1).normal(size=10)[runs]
    ours = mixed_models.fit(outcome, term, {**intercepts, "run": runs})
    frame = pd.DataFrame({"y": outcome, "x": term[:, 0], "s": intercepts["string"], "r": runs})
    parts = {"s": "0 + C(s)", "r": "0 + C(r)"}
    model = sm.MixedLM.from_formula("y ~ x", frame, groups=np.ones(len(frame)), vc_formula=parts)
    peer = model.fit()
    np.testing.assert_allclose(ours.estimates, peer.fe_params, rtol=1e-3)
    np.testing.assert_allclose(ours.std_errors, peer.bse_fe, rtol=1e-2)


def test_a_balanced_design_has_the_exact_test():
    """Two conditions of each of 12 strings: a paired t test with 11 degrees of freedom."""
    from scipy.stats import ttest_rel

    chance = np.random.default_rng(0)
    pairs = chance.normal(size=(12, 1)) + 0.5 * chance.normal(size=(12, 2)) + [0, 0.4]
    strings = np.repeat(np.arange(12), 2)
    term = np.tile([0.0, 1.0], 12)[:, None]
    ours = mixed_models.fit(pairs.ravel(), term, {"string": strings})
    peer = ttest_rel(pairs[:, 1], pairs[:, 0])
    assert ours.df[1] == pytest.approx(11, rel=1e-3)
    assert ours.statistics[1] == pytest.approx(peer.statistic, rel=1e-4)
    assert ours.p_values[1] == pytest.approx(peer.pvalue, rel=1e-3)


def test_a_logistic_fit_without_spread_is_plain():
    """Strings do not differ: then the model is logistic regression, and is marked as singular."""
    sm = pytest.importorskip("statsmodels.api")
    chance = np.random.default_rng(3)
    term = chance.normal(size=(400, 1))
    strings = np.arange(400) % 40
    right = (chance.random(400) < 1 / (1 + np.exp(-0.5 - 0.8 * term[:, 0]))).astype(float)
    # The same number of right answers for each string leaves nothing to their intercepts.
    order = np.lexsort((chance.random(400), right))
    strings = strings[np.argsort(order)]
    ours = mixed_models.fit(right, term, {"string": strings}, is_logistic=True)
    peer = sm.Logit(right, sm.add_constant(term)).fit(disp=0)
    assert ours.singular
    np.testing.assert_allclose(ours.estimates, peer.params, rtol=1e-2)
    np.testing.assert_allclose(ours.std_errors, peer.bse, rtol=1e-2)


def test_a_logistic_fit_finds_the_effect_and_the_spread():
    """Plain logistic regression would shrink both estimates."""
    chance = np.random.default_rng(0)
    strings, term = np.repeat(np.arange(200), 20), chance.normal(size=(4000, 1))
    logits = 1 + term[:, 0] + 1.5 * chance.normal(size=200)[strings]
    right = (chance.random(4000) < 1 / (1 + np.exp(-logits))).astype(float)
    ours = mixed_models.fit(right, term, {"string": strings}, is_logistic=True)
    assert (np.abs(ours.estimates - 1) < 3 * ours.std_errors).all()
    assert ours.spreads["string"] == pytest.approx(1.5, abs=0.3)
    again = mixed_models.fit(right, term, {"string": strings}, is_logistic=True, start=ours)
    np.testing.assert_allclose(ours.estimates, again.estimates, rtol=1e-2)


def test_a_fit_that_stops_early_is_marked(monkeypatch):
    """What it found is not a result."""
    monkeypatch.setattr(mixed_models, "MOST_STEPS", 1)
    table = regressions.regress(study(seeds=1))
    stopped = table[~table["converged"]]
    assert len(stopped)
    assert stopped[["estimate", "std_error", "model_p_value"]].isna().all().all()


@pytest.mark.parametrize(
    ("term", "why"),
    [
        (np.ones((50, 1)), "constant"),
        (np.tile(np.arange(50.0), (2, 1)).T, "a term that follows from another"),
        (np.full((50, 1), np.nan), "not a number"),
    ],
)
def test_a_term_without_information_is_not_fitted(term, why):
    outcome = np.random.default_rng(0).normal(size=50)
    fitted = mixed_models.fit(outcome, term, {"string": np.arange(50) % 5})
    assert not fitted.converged, why
    assert np.isnan(fitted.estimates).all()


def test_intercepts_that_nothing_tells_apart_are_left_out():
    kept = mixed_models.random_intercepts(
        {
            "constant": [3, 3, 3, 3],
            "group": ["a", "a", "b", "b"],
            "same": [7, 7, 1, 1],
            "own": [1, 2, 3, 4],
            "other": [1, 2, 1, 1],
        }
    )
    assert list(kept) == ["group", "other"]


# P-values by exchange


def test_exchanges_stay_inside_strata():
    strata = np.array([4, 2, 4, 4, 2, 9])
    orders = label_permutations.random_orders(strata, 200, seed=1)
    assert (strata[orders] == strata).all()
    assert (np.sort(orders, axis=1) == np.arange(6)).all()
    assert len(np.unique(orders, axis=0)) == 12  # all of 3! x 2! orders


def null_of(leakage, outcome="perplexity"):
    """The model without terms of leaked strings and others, and the sorted rows."""
    rows = regressions.in_units(leakage[leakage["string_role"] != PLACEBO])
    rows = rows.sort_values(regressions.ROW, ignore_index=True)
    values = rows[outcome].to_numpy(dtype=float)
    intercepts = regressions._intercepts(rows)
    empty = mixed_models.fit(values, np.empty((len(rows), 0)), intercepts, outcome != "perplexity")
    return label_permutations.Scores(empty, values, intercepts), rows, values


def exchanges_in(strata, n, seed):
    """Random exchanges inside strata."""
    orders = label_permutations.random_orders(strata, n, seed)
    return label_permutations.Exchanges(strata, 8, orders)


def test_the_score_is_the_slope_of_the_likelihood(leakage):
    """One step from no effect is the estimate of the model, at nearly the same variances."""
    null, rows, values = null_of(leakage)
    asked = regressions.all_regressions(rows, LEAKED)[1]
    terms = np.column_stack(list(asked.terms.values()))
    step = np.linalg.solve(terms.T @ null.project(terms), terms.T @ null.left)
    fitted = mixed_models.fit(values, terms, regressions._intercepts(rows))
    assert step == pytest.approx(fitted.estimates[1:], rel=0.05)
    np.testing.assert_allclose(null.project(values[:, None])[:, 0], null.left, atol=1e-6)


def test_exchanges_change_nothing_in_strata_of_one_string(leakage):
    null, rows, _ = null_of(leakage)
    n_units = len(rows) // 8
    terms = rows["log_density"].to_numpy()[:, None]
    assert np.isnan(null.p_values(terms, exchanges_in(np.arange(n_units), 50, 0))).all()


def test_false_positives_of_exchanges_are_few_where_the_models_own_are_many():
    """Strings gain or lose with a condition without being leaked: 2 of 40 are expected, at 5 %."""
    world = World(slope=0.15)
    ours, own = [], []
    for draw in range(20):
        rows = study(world, draw, n_leaked=6, n_never=18)
        null, rows, values = null_of(rows)
        asked = regressions.all_regressions(rows, LEAKED)[0]
        terms = np.column_stack(list(asked.terms.values()))
        ours += list(
            null.p_values(terms, exchanges_in(rows["seed"].to_numpy()[::8], 199, draw))[:2]
        )
        own += list(mixed_models.fit(values, terms, regressions._intercepts(rows)).p_values[1:3])
    assert np.mean(np.array(ours) < 0.05) <= 0.12
    assert np.mean(np.array(own) < 0.05) >= 0.17


# The table


def test_the_table_is_of_its_kind(found, tmp_path):
    tables.write(tmp_path / "regressions.parquet", found, REGRESSIONS)
    assert len(tables.read(tmp_path / "regressions.parquet", REGRESSIONS)) == len(found)
    assert not found.duplicated(KEY).any()
    assert set(found["string_role"]) == {LEAKED, PLACEBO}
    intercepts = found["term"] == regressions.INTERCEPT
    of_accuracy = found["outcome"] == ACCURACY
    assert (found["p_kind"][~intercepts] == regressions.PERMUTATION).all()
    assert (found["p_kind"][intercepts & of_accuracy] == mixed_models.WALD).all()
    assert (found["p_kind"][intercepts & ~of_accuracy] == mixed_models.SATTERTHWAITE).all()
    assert found["df"].isna().equals(of_accuracy)


def test_polynomials_are_those_of_r():
    """contr.poly(4), as R prints it."""
    printed = [
        [-0.6708204, -0.2236068, 0.2236068, 0.6708204],
        [0.5, -0.5, -0.5, 0.5],
        [-0.2236068, 0.6708204, -0.6708204, 0.2236068],
    ]
    np.testing.assert_allclose(list(regressions.POLYNOMIALS.values()), printed, atol=1e-7)


def test_a_known_effect_is_found():
    """The fall of perplexity by a copy and by paraphrases, in a world without skew."""
    leakage = study()
    is_leaked = leakage["string_role"] == LEAKED
    chance = np.random.default_rng(0)
    level = leakage["string_id"].map(lambda name: int(name[4:], 16) / 20)
    helps = 0.5 * leakage["n_copies"] + 0.2 * leakage["paraphrases"]
    perplexity = 5 + level - is_leaked * helps + 0.1 * chance.normal(size=len(leakage))
    table = regressions.regress(leakage.assign(perplexity=perplexity))
    at = {"regression": LEAK_CONDITION, "outcome": PERPLEXITY}
    copy = only(table, string_role=LEAKED, term="exact copy", **at)
    assert copy.estimate == pytest.approx(-0.5, abs=4 * copy.std_error)
    assert copy.std_error < 0.05
    linear = only(table, string_role=LEAKED, term=LINEAR, **at)
    # A step of 0.2 per paraphrase is a slope of 0.2 times the length of (-1.5, -0.5, 0.5, 1.5)
    assert linear.estimate == pytest.approx(-0.2 * np.sqrt(5), abs=4 * linear.std_error)
    for bent in ("quadratic", "cubic"):
        row = only(table, string_role=LEAKED, term=f"paraphrases, {bent}", **at)
        assert abs(row.estimate) < 4 * row.std_error
    assert max(copy.p_value, linear.p_value) == 1 / (1 + regressions.PERMUTATIONS)
    for row, effect in ((copy, -0.5), (linear, -0.2 * np.sqrt(5))):
        assert row.lower < effect < row.upper < 0
        assert row.effect == pytest.approx(row.estimate, abs=2 * row.std_error)


def test_leaked_strings_and_placebos_have_one_unit(leakage):
    """Leaked copies spread the density of leaked strings, and its unit is not theirs alone."""
    rows = regressions.in_units(leakage)
    by_role = rows.groupby("string_role")["raw"].agg(["mean", "std"])
    assert rows["raw"].std(ddof=0) == pytest.approx(1)
    assert by_role.loc[LEAKED, "std"] > 1.2 * by_role.loc[PLACEBO, "std"]
    density = np.exp(leakage["log_density"])
    np.testing.assert_allclose(rows["raw"], (density - density.mean()) / density.std(ddof=0))


def test_length_that_density_and_loss_follow_is_no_effect():
    """Longer strings are denser and easier, along lines: nothing else is there."""
    small = []
    for draw in range(6):
        rows = study(World(by_length=0.1, dense_by_length=1.0), draw)
        table = regressions.regress(rows)
        at = {"regression": ON_DENSITY, "predictor": "log", "term": "density"}
        small.append(only(table, string_role=PLACEBO, outcome=PERPLEXITY, **at).p_value < 0.05)
        assert only(table, string_role=PLACEBO, outcome=PERPLEXITY, **{**at, "term": "log length"})
    assert sum(small) <= 1


def test_leaks_are_found_in_leaked_strings_alone(found):
    """And so is the density, which leaks raise. Placebos go through the same code."""
    for asked, term in ((LEAK_CONDITION, "exact copy"), (LEAK_CONDITION, LINEAR)):
        at = {"regression": asked, "term": term, "outcome": PERPLEXITY}
        leaked, placebo = (only(found, string_role=s, **at) for s in (LEAKED, PLACEBO))
        assert leaked.estimate < 0
        assert leaked.p_value < 0.01
        assert placebo.p_value > 0.05
    at = {"regression": ON_DENSITY, "term": "density", "predictor": "log"}
    assert only(found, string_role=LEAKED, outcome=PERPLEXITY, **at).estimate < 0
    assert only(found, string_role=LEAKED, outcome=PERPLEXITY, **at).p_value < 0.01
    assert only(found, string_role=LEAKED, outcome=ACCURACY, **at).estimate > 0
    assert only(found, string_role=PLACEBO, outcome=PERPLEXITY, **at).p_value > 0.05


def test_a_world_without_effects_has_few_small_p_values():
    """Of both kinds of strings and all terms, over two studies."""
    table = pd.concat(regressions.regress(study(World(), draw)) for draw in range(2))
    tested = table[table["term"] != regressions.INTERCEPT]
    assert (tested["p_value"] < 0.05).mean() < 0.15
    assert (tested["p_value"] < 0.001).sum() <= 1


def test_a_leak_that_makes_all_answers_right_is_found():
    """No finite estimate is the most probable one, but exchanges decide."""
    leakage = study(World(odds=0.0))
    is_helped = (leakage["string_role"] == LEAKED) & (leakage["n_copies"] == 1)
    table = regressions.regress(leakage.assign(answer_right=leakage["answer_right"] | is_helped))
    row = only(
        table, string_role=LEAKED, regression=LEAK_CONDITION, outcome=ACCURACY, term="exact copy"
    )
    assert not row.converged
    assert np.isnan(row.estimate)
    assert row.p_value < 0.01


@pytest.mark.parametrize("change", ["order", "scale"])
def test_order_and_scale_do_not_matter(leakage, found, change):
    """A density in other units is another log density by a constant; distances are scaled too."""
    if change == "order":
        other = leakage.sample(frac=1, random_state=0)
    else:
        other = leakage.assign(
            log_density=leakage["log_density"] - 2000, mean_distance=7 * leakage["mean_distance"]
        )
    table = regressions.regress(other)
    pd.testing.assert_frame_equal(found[KEY], table[KEY])
    # The search for the most probable logistic fit ends within 0.001 of it.
    np.testing.assert_allclose(found[NUMBERS], table[NUMBERS], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found["p_value"], table["p_value"], atol=0.002)


def test_an_outcome_or_a_term_that_does_not_vary_has_no_estimate(leakage):
    table = regressions.regress(leakage.assign(answer_right=True, log_density=-3.0))
    of_density = table["regression"] != LEAK_CONDITION
    unknown = (table["outcome"] == ACCURACY) | of_density
    assert table["estimate"].isna().equals(unknown)
    assert table["p_value"].isna().equals(unknown)
    assert table["converged"].equals(~unknown)


def test_one_seed_and_one_length_and_one_group_are_enough():
    """Then there are intercepts of strings and runs only."""
    leakage = study(seeds=1).assign(length=9, group="S -> A")
    row = only(
        regressions.regress(leakage), string_role=LEAKED, outcome=PERPLEXITY, term="exact copy"
    )
    assert row.converged
    assert row.estimate < 0


def test_a_string_of_two_seeds_has_an_intercept_of_its_own_in_each(leakage):
    plain = regressions._intercepts(leakage)
    shared = leakage.assign(string_id=leakage["string_id"].str[4:])
    assert "string_of_seed" not in plain
    assert regressions._intercepts(shared)["string_of_seed"].max() == plain["string"].max()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop(columns="perplexity"), "no column 'perplexity'"),
        (lambda t: t.iloc[:0], "no rows"),
        (lambda t: t[t["string_role"] != PLACEBO], "no rows of strings that are 'placebo'"),
        (lambda t: t.iloc[1:], "rows for embedding 'hidden'; every string needs one row in each"),
        (lambda t: pd.concat([t, t.iloc[:1]]), "every string needs one row in each of the 8 runs"),
        (lambda t: t.assign(length=[np.nan, *t["length"][1:]]), "has nan as 'length'"),
        (lambda t: t.assign(paraphrases=4), "has 4 as 'paraphrases'"),
        (lambda t: t.assign(perplexity=[np.inf, *t["perplexity"][1:]]), "has inf as 'perplexity'"),
        (lambda t: t.assign(answer_right="yes"), "has yes as 'answer_right'"),
        (lambda t: t.assign(log_density=[np.nan, *t["log_density"][1:]]), "as 'log_density'"),
        (
            lambda t: t.assign(string_role=[PLACEBO, *t["string_role"][1:]]),
            "has several values of 'string_role'",
        ),
        (lambda t: t.assign(size=[1, *t["size"][1:]]), "several values of 'size': 1, 128"),
    ],
)
def test_a_table_that_is_not_whole_gives_one_line(leakage, change, said):
    with pytest.raises(UserError) as error:
        regressions.regress(change(leakage))
    assert said in str(error.value)
    assert str(error.value).startswith("table of kind leakage: ")


def test_without_right_answers_only_perplexity_is_regressed(leakage):
    """The same numbers for perplexity as with answers."""
    own = leakage[leakage["embedding"] == "hidden"]
    both = regressions.regress(own)
    alone = regressions.regress(own.assign(answer_right=None, n_choices=None))
    assert set(both["outcome"]) == {PERPLEXITY, ACCURACY}
    expected = both[both["outcome"] == PERPLEXITY].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, expected)


# Texts


@pytest.mark.parametrize("of_term", [0.0, 3.0])
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1.0), (1e-4, 0.0), (1e5, 1e4)])
def test_an_outcome_that_terms_and_groups_decide_is_not_fitted(of_term, scale, offset):
    """A little noise is enough to fit it."""
    chance = np.random.default_rng(0)
    x, noise = chance.normal(size=(2, 300))
    groups = {"group": chance.integers(0, 10, 300), "length": chance.integers(0, 5, 300)}
    exact = of_term * x + offset + 0.5 * groups["group"]
    found = mixed_models.fit(scale * exact, x[:, None], groups)
    assert not found.converged
    assert np.isnan(found.p_values).all()
    found = mixed_models.fit(scale * (exact + 0.01 * noise), x[:, None], groups)
    assert found.converged
    assert found.residual == pytest.approx(0.01 * scale, rel=0.1)


def test_a_fit_that_fails_is_none(monkeypatch):
    def fail(formula, frame):
        raise RuntimeError("Linear optimization did not produce a valid fit")

    monkeypatch.setattr(mixed_models, "_linear", fail)
    x = np.random.default_rng(0).normal(size=(50, 1))
    found = mixed_models.fit(x[:, 0] ** 2, x, {"group": np.arange(50) % 5})
    assert not found.converged
    assert np.isnan(found.estimates).all()


def test_density_predicts_the_perplexity_of_a_text(tmp_path):
    table = regressions.regress_text(density_worlds.text(0, dense=0.4))
    tables.write(tmp_path / "regressions.parquet", table, TEXT_REGRESSIONS)
    assert (table["p_kind"] == mixed_models.SATTERTHWAITE).all()
    log = only(table, regression=ON_DENSITY, predictor="log", term="density")
    assert log.estimate < 0
    assert log.p_value < 0.001
    distance = only(table, regression=ON_DISTANCE, term="mean distance")
    assert distance.estimate > 0
    assert pd.isna(distance.bandwidth)


def whole(text: pd.DataFrame) -> pd.DataFrame:
    """Without parts of the density, so that there are no regressions on the random one."""
    return text.assign(log_local=np.nan, log_random=np.nan)


def test_length_is_taken_into_account():
    """Dense queries are longer, and longer ones have lower perplexities: nothing else is there."""
    at = {"regression": ON_DENSITY, "predictor": "log", "term": "density"}
    texts = [whole(density_worlds.text(draw, by_length=0.6)) for draw in range(20)]
    small = [only(regressions.regress_text(text), **at).p_value < 0.05 for text in texts]
    assert sum(small) <= 4
    for text in texts[:5]:
        ignored = regressions.regress_text(text.assign(n_characters=9))
        assert only(ignored, **at).p_value < 0.001
        assert regressions.LOG_LENGTH not in set(ignored["term"])


def test_queries_of_one_document_are_not_independent():
    """Levels of density and of perplexity have nothing to do with each other."""
    at = {"regression": ON_DENSITY, "predictor": "log", "term": "density"}
    texts = [whole(density_worlds.text(draw, of_document=1.0)) for draw in range(20)]
    small = [only(regressions.regress_text(text), **at).p_value < 0.05 for text in texts]
    assert sum(small) <= 4
    apart = [text.assign(document=range(len(text))) for text in texts]
    small = [only(regressions.regress_text(text), **at).p_value < 0.05 for text in apart]
    assert sum(small) > 4


def test_the_local_part_is_taken_if_there_is_one():
    text = density_worlds.text(0)
    exact = text.assign(log_local=np.nan)
    as_local = text.assign(log_local=text["log_density"])
    local = regressions.regress_text(as_local)
    local = local[local["regression"] != ON_RANDOM].reset_index(drop=True)
    pd.testing.assert_frame_equal(regressions.regress_text(exact), local)
    moved = text.assign(log_density=0.0)
    pd.testing.assert_frame_equal(regressions.regress_text(text), regressions.regress_text(moved))


def test_every_kernel_has_rows_and_distance_only_once():
    text = density_worlds.text(0, n=60)
    both = pd.concat([text, text.assign(kernel="exponential")])
    table = regressions.regress_text(both)
    assert set(table["kernel"].dropna()) == {"gaussian", "exponential"}
    terms = [regressions.INTERCEPT, regressions.DISTANCE, regressions.LOG_LENGTH]
    assert list(chosen(table, regression=ON_DISTANCE)["term"]) == terms


def test_a_text_without_perplexities_has_no_rows():
    table = regressions.regress_text(density_worlds.text(0).assign(perplexity=np.nan))
    assert table.empty
    assert list(table) == TEXT_REGRESSIONS.names


def test_too_few_queries_have_no_estimate():
    table = regressions.regress_text(density_worlds.text(0, n=3))
    assert table["estimate"].isna().all()
    assert not table["converged"].any()


@pytest.mark.parametrize("n", [5, 19, 20, 100, 1000])
def test_bins_of_length_hold_equally_many(n):
    lengths = np.random.default_rng(n).permutation(n)
    counts = np.bincount(regressions.length_bins(lengths))
    assert len(counts) == max(1, min(20, n // 10))
    assert counts.max() - counts.min() <= 1


def test_equal_lengths_are_in_one_bin():
    lengths = np.repeat([3, 8], [90, 10])
    assert len(np.unique(regressions.length_bins(lengths)[:90])) == 1


def test_the_random_part_has_a_regression_of_its_own():
    text = density_worlds.text(0)
    text["perplexity"] *= np.exp(10 * (text["log_random"] - text["log_random"].mean()))
    at = {"regression": ON_RANDOM, "term": "density"}
    for form in ("raw", "log"):
        row = only(regressions.regress_text(text), predictor=form, **at)
        assert row.estimate > 0
        assert row.p_value < 0.001
    exact = regressions.regress_text(text.assign(log_local=np.nan, log_random=np.nan))
    assert chosen(exact, regression=ON_RANDOM).empty


def test_texts_are_not_mixed():
    text = density_worlds.text(0, n=20)
    with pytest.raises(UserError, match="several values of 'language': licences, other"):
        regressions.regress_text(pd.concat([text, text.assign(language="other")]))
