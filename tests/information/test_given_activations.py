"""Activations of a user's own: reading, refusing, measuring, and ordering models."""

import warnings
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from safetensors.numpy import save_file
from scipy.stats import binom, kendalltau, pearsonr

from helpers import information_worlds as worlds
from helpers.experiments import DEFAULT, ROOT, experiment, message
from palimpsest import tables
from palimpsest.errors import Notice
from palimpsest.information import kinds, neuron_entropy, trimmed_entropy
from palimpsest.information.activation_files import groups, read_arrays
from palimpsest.information.activation_scores import associations, of_group
from palimpsest.information.figures.given_distributions import given_distributions
from palimpsest.statistics import student

HOW = {"threads": 1, "bins": 100, "neighbours": 3, "pairs": "all"}


def saved(folder: Path, arrays: dict[str, np.ndarray], ending: str) -> Path:
    """Arrays in a file of one of the formats."""
    path = folder / f"activations{ending}"
    if ending == ".npz":
        np.savez(path, **arrays)
    elif ending == ".safetensors":
        save_file(arrays, path)
    else:
        columns = {name: list(values) for name, values in arrays.items()}
        parquet.write_table(pa.table({"text": ["a"] * len(values_of(arrays)), **columns}), path)
    return path


def values_of(arrays: dict[str, np.ndarray]) -> np.ndarray:
    return next(iter(arrays.values()))


def files_of(folder: Path, models: list[dict], change=lambda place, arrays: arrays) -> list[str]:
    """A file for each model; `change` changes its arrays."""
    paths = []
    for place, each in enumerate(models):
        arrays = worlds.given_arrays(place % len(worlds.SHARES), each["seed"])
        paths.append(str(folder / f"{each['name']}.npz"))
        np.savez(paths[-1], **change(place, arrays))
    return paths


def measured(folder: Path, models: list[dict], **change) -> dict[str, pd.DataFrame]:
    return of_group(files_of(folder, models, **change), models, "mine", **HOW)


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[str, pd.DataFrame]:
    """Five doses and three seeds."""
    return measured(tmp_path_factory.mktemp("given"), worlds.given_models(seeds=3))


# Files


@pytest.mark.parametrize("ending", [".npz", ".parquet", ".safetensors"])
def test_all_formats_hold_the_same_arrays_in_the_order_of_the_layers(tmp_path, ending):
    chance = np.random.default_rng(0)
    arrays = {f"layer.{n}": chance.normal(size=(7, n + 1)).astype("f4") for n in (0, 2, 10)}
    found = read_arrays(saved(tmp_path, arrays, ending))
    assert list(found) == list(arrays)
    for name, values in arrays.items():
        np.testing.assert_array_equal(found[name], values)


GOOD = np.arange(40.0).reshape(8, 5)
WRONG_ARRAYS = {
    "no arrays": ({}, "holds no arrays; save one float[samples, neurons] for each layer"),
    "three axes": (
        {"h": np.zeros((2, 3, 4))},
        "array 'h' is float64[2, 3, 4] and must be float[samples, neurons]",
    ),
    "no samples": ({"h": np.zeros((0, 3))}, "array 'h' is float64[0, 3] and must be"),
    "text": ({"h": np.array([["a"]])}, "array 'h' is <U1[1, 1] and must be float[samples,"),
    "NaN": (
        {"h": np.where(GOOD == 17, np.nan, GOOD)},
        "array 'h' has 1 values that are not finite, the first in sample 3 and neuron 2 (from 0); "
        "leave out these samples in all arrays",
    ),
    "another length": (
        {"h": GOOD, "later": GOOD[:6]},
        "array 'later' has 6 samples, and ",
    ),
}


@pytest.mark.parametrize("what", WRONG_ARRAYS)
def test_wrong_arrays_are_refused_in_one_line(tmp_path, what):
    arrays, words = WRONG_ARRAYS[what]
    path = saved(tmp_path, arrays, ".npz")
    said = message(lambda: read_arrays(path))
    assert said.startswith(f"{path}: ")
    assert words in said


