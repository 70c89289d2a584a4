"""Embeddings by hidden states, against those of Hugging Face, and the command that makes them."""

import subprocess
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
import torch

from helpers.commands import GRAMMAR, MODELS, TWIN, query
from palimpsest import manifests, tables
from palimpsest.corpora import read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.kinds import STRINGS
from palimpsest.datasets.sampling import Sampler
from palimpsest.density.densities import density_tables, embeddings_of
from palimpsest.density.embedding import (
    embeddings,
    mean_hidden,
    mean_of_symbols,
)
from palimpsest.density.kinds import EMBEDDINGS, HIDDEN
from palimpsest.density.section import EMBEDDING
from palimpsest.density.vectors import of_length_one
from palimpsest.errors import UserError
from palimpsest.jobs.bench import Bench, holder_of
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.finetune import Job, finetune
from palimpsest.jobs.query import QueryFiles, keys_of_job
from palimpsest.models.build import build as build_model
from palimpsest.training.recipe import Recipe

LANGUAGE = GRAMMAR.with_name("L3.pcfg")  # its strings differ in length
RECIPE = Recipe(3e-3, epochs=1, batch_size=4, checkpoint_every=0)
TWINS = ["pythia-1b-twin", "llama-3.2-1b-twin", "opt-1.3b-twin"]


def assignment(folder, model=TWINS[0], recipe=RECIPE) -> Assignment:
    """How the twins are trained and queried."""
    return Assignment(model, str(MODELS), str(LANGUAGE), recipe, "fleet", str(folder / "state"))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """A table of strings of different lengths."""
    path = tmp_path_factory.mktemp("data") / "strings.parquet"
    sampler = Sampler("L3", read_corpus(LANGUAGE), 0)
    tables.write(path, build(sampler, "base", 10, 6, False), STRINGS)
    return path


def bench_of(dataset, model=TWINS[0], **recipe) -> Bench:
    """A bench for the dataset."""
    asked = assignment(dataset.parent, model, replace(RECIPE, **recipe))
    return Bench(asked.run(str(dataset)), holder_of(asked))


def drawn_model(bench):
    """A model of Hugging Face whose weights are drawn; its norms are no identities."""
    model = build_model(bench.run.row, "twin", bench.material.vocabulary, 3, torch.float32).eval()
    chance = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=chance)
    return model


