"""The tables of density: associations, densities, leakage, separation, retrieval and truth."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata, spearmanr
from sklearn.metrics import ndcg_score, roc_auc_score
from sklearn.neighbors import KernelDensity, NearestNeighbors

from helpers.experiments import ROOT, message
from palimpsest.corpora import GrammarCorpus, read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.density import kinds
from palimpsest.density.associations import beyond_rank, spearman, spearman_given
from palimpsest.density.densities import density_tables, embeddings_of
from palimpsest.density.interventions import LEAK_CONDITIONS, leaked, without_production
from palimpsest.density.kernel import log_density_of_others
from palimpsest.density.leakage_tables import (
    Results,
    auc,
    by_heart_table,
    leakage_table,
    left_out_table,
    ndcg,
    retrieval_table,
    separation_table,
)
from palimpsest.density.memorised import memorised_table
from palimpsest.density.sizes import Approximation
from palimpsest.density.truth import truth_table
from palimpsest.errors import UserError
from palimpsest.languages import Grammar
from palimpsest.memorisation.all_measures import Thresholds
from palimpsest.traces import Trace

CORPUS = read_corpus(ROOT / "config/languages/L6.pcfg")
OPTIONS = {"tests": 12, "leaked": 3, "level": 5, "redrawn": 0.25}
KERNELS = {"gaussian": [0.1, 0.5], "exponential": [0.05]}
# A string's last symbol is free
FREE = GrammarCorpus(
    Grammar.from_string(
        "S -> 'x' A A A [0.5] | 'y' A A A [0.5]\n"
        "A -> B B [1]\nB -> 'a' [0.4] | 'b' [0.3] | 'c' [0.3]"
    )
)
MODEL, EPOCHS, K = "opt-1.3b-twin", 4, 5


# Associations


@pytest.fixture
def chance():
    return np.random.default_rng(0)


def test_rank_correlations_are_scipys(chance):
    """Also with ties and infinite values, which are the largest."""
    x, y = chance.integers(0, 5, 40), chance.normal(size=40)
    assert spearman(x, y) == pytest.approx(spearmanr(x, y).statistic)
    late = np.where(x > 3, np.inf, x)
    assert spearman(late, y) == pytest.approx(spearmanr(np.where(x > 3, 99, x), y).statistic)


def test_a_partial_correlation_is_that_of_residuals(chance):
    """Of a polynomial of degree five on the ranks of the third variable."""
    given = chance.normal(size=50)
    x, y = given + chance.normal(size=50), given + chance.normal(size=50)
    ranks = [rankdata(each) for each in (x, y, given)]
    left = [r - np.polyval(np.polyfit(ranks[2], r, 5), ranks[2]) for r in ranks[:2]]
    assert spearman_given(x, y, given) == pytest.approx(np.corrcoef(left)[0, 1])
    assert abs(spearman_given(x, y, given)) < spearman(x, y)


def test_at_few_distinct_values_the_means_are_taken_out(chance):
    """Then equal values are compared with each other only."""
    given = np.repeat([0, 1, 2, 9], [3, 4, 5, 6])
    x, y = chance.normal(size=(2, 18)) + given**2
    left = [r - pd.Series(r).groupby(given).transform("mean") for r in (rankdata(x), rankdata(y))]
    assert spearman_given(x, y, given) == pytest.approx(np.corrcoef(left)[0, 1])


def test_a_curve_is_no_association(chance):
    """Both follow the third variable along curves, and nothing else connects them."""
    found, straight = [], []
    for _ in range(200):
        # A fifth is near copies, and far from the others.
        given = chance.normal(size=300) - 3 * (chance.random(300) < 0.2)
        x = 0.3 * chance.normal(size=300) - np.exp(given)
        y = 0.3 * chance.normal(size=300) + np.tanh(3 * given)
        found.append(spearman_given(x, y, given))
        xy, xz, yz = spearman(x, y), spearman(x, given), spearman(y, given)
        straight.append((xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2)))
    error = np.std(found) / np.sqrt(200)
    assert abs(np.mean(found)) < 4 * error
    assert abs(np.mean(straight)) > 10 * error


def test_what_does_not_vary_has_no_correlation(chance):
    x = chance.normal(size=9)
    assert np.isnan(spearman(x, np.ones(9)))
    assert np.isnan(spearman(x[:2], x[:2]))
    assert np.isnan(spearman_given(x, x[::-1], np.ones(9)))
    assert np.isnan(spearman_given(x, x[::-1], x))


@pytest.mark.parametrize("wrong", [np.nan, pd.NA])
def test_a_value_that_is_missing_has_no_correlation(chance, wrong):
    """Neither where all ranks would be unknown."""
    values = [pd.Series(chance.normal(size=9), dtype="Float64") for _ in range(3)]
    for place in range(3):
        given = [each.copy() for each in values]
        given[place][4] = wrong
        assert np.isnan(spearman_given(*given))
        assert np.isnan(spearman(*given[:2])) == (place < 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x[:5], "has 5 values, and x 9; give equally many"),
        (lambda x: x[:1], "has 1 values, and x 9; give equally many"),
        (lambda x: [*x[1:], None], "has a value that is no number"),
        (lambda x: list(map(str, x)), "has a value that is no number"),
        (lambda x: x + 1j, "has a value that is no number"),
        (lambda x: x[:, None], "has 2 axes and must have one"),
        (lambda x: x[0], "has 0 axes and must have one"),
    ],
)
def test_what_is_not_a_number_for_each_string_is_refused(chance, change, said):
    x = chance.normal(size=9)
    assert message(lambda: spearman(x, change(x))).startswith(f"y: {said}")
    assert message(lambda: spearman_given(x, change(x), x)).startswith(f"y: {said}")
    assert message(lambda: spearman_given(x, x, change(x))).startswith(f"given: {said}")
    assert message(lambda: beyond_rank(x, change(x))).startswith(f"given: {said}")


# Densities


@pytest.fixture(scope="module")
def strings():
    """A dataset of 40 training strings, with a copy and three paraphrases of three of them."""
    return dataset(leaked(LEAK_CONDITIONS[-1]))


def dataset(variant, seed=0, corpus=CORPUS, **options) -> pd.DataFrame:
    function = "leaked" if variant.startswith("leaked") else "without_production"
    made_by = f"palimpsest.density.leakage_data:{function}"
    sampler, given = Sampler("L6", corpus, seed), {**OPTIONS, **options}
    return build(sampler, variant, 40, 12, False, options=given, made_by=made_by)


def hidden_of(strings, width=6) -> pd.DataFrame:
    """Embeddings that depend on nothing but the string."""
    rows = []
    for name in strings["string_id"]:
        vector = np.random.default_rng(int(name, 16)).normal(size=width)
        rows.append((vector / np.linalg.norm(vector)).astype(np.float32))
    return pd.DataFrame({"string_id": strings["string_id"], "vector": rows})


def densities_of(strings, approximation=None) -> dict[str, pd.DataFrame]:
    embeddings = embeddings_of(strings, hidden_of(strings))
    return density_tables(MODEL, strings, embeddings, KERNELS, K, approximation)


def test_densities_are_scikit_learns(strings):
    """Up to the kernel's own normalisation: copies count, and copies are at distance 0."""
    vectors = embeddings_of(strings, hidden_of(strings))
    counts = strings["count"].to_numpy()
    corpus = np.repeat(np.arange(len(strings)), counts)
    found = densities_of(strings)["density"]
    assert len(found) == len(strings) * len(vectors) * 3
    for name, points in vectors.items():
        for kernel, bandwidths in KERNELS.items():
            for bandwidth in bandwidths:
                peer = KernelDensity(bandwidth=bandwidth, kernel=kernel).fit(points[corpus])
                norm = KernelDensity(bandwidth=bandwidth, kernel=kernel).fit(points[:1])
                expected = peer.score_samples(points) - norm.score_samples(points[:1])
                own = found[
                    (found["embedding"] == name)
                    & (found["kernel"] == kernel)
                    & (found["bandwidth"] == bandwidth)
                ]
                assert own["string_id"].tolist() == strings["string_id"].tolist()
                np.testing.assert_allclose(own["log_density"], expected, atol=1e-6)