@pytest.mark.parametrize("ending", [".npz", ".parquet", ".safetensors"])
def test_a_broken_file_is_refused_in_one_line(tmp_path, ending):
    whole = saved(tmp_path, {"h": GOOD}, ending).read_bytes()
    broken = tmp_path / f"broken{ending}"
    for content in (whole[: len(whole) // 2], b"", b"no such format at all"):
        broken.write_bytes(content)
        assert message(lambda: read_arrays(broken)).startswith(f"{broken}: is not a complete ")


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([[1.0, 2.0], [3.0]], "column 'h' has lists of different lengths; a list holds one number"),
        ([[1.0], None], "column 'h' has lists of different lengths"),
        ([["a"], ["b"]], "column 'h' has lists of string, and they must be of numbers"),
        ([[1.0, None], [2.0, 3.0]], "array 'h' has 1 values that are not finite, the first in "),
        ([1.0, 2.0], "holds no arrays"),
    ],
)
def test_wrong_columns_are_refused_in_one_line(tmp_path, column, words):
    path = tmp_path / "activations.parquet"
    parquet.write_table(pa.table({"h": column}), path)
    assert words in message(lambda: read_arrays(path))


# Groups


def test_the_tables_are_of_their_kinds(found, tmp_path):
    for kind in kinds.OF_GIVEN:
        tables.write(tmp_path / f"{kind.name}.parquet", found[kind.name], kind)
    neurons, layers = found["given_neurons"], found["given_layers"]
    assert len(neurons) == 15 * (5 + 4)
    assert len(found["given_pairs"]) == 15 * (10 + 6)
    assert list(layers["layer_name"][:2]) == ["first", "second"]
    assert set(layers["n_samples"]) == {60}
    assert (layers["copies"] == 0).all()
    arrays = worlds.given_arrays(0, 0)
    first = layers.iloc[0]
    assert first["entropy"] == pytest.approx(neuron_entropy(arrays["first"]).mean())
    assert first["trimmed_entropy"] == pytest.approx(trimmed_entropy(arrays["first"]).mean())


def test_associations_are_those_of_scipy(found):
    """Of each seed, then over the seeds; slopes are changes from dose 0 to 1."""
    scores, rows = found["given_scores"], found["given_associations"]
    wide = scores.pivot(index=["seed", "model"], columns="score", values="value")
    by_pair = rows.set_index(["score", "other"])
    for one, other in (("entropy", "accuracy"), ("mutual_information", "dose")):
        row = by_pair.loc[one, other]
        units = [own for _, own in wide.groupby(level="seed")]
        taus = [kendalltau(own[one], own[other]).statistic for own in units]
        assert row["tau"] == pytest.approx(np.mean(taus))
        fishers = [np.arctanh(pearsonr(own[one], own[other]).statistic) for own in units]
        expected = np.tanh(student(fishers))
        np.testing.assert_allclose(row[["pearson", "pearson_lower", "pearson_upper"]].astype(float),
                                   expected)  # fmt: skip
        assert (row["n_models"], row["n_seeds"]) == (15, 3)
    slopes = [np.polyfit(own["dose"], own["entropy"], 1)[0] for own in units]
    row = by_pair.loc["entropy", "dose"]
    np.testing.assert_allclose(row[["slope", "slope_lower", "slope_upper"]].astype(float),
                               student(slopes))  # fmt: skip
    assert np.isnan(by_pair.loc["entropy", "accuracy"]["slope"])
    # Fewer values that vary together: the planted truth
    assert by_pair.loc["entropy", "accuracy"]["tau"] > 0.9
    assert by_pair.loc["mutual_information", "accuracy"]["tau"] < -0.6
    assert by_pair.loc["two_norm", "accuracy"]["tau"] == -1