def weights_of(model) -> dict[str, torch.Tensor]:
    """The weights by name; a tied one is there once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("name", TWINS)
def test_an_embedding_is_the_mean_of_the_last_hidden_states(dataset, name):
    """Over the symbols of each string alone, without its start token; of length 1."""
    bench = bench_of(dataset, name)
    model = drawn_model(bench)
    found = mean_hidden(bench, bench.holder.open([weights_of(model)]))
    encoded = bench.material.encoded
    assert len(found) == len(bench.material.string_ids)
    assert len(set(encoded.lengths)) > 3
    for vector, ids, length in zip(found, encoded.ids, encoded.lengths, strict=True):
        with torch.no_grad():
            asked = model(torch.from_numpy(ids[None, :length]), output_hidden_states=True)
        mean = asked.hidden_states[-1][0, 1:].double().mean(dim=0).numpy()
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)


def test_neither_padding_nor_the_batch_matters(dataset):
    """Alone, in threes, and all together with padding."""
    each = []
    for size in (1, 3, 64):
        bench = bench_of(dataset, evaluation_batch_size=size)
        each.append(mean_hidden(bench, bench.holder.open([weights_of(drawn_model(bench))])))
    for other in each[1:]:
        np.testing.assert_allclose(other, each[0], atol=1e-5)
    assert len({tuple(row) for row in each[0].round(3)}) == len(each[0])


def test_the_mean_is_over_the_symbols_alone():
    """By hand: the start token and the padding have large states that must not count."""
    states = np.array([[[99.0], [1.0], [3.0], [77.0]], [[99.0], [1.0], [3.0], [5.0]]])
    np.testing.assert_array_equal(mean_of_symbols(states, np.array([3, 4])), [[2.0], [3.0]])


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_a_vector_without_a_direction_is_refused(bad):
    """The message names the string; all others have length 1."""
    vectors = np.array([[3.0, 4.0], [bad, 0.0], [1.0, 0.0]])
    with pytest.raises(UserError) as error:
        of_length_one(vectors)
    assert str(error.value) == (
        "embeddings: that of string 1 is 0 or not finite, so it has no direction; lower the "
        "learning rate of the model, and train it again"
    )
    np.testing.assert_allclose(of_length_one(vectors[[0, 2]]), [[0.6, 0.8], [1.0, 0.0]])


@pytest.fixture(scope="module")
def trained(dataset):
    """The weights of a twin that was trained for an epoch, and its table of embeddings."""
    folder = dataset.parent
    weights = folder / "run/weights.safetensors"
    files = [folder / f"run/{name}" for name in ("trace.parquet", "manifest.json")]
    finetune(assignment(folder), [Job(str(dataset), *map(str, files), str(weights))])
    run = QueryFiles(
        str(dataset),
        (str(weights),),
        (str(folder / "density/embeddings.parquet"),),
        str(folder / "density/manifest.json"),
    )
    embeddings.query.run([run], {}, assignment(folder))
    return run


@pytest.mark.slow
def test_a_trained_model_embeds_every_string_of_its_dataset(trained, dataset):
    table = tables.read(trained.tables[0], EMBEDDINGS)
    strings = tables.read(dataset, STRINGS)
    assert table["string_id"].tolist() == strings["string_id"].tolist()
    assert set(table["variant"]) == {"base"}
    vectors = np.stack(table["vector"].tolist())
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    manifest = manifests.read(trained.manifest)
    assert manifest["weights"] == [manifests.read(f"{dataset.parent}/run/manifest.json")["key"]]


@pytest.mark.slow
def test_copies_are_at_distance_zero(trained, dataset):
    """A string has one embedding, however often it is trained on."""
    strings = tables.read(dataset, STRINGS)
    strings["count"] = 2 * strings["count"]
    vectors = embeddings_of(strings, tables.read(trained.tables[0], EMBEDDINGS))
    found = density_tables(TWINS[0], strings, {HIDDEN: vectors[HIDDEN]}, {"gaussian": [0.1]}, 2)
    near = found["neighbours"]
    is_trained = strings["count"] > 0
    assert (near.loc[is_trained, ["nearest", "mean_distance"]] == 0).all(axis=None)
    assert (near.loc[~is_trained, "nearest"] > 0).all()


@pytest.mark.slow
def test_the_job_has_the_key_of_its_manifest(trained):
    """Also from the values that the section lists for its unfinished jobs."""
    training = asdict(RECIPE)
    given = {
        **{name: training.pop(name) for name in ("learning_rate", "predict_end")},
        "training": {**training, "processes": 1},
        "model": TWINS[0],
        "corpus": str(LANGUAGE),
        "engine": "fleet",
        "dataset": trained.dataset,
        "weights": trained.weights,
        "query": EMBEDDING,
        "values": {},
    }
    assert keys_of_job(str(MODELS), given) == [manifests.read(trained.manifest)["key"]]


@pytest.mark.slow
def test_a_model_that_was_not_trained_is_refused(trained, dataset, tmp_path):
    """In one line that names the missing file; nothing is written."""
    run = QueryFiles(
        trained.dataset,
        (str(tmp_path / "weights.safetensors"),),
        (str(tmp_path / "embeddings.parquet"),),
        str(tmp_path / "density.json"),
    )
    with pytest.raises(UserError) as error:
        embeddings.query.run([run], {}, assignment(dataset.parent))
    assert str(tmp_path / "manifest.json") in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_command_makes_the_same_table_by_the_other_engine(trained, dataset, tmp_path):
    flags = {**TWIN, "model": TWINS[0], "corpus": LANGUAGE, "engine": "deepspeed"}
    flags |= {name: getattr(RECIPE, name) for name in RECIPE.__dataclass_fields__}
    words = query(
        EMBEDDING,
        [tmp_path / "embeddings.parquet"],
        **flags,
        dataset=dataset,
        weights=trained.weights,
        manifest=tmp_path / "manifest.json",
        state=tmp_path / "state",
        threads=1,
        memory_mb=4000,
        gpus=0,
    )
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    again, first = (
        tables.read(path, EMBEDDINGS)
        for path in (tmp_path / "embeddings.parquet", trained.tables[0])
    )
    pd.testing.assert_frame_equal(again.drop(columns="vector"), first.drop(columns="vector"))
    vectors = (np.stack(table["vector"].tolist()) for table in (again, first))
    np.testing.assert_allclose(*vectors, atol=1e-5)
    assert manifests.read(tmp_path / "manifest.json")["engine"] == "deepspeed"