def test_others_are_all_but_one_copy_of_the_string(chance):
    points = np.repeat(chance.normal(size=(6, 3)), [1, 2, 1, 3, 1, 1], axis=0)
    found = log_density_of_others(points, 0.4)
    for place in range(len(points)):
        rest = np.delete(points, place, axis=0)
        squares = ((rest - points[place]) ** 2).sum(axis=1)
        assert found[place] == pytest.approx(np.log(np.exp(-squares / 0.32).mean()))
    with pytest.raises(UserError, match="points: has one point only"):
        log_density_of_others(points[:1], 0.4)


def test_only_training_strings_have_a_density_of_others(strings):
    found = densities_of(strings)["density"]
    trained = found["string_id"].map(strings.set_index("string_id")["count"]) > 0
    assert found["log_density_others"].notna().equals(trained)
    alone = found[trained & (found["log_density_others"] > found["log_density"] + 1e-9)]
    assert alone.empty  # a string is never denser without itself


def test_neighbours_are_scikit_learns(strings):
    vectors = embeddings_of(strings, hidden_of(strings))
    corpus = np.repeat(np.arange(len(strings)), strings["count"])
    found = densities_of(strings)["neighbours"].set_index(["embedding", "string_id"])
    for name, points in vectors.items():
        peer = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(points[corpus])
        distances = peer.kneighbors(points)[0]
        own = found.loc[name].loc[strings["string_id"]]
        np.testing.assert_allclose(own["mean_distance"], distances.mean(axis=1), atol=1e-6)
        is_trained = (strings["count"] > 0).to_numpy()
        assert (own["nearest"].to_numpy()[is_trained] == 0).all()


