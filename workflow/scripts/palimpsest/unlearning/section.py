"""The section `unlearning`: methods that make models forget, and tests of whether they succeed.

Source: Are we making progress in unlearning?
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from palimpsest.configuration.checks import (
    symbols,
    texts,
    too_many_strings,
    unknown_languages,
    unknown_models,
    without_probabilities,
)
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError, nearest
from palimpsest.requests import Runs, Unfinished
from palimpsest.section import Derived, Part, Section, query_of
from palimpsest.unlearning import kinds, own_records
from palimpsest.unlearning.interventions import DRAWN, INTERVENTIONS, UNLEARNED
from palimpsest.unlearning.judging.jobs import PROBE, judge_of
from palimpsest.unlearning.methods import methods_of, read_methods
from palimpsest.unlearning.run.jobs import (
    UNLEARN,
    UNLEARNED_FILES,
    UnlearningJobs,
    UnlearningRun,
    dataset_of,
    jobs_of,
)
from palimpsest.unlearning.run.setups import BOOTSTRAP, ENDS, OTHER_MODELS
from palimpsest.unlearning.tuning.jobs import SEARCH, search_of, transfer_of

# Linux allows 131,072 bytes in one argument of a command; the others are short.
MOST_BYTES = 120_000


def requests(settings: Settings) -> Iterator[Runs]:
    """Many models trained with the strings to forget, and many trained without these strings."""
    yield from jobs_of(settings).requests()
    if transfer := transfer_of(settings):
        yield from transfer.requests()


def derived(settings: Settings) -> Iterator[Derived]:
    """The unlearned models of all methods; each is planned to take the time of the cutoff."""
    jobs = jobs_of(settings)
    n = sum(len(jobs.runs(method)) for method in jobs.applied)
    for one in jobs.unlearning_runs:
        trained = Runs(one.model, one.language, one.size, recipe=one.recipe)
        files = tuple(jobs.unlearned(one, kinds.UNLEARNED_MANIFEST, jobs.applied))
        yield Derived(trained, UNLEARNED, one.seed, n, jobs.block["cutoff"], files)
    if transfer := transfer_of(settings):
        for one in transfer.unlearning_runs:
            trained = Runs(one.model, one.language, one.size, recipe=one.recipe)
            files = tuple(transfer.searched([one]))
            n = transfer.n_unlearnings
            yield Derived(trained, UNLEARNED, one.seed, n, jobs.block["cutoff"], files)


def unfinished(settings: Settings) -> Iterator[Unfinished]:
    """Every job that unlearns, and every job that tries settings of methods."""
    jobs, search = jobs_of(settings), search_of(settings)
    for one in jobs.unlearning_runs:
        for first, last in jobs.jobs(one.model):
            weights, values = jobs.weights(one, first, last), jobs.values(first, last)
            yield _asked(settings, one, weights, UNLEARN, values)
    asked = (search, SEARCH), (transfer_of(settings), SEARCH), (judge_of(settings), PROBE)
    for each, query in asked:
        for one in each.unlearning_runs if each else ():
            yield _asked(settings, one, each.weights(one), query, each.values())


def _asked(
    settings: Settings, one: UnlearningRun, weights: list[str], query: str, values: dict
) -> Unfinished:
    trained = Runs(one.model, one.language, one.size, recipe=one.recipe)
    return query_of(settings, trained, dataset_of(one), weights, query, values)


def outputs(settings: Settings) -> Iterator[str]:
    """The files of unlearned models, their folders, and the tables of their evaluation.

    The files of unlearned models are outputs, too. Otherwise Snakemake would not make a lost file
    again while the tables made from this file exist.
    """
    jobs = jobs_of(settings)
    for one in jobs.unlearning_runs:
        for pattern in UNLEARNED_FILES:
            yield from jobs.unlearned(one, pattern, jobs.applied)
        yield from jobs.model_folders(one)
    yield from jobs.tables()
    if transfer := transfer_of(settings):
        yield from transfer.tables()


def on_demand(settings: Settings) -> Iterator[Runs]:
    """The models of the problems of `unlearning_tuning` and of `unlearning_judged`."""
    yield from search_of(settings).requests()
    yield from judged_models(settings)


def judged_models(settings: Settings) -> Iterator[Runs]:
    """The models that judge metrics, which only the target `unlearning_judged` needs."""
    if judge := judge_of(settings):
        yield from judge.requests()


def mistakes(settings: Settings) -> Iterator[Mistake]:
    jobs = jobs_of(settings)
    block = jobs.block
    yield from unknown_models(settings, "unlearning/models", block["models"])
    for key, languages in _languages(block).items():
        yield from unknown_languages(settings, key, languages)
        yield from too_many_strings(
            settings, "unlearning/size", [block["size"]], languages, with_copies=True
        )
        # Records have a message of their own.
        if block["groups"] == "derivation" and not settings.records.keys() & languages:
            for check in (without_probabilities, texts):
                yield from check(settings, key, languages, "unlearning/groups: derivation")
    yield from own_records.mistakes(settings, _languages(block))
    wrong_methods = [*_methods(jobs)]
    yield from wrong_methods
    yield from _symbols(settings, jobs)
    yield from _adapters(jobs)
    yield from _search(jobs)
    yield from _transfer(block)
    if not wrong_methods:
        yield from _long_search(settings)
    yield from _forget_set(settings, block)
    yield from _innocent(settings, block)
    n, pool = block["n"], block["pool"]
    if block["save_models"] > n:
        yield Mistake(
            "unlearning/save_models",
            f"{block['save_models']} models are more than unlearning/n, which is {n}",
        )
    if BOOTSTRAP in block["setups"] and pool < n:
        yield Mistake("unlearning/pool", f"{pool} models are fewer than unlearning/n, which is {n}")
    yield from _zero_stage(settings, block)


def mistakes_in_judge(settings: Settings) -> Iterator[Mistake]:
    judge = judge_of(settings)
    if not judge:
        return
    n, study = judge.block["n"], judge.block["study"]
    if study > n:
        yield Mistake(
            "unlearning/judge/study",
            f"{study} models of each kind are more than unlearning/judge/n, which is {n}",
        )
    yield from _unknown_methods(judge.jobs, "unlearning/judge/methods", judge.block["methods"])


def _languages(block: dict) -> dict[str, list[str]]:
    transfer = block["transfer"]
    return {
        "unlearning/languages": block["languages"],
        "unlearning/search/languages": block["search"]["languages"],
        **({"unlearning/transfer/languages": transfer["languages"]} if transfer else {}),
    }


def _methods(jobs: UnlearningJobs) -> Iterator[Mistake]:
    """A wrong table of methods, and names that are not in it."""
    table = jobs.block["table"]
    if not os.path.isfile(table):
        yield Mistake(
            "unlearning/table", f"no such file: {table}; give a table of methods (docs/methods.md)"
        )
        return
    try:
        shipped = read_methods(table)
    except UserError as error:
        yield Mistake("unlearning/table", str(error))
        return
    key = "unlearning/own_methods"
    try:
        own = methods_of(jobs.block["own_methods"])
    except UserError as error:
        yield Mistake(key, str(error))
        return
    for name in own.keys() & shipped.keys():
        yield Mistake(f"{key}/{name}", f"{table} has a method of this name; choose another")
    for where, methods in ((f"{key}/", own), ("unlearning/table: ", shipped)):
        for name in methods.keys() & OTHER_MODELS:
            what = "is the name of other models in the tables; give the method another"
            yield Mistake(f"{where}{name}", what)
    yield from _unknown_methods(jobs, "unlearning/methods", jobs.block["methods"])


def _unknown_methods(jobs: UnlearningJobs, where: str, names: list[str]) -> Iterator[Mistake]:
    for place, name in enumerate(names):
        key = f"{where}[{place}]"
        if name in ENDS:
            yield Mistake(key, f"{name!r} is always there; leave it out")
        elif name not in jobs.table:
            known = list(jobs.table)
            yield Mistake(
                key,
                f"unknown method {name!r}; known: {', '.join(known)}{nearest(name, known)}. "
                f"Add it to unlearning/own_methods, or to {jobs.block['table']}",
            )


def _adapters(jobs: UnlearningJobs) -> Iterator[Mistake]:
    """Methods that need every weight, for models whose adapters alone are trained."""
    for model in jobs.block["models"]:
        if not jobs.has_adapter(model):
            continue
        for place, name in enumerate(jobs.block["methods"]):
            if reason := jobs.table[name].ruled_out_by_adapters:
                yield Mistake(
                    f"unlearning/methods[{place}]",
                    f"{name} cannot unlearn {model}, of which only adapters are trained: {reason}; "
                    "leave the method out, or train all weights of the model (adapter: none)",
                )


def _symbols(settings: Settings, jobs: UnlearningJobs) -> Iterator[Mistake]:
    """Methods that need texts, for languages of symbols. A search is not asked for by default."""
    known = [name for name in jobs.block["methods"] if name in jobs.table]
    phases = [placed.phase for name in known for placed in jobs.table[name].placed]
    for phase in (phase for phase in phases if not phase.works_on_symbols):
        for key, languages in _languages(jobs.block).items():
            if key != "unlearning/search/languages":
                yield from symbols(settings, key, languages, phase.name)
        return


def _search(jobs: UnlearningJobs) -> Iterator[Mistake]:
    """Problems that are used both for the search of settings and for the evaluation."""
    asked = jobs.block["search"]
    both = set(asked["languages"]) & set(jobs.block["languages"])
    seeds = sorted(set(asked["seeds"]) & set(jobs.block["seeds"]))
    if both and seeds:
        yield Mistake(
            "unlearning/search/seeds",
            f"seed {seeds[0]} of {min(both)} is in the evaluation, too, and a method must not be "
            "tuned on the problems that it is judged on; choose another seed",
        )


def _transfer(block: dict) -> Iterator[Mistake]:
    """Problems of `transfer` that choose settings and judge them, too."""
    transfer = block["transfer"]
    if not transfer:
        return
    for key, languages in _languages(block).items():
        both = sorted(set(transfer["languages"]) & set(languages))
        if both and key != "unlearning/transfer/languages":
            yield Mistake(
                "unlearning/transfer/languages",
                f"{both[0]} is in {key}, too, so it is no other problem; choose another language",
            )
    if both := sorted(set(transfer["tuning_seeds"]) & set(transfer["seeds"])):
        yield Mistake(
            "unlearning/transfer/seeds",
            f"seed {both[0]} is in tuning_seeds, too, and a method must not be tuned on the "
            "problems that it is judged on; choose another seed",
        )


def _long_search(settings: Settings) -> Iterator[Mistake]:
    """A search whose points are too long for the command line of its job."""
    n_bytes = len(json.dumps(search_of(settings).values()).encode())
    if n_bytes > MOST_BYTES:
        n = settings.block("unlearning")["search"]["settings"]
        yield Mistake(
            "unlearning/search/settings",
            f"{n} points of every method are {n_bytes:,} bytes in a command, and Linux allows "
            f"{MOST_BYTES:,}; lower it",
        )


def _forget_set(settings: Settings, block: dict) -> Iterator[Mistake]:
    share, size, forget = block["share"], block["size"], block["forget"]
    if forget != DRAWN and not os.path.isfile(forget):
        remedy = f"give a text file with one string per line, or {DRAWN}"
        yield Mistake("unlearning/forget", f"no such file: {forget}; {remedy}")
    are_named = all(own_records.are_named(settings, name) for name in block["languages"])
    if forget == DRAWN and not are_named and round(share * size) == 0:
        remedy = f"raise it to {1 / size:.2g} or more" if size > 1 else "raise unlearning/size"
        yield Mistake(
            "unlearning/share", f"{share:g} of {size} strings is less than one string; {remedy}"
        )


def unused(settings: Settings) -> Iterator[tuple[str, str]]:
    """The share of groups to forget, if nothing is drawn."""
    names = settings.block("unlearning")["languages"]
    if all(own_records.are_named(settings, name) for name in names):
        yield "unlearning/share", f"the split of {', '.join(names)} says what is forgotten"


def _innocent(settings: Settings, block: dict) -> Iterator[Mistake]:
    """Innocent models that are trained as the others are."""
    name = block["innocent_recipe"]
    if name is not None and settings.recipe(name) == settings.recipe(block["recipe"]):
        yield Mistake(
            "unlearning/innocent_recipe",
            f"{name} has the values of unlearning/recipe, which is {block['recipe']}, so there is "
            "no difference to compare with; change one of its values, or set this key to null",
        )


def _zero_stage(settings: Settings, block: dict) -> Iterator[Mistake]:
    for model in block["models"]:
        stage = settings.training(model, block["recipe"])["zero_stage"]
        if settings.engine(model) == "deepspeed" and stage == 3:
            yield Mistake(
                settings.key_of("zero_stage", model, block["recipe"]),
                f"{model} cannot unlearn with ZeRO 3, because no process has a whole weight; set "
                "it to 2 (for only one full model: in training_by_model), with offload_optimizer: "
                "cpu if memory is short",
            )


def facts(settings: Settings) -> dict:
    """`sources`: on which side of the paper's comparison the methods are."""
    jobs = jobs_of(settings)
    sources = {name: jobs.table[name].source for name in jobs.block["methods"]}
    return {"sources": {name: source for name, source in sources.items() if source}}


SECTION = Section(
    name="unlearning",
    title="What models can be made to forget",
    answers=("Unlearning methods forget something.",),
    interventions=INTERVENTIONS,
    requests=requests,
    outputs=outputs,
    mistakes=mistakes,
    unused=unused,
    targets=("unlearning_tuning",),
    parts=(Part("unlearning_judged", "unlearning/judge", mistakes_in_judge, judged_models),),
    derived=derived,
    unfinished=unfinished,
    on_demand=on_demand,
    facts=facts,
    judged=(
        kinds.SCORES,
        kinds.EFFECTS,
        kinds.EPSILONS,
        kinds.METRICS,
        kinds.TESTS,
        kinds.GAPS,
        kinds.GAP_SUMMARY,
        kinds.MEMORISATION,
        kinds.ABLATION,
        kinds.TRANSFER,
    ),
    reported=(
        kinds.SCORES,
        kinds.TESTS,
        kinds.GAP_SUMMARY,
        kinds.MEMORISATION,
    ),
    opens=(kinds.GAP_SUMMARY.path,),
)
