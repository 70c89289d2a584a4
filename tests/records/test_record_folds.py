"""Datasets of records without a fold, and the losses of trainings on them."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from helpers.experiments import message
from helpers.records import corpus
from palimpsest.corpora.records_corpus import RecordsCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.datasets.strings import string_id
from palimpsest.records import to_losses
from palimpsest.records.folds import retrained_losses
from palimpsest.records.interventions import INTERVENTIONS, fold_in, without_fold
from palimpsest.traces import Trace

FOLDS, HOLDOUT = 3, 0.25
MADE_BY = "palimpsest.records.folds:records"
EPOCHS = np.array([0, 2, 5])


@pytest.fixture
def mine() -> RecordsCorpus:
    """24 records in 13 groups, with copies; two records of one group have one text."""
    texts = [f"text {n}" for n in range(23)] + ["text 0"]
    groups = [f"g{n // 2}" for n in range(23)] + ["g0"]
    return corpus(texts, groups, copies=[1 + n % 3 for n in range(24)])


def dataset(mine, variant, seed=0, holdout=HOLDOUT, test_size=5) -> pd.DataFrame:
    made = build(
        Sampler("mine", mine, seed),
        variant,
        99,
        test_size,
        predict_end=False,
        options={"holdout": holdout},
        made_by=MADE_BY,
    )
    return made.set_index("text")


def records_by_text(mine, is_chosen) -> Counter:
    """The number of copies of each text of some records."""
    found = Counter()
    for place in np.flatnonzero(is_chosen):
        found[mine.records.texts[place]] += int(mine.copies[place])
    return found


@pytest.mark.parametrize("seed", [0, 1])
def test_a_dataset_has_all_records_with_their_copies(mine, seed):
    found, trained = dataset(mine, "records", seed), mine.sides(seed, HOLDOUT)
    train = records_by_text(mine, trained)
    assert found.loc[found["count"] > 0, "count"].to_dict() == train
    assert found["split"].to_dict() == {
        text: "train" if train[text] else "test" for text in mine.records.texts
    }
    # A record never trained on is measured; its copies would count it more often.
    test = Counter(mine.records.texts[~trained])
    assert found["test_count"].to_dict() == {text: test[text] for text in mine.records.texts}


@pytest.mark.parametrize("fold", range(FOLDS))
def test_a_dataset_without_a_fold_measures_it(mine, fold):
    found, trained = dataset(mine, without_fold(fold, FOLDS)), mine.sides(0, HOLDOUT)
    left_out = trained & (mine.folds(0, FOLDS, trained) == fold)
    assert left_out.any()
    train = records_by_text(mine, trained & ~left_out)
    assert found.loc[found["count"] > 0, "count"].to_dict() == train
    held_out = found.index[found["split"] == "held_out"]
    assert {*held_out} == {*mine.records.texts[left_out]}
    assert {*found.index[found["split"] == "test"]} == {*mine.records.texts[~trained]}
    assert {*found.index} == {*mine.records.texts}


def test_every_record_to_be_trained_on_is_left_out_once(mine):
    found = [dataset(mine, without_fold(fold, FOLDS)) for fold in range(FOLDS)]
    n_left_out = Counter(text for one in found for text in one.index[one["split"] == "held_out"])
    trained = mine.sides(0, HOLDOUT)
    assert n_left_out == Counter(dict.fromkeys(mine.records.texts[trained], 1))


def test_names_of_datasets_say_which_fold():
    assert fold_in("records") is None
    assert fold_in(without_fold(3, 12)) == (3, 12)
    (intervention,) = INTERVENTIONS
    assert intervention.made_by == MADE_BY


def test_a_text_on_both_sides_is_refused():
    """It could be in no placebo."""
    mine = corpus(["one", "two", "one"], splits=["train", "train", "holdout"])
    assert message(lambda: dataset(mine, "records")) == (
        "mine: the record 'r2' is not to be trained on and has the text of 'r0', which is; give "
        "both the same split, or leave one out"
    )


def test_nothing_to_train_on_is_refused():
    mine = corpus(["one", "two"])
    said = message(lambda: dataset(mine, "records", holdout=0.9))
    assert said == "mine: no record is left to train on; lower records/holdout"
    everything = corpus(["one", "two"], ["g", "g"])
    said = message(lambda: dataset(everything, without_fold(0, 2), holdout=0))
    assert said == "mine: no record is left to train on; lower records/holdout"


def test_the_holdout_is_the_test_set(mine):
    """However large a test set the configuration asks for."""
    pd.testing.assert_frame_equal(
        dataset(mine, "records", test_size=10**6), dataset(mine, "records", test_size=0)
    )


# Losses


def trace(mine, seed, level) -> Trace:
    """A trace by hand: the nll of a text at an epoch is its place plus what `level` says."""
    texts = [*dict.fromkeys(mine.records.whole_texts)][::-1]
    n_tokens = np.array([2 + len(text) % 3 for text in texts])
    place = np.array([mine.records.whole_texts.index(text) for text in texts])
    loss = 1 + place / 100 + level + EPOCHS[:, None] / 1000
    return Trace(
        {"model": "m-twin", "language": "mine", "size": 9, "seed": seed, "variant": "v"},
        EPOCHS,
        np.array([string_id((text,)) for text in texts], dtype=object),
        n_tokens,
        loss * n_tokens,
        np.zeros((3, len(texts)), int),
        np.zeros((3, len(texts)), int),
    )


def test_a_loss_without_a_record_is_from_the_training_without_its_fold(mine):
    """In every seed by the folds of this seed; per token, whatever the number of tokens."""
    seeds = (4, 7)
    whole = [trace(mine, seed, 10 * seed) for seed in seeds]
    without = [trace(mine, seed, 10 * seed + 1 + fold) for seed in seeds for fold in range(FOLDS)]
    found = retrained_losses(mine, "mine", whole, without, holdout=HOLDOUT, folds=FOLDS)
    assert len(found) == len(seeds) * len(EPOCHS) * 24
    assert found["model"].unique().tolist() == ["m-twin"]
    for seed in seeds:
        trained = mine.sides(seed, HOLDOUT)
        fold = mine.folds(seed, FOLDS, trained)
        for number, epoch in enumerate(EPOCHS):
            rows = found[(found["seed"] == seed) & (found["checkpoint"] == epoch)]
            assert rows["id"].tolist() == mine.records.ids.tolist()
            assert rows["group"].tolist() == mine.records.groups.tolist()
            assert rows["trained"].tolist() == trained.tolist()
            # The last record has the text of the first.
            place = np.array([*range(23), 0])
            loss = 1 + place / 100 + 10 * seed + EPOCHS[number] / 1000
            np.testing.assert_allclose(rows["loss"], loss)
            np.testing.assert_allclose(rows["loss_without"], loss + 1 + fold)
    assert (mine.sides(4, HOLDOUT) != mine.sides(7, HOLDOUT)).any()


def test_of_folds_that_were_not_left_out_no_loss_is_known(mine):
    """Without the first of the folds only, the others have none, and the rest is the same."""
    whole = [trace(mine, seed, 10 * seed) for seed in (4, 7)]
    without = [trace(mine, seed, 10 * seed + 1 + fold) for seed in (4, 7) for fold in range(FOLDS)]
    options = {"holdout": HOLDOUT, "folds": FOLDS}
    all_of_it = retrained_losses(mine, "mine", whole, without, **options)
    found = retrained_losses(mine, "mine", whole, without[::FOLDS], **options, retrained=1)
    for seed in (4, 7):
        is_first = mine.folds(seed, FOLDS, mine.sides(seed, HOLDOUT)) == 0
        rows, complete = (t[t["seed"] == seed] for t in (found, all_of_it))
        known = np.tile(is_first, len(EPOCHS))
        assert rows["loss_without"].notna().to_numpy().tolist() == known.tolist()
        np.testing.assert_array_equal(rows[known]["loss_without"], complete[known]["loss_without"])


def test_groups_that_share_a_text_are_one_in_the_losses():
    """Their losses are equal, so they are not independent."""
    mine = corpus(["one", "one", "two", "three", "four"], ["a", "b", "b", "c", "d"])
    traces = [trace(mine, 0, level) for level in range(3)]
    found = retrained_losses(mine, "mine", traces[:1], traces[1:], holdout=0.3, folds=2)
    losses = to_losses(found.drop(columns=["language", "model", "seed"]))
    assert len({*losses.groups[:3]}) == 1
    assert len({*losses.groups}) == 3