def test_an_approximation_has_both_of_its_parts(strings):
    found = densities_of(strings, Approximation(k=5, m1=40, m2=20))["density"]
    parts = found[["log_local", "log_random", "log_approximate"]]
    assert parts.notna().all().all()
    share = 5 / 40
    combined = share * np.exp(parts["log_local"]) + (1 - share) * np.exp(parts["log_random"])
    np.testing.assert_allclose(np.exp(parts["log_approximate"]), combined)


def test_bad_embeddings_and_sizes_are_refused_in_one_line(strings):
    hidden = hidden_of(strings)
    with pytest.raises(UserError, match="has none, because they are of an older dataset"):
        embeddings_of(strings, hidden[1:])
    vectors = embeddings_of(strings, hidden)
    with pytest.raises(UserError, match="k: is 41 and must be a whole number at least 1 and"):
        density_tables(MODEL, strings, vectors, KERNELS, 41)
    vectors["hidden"][3, 0] = np.nan
    with pytest.raises(UserError, match="has a number that is not finite; embed it again"):
        density_tables(MODEL, strings, vectors, KERNELS, K)


# Leakage


def results_of(strings, loss=None) -> Results:
    """A run whose losses are given by string; by default, long strings are easy."""
    run = strings.loc[0, ["language", "size", "seed", "variant"]].to_dict()
    names = strings["string_id"].to_numpy(dtype=object)
    n_tokens = strings["n_tokens"].to_numpy()
    losses = 1 / n_tokens if loss is None else np.asarray(loss(strings), dtype=float)
    steps = np.arange(EPOCHS + 1)
    nll = (3.0 - 0.1 * steps[:, None] + losses) * n_tokens
    zeros = np.zeros_like(nll, dtype=int)
    trace = Trace({"model": MODEL, **run}, steps, names, n_tokens, nll, zeros, zeros)
    made = densities_of(strings)
    return Results(strings, trace, made["density"], made["neighbours"])


@pytest.fixture(scope="module")
def factorial() -> list[Results]:
    return [results_of(dataset(leaked(leak))) for leak in LEAK_CONDITIONS]


def test_every_test_string_has_a_row_in_every_run_and_embedding(factorial):
    found = leakage_table(factorial, "gaussian", 0.1)
    assert len(found) == 8 * 12 * 2
    assert not found.duplicated(["variant", "string_id", "embedding"]).any()
    assert list(found.columns) == kinds.LEAKAGE.names
    of_leaked = (found["string_role"] == "leaked").to_numpy(dtype=bool)
    times = (found["n_copies"] + found["paraphrases"]) * of_leaked
    assert (found["effective_epochs"] == EPOCHS * times).all()
    np.testing.assert_allclose(found["perplexity"], np.exp(found["loss"]))
    copies = found[of_leaked & (found["n_copies"] == 1)]
    assert (copies["log_density"] >= np.log(1 / 40) - 1e-9).all()


