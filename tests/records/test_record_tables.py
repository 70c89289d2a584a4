"""Tables of answers from losses by each road, alone and together; and their error rates."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from palimpsest import records, tables
from palimpsest.errors import Notice
from palimpsest.records import kinds
from palimpsest.records.tables import ITS_MODEL, all_answers, answer
from palimpsest.statistics import effective_groups

OPTIONS = {"start": "after_last_miss", "loss_threshold": 0.5, "false_alarms": 0.1}
N = 40
IDS = np.array([f"r{n}" for n in range(N)], dtype=object)
TRAINED = np.arange(N) % 2 == 0


def retrained(model="m-twin", seeds=(0, 1), learned=0.4) -> pd.DataFrame:
    """A table of kind `retrained_losses`: trained records have a lower loss at the end."""
    rng = np.random.default_rng(1)
    parts = []
    for seed in seeds:
        level = rng.uniform(1, 2, N)
        for checkpoint in (0.0, 1.0):
            loss = level + 0.05 * rng.standard_normal(N) - learned * checkpoint * TRAINED
            parts.append(
                pd.DataFrame(
                    {
                        "language": "mine",
                        "model": model,
                        "seed": seed,
                        "id": IDS,
                        "group": IDS,
                        "trained": TRAINED,
                        "checkpoint": checkpoint,
                        "loss": loss,
                        "loss_without": level + 0.05 * rng.standard_normal(N),
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def measured(name="tiny", trained=TRAINED, reference=True) -> pd.DataFrame:
    """A table of kind `measured_losses`, in bits per byte, some below the threshold in nats."""
    rng = np.random.default_rng(2)
    loss = rng.uniform(0.1, 2, N)
    return pd.DataFrame(
        {
            "language": "mine",
            "model": name,
            "id": IDS,
            "group": IDS,
            "trained": pd.array([None] * N if trained is None else trained, "boolean"),
            "checkpoint": 0.0,
            "loss": loss,
            "loss_reference": loss + rng.uniform(-0.1, 0.3, N) if reference else np.nan,
        }
    )


def written(path, kind: tables.kinds.Kind, table: pd.DataFrame) -> pd.DataFrame:
    """The table as the rule reads it."""
    tables.write(path, table, kind)
    return tables.read(path, kind)


def own(tmp_path):
    table = retrained(seeds=[0]).drop(columns=["language", "model", "seed"])
    path = tmp_path / "own.csv"
    table.rename(columns={"id": "key", "loss": "nll"}).to_csv(path, index=False)
    return path


def answered(tmp_path, **roads) -> dict[str, pd.DataFrame]:
    found = answer("mine", **{**OPTIONS, **roads})
    for kind in (kinds.ANSWERS, kinds.SHARES):
        written(tmp_path / f"{kind.name}.parquet", kind, found[kind.name])
    return found


def rows_of(found, model, measure, seed=None) -> pd.DataFrame:
    table = found["record_answers"]
    of_seed = table["seed"].isna() if seed is None else table["seed"] == seed
    return table[of_seed & (table["model"] == model) & (table["measure"] == measure)]


def test_retraining_alone(tmp_path):
    table = written(tmp_path / "in.parquet", kinds.RETRAINED, retrained())
    found = answered(tmp_path, retrained=[table])
    shares = found["record_shares"]
    assert sorted(zip(shares["seed"], shares["measure"], strict=True)) == sorted(
        (seed, measure)
        for seed in (0, 1)
        for measure in ("recollection", "counterfactual", "contextual", "loss attack")
    )
    for seed in (0, 1):
        losses = table[table["seed"] == seed]
        last = losses[losses["checkpoint"] == 1].set_index("id")
        rows = rows_of(found, "m-twin", "counterfactual", seed).set_index("id")
        np.testing.assert_array_equal(rows["loss"], last["loss"])
        np.testing.assert_array_equal(rows["threshold"], last["loss_without"])
        assert (rows["memorised"] == (last["loss"] < last["loss_without"])).all()
        share = shares.query("seed == @seed and measure == 'counterfactual'").iloc[0]
        is_low = rows["p_value"] <= OPTIONS["false_alarms"]
        of_trained = rows["trained"].astype(bool)
        assert share["detected"] == is_low[of_trained].mean() > 0.9
        assert share["detected_unseen"] == is_low[~of_trained].mean() <= OPTIONS["false_alarms"]
        lowest = losses.groupby("id")["loss_without"].min()[rows.index]
        rows = rows_of(found, "m-twin", "contextual", seed).set_index("id")
        np.testing.assert_array_equal(rows["threshold"], lowest)


@pytest.mark.parametrize("reference", [True, False])
def test_a_checkpoint_alone_has_no_seed_and_no_recollection(tmp_path, reference):
    """Recollection has a threshold in nats per token; the losses are in bits per byte."""
    table = written(tmp_path / "in.parquet", kinds.MEASURED, measured(reference=reference))
    assert (table["loss"] < OPTIONS["loss_threshold"]).any()
    found = answered(tmp_path, measured=[table])
    shares = found["record_shares"]
    expected = ["reference", "loss attack"] if reference else ["loss attack"]
    assert shares["measure"].tolist() == expected
    assert shares["seed"].isna().all()
    assert found["record_answers"]["seed"].isna().all()
    if reference:
        rows = rows_of(found, "tiny", "reference")
        assert (rows["memorised"].to_numpy() == (table["loss"] < table["loss_reference"])).all()
        assert (rows["threshold"].to_numpy() == table["loss_reference"]).all()


def test_a_checkpoint_without_a_placebo(tmp_path):
    """All that depends on records never trained on is null."""
    table = written(tmp_path / "in.parquet", kinds.MEASURED, measured(trained=None))
    with pytest.warns(Notice, match="tiny: no record was never trained on"):
        found = answered(tmp_path, measured=[table])
    assert found["record_shares"]["measure"].tolist() == ["reference"]
    nulls = ["share_unseen", "difference", "lower", "upper"]
    assert found["record_shares"][nulls].isna().all(axis=None)
    assert found["record_answers"][["trained", "p_value"]].isna().all(axis=None)


def test_a_table_of_losses_alone(tmp_path):
    """Its answers are those of the library, and its model has no name."""
    columns = {"id": "key", "loss": "nll"}
    found = answered(tmp_path, given=str(own(tmp_path)), columns=columns)
    table = found["record_answers"]
    assert table["model"].unique().tolist() == [ITS_MODEL]
    assert table["seed"].isna().all()
    by_library = records.answers(records.read_losses(own(tmp_path), columns), **OPTIONS)
    shared = list(by_library.table.columns)
    pd.testing.assert_frame_equal(table[shared], by_library.table)


def test_roads_together_answer_as_each_alone(tmp_path):
    """In one table, with whole numbers for seeds where there are any."""
    roads = {
        "retrained": [retrained(), retrained("other-twin", seeds=[5])],
        "measured": [measured(), measured("small", reference=False)],
        "given": str(own(tmp_path)),
        "columns": {"id": "key", "loss": "nll"},
    }
    together = answered(tmp_path, **roads)
    alone = [answered(tmp_path, retrained=[table]) for table in roads["retrained"]] + [
        answered(tmp_path, measured=[table]) for table in roads["measured"]
    ]
    alone.append(answered(tmp_path, given=roads["given"], columns=roads["columns"]))
    for name in ("record_answers", "record_shares"):
        expected = pd.concat([part[name] for part in alone], ignore_index=True)
        pd.testing.assert_frame_equal(together[name], expected)
    assert together["record_answers"]["seed"].dtype == "Int64"
    has_seed = together["record_answers"].groupby("model")["seed"].agg(lambda s: s.notna().all())
    assert has_seed.to_dict() == {
        "m-twin": True,
        "other-twin": True,
        "tiny": False,
        "small": False,
        ITS_MODEL: False,
    }


def test_all_answers_are_one_table_and_one_file_for_other_programs(tmp_path):
    table = answered(tmp_path, retrained=[retrained()], measured=[measured()])["record_answers"]
    stacked = all_answers(table, csv=str(tmp_path / "records.csv"))
    written(tmp_path / "records.parquet", kinds.RECORDS, stacked)
    of_csv = pd.read_csv(tmp_path / "records.csv", dtype={"seed": "Int64", "trained": "boolean"})
    pd.testing.assert_frame_equal(of_csv, table, check_dtype=False)


def test_a_group_on_both_sides_is_said(tmp_path):
    """The placebo would know the group from its other records."""
    groups = np.array([f"g{n // 4}" for n in range(N)], dtype=object)
    table = retrained(seeds=[0]).assign(group=np.tile(groups, 2))
    with pytest.warns(
        Notice, match="the group 'g0' \\(and 9 more\\) has records that were trained on"
    ):
        answered(tmp_path, retrained=[table])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answered(tmp_path, retrained=[table.assign(group=np.tile(TRAINED, 2).astype(str))])


def test_no_threshold_leaves_recollection_out(tmp_path):
    found = answered(tmp_path, retrained=[retrained()], loss_threshold=None)
    assert "recollection" not in {*found["record_shares"]["measure"]}


# Worlds with a known truth


def test_groups_of_one_size_count_and_a_large_group_counts_less():
    """The mean of records weighs a group by its size, as a sum of squared weights says."""
    assert effective_groups(np.array(["a", "b", "b", "c", "a", "c"], dtype=object)) == 3
    assert effective_groups(IDS) == N
    weights = np.array([0.7, 0.1, 0.1, 0.1])
    groups = np.repeat(["large", "b", "c", "d"], [7, 1, 1, 1])
    assert effective_groups(groups) == pytest.approx(1 / (weights**2).sum())
    assert effective_groups(groups[:0]) == 0


N_RECORDS, N_FOLDS = 120, 4


def world(rng: np.random.Generator, learned: float, of_group: float) -> pd.DataFrame:
    """Losses of a model and of models without a fold each, in groups of one to three records.

    The noise of a loss is that of its group for a share `of_group`, and its own for the others.
    Models without a fold have noises of their own. Records that were trained on are learned by so
    many nats, with 0 like the others.
    """
    group = np.repeat(np.arange(N_RECORDS), 1 + np.arange(N_RECORDS) % 3)[:N_RECORDS]
    n_groups = group.max() + 1
    trained = (rng.permutation(n_groups) < 0.7 * n_groups)[group]
    fold = (rng.permutation(n_groups) % N_FOLDS)[group]

    def noise(size: float) -> np.ndarray:
        alike = rng.standard_normal(n_groups)[group]
        alone = rng.standard_normal(N_RECORDS)
        return size * (np.sqrt(of_group) * alike + np.sqrt(1 - of_group) * alone)

    level = 1.5 + noise(0.3)
    parts = []
    for checkpoint in range(3):
        fall = learned * checkpoint / 2 * trained
        of_fold = 0.1 * rng.standard_normal(N_FOLDS)[fold]
        parts.append(
            pd.DataFrame(
                {
                    "model": "m",
                    "seed": 0,
                    "id": [f"r{n}" for n in range(N_RECORDS)],
                    "group": group.astype(str),
                    "trained": trained,
                    "checkpoint": float(checkpoint),
                    "loss": np.maximum(level + noise(0.1) - fall, 0.001),
                    "loss_without": np.maximum(level + noise(0.1) + of_fold, 0.001),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def share_found(learned: float, n_worlds: int, of_group: float) -> pd.DataFrame:
    """Whether the interval of each measure's difference is above 0 or below, in each world."""
    rng = np.random.default_rng(7)
    shares = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(n_worlds):
            table = world(rng, learned, of_group)
            found = answer("mine", retrained=[table], **{**OPTIONS, "loss_threshold": 1.3})
            shares.append(found["record_shares"])
    table = pd.concat(shares).set_index("measure")
    assert table[["lower", "upper"]].notna().all(axis=None)
    return pd.DataFrame({"above": table["lower"] > 0, "below": table["upper"] < 0})


@pytest.mark.slow
@pytest.mark.parametrize(("of_group", "n_worlds"), [(0, 100), (1, 300)])
def test_where_nothing_was_memorised_an_interval_has_0_in_it(of_group, n_worlds):
    """In 95 % of worlds in which trained and unseen records are alike, for every measure.

    Groups have different sizes, and records of a group are all alike, or not alike at all.
    """
    found = share_found(0, n_worlds, of_group).any(axis=1).groupby("measure").sum()
    assert {*found.index} == {"recollection", "counterfactual", "contextual", "loss attack"}
    for measure, n in found.items():
        more = binomtest(int(n), n_worlds, 0.05, alternative="greater")
        assert more.pvalue > 0.01, (measure, n)


@pytest.mark.parametrize("of_group", [0, 1])
def test_what_was_memorised_is_found(of_group):
    """By retraining in every world, and never with the wrong sign."""
    found = share_found(0.5, 40, of_group).groupby("measure").sum()
    assert found.loc[["counterfactual", "contextual"], "above"].tolist() == [40, 40]
    assert not found["below"].any()
