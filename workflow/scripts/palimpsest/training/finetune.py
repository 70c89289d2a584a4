"""Fine-tuning: train a model on datasets, one after another, and deliver traces and manifests."""

import torch

from palimpsest.languages import Grammar
from palimpsest.models import read_models, resolve
from palimpsest.training.deepspeed_engine import DeepSpeedEngine, Run, show_progress
from palimpsest.training.recipe import Recipe


def finetune(
    model: str,
    models: str,
    language: str,
    recipe: Recipe,
    jobs: list[tuple[str, str, str]],
    state: str,
    threads: int = 1,
) -> None:
    """Train `model` on each dataset of `jobs` (dataset, trace, manifest).

    Nothing is delivered before every run is done, because Snakemake deletes what a failed job has
    delivered; a finished run waits in the state folder, and an unfinished one resumes from there.
    A trace that is already there, of this very configuration and data, is left as it is.
    """
    torch.set_num_threads(threads)
    row, scale = resolve(model, read_models(models))
    grammar = Grammar.from_file(language)
    engine = DeepSpeedEngine(recipe, state)
    trained = []
    for dataset, trace, manifest in jobs:
        run = Run(model, row, scale, grammar, dataset, recipe)
        if engine.state(run).delivered(trace, manifest):
            continue
        trained.append((engine.train(run, show_progress(trace)), trace, manifest))
    engine.close()
    if engine.rank == 0:
        for run_state, trace, manifest in trained:
            run_state.deliver(trace, manifest)
        for run_state, *_ in trained:
            run_state.clear()
