"""Whether strings with dense support are memorised earlier, on runs made by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from palimpsest import tables
from palimpsest.density.associations import spearman_given
from palimpsest.density.kinds import GAUSSIAN, HIDDEN, MEMORISED, NGRAMS, TRAINED, UNSEEN
from palimpsest.density.leakage_tables import Results
from palimpsest.density.memorised import cut_late, memorised_table
from palimpsest.memorisation.all_measures import Thresholds
from palimpsest.statistics import rank_association
from palimpsest.traces import Trace

N_TRAINED, N_UNSEEN, EPOCHS = 30, 20, np.array([0, 5, 10, 50])
LATEST = 1000
RULE = Thresholds("after_last_miss", 0.2, 0.9, stand_in_gap=0.5)


@pytest.fixture(scope="module")
def run() -> Results:
    """Thirty training strings, every fifth with two copies, and twenty strings never trained on.

    Seven of the latter are recollected: three from the second measurement on, and four at the end.
    """
    n, chance = N_TRAINED + N_UNSEEN, np.random.default_rng(0)
    names = np.array([f"{place:012x}" for place in range(n)], dtype=object)
    count = np.where(np.arange(n) % 5 == 0, 2, 1) * (np.arange(n) < N_TRAINED)
    about = {"language": "toy", "size": int(count.sum()), "seed": 0, "variant": "base"}
    strings = pd.DataFrame(
        {
            **about,
            "string_id": names,
            "n_tokens": 10,
            "count": count,
            "split": np.where(count > 0, "train", "test"),
            "log_prob": -chance.integers(20, 60, n).astype(float),
        }
    )
    strings["optimal_loss"] = -strings["log_prob"] / 50
    loss = chance.uniform(0.5, 1.5, (len(EPOCHS), n))
    loss[1:, N_TRAINED : N_TRAINED + 3] = 0.1
    loss[3:, N_TRAINED + 3 : N_TRAINED + 7] = 0.1
    zeros = np.zeros(loss.shape, dtype=int)
    own = {"model": "opt-1.3b-twin", **about}
    trace = Trace(own, EPOCHS, names, np.full(n, 10), 10 * loss, zeros, zeros)
    density = pd.concat(
        pd.DataFrame(
            {
                "string_id": names,
                "embedding": embedding,
                "kernel": GAUSSIAN,
                "bandwidth": bandwidth,
                "log_density": chance.normal(size=n),
                "log_density_others": np.where(count > 0, chance.normal(size=n), np.nan),
            }
        )
        for embedding in (HIDDEN, NGRAMS)
        for bandwidth in (0.1, 0.5)
    )
    return Results(strings, trace, density, pd.DataFrame())


@pytest.fixture(scope="module")
def starts(run) -> pd.DataFrame:
    """Of training strings by two measures; some have no threshold, some are never memorised."""
    names = run.strings.loc[run.strings["count"] > 0, "string_id"].to_numpy()
    chance = np.random.default_rng(1)
    parts = [
        pd.DataFrame(
            {
                "string_id": names,
                "measure": measure,
                "evidence": evidence,
                "start": chance.choice([5.0, 10.0, 50.0, np.nan], len(names)),
                "threshold_at_optimum": chance.choice([0.3, np.nan], len(names), p=[0.7, 0.3]),
            }
        )
        for measure, evidence in (("contextual", "same-frequency"), ("bayes", "language"))
    ]
    return pd.concat(parts, ignore_index=True)


def support(run, names, embedding, bandwidth, column) -> pd.Series:
    """The densities of one setting at some strings."""
    rows = run.density
    rows = rows[(rows["embedding"] == embedding) & (rows["bandwidth"] == bandwidth)]
    return rows.set_index("string_id")[column].loc[names]


def test_support_and_start_by_hand(run, starts, tmp_path):
    """Strings with one copy and a threshold; those that are never memorised are the latest."""
    table = memorised_table(run, starts, RULE)
    tables.write(tmp_path / "table.parquet", table, MEMORISED)
    once = run.strings.loc[run.strings["count"] == 1, "string_id"]
    known = starts["string_id"].isin(once) & starts["threshold_at_optimum"].notna()
    log_prob = run.strings.set_index("string_id")["log_prob"]
    trained = table[table["string_role"] == TRAINED]
    assert len(trained) == 2 * 2 * 2
    for row in trained.to_dict("records"):
        own = starts[known & (starts["measure"] == row["measure"])]
        latest = own["start"].fillna(LATEST)
        setting = row["embedding"], row["bandwidth"]
        others = support(run, own["string_id"], *setting, "log_density_others")
        assert row["n_strings"] == len(own) < len(once)
        assert row["share_never_memorised"] == pytest.approx(own["start"].isna().mean())
        assert row["correlation"] == pytest.approx(spearmanr(others, latest).statistic)
        partial = spearman_given(others, latest, log_prob[own["string_id"]])
        assert row["given_log_prob"] == pytest.approx(partial)


@pytest.mark.parametrize("what", ["without a threshold", "with copies"])
def test_strings_that_do_not_count_change_nothing(run, starts, what):
    """Without a threshold, a string is not one that is never memorised; a copy is own support."""
    several = run.strings.loc[run.strings["count"] > 1, "string_id"]
    if what == "with copies":
        left_out = starts["string_id"].isin(several)
    else:
        left_out = starts["threshold_at_optimum"].isna()
    assert starts.loc[left_out, "start"].isna().any()
    changed = starts.assign(start=starts["start"].mask(left_out, 5.0))
    first, second = (memorised_table(run, some, RULE) for some in (starts, changed))
    pd.testing.assert_frame_equal(first, second)


def test_unseen_strings_are_measured_in_the_same_way(run, starts):
    """By their loss: three start early, four at the end, and the others never."""
    table = memorised_table(run, starts, RULE)
    unseen = table[(table["string_role"] == UNSEEN) & (table["measure"] == "recollection")]
    assert len(unseen) == 4
    names = run.strings["string_id"].iloc[N_TRAINED:]
    start = [5] * 3 + [50] * 4 + [LATEST] * 13
    for row in unseen.to_dict("records"):
        dense = support(run, names, row["embedding"], row["bandwidth"], "log_density")
        assert row["n_strings"] == N_UNSEEN
        assert row["share_never_memorised"] == 13 / 20
        assert row["correlation"] == pytest.approx(spearmanr(dense, start).statistic)


def test_what_is_never_memorised_has_no_correlation(run, starts):
    """Nothing varies, so there is nothing to say; the share says why."""
    never = starts.assign(start=np.nan)
    table = memorised_table(run, never, RULE)
    trained = table[table["string_role"] == TRAINED]
    assert (trained["share_never_memorised"] == 1).all()
    assert trained[["correlation", "given_log_prob"]].isna().all(axis=None)


def test_dense_strings_that_start_early_have_a_negative_correlation(run, starts):
    """In a world in which support decides alone."""
    once = starts["string_id"].isin(run.strings.loc[run.strings["count"] == 1, "string_id"])
    rank = dict(zip(run.strings["string_id"], np.arange(len(run.strings)), strict=True))
    decided = starts[once].assign(
        start=lambda table: table["string_id"].map(rank).astype(float), threshold_at_optimum=0.3
    )
    density = run.density.assign(log_density_others=-run.density["string_id"].map(rank))
    table = memorised_table(replace(run, density=density), decided, RULE)
    trained = table[table["string_role"] == TRAINED]
    np.testing.assert_allclose(trained[["correlation", "given_log_prob"]], -1)


def test_equal_shares_are_late_in_both_kinds(run, starts):
    """The comparable association is that of starts with the latest ones as never."""
    table = memorised_table(run, starts, RULE)
    both = table[table["measure"] == "bayes"]
    shares = both.groupby("string_role")[["share_never_memorised", "share_censored"]].first()
    assert (shares["share_censored"] >= shares["share_never_memorised"]).all()
    assert shares.loc[shares["share_never_memorised"].idxmax()].nunique() == 1
    alone = memorised_table(run, starts[starts["measure"] == "contextual"], RULE)
    unpaired = alone[alone["measure"] == "recollection"]
    assert len(unpaired)
    assert unpaired["association_censored"].isna().all()
    assert unpaired["association"].notna().all()


@pytest.mark.parametrize(
    ("never", "expected"),
    [
        (0.0, [1, 2, 2, 3, np.inf]),
        (0.2, [1, 2, 2, 3, np.inf]),
        (0.4, [1, 2, 2, np.inf, np.inf]),
        (0.55, [1, 2, 2, np.inf, np.inf]),
        (0.65, [1] + [np.inf] * 4),
        (1.0, [np.inf] * 5),
    ],
)
def test_late_starts_are_cut_at_the_nearest_share(never, expected):
    """Equal starts stay equal."""
    start = pd.Series([1, 2, 2, 3, np.inf])
    np.testing.assert_array_equal(cut_late(start, never), expected)


def test_a_kind_that_starts_later_is_not_associated_otherwise():
    """Support helps both kinds alike. Without the cut, most studies find a difference."""
    chance = np.random.default_rng(0)
    epochs = np.linspace(-2, 0, 11)

    def draw(n: int, later: float):
        support = chance.normal(size=n)
        latent = later - 0.5 - 0.7 * support + 1.5 * chance.exponential(size=n) - 1
        place = np.searchsorted(epochs, latent)
        return pd.Series(np.append(epochs, np.inf)[place]), support

    differences = []
    for _ in range(300):
        (trained, dense), (unseen, other) = draw(31, 0), draw(60, 1)
        shares = [np.isinf(start).mean() for start in (trained, unseen)]
        cut = cut_late(trained, shares[1]), cut_late(unseen, shares[0])
        differences.append(
            [
                rank_association(first, dense) - rank_association(second, other)
                for first, second in ((trained, unseen), cut)
            ]
        )
    plain, comparable = np.mean(differences, axis=0)
    error = np.std(differences, axis=0).max() / np.sqrt(300)
    assert abs(comparable) < 3 * error
    assert plain > 8 * error
