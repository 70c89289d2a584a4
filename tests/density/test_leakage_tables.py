"""Densities of runs, and the tables about them, against other packages and by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import ndcg_score, roc_auc_score
from sklearn.neighbors import KernelDensity, NearestNeighbors

from helpers.leakage_runs import (
    CORPUS,
    EPOCHS,
    FACTORIAL,
    KERNELS,
    LEFT_OUT,
    MODEL,
    NEIGHBOURS,
    SHOWN,
    SIZE,
    dataset,
    hidden,
    results,
)
from palimpsest import tables
from palimpsest.datasets.choices import candidates
from palimpsest.density import kinds
from palimpsest.density.associations import spearman, spearman_given
from palimpsest.density.densities import density_tables, embeddings_of
from palimpsest.density.kernel import (
    Approximation,
    log_density_of_others,
    log_kernel_density,
    parts_of_density,
)
from palimpsest.density.kinds import HIDDEN, LEAKED, LENGTH, NEVER, NGRAMS, PLACEBO, TRAINED, UNSEEN
from palimpsest.density.leakage_study import factorial_tables, left_out_of_seeds, whole_runs
from palimpsest.density.leakage_tables import (
    auc,
    leakage_table,
    ndcg,
    retrieval_table,
    separation_table,
)
from palimpsest.density.memorised import memorised_table
from palimpsest.density.truth import truth_table
from palimpsest.errors import UserError
from palimpsest.variants import leak_of

WHOLE, FULLEST = FACTORIAL[0], FACTORIAL[-1]
SEEDS = (0, 1)


# Rank correlations


def pairs(n=40, seed=0):
    """Three variables that are associated, with ties."""
    chance = np.random.default_rng(seed)
    z = chance.integers(0, 8, n).astype(float)
    return z + chance.integers(0, 5, n), z - chance.integers(0, 5, n), z


def test_spearman_is_that_of_scipy():
    x, y, _ = pairs()
    assert spearman(x, y) == pytest.approx(spearmanr(x, y).statistic)


def test_infinite_values_are_the_latest():
    x, y, _ = pairs()
    late = np.where(y > 3, np.inf, y)
    assert np.isinf(late).any()
    assert spearman(x, late) == pytest.approx(spearmanr(x, np.minimum(late, 99)).statistic)


def test_partial_correlations_are_those_of_residuals():
    """Residuals of the ranks of both variables, regressed on those of the third."""
    variables = pairs()
    x, y, z = (pd.Series(variable).rank().to_numpy() for variable in variables)
    design = np.column_stack([np.ones(len(z)), z])
    rest = [each - design @ np.linalg.lstsq(design, each)[0] for each in (x, y)]
    expected = np.corrcoef(*rest)[0, 1]
    assert spearman_given(*variables) == pytest.approx(expected)
    assert abs(expected - spearman(*variables[:2])) > 0.05


@pytest.mark.parametrize(
    "values",
    [
        ([1, 2], [1, 2], [2, 1]),
        ([1, 1, 1, 1], [1, 2, 3, 4], [2, 1, 4, 3]),
        ([1, 2, 3, 4], [5, 5, 5, 5], [2, 1, 4, 3]),
    ],
)
def test_what_does_not_vary_has_no_correlation(values):
    x, y, z = values
    assert np.isnan(spearman(x, y))
    assert np.isnan(spearman_given(x, y, z))


@pytest.mark.parametrize("given", [[7, 7, 7, 7], [10, 20, 30, 40], [4, 1, 3, 2]])
def test_at_equal_values_of_itself_nothing_varies(given):
    """The third variable does not vary, or has the ranks of the first, or those of the second."""
    assert np.isnan(spearman_given([1, 2, 3, 4], [4, 1, 3, 2], given))


# Densities


@pytest.fixture(scope="module")
def strings() -> pd.DataFrame:
    """A dataset in which strings have up to three copies, or none."""
    table = dataset(WHOLE)
    return table.assign(count=np.random.default_rng(5).integers(0, 4, len(table)))


@pytest.fixture(scope="module")
def embeddings(strings) -> dict[str, np.ndarray]:
    return embeddings_of(strings, hidden(strings, np.random.default_rng(6)))


@pytest.fixture(scope="module")
def estimated(strings, embeddings) -> dict[str, pd.DataFrame]:
    return density_tables(MODEL, strings, embeddings, KERNELS, NEIGHBOURS)


def repeated(strings: pd.DataFrame, vectors: np.ndarray) -> np.ndarray:
    """The training strings, with copies."""
    return np.concatenate(
        [[row] * n for row, n in zip(vectors, strings["count"], strict=True) if n]
    )


def test_tables_of_densities_are_of_their_kinds(strings, estimated, tmp_path):
    for kind in (kinds.DENSITY, kinds.NEIGHBOURS):
        tables.write(tmp_path / "table.parquet", estimated[kind.name], kind)
    n_settings = sum(map(len, KERNELS.values()))
    assert len(estimated["density"]) == 2 * n_settings * len(strings)
    assert len(estimated["neighbours"]) == 2 * len(strings)


def test_embeddings_are_in_the_order_of_the_strings(strings, embeddings):
    """Whatever the order of the table of hidden states; and of length 1."""
    table = hidden(strings, np.random.default_rng(6)).set_index("string_id")["vector"]
    for row, name in enumerate(strings["string_id"]):
        np.testing.assert_array_equal(embeddings[HIDDEN][row], table[name])
    for vectors in embeddings.values():
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(("kernel", "bandwidth"), [(k, h) for k, hs in KERNELS.items() for h in hs])
@pytest.mark.parametrize("name", [HIDDEN, NGRAMS])
def test_densities_are_those_of_scikit_learn(
    strings, embeddings, estimated, name, kernel, bandwidth
):
    """Whose kernels integrate to 1, so that they are not 1 at distance 0."""
    vectors = embeddings[name]
    other = KernelDensity(bandwidth=bandwidth, kernel=kernel, rtol=1e-10)
    at_zero = other.fit(vectors[:1]).score_samples(vectors[:1])[0]
    expected = other.fit(repeated(strings, vectors)).score_samples(vectors) - at_zero
    found = estimated["density"].query(
        "embedding == @name and kernel == @kernel and bandwidth == @bandwidth"
    )
    assert found["string_id"].tolist() == strings["string_id"].tolist()
    np.testing.assert_allclose(found["log_density"], expected, atol=1e-6)
    assert found[["log_local", "log_random", "log_approximate"]].isna().all(axis=None)


@pytest.mark.parametrize(("kernel", "bandwidth"), [("gaussian", 0.1), ("exponential", 0.05)])
def test_the_density_of_others_leaves_one_copy_out(
    strings, embeddings, estimated, kernel, bandwidth
):
    """By deleting each training string once; a string that is not trained on has no such value."""
    vectors, counts = embeddings[NGRAMS], strings["count"].to_numpy()
    found = estimated["density"].query(
        "embedding == @NGRAMS and kernel == @kernel and bandwidth == @bandwidth"
    )["log_density_others"]
    for row, (value, count) in enumerate(zip(found, counts, strict=True)):
        if not count:
            assert np.isnan(value)
            continue
        others = np.repeat(np.arange(len(counts)), counts - (np.arange(len(counts)) == row))
        expected = log_kernel_density(vectors[[row]], vectors[others], bandwidth, kernel)[0]
        assert value == pytest.approx(expected, abs=1e-9)


def test_a_single_point_has_no_others():
    with pytest.raises(UserError, match="corpus: has one point only"):
        log_density_of_others(np.ones((1, 3)), 0.1)


@pytest.mark.parametrize("name", [HIDDEN, NGRAMS])
def test_neighbours_are_those_of_scikit_learn(strings, embeddings, estimated, name):
    """With copies; the nearest training string of a training string is itself."""
    vectors = embeddings[name]
    other = NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute")
    expected = other.fit(repeated(strings, vectors)).kneighbors(vectors)[0]
    found = estimated["neighbours"].query("embedding == @name")
    assert (found["k"] == NEIGHBOURS).all()
    # The other package rounds the distance of a copy.
    np.testing.assert_allclose(found["nearest"], expected[:, 0], atol=1e-6)
    np.testing.assert_allclose(found["mean_distance"], expected.mean(axis=1), atol=1e-6)
    trained = strings["count"].to_numpy() > 0
    assert (found["nearest"][trained] == 0).all()
    assert (found["nearest"][~trained] > 0).all()


def test_the_approximation_is_beside_the_exact_density(strings, embeddings):
    asked = Approximation(k=4, m1=70, m2=20, seed=3)
    given = {NGRAMS: embeddings[NGRAMS]}
    found = density_tables(MODEL, strings, given, {"gaussian": [0.5]}, 2, asked)["density"]
    points = repeated(strings, given[NGRAMS])
    parts = parts_of_density(given[NGRAMS], points, 0.5, "gaussian", asked)
    columns = found[["log_local", "log_random", "log_approximate"]].to_numpy().T
    np.testing.assert_allclose(columns, np.log(parts))
    np.testing.assert_allclose(columns[2], found["log_density"], atol=0.5)


def test_a_string_without_hidden_states_is_refused(strings):
    table = hidden(strings, np.random.default_rng(6))
    missing = strings["string_id"].iloc[3]
    with pytest.raises(
        UserError, match=f"of leaked-0-0, seed 0: string {missing} has none"
    ) as error:
        embeddings_of(strings, table[table["string_id"] != missing])
    assert "delete them and run again" in str(error.value)
    assert "\n" not in str(error.value)


def test_more_neighbours_than_training_strings_are_refused(strings, embeddings):
    n = strings["count"].sum()
    with pytest.raises(UserError) as error:
        density_tables(MODEL, strings, embeddings, KERNELS, n + 1)
    expected = f"k: is {n + 1} and must be from 1 to the size of the corpus, {n}"
    assert str(error.value) == expected


# Scores


@pytest.mark.parametrize("levels", [3, 1000])
def test_the_area_under_the_curve_is_that_of_scikit_learn(levels):
    """With many ties, and with few."""
    chance = np.random.default_rng(levels)
    treated, others = chance.integers(1, levels + 1, 20), chance.integers(0, levels, 30)
    expected = roc_auc_score([1] * 20 + [0] * 30, [*treated, *others])
    assert auc(treated, others) == pytest.approx(expected)
    assert auc(np.zeros(4), np.zeros(5)) == 0.5
    assert auc(np.ones(4), np.zeros(5)) == 1


@pytest.mark.parametrize(("n_wanted", "k"), [(4, 5), (4, 10), (2, 10), (5, 3)])
def test_the_discounted_gain_is_that_of_scikit_learn(n_wanted, k):
    chance = np.random.default_rng(k)
    relevant = np.array([chance.permutation([1] * n_wanted + [0] * (30 - n_wanted)) for _ in "abc"])
    scores = chance.random(relevant.shape) + 0.4 * relevant
    order = np.argsort(-scores, axis=1)[:, :k]
    hits = np.take_along_axis(relevant, order, axis=1).astype(bool)
    assert 0 < ndcg(hits, n_wanted) == pytest.approx(ndcg_score(relevant, scores, k=k))


@pytest.fixture(scope="module")
def fullest():
    """The run with copies and all paraphrases."""
    return results(FULLEST)


def test_recall_by_hand(fullest):
    """Copies and paraphrases among the nearest, found by another package."""
    strings = fullest.strings
    vectors = hidden(strings, np.random.default_rng(0)).set_index("string_id")["vector"]
    vectors = np.stack(vectors.loc[strings["string_id"]].tolist()).astype(float)
    # Two of three paraphrases are near their string.
    leaked = strings.index[strings["role"] == LEAKED]
    for row in leaked:
        for number in (1, 3):
            role = f"paraphrase-{number}-{strings.loc[row, 'string_id']}"
            vectors[strings["role"] == role] = vectors[row] + 1e-3
    names = np.repeat(strings["string_id"].to_numpy(dtype=object), strings["count"])
    of = dict(zip(strings["string_id"], strings["role"], strict=True))
    other = NearestNeighbors(n_neighbors=10).fit(repeated(strings, vectors))
    places = other.kneighbors(vectors[leaked], return_distance=False)
    found = retrieval_table(fullest, {HIDDEN: vectors}).set_index("k")
    for k in (5, 10):
        shares = [
            np.mean(
                [
                    own in names[some[:k]],
                    *(
                        any(of[name] == f"paraphrase-{n}-{own}" for name in names[some[:k]])
                        for n in (1, 2, 3)
                    ),
                ]
            )
            for own, some in zip(strings.loc[leaked, "string_id"], places, strict=True)
        ]
        assert found.loc[k, "recall"] == pytest.approx(np.mean(shares))
        assert 0.75 <= np.mean(shares) < 1
        assert found.loc[k, "chance"] == k / SIZE
        assert found.loc[k, "n_strings"] == 6


def test_all_is_found_if_all_is_near(fullest):
    strings = fullest.strings
    about = strings["role"].fillna("").str.rpartition("-")[2].where(strings["role"] != LEAKED)
    about = about.fillna(strings["string_id"]).where(strings["role"].notna(), strings["string_id"])
    vectors = np.eye(len(strings))[pd.factorize(about)[0]]
    found = retrieval_table(fullest, {HIDDEN: vectors})
    np.testing.assert_allclose(found[["recall", "ndcg"]], 1)


# The factorial


@pytest.fixture(scope="module")
def runs():
    return [results(name, seed) for seed in SEEDS for name in FACTORIAL]


@pytest.fixture(scope="module")
def leakage(runs) -> pd.DataFrame:
    return leakage_table(runs, *SHOWN)


def test_every_test_string_is_there_once_for_each_run_and_embedding(leakage):
    keys = ["seed", "exact", "paraphrases", "embedding", "string_id"]
    assert not leakage.duplicated(keys).any()
    assert len(leakage) == len(SEEDS) * len(FACTORIAL) * 2 * 24
    by_run = leakage.groupby(["seed", "variant", "embedding"])["strings"].value_counts().unstack()
    assert (by_run[[LEAKED, PLACEBO, NEVER]] == [6, 6, 12]).all(axis=None)
    one = leakage.groupby(["seed", "string_id"])[["strings", "group", "length"]].nunique()
    assert (one == 1).all(axis=None)


def test_what_a_leak_is_stands_in_its_row(leakage):
    for name, rows in leakage.groupby("variant"):
        leak = leak_of(name)
        assert (rows["exact"] == leak.exact).all()
        assert (rows["paraphrases"] == leak.paraphrases).all()
        expected = np.where(rows["strings"] == LEAKED, EPOCHS[-1] * sum(leak), 0)
        assert rows["effective_epochs"].tolist() == expected.tolist()


def test_losses_are_those_of_the_last_epoch_and_answers_beat_the_distractor(leakage, runs):
    np.testing.assert_allclose(leakage["perplexity"], np.exp(leakage["loss"]))
    for run in runs[:3]:
        own = leakage[(leakage["seed"] == run.seed) & (leakage["variant"] == run.variant)]
        own = own[own["embedding"] == NGRAMS].set_index("string_id")
        losses = dict(zip(run.trace.string_ids, run.trace.loss[-1], strict=True))
        distractor = dict(zip(run.strings["role"], run.strings["string_id"], strict=True))
        for name, row in own.iterrows():
            assert row["loss"] == losses[name]
            other = losses[distractor[f"distractor-{name}"]]
            assert row["answer_right"] == (losses[name] < other)
        assert own["answer_right"].nunique() == 2


def test_densities_are_those_of_the_setting(leakage, runs):
    for run in runs[:3]:
        found = leakage.query("seed == @run.seed and variant == @run.variant")
        for name in (HIDDEN, NGRAMS):
            own = found[found["embedding"] == name].set_index("string_id")
            kernel, bandwidth = SHOWN
            density = run.density.query(
                "embedding == @name and kernel == @kernel and bandwidth == @bandwidth"
            ).set_index("string_id")["log_density"]
            assert (own["log_density"] == density.loc[own.index]).all()
            near = run.neighbours[run.neighbours["embedding"] == name].set_index("string_id")
            assert (own["mean_distance"] == near.loc[own.index, "mean_distance"]).all()


def test_separation_by_hand(runs):
    """A copy of a string makes it the densest by n-grams; nothing happens to placebos."""
    table = separation_table(runs)
    n_estimators = sum(map(len, KERNELS.values())) + 1
    assert len(table) == len(runs) * 2 * n_estimators
    keys = ["seed", "exact", "paraphrases", "embedding", "estimator", "setting"]
    assert not table.duplicated(keys).any()
    run = runs[1]
    roles = run.strings.set_index("string_id")["role"]
    density = run.density.query(
        "embedding == @NGRAMS and kernel == 'exponential' and bandwidth == 0.05"
    ).set_index("string_id")["log_density"]
    parts = [density[roles.index[roles == role]].to_numpy() for role in (LEAKED, PLACEBO, NEVER)]
    leak = run.leak
    found = table.query(
        "seed == 0 and exact == @leak.exact and paraphrases == @leak.paraphrases "
        "and embedding == @NGRAMS and estimator == 'exponential'"
    ).iloc[0]
    label = [1] * len(parts[0]) + [0] * len(parts[2])
    assert found["auc"] == pytest.approx(roc_auc_score(label, [*parts[0], *parts[2]]))
    assert found["placebo"] == pytest.approx(roc_auc_score(label, [*parts[1], *parts[2]]))
    copied = table[(table["exact"] == 1) & (table["setting"] == 0.1)]
    assert (copied["auc"] == 1).all()
    # By distances, the nearer is the denser.
    nearest = table[(table["exact"] == 1) & (table["estimator"] == kinds.TOP_K)]
    assert nearest["auc"].mean() > 0.7


def test_tables_of_the_factorial_are_of_their_kinds(runs, tmp_path):
    vectors = [
        hidden(run.strings, np.random.default_rng(0)) for run in runs if run.variant == FULLEST
    ]
    found = factorial_tables(runs, vectors, SHOWN)
    assert set(found) == {kind.name for kind in kinds.OF_FACTORIAL}
    for kind in kinds.OF_FACTORIAL:
        tables.write(tmp_path / "table.parquet", found[kind.name], kind)
    assert found["retrieval"]["seed"].tolist() == [0] * 4 + [1] * 4


def test_left_out_by_hand(tmp_path):
    """Means over the strings of a group, of each run minus the whole run of its seed."""
    runs = [results(name, seed) for name in (*LEFT_OUT, WHOLE) for seed in SEEDS]
    assert [run.seed for run in whole_runs(runs)] == list(SEEDS)
    table = left_out_of_seeds(runs, CORPUS, SHOWN)
    tables.write(tmp_path / "table.parquet", table, kinds.LEFT_OUT)
    keys = ["seed", "left_out", "group", "embedding"]
    assert not table.duplicated(keys).any()
    assert set(table["left_out"]) == set(CORPUS.productions())
    whole, without = results(WHOLE, 1), results(LEFT_OUT[2], 1)
    left_out, group = CORPUS.productions()[2], CORPUS.productions()[0]
    tested = [run.tested() for run in (without, whole)]
    names = tested[0].index[tested[0]["group"] == group]
    change = [tested[0].loc[names, c] - tested[1].loc[names, c].astype(float) for c in ("loss",)]
    dense = [
        run.density.query("embedding == @NGRAMS and kernel == 'gaussian' and bandwidth == 0.1")
        .set_index("string_id")
        .loc[names, "log_density"]
        for run in (without, whole)
    ]
    right = [own.loc[names, "answer_right"].mean() for own in tested]
    found = table.query(
        "seed == 1 and left_out == @left_out and group == @group and embedding == @NGRAMS"
    ).iloc[0]
    assert found["n_strings"] == len(names) > 1
    assert found["loss"] == pytest.approx(change[0].mean())
    assert found["log_density"] == pytest.approx((dense[0] - dense[1]).mean())
    assert found["answer_right"] == pytest.approx(right[0] - right[1])


# Exact probabilities


def with_density(run, support: pd.Series):
    """A run whose densities, at every setting, are these by string."""
    values = run.density["string_id"].map(support)
    return replace(run, density=run.density.assign(log_density=values))


def test_an_estimate_that_sees_density_orders_strings_as_their_probabilities(tmp_path):
    run = results(WHOLE)
    log_prob = run.strings.set_index("string_id")["log_prob"]
    table = truth_table(with_density(run, np.tanh(log_prob / 9)))
    tables.write(tmp_path / "table.parquet", table, kinds.TRUTH)
    of_kernels = table[table["estimator"].isin(list(KERNELS))]
    assert len(of_kernels) == 2 * 2 * 3
    np.testing.assert_allclose(of_kernels[["correlation", "given_length"]], 1)
    n_strings = table.groupby("strings")["n_strings"].unique()
    assert n_strings[TRAINED] == [(run.strings["count"] > 0).sum()]
    assert n_strings[UNSEEN] == [candidates(run.strings).sum()] == [24]


def test_an_estimate_that_sees_copies_only_orders_trained_strings_alone():
    run = results(WHOLE)
    strings = run.strings.set_index("string_id")
    assert (strings["count"] > 1).any()
    table = truth_table(with_density(run, strings["count"].clip(lower=0)))
    of_kernels = table[table["estimator"].isin(list(KERNELS))].set_index("strings")
    trained = strings[strings["count"] > 0]
    expected = spearmanr(trained["count"], trained["log_prob"]).statistic
    np.testing.assert_allclose(of_kernels.loc[TRAINED, "correlation"], expected)
    assert expected > 0
    assert of_kernels.loc[UNSEEN, ["correlation", "given_length"]].isna().all(axis=None)


def test_short_strings_are_probable_and_a_length_has_no_setting():
    run = results(WHOLE)
    table = truth_table(run)
    lengths = table[table["estimator"] == LENGTH].set_index("strings")
    strings = run.strings[run.strings["count"] > 0]
    expected = spearmanr(-strings["text"].str.split().str.len(), strings["log_prob"]).statistic
    assert lengths.loc[TRAINED, "correlation"] == pytest.approx(expected)
    assert lengths[["embedding", "setting", "given_length"]].isna().all(axis=None)
    near = table[table["estimator"] == kinds.TOP_K]
    assert set(near["setting"]) == {float(NEIGHBOURS)}


# Memorisation

RULE = (0.5, "after_last_miss", 0.2, 0.9)


@pytest.fixture(scope="module")
def run_with_starts():
    """A run of which seven unseen strings are recollected, and the starts of its training strings.

    By the contextual measure, some strings have no threshold, and others are never memorised.
    """
    run = results(WHOLE)
    losses = run.trace.loss.copy()
    unseen = run.trace.column_of(run.strings.loc[candidates(run.strings), "string_id"])
    losses[1:, unseen[:3]] = 0.1
    losses[3:, unseen[3:7]] = 0.1
    run = replace(run, trace=replace(run.trace, nll=losses * run.trace.n_tokens))
    names = run.strings.loc[run.strings["count"] > 0, "string_id"]
    chance = np.random.default_rng(0)
    starts = pd.DataFrame(
        {
            "string_id": names.to_numpy(),
            "measure": "contextual",
            "evidence": "same-frequency",
            "start": chance.choice([1.0, 2.0, 25.0, np.nan], len(names)),
            "threshold_at_optimum": chance.choice([0.3, np.nan], len(names), p=[0.8, 0.2]),
        }
    )
    return run, starts


def test_support_and_start_by_hand(run_with_starts, tmp_path):
    """Strings with one copy and a threshold; those that are never memorised are the latest."""
    run, starts = run_with_starts
    table = memorised_table(run, starts, RULE)
    tables.write(tmp_path / "table.parquet", table, kinds.MEMORISED)
    once = set(run.strings.loc[run.strings["count"] == 1, "string_id"])
    kept = starts[starts["string_id"].isin(once) & starts["threshold_at_optimum"].notna()]
    assert len(kept) < len(once) < len(starts)
    others = run.density.query(
        "embedding == @NGRAMS and kernel == 'gaussian' and bandwidth == 0.5"
    ).set_index("string_id")["log_density_others"]
    latest = kept["start"].fillna(1000)
    found = table.query(
        "strings == @TRAINED and embedding == @NGRAMS and kernel == 'gaussian' and bandwidth == 0.5"
    ).iloc[0]
    expected = spearmanr(others.loc[kept["string_id"]], latest).statistic
    assert found["correlation"] == pytest.approx(expected)
    assert found["n_strings"] == len(kept)
    assert found["never"] == pytest.approx(kept["start"].isna().mean())
    log_prob = run.strings.set_index("string_id")["log_prob"].loc[kept["string_id"]]
    partial = spearman_given(others.loc[kept["string_id"]], latest, log_prob)
    assert found["given_log_prob"] == pytest.approx(partial)


def test_a_string_without_a_threshold_is_not_one_that_is_never_memorised(run_with_starts):
    """Whatever its start would be, it changes nothing."""
    run, starts = run_with_starts
    unknown = starts["threshold_at_optimum"].isna()
    changed = starts.assign(start=starts["start"].where(~unknown, 1.0))
    assert (changed["start"].isna().sum()) < starts["start"].isna().sum()
    first, second = (memorised_table(run, some, RULE) for some in (starts, changed))
    pd.testing.assert_frame_equal(first, second)


def test_copies_do_not_count(run_with_starts):
    """A string with copies would support itself."""
    run, starts = run_with_starts
    several = set(run.strings.loc[run.strings["count"] > 1, "string_id"])
    is_several = starts["string_id"].isin(several)
    assert is_several.any()
    changed = starts.assign(start=starts["start"].where(~is_several, 1.0))
    first, second = (memorised_table(run, some, RULE) for some in (starts, changed))
    pd.testing.assert_frame_equal(first, second)


def test_unseen_strings_are_measured_in_the_same_way(run_with_starts):
    """Three start at epoch 1, four at epoch 25, and the others never, by their loss."""
    run, starts = run_with_starts
    table = memorised_table(run, starts, RULE)
    rows = table[(table["strings"] == UNSEEN) & (table["measure"] == "recollection")]
    assert (rows["n_strings"] == 24).all()
    np.testing.assert_allclose(rows["never"], 17 / 24)
    names = run.strings.loc[candidates(run.strings), "string_id"]
    start = [1] * 3 + [25] * 4 + [1000] * 17
    density = run.density.query(
        "embedding == @HIDDEN and kernel == 'gaussian' and bandwidth == 0.1"
    ).set_index("string_id")["log_density"]
    found = rows.query("embedding == @HIDDEN and kernel == 'gaussian' and bandwidth == 0.1")
    expected = spearmanr(density.loc[names], start).statistic
    assert found["correlation"].item() == pytest.approx(expected)
