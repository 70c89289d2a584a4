"""Activations, answers and norms of trained models, against hooks and logits by hand."""

import json
import subprocess
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
import torch

from helpers.commands import MODELS, ROOT, TWIN, query
from helpers.experiments import message
from palimpsest import manifests, tables
from palimpsest.corpora import read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.kinds import STRINGS
from palimpsest.datasets.sampling import Sampler
from palimpsest.information.activations import (
    Where,
    activations,
    activations_of,
    matrices,
    predictions_of,
)
from palimpsest.information.kinds import ACTIVATIONS, ANSWERS, LAST, MEAN, NORMS
from palimpsest.information.norms import norms
from palimpsest.information.section import READING
from palimpsest.jobs.bench import Bench, holder_of
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.finetune import Job, finetune
from palimpsest.jobs.query import QueryFiles, keys_of_job
from palimpsest.models.build import build as build_model
from palimpsest.models.sites import PLACES, Site
from palimpsest.tables.trace import TRACE
from palimpsest.training.recipe import Recipe

LANGUAGE = ROOT / "config/languages/L3.pcfg"  # its strings differ in length
RECIPE = Recipe(3e-3, epochs=1, batch_size=4, checkpoint_every=0)
MODEL = "opt-1.3b-twin"
EVERYWHERE = Where(None, PLACES, (LAST, MEAN))
MADE_BY = "palimpsest.information.intervention_data:marked"


def assignment(folder, model=MODEL, recipe=RECIPE) -> Assignment:
    """How the twins are trained and queried."""
    return Assignment(model, str(MODELS), str(LANGUAGE), recipe, "fleet", str(folder / "state"))


def dataset_in(folder, predict_end=False):
    """A table of strings with markers; 16 are evaluated."""
    path = folder / "strings.parquet"
    sampler = Sampler("L3", read_corpus(LANGUAGE), 0)
    options = {"tests": 16, "label_noise": 0.0}
    made = build(sampler, "marked-50", 10, 0, predict_end, options=options, made_by=MADE_BY)
    tables.write(path, made, STRINGS)
    return path


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return dataset_in(tmp_path_factory.mktemp("data"))


def bench_of(dataset, model=MODEL, **recipe) -> Bench:
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


def opened(bench, model):
    """The model, held by the bench's engine."""
    return bench.holder.open([{name: p.detach() for name, p in model.named_parameters()}])


def evaluated(bench) -> np.ndarray:
    """The rows of the strings that are not trained on."""
    return np.flatnonzero(bench.material.counts == 0)


@pytest.mark.parametrize("ends", [False, True])
def test_activations_are_those_before_the_answer_and_the_mean(tmp_path, ends):
    """Of each string alone; an end token after the answer changes nothing of `last`."""
    bench = bench_of(dataset_in(tmp_path, ends), predict_end=ends)
    model, rows = drawn_model(bench), evaluated(bench)
    models = opened(bench, model)
    vectors = activations_of(bench, models, rows, EVERYWHERE)
    log_prob = predictions_of(bench, models, rows)
    assert set(vectors) == {
        (Site(layer, place), position)
        for layer in (0, 1)
        for place in PLACES
        for position in (LAST, MEAN)
    }
    seen = {}
    model.model.decoder.layers[1].fc2.register_forward_pre_hook(
        lambda _, given: seen.update(mlp=given[0].detach())
    )
    encoded = bench.material.encoded
    assert len(set(encoded.lengths[rows])) > 3
    for place, row in enumerate(rows):
        n_symbols = encoded.lengths[row] - 1 - ends
        # Without what follows the symbol before the answer
        before = encoded.ids[None, row, :n_symbols]
        with torch.no_grad():
            logits = model(torch.from_numpy(before)).logits[0, -1]
        states = seen["mlp"].reshape(n_symbols, -1)
        last = vectors[Site(1, "mlp"), LAST][place]
        np.testing.assert_allclose(last, states[-1], atol=1e-5)
        expected = logits.double().log_softmax(-1)
        np.testing.assert_allclose(log_prob[place], expected, atol=1e-5)
        with torch.no_grad():
            model(torch.from_numpy(encoded.ids[None, row, : encoded.lengths[row]]))
        states = seen["mlp"].reshape(encoded.lengths[row], -1)
        mean = vectors[Site(1, "mlp"), MEAN][place]
        np.testing.assert_allclose(mean, states[1:].mean(dim=0), atol=1e-5)


