"""The query that passes models over the strings of a run once more."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from helpers.commands import MODELS, ROOT
from palimpsest import manifests, tables
from palimpsest.atlas import kinds
from palimpsest.atlas.last_pass import last_pass
from palimpsest.atlas.section import CHANGED
from palimpsest.corpora import read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.kinds import STRINGS
from palimpsest.datasets.sampling import Sampler
from palimpsest.jobs.bench import Bench, holder_of
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.finetune import Job, finetune
from palimpsest.jobs.query import QueryFiles
from palimpsest.models.build import build as build_model
from palimpsest.training.recipe import Recipe

LANGUAGE = ROOT / "config/languages/L4.pcfg"
SEEDS = [1, 0]  # of the models, the run's own first


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Weights of two seeds, the assignment, and the table of the run with the first of `SEEDS`."""
    folder = tmp_path_factory.mktemp("last_pass")
    recipe = Recipe(3e-3, epochs=2, batch_size=4, evaluate_every=2, checkpoint_every=0)
    asked = Assignment(
        "opt-125m-twin", str(MODELS), str(LANGUAGE), recipe, "fleet", str(folder / "state")
    )
    jobs = []
    for seed in SEEDS:
        of_seed = folder / str(seed)
        of_seed.mkdir()
        strings = build(Sampler("L4", read_corpus(LANGUAGE), seed), "base", 8, 6, False)
        tables.write(of_seed / "strings.parquet", strings, STRINGS)
        names = ("strings.parquet", "trace.parquet", "manifest.json", "weights.safetensors")
        jobs.append(Job(*(str(of_seed / name) for name in names)))
    finetune(asked, jobs)
    weights = [job.weights for job in jobs]
    files = QueryFiles(
        jobs[0].dataset, weights, (str(folder / "passes.parquet"),), str(folder / "passes.json")
    )
    last_pass.query.run([files], {"model_seeds": SEEDS, **CHANGED}, asked)
    return asked, jobs[0], weights, tables.read(folder / "passes.parquet", kinds.LAST_PASS), folder


def test_every_model_passes_over_every_string(made):
    _, job, weights, found, folder = made
    strings = tables.read(job.dataset, STRINGS)
    assert list(found["model_seed"]) == list(np.repeat(SEEDS, len(strings)))
    assert list(found["string_id"]) == [*strings["string_id"]] * 2
    assert (found["seed"] == SEEDS[0]).all()
    about = manifests.read(folder / "passes.json")
    assert len(about["weights"]) == len(weights)
    assert about["model_seeds"] == SEEDS


def test_the_values_are_those_of_the_weights(made):
    """One string at a time, by the plain model; of the last layer, the mean after the start."""
    asked, job, weights, found, _ = made
    bench = Bench(asked.run(job.dataset), holder_of(asked))
    material = bench.material
    rows = found.set_index(["model_seed", "string_id"])
    for seed, path in zip(SEEDS, weights, strict=True):
        model = build_model(bench.run.row, "twin", material.vocabulary, 0, torch.float32).eval()
        model.load_state_dict(load_file(path), strict=False)
        for row, name in enumerate(material.string_ids):
            batch = material.encoded.batch(np.array([row]), torch.device("cpu"))
            with torch.no_grad():
                out = model(input_ids=batch.ids_BT, use_cache=False)
            is_real = batch.targets_BT[0] >= 0
            log_TV = out.logits[0].log_softmax(-1)[is_real].double()
            true_T = batch.targets_BT[0][is_real]
            of_true_T = log_TV.gather(1, true_T[:, None])
            mean_T = (log_TV.exp() * log_TV).sum(1)
            square_T = (log_TV.exp() * log_TV**2).sum(1)
            expected = {
                "log_probs": of_true_T[:, 0],
                "means": mean_T,
                "deviations": (square_T - mean_T**2).sqrt(),
                "ranks": (log_TV > of_true_T).sum(1) + 1,
            }
            of_string = rows.loc[(seed, name)]
            for column, values in expected.items():
                np.testing.assert_allclose(of_string[column], values, rtol=1e-4, atol=1e-4)
            whole_T = material.encoded.ids[row, : material.encoded.lengths[row]]
            with torch.no_grad():
                whole = model(torch.from_numpy(whole_T)[None], output_hidden_states=True)
            mean_D = whole.hidden_states[-1][0, 1:].mean(0)
            vector = of_string["vector"]
            assert vector @ (mean_D / mean_D.norm()).numpy() == pytest.approx(1, abs=1e-4)