@pytest.mark.parametrize("n_seeds", [1, 3])
def test_models_that_differ_in_nothing_are_rarely_ordered(n_seeds):
    """The false world, 200 times: at most 5 % of the studies say otherwise, up to chance."""
    chance, wrong = np.random.default_rng(5), []
    for _ in range(200):
        values = chance.normal(size=(2, n_seeds, 5))
        scores = pd.concat(
            [
                scores_of(entropy=entropy, accuracy=accuracy).assign(seed=seed)
                for seed, (entropy, accuracy) in enumerate(zip(*values, strict=True))
            ]
        )
        (row,) = associations(scores).to_dict("records")
        wrong.append(row["p_value"] < 0.05)
        if n_seeds > 1:
            outside = not row["tau_lower"] <= 0 <= row["tau_upper"]
            assert outside == wrong[-1] or row["tau_lower"] == row["tau_upper"]
    assert sum(wrong) <= binom.ppf(0.99, 200, 0.05)


def scores_of(**columns) -> pd.DataFrame:
    """A table of scores of one seed, from values by score."""
    return pd.DataFrame(
        [
            {"model": f"m{place}", "seed": 0, "score": name, "value": value}
            for name, values in columns.items()
            for place, value in enumerate(values)
        ]
    )


def test_one_seed_has_an_exact_p_value_and_no_interval():
    """Two of the 120 orders of five models are as extreme as the same order."""
    (row,) = associations(scores_of(entropy=[1, 2, 3, 4, 5], accuracy=range(5))).to_dict("records")
    assert row["tau"] == 1
    assert row["p_value"] == pytest.approx(2 / 120)
    assert np.isnan([row["tau_lower"], row["tau_upper"], row["pearson_lower"]]).all()


def test_fewer_than_three_models_and_equal_scores_order_nothing():
    assert associations(scores_of(entropy=[1, 2], accuracy=[1, 2])).empty
    assert associations(scores_of(entropy=[1, 1, 1], accuracy=[1, 2, 3])).empty


def test_a_model_alone_has_measures_and_no_order(tmp_path):
    found = measured(tmp_path, worlds.given_models(seeds=1, doses=(None,), accuracies=False))
    assert found["given_associations"].empty
    assert len(found["given_layers"]) == 2
    assert found["given_layers"]["accuracy"].isna().all()
    for kind in kinds.OF_GIVEN:
        tables.write(tmp_path / "table.parquet", found[kind.name], kind)


# What is refused when a group is measured


def repeated(share: float, layers: tuple[str, ...], place: int, arrays: dict) -> dict:
    """The first samples are as the next ones, in some layers."""
    n = round(share * len(values_of(arrays)) / 2)
    found = {name: values.copy() for name, values in arrays.items()}
    for name in layers:
        found[name][:n] = found[name][n : 2 * n]
    return found


def test_many_copies_are_refused_in_one_line(tmp_path):
    models, both = worlds.given_models(seeds=1), ("first", "second")
    change = partial(repeated, 0.1, both)
    said = message(lambda: measured(tmp_path, models, change=change))
    assert said.startswith(f"{tmp_path}/model-0-0.npz: 10.0% of the samples are copies of another")
    few = measured(tmp_path, models, change=partial(repeated, 0.04, both))
    assert set(few["given_layers"]["copies"].round(3)) == {0.033}


@pytest.mark.filterwarnings("ignore::palimpsest.information.CopiesWarning")
def test_samples_that_only_one_layer_takes_for_equal_are_counted(tmp_path):
    change = partial(repeated, 0.5, ("second",))
    layers = measured(tmp_path, worlds.given_models(seeds=1), change=change)["given_layers"]
    assert list(layers["copies"].round(3)[:2]) == [0, 0.5]


