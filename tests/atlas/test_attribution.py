"""The query that scores the strings of a run from its weights after every epoch."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from helpers.commands import MODELS, ROOT
from palimpsest import manifests, tables
from palimpsest.atlas.attribution import (
    CURVATURE,
    EKFAC,
    MAGIC,
    METHODS,
    NORM,
    TRACIN,
    TRAK,
    attribution,
    questions,
)
from palimpsest.atlas.ekfac import ekfac_influence
from palimpsest.atlas.gradients import ADAMW, COSINE, PLAIN
from palimpsest.atlas.influence import Weighing
from palimpsest.atlas.string_gradients import StringGradients
from palimpsest.atlas.trak import trak
from palimpsest.corpora import read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.kinds import STRINGS
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import UserError
from palimpsest.jobs.bench import Bench, TrainedWeights, holder_of
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.finetune import Job, finetune
from palimpsest.jobs.query import Query, QueryFiles
from palimpsest.models.build import build as build_model
from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind
from palimpsest.training.kept_weights import weights_by_epoch
from palimpsest.training.recipe import Recipe

LANGUAGE = ROOT / "config/languages/L4.pcfg"
SIZE, TESTS, UNSEEN = 8, 6, 3
RECIPE = Recipe(3e-3, epochs=4, batch_size=4, evaluate_every=2, checkpoint_every=0)
EPOCHS = [0, 2, 4]
VALUES = {"methods": list(METHODS), "unseen": UNSEEN, "draws": 2, "directions": 16}

columns = SHARED.extended("""
removed str: the training string that is left out
method str: a method
value float: a score
passes int: passes of strings
""")
RUN = "results/atlas/{recipe}/{model}/{language}/n{size}-seed{seed}"
KINDS = (
    Kind(
        "own_scores",
        "A score.",
        f"{RUN}/own.parquet",
        columns(
            "model language size seed string_id epoch measure value", measure="str: the measure"
        ),
    ),
    Kind(
        "cross_scores",
        "A score.",
        f"{RUN}/cross.parquet",
        columns(
            "model language size seed removed string_id measure value", measure="str: the measure"
        ),
    ),
    Kind(
        "costs",
        "A cost.",
        f"{RUN}/costs.parquet",
        columns(
            "model language size seed method seconds passes", seconds="float: of the processor"
        ),
    ),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A trained run, the tables of its scores, and the folder and assignment of both."""
    folder = tmp_path_factory.mktemp("attribution")
    strings = build(Sampler("L4", read_corpus(LANGUAGE), 0), "base", SIZE, TESTS, False)
    tables.write(folder / "strings.parquet", strings, STRINGS)
    state = str(folder / "state")
    asked = Assignment("opt-125m-twin", str(MODELS), str(LANGUAGE), RECIPE, "fleet", state)
    dataset, weights = str(folder / "strings.parquet"), str(folder / "checkpoints")
    trained = str(folder / "trace.parquet"), str(folder / "manifest.json")
    finetune(asked, [Job(dataset, *trained, checkpoints=weights)])
    paths = tuple(str(folder / f"{kind.name}.parquet") for kind in KINDS)
    query = Query("atlas", KINDS, questions, by_epoch=True)
    query.run([QueryFiles(dataset, (weights,), paths, str(folder / "scores.json"))], VALUES, asked)
    found = [tables.read(path, kind) for path, kind in zip(paths, KINDS, strict=True)]
    return folder, asked, found


def bench_of(folder, asked: Assignment, **changes) -> Bench:
    run = replace(asked.run(str(folder / "strings.parquet")), **changes)
    return Bench(run, holder_of(asked))


def weights_in(folder) -> TrainedWeights:
    return TrainedWeights([str(path) for path in weights_by_epoch(folder / "checkpoints").values()])


def test_every_string_and_epoch_has_a_row(made):
    folder, _, (own, cross, costs) = made
    strings = tables.read(folder / "strings.parquet", STRINGS)
    train = list(strings.loc[strings["count"] > 0, "string_id"])
    never = strings.loc[(strings["test_count"] > 0) & (strings["count"] == 0), "string_id"]
    measured = [*train, *never[:UNSEEN]]
    assert len(measured) == len(train) + UNSEEN
    by_measure = {name: list(rows["epoch"].unique()) for name, rows in own.groupby("measure")}
    at_all = dict.fromkeys((NORM, PLAIN, ADAMW, MAGIC, CURVATURE), EPOCHS)
    assert by_measure == {**at_all, EKFAC: [4], TRAK: [4]}
    assert not own.duplicated(["string_id", "epoch", "measure"]).any()
    assert all(list(rows["string_id"]) == measured for _, rows in own.groupby(["measure", "epoch"]))
    assert set(cross["measure"]) == {PLAIN, ADAMW, COSINE, EKFAC, TRAK, MAGIC}
    assert len(cross) == 6 * len(train) * len(measured)
    assert set(cross["removed"]) == set(train)
    assert set(cross["string_id"]) == set(measured)
    assert np.isfinite(own["value"]).all()
    assert np.isfinite(cross["value"]).all()
    assert list(costs["method"]) == list(METHODS)
    assert (costs["passes"] > 0).all()
    assert manifests.read(folder / "scores.json")["epochs"] == EPOCHS