def test_every_epoch_has_the_performance_of_each_kind_of_test_strings(factorial):
    """The last one is that of the table `leakage`; the loss falls by 0.1 an epoch."""
    found = by_heart_table(factorial)
    assert list(found.columns) == kinds.BY_HEART.names
    assert len(found) == 8 * 3 * (EPOCHS + 1)
    keys = ["n_copies", "paraphrases", "string_role"]
    by_epoch = found.set_index("epoch").groupby(keys)["loss"]
    for _, losses in by_epoch:
        np.testing.assert_allclose(np.diff(losses.sort_index()), -0.1)
    table = leakage_table(factorial, "gaussian", 0.1).astype({"answer_right": float})
    last = found[found["epoch"] == EPOCHS].set_index(keys)[["loss", "answer_right"]]
    expected = table.groupby(keys)[["loss", "answer_right"]].mean()
    pd.testing.assert_frame_equal(last.sort_index(), expected.sort_index())


def test_an_answer_is_right_if_no_other_last_symbol_is_as_probable(strings):
    """One of three wrong answers has a lower loss, an equal one or, as all others, a higher one."""
    roles = strings["role"].fillna("")
    wrong = strings[roles.str.startswith(f"{kinds.CHOICE}-")]
    own = wrong["role"].str.rpartition("-")[2]
    names = sorted(set(own))
    beaten, tied = set(names[:4]), set(names[4:6])
    last = wrong[~own.duplicated(keep="last")]
    shift = pd.Series(0.5, wrong["string_id"])
    shift[last["string_id"]] = [
        -0.5 if name in beaten else 0.0 if name in tied else 0.5 for name in own[last.index]
    ]
    tested = results_of(strings, lambda t: t["string_id"].map(shift).fillna(0.0)).tested()
    assert set(tested.index[~tested["answer_right"]]) == beaten | tied
    assert (tested["n_choices"] == 4).all()


def test_a_language_whose_last_symbol_is_free_has_no_right_answers():
    """What is before the last symbol does not decide it."""
    found = {
        leaked(leak): results_of(dataset(leaked(leak), corpus=FREE, level=2))
        for leak in LEAK_CONDITIONS
    }
    table = leakage_table(found.values(), "gaussian", 0.1)
    assert table[["answer_right", "n_choices"]].isna().all(axis=None)
    assert not (found["leaked-0-0"].strings["split"] == "held_out").any()


def test_areas_under_the_curve_are_scikit_learns(chance):
    own, others = chance.integers(0, 6, 9).astype(float), chance.integers(0, 6, 20).astype(float)
    truth = [1] * 9 + [0] * 20
    assert auc(own, others) == pytest.approx(roc_auc_score(truth, np.append(own, others)))
    assert auc(np.array([3.0]), np.array([1.0, 2.0])) == 1
    assert auc(np.array([1.0]), np.array([1.0])) == 0.5


def test_copies_separate_leaked_strings_completely(factorial):
    """With random embeddings and a narrow kernel; placebos and runs without a leak do not."""
    found = separation_table(factorial)
    narrow = found[(found["embedding"] == "hidden") & (found["bandwidth_or_k"] == 0.05)]
    assert (narrow.loc[narrow["n_copies"] == 1, "auc"] == 1).all()
    assert (found["placebo"] < 1).all()
    assert {*found["estimator"]} == {"gaussian", "exponential", "top-k distance"}


def test_gains_are_scikit_learns(chance):
    hits = chance.random((7, 10)) < 0.3
    hits[:, 0] = True
    n_wanted = int(hits.sum(axis=1).max())
    order = np.tile(np.arange(10, 0, -1), (7, 1))
    discount = 1 / np.log2(np.arange(10) + 2)
    own = [
        ndcg_score(hits[[row]], order[[row]])
        * discount[: hits[row].sum()].sum()
        / discount[:n_wanted].sum()
        for row in range(7)
    ]
    assert ndcg(hits, n_wanted) == pytest.approx(np.mean(own))


def test_retrieval_by_hand(strings):
    """If copies and paraphrases are at one place, all are found; if not, only the copy."""
    run = results_of(strings)
    spread = hidden_of(strings, 300)
    vectors = np.stack(spread["vector"]).astype(float)
    found = retrieval_table(run, {"hidden": vectors}).set_index("k")
    assert 0.25 <= found.loc[5, "recall"] < 0.6
    own = [str(role).rpartition("-")[2] for role in strings["role"]]
    places = {name: place for place, name in enumerate(strings["string_id"])}
    for place, name in enumerate(own):
        if name in places and strings["count"].iloc[place]:
            vectors[place] = vectors[places[name]]
    found = retrieval_table(run, {"hidden": vectors}).set_index("k")
    assert (found["recall"] == 1).all()
    assert (found["ndcg"] == 1).all()
    assert found.loc[10, "chance"] == pytest.approx(10 / 40)