def test_models_of_a_group_need_the_same_number_of_samples(tmp_path):
    def shorter(place, arrays):
        return {name: values[: 60 - place // 3] for name, values in arrays.items()}

    said = message(lambda: measured(tmp_path, worlds.given_models(seeds=1), change=shorter))
    assert said.startswith(f"{tmp_path}/model-0-3.npz: has 59 samples, and ")


def test_layers_are_compared_by_name_whatever_their_order(tmp_path):
    """Nothing is said: all models have the same layers."""
    models = worlds.given_models(seeds=1)

    def backwards(place, arrays):
        return dict(reversed(arrays.items())) if place else arrays

    with warnings.catch_warnings(action="error", category=Notice):
        found = measured(tmp_path, models, change=backwards)
    (straight := tmp_path / "straight").mkdir()
    expected = measured(straight, models)
    for kind in (kinds.GIVEN_LAYERS, kinds.GIVEN_NEURONS, kinds.GIVEN_PAIRS):
        pd.testing.assert_frame_equal(found[kind.name], expected[kind.name])


def test_models_whose_layers_have_other_names_are_said(tmp_path):
    """In one line. A layer with a name of its own is no layer of the other models."""
    models = worlds.given_models(seeds=1)

    def renamed(place, arrays):
        return {"second": arrays["second"], "third": arrays["first"]} if place > 2 else arrays

    with pytest.warns(Notice) as caught:
        found = measured(tmp_path, models, change=renamed)
    (said,) = (str(each.message) for each in caught if isinstance(each.message, Notice))
    names = [tmp_path / f"{models[place]['name']}.npz" for place in (0, 3)]
    more = len(models) - 4
    assert said.startswith(
        f"{names[1]}: has 'third' and lacks 'first', unlike {names[0]}, and {more} other files "
        "differ from it, too; layers are compared by name"
    )
    layers = found[kinds.GIVEN_LAYERS.name]
    numbers = layers[["layer_name", "layer"]].drop_duplicates()
    assert dict(numbers.itertuples(index=False)) == {"first": 0, "second": 1, "third": 2}
    given_distributions(found[kinds.GIVEN_NEURONS.name], found[kinds.GIVEN_PAIRS.name])
    plt.close("all")


def test_a_sample_needs_neighbours(tmp_path):
    def three(place, arrays):
        return {name: values[:3] for name, values in arrays.items()}

    said = message(lambda: measured(tmp_path, worlds.given_models(seeds=1), change=three))
    assert "a sample has only 2 neighbours among 3 samples, and 3 are asked for" in said


# The configuration


@pytest.fixture
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


def made_with(activations: dict):
    return experiment(
        DEFAULT, command_line={"information": {"models": [], "activations": activations}}
    )


@pytest.mark.usefixtures("in_the_project")
def test_groups_are_measured_without_any_training(tmp_path):
    file = str(saved(tmp_path, {"h": GOOD}, ".npz"))
    made = made_with({"a": file, "b": {"file": file, "group": "theirs"}, "c": file})
    files = made.outputs["information"]
    assert len(files) == 2 * len(kinds.OF_GIVEN)
    assert {file.split("/")[3] for file in files} == {"mine", "theirs"}
    names = {
        group: [each.name for each in own]
        for group, own in groups(made.settings.block("information")).items()
    }
    assert names == {"mine": ["a", "c"], "theirs": ["b"]}
    (section,) = (each for each in made.sections if each.name == "information")
    assert not list(section.requests(made.settings))


@pytest.mark.usefixtures("in_the_project")
@pytest.mark.parametrize(
    ("activations", "words"),
    [
        ({"a": "no.npz"}, "information/activations/a: no such file: no.npz; activations of a "),
        ({"a": "README.md"}, "information/activations/a: 'README.md' is not a .npz, .parquet or "),
        ({"a": {"file": "FILE", "grup": "x"}}, "(did you mean 'group'?)"),
        ({"a b": "FILE"}, "information/activations/a b: is not a name; allowed are letters,"),
        ({"a": {"file": "FILE", "group": "a/b"}}, "information/activations/a/group: 'a/b' is not"),
        ({"a": {"file": "FILE", "accuracy": 91}}, "information/activations/a/accuracy: 91 is not"),
        (
            {"a": {"file": "FILE", "scores": {"entropy": 1.0}}},
            "information/activations/a/scores/entropy: is a number of our own; take another name",
        ),
    ],
)
def test_a_wrong_configuration_is_refused_in_one_line(tmp_path, activations, words):
    file = str(saved(tmp_path, {"h": GOOD}, ".npz"))
    with_file = {
        name: file if each == "FILE" else each if isinstance(each, str) else {**each, "file": file}
        for name, each in activations.items()
    }
    assert words in message(lambda: made_with(with_file))
