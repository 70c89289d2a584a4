"""Models that are looked at after every epoch: datasets, the job, its tables, claim and figure."""

import numpy as np
import pandas as pd
import pytest

from helpers.commands import MODELS, ROOT
from helpers.experiments import DEFAULT, experiment, message
from helpers.information_worlds import epochs as epochs_in
from palimpsest import manifests, tables, traces
from palimpsest.corpora import read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.kinds import STRINGS
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import UserError
from palimpsest.information.activations import Where, activations_of
from palimpsest.information.epochs import BEYOND, NEIGHBOURS, changes, epochs_table, starts
from palimpsest.information.figures.information_epochs import information_epochs
from palimpsest.information.interventions import FRESH, REPEATED
from palimpsest.information.kinds import EPOCHS, LAST, LAYERS, MEASURED
from palimpsest.information.layers import layers
from palimpsest.information.measured import How, means, of_site
from palimpsest.jobs.bench import Bench, TrainedWeights, holder_of
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.finetune import Job, finetune
from palimpsest.jobs.query import QueryFiles
from palimpsest.models.sites import MLP
from palimpsest.regimes import SINGLE, OnePass
from palimpsest.training.recipe import Recipe

LANGUAGE = ROOT / "config/languages/L4.pcfg"
MODEL = "opt-1.3b-twin"
SIZE, N_EPOCHS, TESTS = 6, 2, 20
OPTIONS = {"size": SIZE, "epochs": N_EPOCHS, "tests": TESTS}
RECIPE = Recipe(3e-3, epochs=N_EPOCHS, batch_size=4, checkpoint_every=0)
WHERE, HOW = Where(None, (MLP,), (LAST,)), How(20, 3, 40)
VALUES = {"layers": "all", "places": [MLP], "positions": [LAST], **HOW._asdict()}
MADE_BY = "palimpsest.information.intervention_data:repeated_or_fresh"
RULE = "after_last_miss"


def dataset(variant: str) -> pd.DataFrame:
    """The dataset of a variant."""
    size = SIZE * N_EPOCHS if variant == FRESH else SIZE
    sampler = Sampler("L4", read_corpus(LANGUAGE), 0)
    return build(sampler, variant, size, 0, False, options=OPTIONS, made_by=MADE_BY)


# Datasets


def test_fresh_strings_begin_with_the_repeated_ones_and_are_never_repeated():
    repeated, fresh = dataset(REPEATED), dataset(FRESH)
    trained = [table[table["count"] > 0] for table in (repeated, fresh)]
    assert [len(table) for table in trained] == [SIZE, SIZE * N_EPOCHS]
    assert all((table["count"] == 1).all() for table in trained)
    first = trained[1][trained[1]["cohort"] == 1]
    assert set(first["string_id"]) == set(trained[0]["string_id"])
    assert list(trained[1].groupby("cohort").size()) == [SIZE] * N_EPOCHS
    never = [table[table["test_count"] > 0] for table in (repeated, fresh)]
    assert list(never[0]["string_id"]) == list(never[1]["string_id"])
    assert len(never[0]) == TESTS
    assert not set(never[0]["string_id"]) & set(trained[1]["string_id"])
    assert repeated["cohort"].isna().all()