def test_left_out_productions_by_hand():
    """The loss of the production's own strings rises by a half, and no other changes."""
    whole = results_of(dataset("leaked-0-0"))
    names = CORPUS.productions()

    def loss(table):
        return 1 / table["n_tokens"] + 0.5 * (table["group"] == names[1]).to_numpy(dtype=float)

    without = results_of(dataset(without_production(2)), loss)
    found = left_out_table(whole, [without], names, ("gaussian", 0.1))
    assert set(found["left_out"]) == {names[1]}
    own = found["group"] == names[1]
    np.testing.assert_allclose(found["loss"], np.where(own, 0.5, 0.0), atol=1e-12)
    assert (found.loc[own & (found["embedding"] == "ngrams"), "log_density"] < 0).all()
    assert found.groupby("embedding")["n_strings"].sum().tolist() == [12, 12]


# Truth and memorisation


@pytest.fixture(scope="module")
def ordinary() -> Results:
    """A run on an ordinary dataset; strings set apart are never trained on."""
    sampler = Sampler("L6", CORPUS, 1, split="disjoint")
    return results_of(build(sampler, "base", 30, 40, False))


def with_density(run, values) -> Results:
    """The run, with densities that are given by string."""
    by_string = dict(zip(run.strings["string_id"], values, strict=True))
    density = run.density.assign(log_density=run.density["string_id"].map(by_string))
    density["log_density_others"] = density["log_density"].where(
        density["log_density_others"].notna()
    )
    return Results(run.strings, run.trace, density, run.neighbours)


def test_an_estimate_that_is_the_truth_orders_all_strings(ordinary):
    found = truth_table(with_density(ordinary, ordinary.strings["log_prob"] * 2 + 1))
    kernels = found["estimator"].isin(["gaussian", "exponential"])
    assert found.loc[kernels, "correlation"].round(12).eq(1).all()
    assert set(found["string_role"]) == {"trained", "unseen"}
    length = found[found["estimator"] == "length"]
    assert length["embedding"].isna().all()
    assert length["given_length"].isna().all()


def test_an_estimate_that_sees_only_copies_orders_no_unseen_string(ordinary):
    """It is the same at all strings that were never trained on."""
    strings = ordinary.strings
    seen = np.where(strings["count"] > 0, strings["log_prob"], -99.0)
    found = truth_table(with_density(ordinary, seen)).query("estimator == 'gaussian'")
    by_strings = found.set_index("string_role")["correlation"]
    assert by_strings.loc["trained"].round(12).eq(1).all()
    assert by_strings.loc["unseen"].isna().all()


def test_the_start_of_memorisation_by_support(ordinary):
    """Denser is earlier; never is latest; a string without a threshold does not count."""
    strings = ordinary.strings
    once = strings.loc[strings["count"] == 1, "string_id"].to_numpy()
    rank = pd.Series(np.arange(len(once), dtype=float), once)
    start = rank.where(rank < 10)  # the others are never memorised
    starts = pd.DataFrame(
        {
            "string_id": once,
            "measure": "contextual",
            "evidence": "same-frequency",
            "start": start.to_numpy(),
            "threshold_at_optimum": np.where(rank == 3, np.nan, 1.0),
        }
    )
    density = strings["string_id"].map(-rank).fillna(0.0)
    thresholds = Thresholds("after_last_miss", 0.2, 0.95, stand_in_gap=0.5)
    found = memorised_table(with_density(ordinary, density), starts, thresholds)
    own = found[(found["measure"] == "contextual") & (found["string_role"] == "trained")]
    late = rank.drop(rank.index[3]).where(rank < 10, 99)
    assert own["n_strings"].eq(len(once) - 1).all()
    assert own["share_never_memorised"].iloc[0] == pytest.approx((len(once) - 10) / (len(once) - 1))
    expected = spearmanr(-rank.drop(rank.index[3]), late).statistic
    assert own["correlation"].round(9).eq(round(expected, 9)).all()
    assert "unseen" in set(found["string_role"])