def test_neither_padding_nor_the_batch_matters(dataset):
    """Alone, in threes, and all together with padding; in the order that is asked for."""
    each = []
    for size in (1, 3, 64):
        bench = bench_of(dataset, evaluation_batch_size=size)
        models, rows = opened(bench, drawn_model(bench)), evaluated(bench)
        log_prob = predictions_of(bench, models, rows)
        each.append({**activations_of(bench, models, rows, EVERYWHERE), "log_prob": log_prob})
    for other in each[1:]:
        for key, values in each[0].items():
            np.testing.assert_allclose(other[key], values, atol=1e-5)
    turned = predictions_of(bench, models, rows[::-1])
    np.testing.assert_allclose(turned[::-1], each[0]["log_prob"], atol=1e-5)


def test_sites_are_chosen(dataset):
    bench = bench_of(dataset)
    models = opened(bench, drawn_model(bench))
    where = Where.of(["1"], ["residual", "mlp"], [MEAN])
    assert where.sites(models) == [Site(1, "residual"), Site(1, "mlp")]
    assert Where.of(["all"], ["mlp"], [LAST]) == Where.of("all", ["mlp"], [LAST])
    assert Where.of("all", ["mlp"], [LAST]).sites(models) == [Site(0, "mlp"), Site(1, "mlp")]


def test_a_site_that_the_model_lacks_is_refused(dataset):
    bench = bench_of(dataset)
    models = opened(bench, drawn_model(bench))
    where = Where((2,), ("mlp",), (LAST,))
    said = message(lambda: activations_of(bench, models, evaluated(bench), where))
    assert said == (
        "no site mlp of layer 2; the model has mlp, attention, residual of the layers 0 to 1"
    )


def test_weight_matrices_are_those_of_the_blocks(dataset):
    """Six in each of two blocks of OPT; its head is the embedding, which is left out."""
    bench = bench_of(dataset)
    model = drawn_model(bench)
    expected = [
        parameter.detach().numpy()
        for name, parameter in model.named_parameters()
        if "layers" in name and parameter.ndim == 2
    ]
    assert len(expected) == 12
    assert norms(matrices(opened(bench, model))) == norms(expected)


VALUES = {"layers": "all", "places": ["mlp"], "positions": [LAST]}


@pytest.fixture(scope="module")
def trained(dataset):
    """The weights of a twin that was trained for an epoch, and its tables."""
    folder = dataset.parent
    weights = folder / "run/weights.safetensors"
    files = [folder / f"run/{name}" for name in ("trace.parquet", "manifest.json")]
    finetune(assignment(folder), [Job(str(dataset), *map(str, files), str(weights))])
    names = "activations.parquet", "answers.parquet", "norms.parquet", "manifest.json"
    *written, manifest = (str(folder / f"read/{name}") for name in names)
    run = QueryFiles(str(dataset), (str(weights),), tuple(written), manifest)
    activations.query.run([run], VALUES, assignment(folder))
    return run


@pytest.mark.slow
def test_a_model_is_trained_on_the_answer_alone(trained, dataset):
    """The trace has one predicted token of each string: its loss is that of the answer."""
    trace = tables.read(dataset.parent / "run/trace.parquet", TRACE)
    assert set(trace["n_tokens"]) == {1}
    last = trace[trace["epoch"] == 1].set_index("string_id")["nll"]
    of_answers = tables.read(trained.tables[1], ANSWERS).set_index("string_id")["nll"]
    np.testing.assert_allclose(last[of_answers.index], of_answers, atol=1e-5)