# The job


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Both variants trained and measured: the folder of each variant, and the assignment."""
    folder = tmp_path_factory.mktemp("finetuned")
    state = str(folder / "state")
    asked = Assignment(MODEL, str(MODELS), str(LANGUAGE), RECIPE, "fleet", state)
    folders = {variant: folder / variant for variant in (REPEATED, FRESH)}
    for variant, own in folders.items():
        tables.write(own / "strings.parquet", dataset(variant), STRINGS)
    jobs, runs = [], []
    for variant, own in folders.items():
        strings, weights = str(own / "strings.parquet"), str(own / "checkpoints")
        trained = str(own / "trace.parquet"), str(own / "manifest.json")
        regime = OnePass(N_EPOCHS, TESTS) if variant == FRESH else SINGLE
        jobs.append(Job(strings, *trained, regime=regime, checkpoints=weights))
        measured = (str(own / "layers.parquet"),), str(own / "layers.json")
        runs.append(QueryFiles(strings, (weights,), *measured))
    finetune(asked, jobs)
    layers.query.run(runs, VALUES, asked)
    return folders, asked


def test_every_epoch_and_layer_has_a_row(made):
    folders, _ = made
    for variant, folder in folders.items():
        table = tables.read(folder / "layers.parquet", LAYERS)
        assert list(table["epoch"]) == [0, 0, 1, 1, 2, 2]
        assert list(table["layer"]) == [0, 1] * 3
        assert set(table["variant"]) == {variant}
    assert manifests.read(folders[FRESH] / "layers.json")["epochs"] == [0, 1, 2]


def test_before_training_and_after_an_epoch_of_equal_strings_both_are_equal(made):
    """The strings of the first epoch are the same, in the same order; later ones are not."""
    folders, _ = made
    both = [tables.read(folder / "layers.parquet", LAYERS) for folder in folders.values()]
    entropy = [table.set_index(["epoch", "layer"])["entropy"] for table in both]
    np.testing.assert_array_equal(entropy[0][[0, 1]], entropy[1][[0, 1]])
    assert (entropy[0][2] != entropy[1][2]).any()


def test_the_measures_are_those_of_the_weights_after_the_epoch(made):
    folders, asked = made
    folder = folders[REPEATED]
    bench = Bench(asked.run(str(folder / "strings.parquet")), holder_of(asked))
    weights = TrainedWeights([str(folder / "checkpoints" / "epoch-2.safetensors")])
    models = bench.holder.open([weights.of_run(0)])
    rows = np.flatnonzero(bench.material.test_counts > 0)
    vectors = activations_of(bench, models, rows, WHERE)
    table = tables.read(folder / "layers.parquet", LAYERS)
    for (site, _), values in vectors.items():
        found = table[(table["epoch"] == 2) & (table["layer"] == site.layer)].iloc[0]
        about = {**site._asdict(), "position": LAST}
        (again,) = means(*of_site(values, about, HOW)).to_dict("records")
        for column in MEASURED.split():
            assert found[column] == pytest.approx(again[column]), column


def test_a_folder_without_weights_gives_one_line(made, tmp_path):
    folders, asked = made
    run = QueryFiles(str(folders[FRESH] / "strings.parquet"), (str(tmp_path),), ("",))
    with pytest.raises(UserError, match="no weights of any epoch; delete the folder"):
        layers.query.run([run], VALUES, asked)


def test_losses_and_memorisation_stand_beside_the_measures(made, tmp_path):
    folders, _ = made
    runs = [
        (
            tables.read(folder / "strings.parquet", STRINGS),
            traces.read(folder / "trace.parquet"),
            tables.read(folder / "layers.parquet", LAYERS),
        )
        for folder in folders.values()
    ]
    table = epochs_table(*zip(*runs, strict=True), RULE, 50.0)
    tables.write(tmp_path / "epochs.parquet", table, EPOCHS)
    repeated = table[table["variant"] == REPEATED].drop_duplicates("epoch")
    strings, trace, _ = runs[0]
    place = trace.column_of(strings.loc[strings["count"] > 0, "string_id"].to_numpy())
    nll, n_tokens = trace.nll[:, place], trace.n_tokens[place]
    np.testing.assert_allclose(repeated["train_loss"], nll.sum(axis=1) / n_tokens.sum())
    assert repeated["memorised"].is_monotonic_increasing
    assert (repeated["coverage"] == 1).all()
    assert repeated["memorised_unseen"].between(0, 1).all()
    fresh = table[table["variant"] == FRESH]
    assert fresh[["train_loss", "memorised", "memorised_unseen"]].isna().all(axis=None)
    assert fresh["test_loss"].notna().all()
    gap = [(*runs[0][:2], runs[0][2].query("epoch != 1"))]
    with pytest.raises(UserError, match="not measured after epoch 1; delete"):
        epochs_table(*zip(*gap, strict=True), RULE, 50.0)
    assert fresh["test_loss"].notna().all()


# What changes at the start, and the figure


def test_what_learning_changes_is_subtracted():
    table = epochs_in([0.5, 0.4, 0.6])
    assert (starts(table) == 3).all()
    found = changes(table, "entropy")
    np.testing.assert_allclose(found[REPEATED].to_numpy().ravel(), [0.8, 0.7, 0.9])
    np.testing.assert_allclose(found[FRESH].to_numpy().ravel(), 0.3)
    np.testing.assert_allclose(found[NEIGHBOURS].to_numpy().ravel(), 0, atol=1e-12)


def test_a_drift_is_no_change_at_the_start():
    """Repeated strings change more in every epoch, and no more in that of the start."""
    table = epochs_in([0.0, 0.0, 0.0])
    drift = 0.2 * table["epoch"] * (table["variant"] == REPEATED)
    found = changes(table.assign(entropy=table["entropy"] + drift), "entropy")
    beyond = found[BEYOND]
    np.testing.assert_allclose(beyond, 0, atol=1e-12)


def test_epochs_that_only_one_variant_has_do_not_count():
    table = epochs_in([0.5, 0.4, 0.6], start=6, n_epochs=9)
    some = table[(table["variant"] == FRESH) | (table["epoch"] % 2 == 0)]
    found = changes(some, "entropy")
    np.testing.assert_allclose(found[FRESH].to_numpy().ravel(), 0.6)


def test_what_strings_never_trained_on_show_is_no_start():
    """As many of them are below their thresholds: then nothing is memorised."""
    table = epochs_in([0.5, 0.4])
    assert starts(table.assign(memorised_unseen=table["memorised"])).isna().all()


def test_a_start_in_the_first_epoch_is_not_compared():
    """Until its end, repeated and fresh strings are the same."""
    found = changes(epochs_in([0.5, 0.4], start=1), "entropy")
    assert found[REPEATED].isna().all(axis=None)


@pytest.mark.parametrize("start", [2, 5])
def test_a_start_without_an_epoch_before_or_after_is_not_compared(start):
    """The first epoch is no neighbour: until its end, there is nothing that could differ."""
    found = changes(epochs_in([0.5, 0.4], start=start), "entropy")
    assert all(values.isna().all(axis=None) for values in found.values())


@pytest.mark.parametrize("variant", [REPEATED, FRESH])
def test_a_run_without_the_other_variant_is_not_compared(variant):
    table = epochs_in([0.5, 0.4, 0.6])
    for given, n in (
        (table[table["variant"] == variant], 0),
        (table[(table["seed"] > 0) | (table["variant"] == variant)], 2),
    ):
        assert np.count_nonzero(changes(given, "entropy")[BEYOND].notna()) == n


def test_without_a_start_nothing_is_compared():
    table = epochs_in([0.5, 0.4, 0.6], start=9)
    assert starts(table).isna().all()
    assert changes(table, "entropy")[REPEATED].isna().all(axis=None)


@pytest.mark.figures
@pytest.mark.parametrize("start", [3, 9])
def test_the_figure_shows_every_layer_and_the_start(start):
    figure = information_epochs(epochs_in([0.5, 0.4], start=start))
    panels = figure.axes
    assert {"layer", "epochs of fine-tuning"} <= {
        label for axes in panels for label in (axes.get_ylabel(), axes.get_xlabel())
    }
    lines = [line for line in panels[0].get_lines() if len(set(line.get_xdata())) == 1]
    assert len(lines) == (start == 3)
    assert "fresh strings" in " ".join(
        handle.get_text() for handle in figure.legends[0].get_texts()
    )


# The block


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"models": ["opt-2b"]}, "information/finetuned/models[0]: unknown model 'opt-2b'"),
        ({"languages": ["L9"]}, "information/finetuned/languages[0]: unknown language 'L9'"),
        ({"tests": 4}, None),
        ({"size": 0}, "information/finetuned/size: 0 is not allowed"),
    ],
)
def test_a_wrong_block_is_refused_in_one_line(change, said):
    asked = {"models": [MODEL], "languages": ["L4"], "size": 16, "recipe": "default", "tests": 32}
    given = {"information": {"finetuned": {**asked, **change}}}
    if said is None:
        assert experiment(DEFAULT, command_line=given)
        return
    assert said in message(lambda: experiment(DEFAULT, command_line=given))
