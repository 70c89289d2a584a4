"""The section `unlearning`: methods that make models forget, and tests of whether they succeed.

Source: Are we making progress in unlearning?
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from palimpsest import paths
from palimpsest.configuration.checks import (
    too_many_strings,
    unknown_languages,
    unknown_models,
    without_probabilities,
)
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.errors import nearest
from palimpsest.models.table import learning_rate
from palimpsest.requests import Runs, Unfinished
from palimpsest.section import Derived, Section
from palimpsest.unlearning import kinds
from palimpsest.unlearning.jobs import UNLEARNED_FILES, UnlearningJobs, jobs_of
from palimpsest.unlearning.setups import BOOTSTRAP, ENDS
from palimpsest.variants import DRAWN, ORIGINAL, UNLEARNED


def requests(settings: Settings) -> Iterator[Runs]:
    """Many models trained with the strings to forget, and many trained without these strings."""
    return jobs_of(settings).requests()


def derived(settings: Settings) -> Iterator[Derived]:
    """The unlearned models of all methods; each is planned to take the time of the cutoff."""
    jobs = jobs_of(settings)
    n = sum(len(jobs.runs(method)) for method in jobs.applied)
    for one in jobs.forgetters:
        trained = Runs(one.model, one.language, one.size, training=jobs.block["training"])
        files = tuple(jobs.unlearned(one, jobs.applied, "manifest.json"))
        yield Derived(trained, UNLEARNED, one.seed, n, jobs.block["cutoff"], files)


def unfinished(settings: Settings) -> Iterator[Unfinished]:
    """Every job that unlearns."""
    jobs = jobs_of(settings)
    for one in jobs.forgetters:
        dataset = paths.DATASET.format(**vars(one), variant=ORIGINAL)
        for method in jobs.applied:
            for first, last in jobs.jobs(one.model, method):
                part = method, first, last
                variant, starts = jobs.starts(*part)
                given = {
                    "model": one.model,
                    "corpus": settings.corpus_file(one.language),
                    "learning_rate": learning_rate(one.model, settings.models),
                    "predict_end": settings.config["datasets"]["predict_end"],
                    "training": jobs.training(one.model),
                    "engine": settings.engine(one.model),
                    "dataset": dataset,
                    "method": method,
                    "phases": jobs.phases(method),
                    "weights": jobs.weights(one, *part),
                    "variant": variant,
                    "starts": starts,
                    "origins": jobs.origins(*part),
                    "draws": jobs.numbers(*part),
                    "relearning": jobs.block["relearn"],
                }
                yield Unfinished(dataset, "palimpsest.unlearning.unlearn:key_of_job", given)


def outputs(settings: Settings) -> Iterator[str]:
    """The files of unlearned models and the tables of their evaluation.

    The files of unlearned models are outputs, too. Otherwise Snakemake would not make a lost file
    again while the tables made from this file exist.
    """
    jobs = jobs_of(settings)
    for one in jobs.forgetters:
        for name in UNLEARNED_FILES:
            yield from jobs.unlearned(one, jobs.applied, name)
    yield from jobs.tables()


def mistakes(settings: Settings) -> Iterator[Mistake]:
    """The mistakes in the block that its schema cannot find."""
    jobs = jobs_of(settings)
    block = jobs.block
    yield from unknown_models(settings, "unlearning/models", block["models"])
    yield from unknown_languages(settings, "unlearning/languages", block["languages"])
    yield from too_many_strings(settings, "unlearning/size", [block["size"]], block["languages"])
    if block["groups"] == "derivation":
        yield from without_probabilities(
            settings, "unlearning/languages", block["languages"], "unlearning/groups: derivation"
        )
    if settings.block("memorisation") is None:
        yield Mistake(
            "memorisation",
            "has the thresholds that unlearning is measured with; keep the block and leave out its "
            "studies, or set unlearning to null as well",
        )
    yield from _methods(jobs)
    yield from _forget_set(block)
    n, pool = block["n"], block["pool"]
    if BOOTSTRAP in block["setups"] and pool < n:
        yield Mistake("unlearning/pool", f"{pool} models are fewer than unlearning/n, which is {n}")
    yield from _zero_stage(settings, block["models"])


def _methods(jobs: UnlearningJobs) -> Iterator[Mistake]:
    """Names that are not in the table of methods; raises `UserError` if the table is wrong."""
    table = jobs.block["table"]
    if not os.path.isfile(table):
        yield Mistake("unlearning/table", f"no such file: {table}")
    for list_name in ("methods", "tuning"):
        for place, name in enumerate(jobs.block[list_name]):
            key = f"unlearning/{list_name}[{place}]"
            if name in ENDS:
                yield Mistake(key, f"{name!r} is always there; leave it out")
            elif name not in jobs.table:
                known = [method for method in jobs.table if "." not in method]  # no points of grids
                yield Mistake(
                    key,
                    f"unknown method {name!r}; known: {', '.join(known)}{nearest(name, known)}. "
                    f"Add it to {table}",
                )
            elif list_name == "tuning" and not jobs.table[name].points():
                yield Mistake(key, f"{name!r} has no grid in {table}")


def _forget_set(block: dict) -> Iterator[Mistake]:
    share, size, forget = block["share"], block["size"], block["forget"]
    if forget != DRAWN and not os.path.isfile(forget):
        remedy = f"give a text file with one string per line, or {DRAWN}"
        yield Mistake("unlearning/forget", f"no such file: {forget}; {remedy}")
    if forget == DRAWN and round(share * size) == 0:
        yield Mistake(
            "unlearning/share",
            f"{share:g} of {size} strings is less than one string; raise it to {1 / size:.2g} or "
            "more",
        )


def _zero_stage(settings: Settings, models: list[str]) -> Iterator[Mistake]:
    for model in models:
        if settings.engine(model) == "deepspeed" and settings.training(model)["zero_stage"] == 3:
            own = settings.config["training_by_model"].get(model, {})
            where = f"training_by_model/{model}" if "zero_stage" in own else "training"
            yield Mistake(
                f"{where}/zero_stage",
                f"{model} cannot unlearn with ZeRO 3, because no process has a whole weight; set "
                "it to 2 (for only one full model: in training_by_model), with offload_optimizer: "
                "cpu if memory is short",
            )


SECTION = Section(
    name="unlearning",
    title="What models can be made to forget",
    requests=requests,
    outputs=outputs,
    mistakes=mistakes,
    derived=derived,
    unfinished=unfinished,
    kinds="palimpsest.unlearning.kinds:KINDS",
    figures="palimpsest.unlearning.figures:FIGURES",
    claims="palimpsest.unlearning.claims:CLAIMS",
    judged=(kinds.SCORES, kinds.EFFECTS, kinds.EPSILONS, kinds.METRICS),
    report="palimpsest.unlearning.report:part",
    reported=(kinds.SUMMARY, kinds.SCORES, kinds.MEMORISATION, kinds.EFFECTS),
)