def test_the_influence_on_oneself_is_that_after_the_last_epoch(made):
    """In both tables, of strings that are trained on; nothing is summed before training."""
    _, _, (own, cross, _) = made
    same = cross[cross["removed"] == cross["string_id"]].set_index(["measure", "string_id"])
    last = own[own["epoch"] == 4].set_index(["measure", "string_id"])["value"]
    expected = last.reindex(same.index).drop(COSINE, level="measure")
    np.testing.assert_allclose(same["value"].drop(COSINE, level="measure"), expected, rtol=1e-4)
    np.testing.assert_allclose(same["value"][COSINE], 1, rtol=1e-4)
    summed = own[own["measure"].isin([PLAIN, ADAMW])]
    assert (summed.loc[summed["epoch"] == 0, "value"] == 0).all()
    by_epoch = summed.pivot(index=["measure", "string_id"], columns="epoch", values="value")
    assert (by_epoch.diff(axis=1).iloc[:, 1:] > 0).all(axis=None)


def test_scores_are_of_the_kept_weights(made):
    """The norms of the gradients, one string at a time, by plain autograd."""
    folder, asked, (own, _, _) = made
    material = bench_of(folder, asked).material
    row = bench_of(folder, asked).run.row
    model = build_model(row, "twin", material.vocabulary, 0, torch.float32).eval()
    norms = own[own["measure"] == NORM].set_index(["epoch", "string_id"])["value"]
    for epoch, file in weights_by_epoch(folder / "checkpoints").items():
        model.load_state_dict(load_file(file), strict=False)
        for row in np.flatnonzero(material.counts > 0):
            model.zero_grad()
            batch = material.encoded.batch(np.array([row]), torch.device("cpu"))
            logits = model(input_ids=batch.ids_BT, use_cache=False).logits
            torch.nn.functional.cross_entropy(logits[0], batch.targets_BT[0]).backward()
            grads = [weight.grad.flatten() for weight in model.parameters()]
            exact = float(torch.cat(grads).norm())
            assert norms[epoch, material.string_ids[row]] == pytest.approx(exact, rel=1e-4)


def test_scores_at_the_end_are_of_the_last_weights(made):
    folder, asked, (own, _, _) = made
    bench, last = bench_of(folder, asked), load_file(weights_by_epoch(folder / "checkpoints")[4])
    material, recipe = bench.material, bench.run.recipe
    steps = recipe.steps_per_epoch(material.epoch_size)
    weighs = Weighing(material.counts, material.encoded.n_tokens, steps, recipe.gradient_clipping)
    model = build_model(bench.run.row, "twin", material.vocabulary, 0, torch.float32).eval()
    model.load_state_dict(last, strict=False)
    train, ids = weighs.train, material.string_ids[weighs.train]
    by_measure = own[own["epoch"] == 4].set_index(["measure", "string_id"])["value"]
    found = ekfac_influence(model, material.encoded, weighs, train, draws=2, seed=material.seed)
    np.testing.assert_allclose(by_measure[EKFAC][ids], found.self_influence, rtol=1e-4)
    gradients = StringGradients(model, material.encoded, torch.device("cpu"))
    found = trak(gradients, [last], weighs, train, 16, seed=material.seed)
    np.testing.assert_allclose(by_measure[TRAK][ids], found.self_influence, rtol=1e-4)


def test_methods_can_be_chosen_and_scores_are_repeated(made):
    folder, asked, (own, cross, _) = made
    values = {**VALUES, "methods": [TRAK, EKFAC]}
    bench, weights = bench_of(folder, asked), weights_in(folder)
    found = attribution(bench, weights, epochs=EPOCHS, **values)
    for name, of_query in (("self_influence", own), ("influence", cross)):
        chosen = of_query[of_query["measure"].isin([TRAK, EKFAC])]
        order = [*(c for c in chosen if c != "value")]
        pd.testing.assert_frame_equal(
            found[name].sort_values(order, ignore_index=True),
            chosen.sort_values(order, ignore_index=True),
            check_dtype=False,
        )
    assert list(found["costs"]["method"]) == [TRAK, EKFAC]
    only = attribution(bench, weights, epochs=EPOCHS, **{**values, "methods": [TRACIN]})
    assert list(only["costs"]["method"]) == [TRACIN]


def test_longer_training_raises_no_score_of_the_past(made):
    """Scores after an epoch do not depend on the weights of later epochs."""
    folder, asked, (own, _, _) = made
    files = list(map(str, weights_by_epoch(folder / "checkpoints").values()))[:2]
    found = attribution(
        bench_of(folder, asked),
        TrainedWeights(files),
        epochs=EPOCHS[:2],
        **{**VALUES, "methods": [TRACIN]},
    )["self_influence"]
    early = own[(own["epoch"] < 4) & own["measure"].isin(found["measure"])]
    keys = ["measure", "epoch", "string_id"]
    pd.testing.assert_series_equal(
        found.set_index(keys)["value"].sort_index(), early.set_index(keys)["value"].sort_index()
    )


def test_what_has_no_such_scores_is_refused_in_one_line(made):
    folder, asked, _ = made
    weights = weights_in(folder)
    with_adapter = bench_of(folder, asked, recipe=replace(RECIPE, adapter="lora"))
    with pytest.raises(UserError, match="without an adapter; name a twin"):
        attribution(with_adapter, weights, epochs=EPOCHS)
    stream = bench_of(folder, asked)
    stream.material.cohorts = np.ones(SIZE, dtype=int)
    with pytest.raises(UserError, match="is a stream, which is trained on once"):
        attribution(stream, weights, epochs=EPOCHS)