@pytest.mark.slow
def test_a_trained_model_gives_its_tables(trained, dataset):
    """Of the evaluated strings alone."""
    strings = tables.read(dataset, STRINGS).query("test_count > 0").set_index("string_id")
    found = tables.read(trained.tables[0], ACTIVATIONS)
    assert found.groupby(["layer", "place", "position"]).size().tolist() == [16, 16]
    assert found["string_id"].tolist() == 2 * strings.index.tolist()
    assert {vector.dtype for vector in found["vector"]} == {np.dtype(np.float32)}
    assert {len(vector) for vector in found["vector"]} == {128}
    given = tables.read(trained.tables[1], ANSWERS).set_index("string_id")
    assert given.index.tolist() == strings.index.tolist()
    assert given["role"].value_counts().to_dict() == {"disagrees": 12, "agrees": 4}
    assert (given["answer"] == strings["text"].str.split().str[-1]).all()
    assert set(given["given"]) <= {"1", "2", "3", "4"}
    assert (given["is_right"] == (given["given"] == given["answer"])).all()
    assert (given["nll"] > 0).all()
    assert np.isfinite(tables.read(trained.tables[2], NORMS)[["two_norm", "frobenius"]]).all(
        axis=None
    )


def flags_of(dataset, trained, folder, **more) -> list[str]:
    """The command that reads the trained model, with its files in a folder."""
    flags = {**TWIN, "model": MODEL, "corpus": LANGUAGE}
    flags |= {name: getattr(RECIPE, name) for name in RECIPE.__dataclass_fields__}
    flags |= {
        "dataset": dataset,
        "weights": trained.weights,
        "manifest": folder / "manifest.json",
        "state": folder / "state",
        "threads": 1,
        "memory_mb": 4000,
        "gpus": 0,
    }
    written = [[folder / f"{name}.parquet"] for name in ("activations", "answers", "norms")]
    return query(READING, *written, values=VALUES, **{**flags, **more})


@pytest.mark.slow
def test_the_command_makes_the_same_tables_by_the_other_engine(trained, dataset, tmp_path):
    words = flags_of(dataset, trained, tmp_path, engine="deepspeed")
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kinds = ("activations", ACTIVATIONS), ("answers", ANSWERS), ("norms", NORMS)
    for place, (name, kind) in enumerate(kinds):
        again = tables.read(tmp_path / f"{name}.parquet", kind)
        first = tables.read(trained.tables[place], kind)
        if name == "activations":
            vectors = (np.stack(table.pop("vector").tolist()) for table in (again, first))
            np.testing.assert_allclose(*vectors, atol=1e-5)
        pd.testing.assert_frame_equal(again, first, atol=1e-5)
    manifest = manifests.read(tmp_path / "manifest.json")
    assert (manifest["engine"], manifest["places"]) == ("deepspeed", ["mlp"])


@pytest.mark.slow
def test_the_job_has_the_key_of_its_manifest(trained):
    """Also from the values that the section lists for its unfinished jobs."""
    training = asdict(RECIPE)
    given = {
        **{name: training.pop(name) for name in ("learning_rate", "predict_end")},
        "training": {**training, "processes": 1},
        "model": MODEL,
        "corpus": str(LANGUAGE),
        "engine": "fleet",
        "dataset": trained.dataset,
        "weights": trained.weights,
        "query": READING,
        "values": VALUES,
    }
    key = manifests.read(trained.manifest)["key"]
    assert keys_of_job(str(MODELS), given) == [key]
    assert keys_of_job(str(MODELS), {**given, "values": {**VALUES, "positions": [MEAN]}}) != [key]
    assert json.dumps(given)


@pytest.mark.slow
def test_a_model_that_was_not_trained_is_refused(trained, dataset, tmp_path):
    """In one line that names the missing file; nothing is written."""
    run = replace(trained, weights=(str(tmp_path / "weights.safetensors"),), manifest=str(tmp_path))
    asked = [run], VALUES, assignment(dataset.parent)
    said = message(lambda: activations.query.run(*asked))
    assert str(tmp_path / "manifest.json") in said
    assert not list(tmp_path.iterdir())
