"""The section `records`: which of a user's own records did a model memorise?

Three roads give the losses: training again without a part of the records, checkpoints that are only
asked, and losses that the user measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from palimpsest.configuration.checks import (
    id_of,
    is_one_model,
    missing_folder,
    unknown_models,
    unknown_records,
)
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.named_files import NamedFile, named_files, unusable_files
from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError
from palimpsest.models.table import NAME, NAMES_ARE
from palimpsest.number_format import plural
from palimpsest.records import kinds
from palimpsest.records.intervals import FEWEST_KNOWN, fewest_unseen
from palimpsest.records.interventions import ALL, INTERVENTIONS, without_fold
from palimpsest.requests import Runs
from palimpsest.section import Asked, Section

CONFORMAL = "conformal"  # a value of records/verdict


@dataclass(frozen=True)
class Checkpoint:
    """A model that is asked about the records of a corpus, and its reference, if there is one.

    Both are folders, or names on the Hugging Face hub.
    """

    corpus: str
    model: str
    reference: str | None = None


def checkpoints(settings: Settings) -> dict[str, Checkpoint]:
    """The checkpoints of the block, by name. A name of the table of models stands for its id."""
    asked = settings.block("records")["checkpoints"] or {}
    return {
        name: Checkpoint(
            one["corpus"],
            id_of(settings, one["model"]),
            id_of(settings, one["reference"]) if "reference" in one else None,
        )
        for name, one in asked.items()
    }


def asked(settings: Settings) -> Iterator[Asked]:
    """The models that are asked and not trained: checkpoints, and their references."""
    for name, one in checkpoints(settings).items():
        file = kinds.MEASURED.path.format(language=one.corpus, model=name)
        for model in filter(None, (one.model, one.reference)):
            yield Asked(model, n_tokens(settings, one.corpus), file)


def n_tokens(settings: Settings, corpus: str) -> float:
    """A rough number of tokens of all records of a corpus."""
    records = settings.corpus(corpus)
    return len(records.strings) * records.expected_length()


def given_losses(settings: Settings) -> dict[str, NamedFile]:
    """The tables of losses of the block, by name."""
    return named_files(settings.block("records")["losses"])


def whole(settings: Settings) -> list[Runs]:
    """The trainings on all records that are to be trained on."""
    block = settings.block("records")
    return [
        Runs(
            model,
            corpus,
            int(settings.corpus(corpus).most_draws()),
            ALL,
            settings.seeds,
            block["recipe"],
            job=ALL,
        )
        for corpus in block["corpora"]
        for model in block["models"]
    ]


def without(settings: Settings) -> list[str]:
    """The variants without a fold on which models are trained."""
    block = settings.block("records")
    n = block["folds"] if block["retrained"] is None else block["retrained"]
    return [without_fold(fold, block["folds"]) for fold in range(n)]


def requests(settings: Settings) -> Iterator[Runs]:
    """All trainings, with and without folds."""
    for runs in whole(settings):
        yield runs
        for variant in without(settings):
            yield runs.on(variant)


def sources(settings: Settings) -> list[str]:
    """The corpora and tables of losses about which there are answers."""
    block = settings.block("records")
    asked = (one.corpus for one in checkpoints(settings).values())
    trained = block["corpora"] if block["models"] else []
    return list(dict.fromkeys([*trained, *asked, *given_losses(settings)]))


def outputs(settings: Settings) -> Iterator[str]:
    """Nothing if nothing is asked for, as in the default configuration."""
    names = sources(settings)
    is_bounded = settings.block("records")["verdict"] == CONFORMAL
    for kind in (kinds.ANSWERS, kinds.SHARES, *([kinds.CONFORMAL] if is_bounded else [])):
        yield from (kind.path.format(language=name) for name in names)
    if names:
        yield from (kinds.RECORDS.path, kinds.AS_CSV)


def mistakes(settings: Settings) -> Iterator[Mistake]:
    block = settings.block("records")
    yield from unknown_models(settings, "records/models", block["models"])
    for place, name in enumerate(block["corpora"]):
        yield from unknown_records(settings, f"records/corpora[{place}]", name)
    for name, one in (block["checkpoints"] or {}).items():
        yield from _checkpoint(settings, f"records/checkpoints/{name}", name, one)
    losses = given_losses(settings)
    yield from unusable_files("records/losses", losses, "a table of losses", check=_check_losses)
    for name in losses.keys() & {*settings.records}:
        yield Mistake(f"records/losses/{name}", "is the name of a corpus, too; give it another one")
    if (n := block["retrained"]) is not None and n > block["folds"]:
        yield Mistake("records/retrained", f"is {n}, and records/folds is {block['folds']}")
    elif block["models"]:
        for place, name in enumerate(block["corpora"]):
            yield from _too_few_groups(settings, f"records/corpora[{place}]", name)
    if block["verdict"] == CONFORMAL:
        yield from _without_bounds(block)


def _check_losses(named: NamedFile) -> None:
    from palimpsest.records.losses import check_head  # tables are slow to import

    check_head(named.file, named.columns)


def _checkpoint(settings: Settings, key: str, name: str, one: Mapping) -> Iterator[Mistake]:
    if not NAME.fullmatch(name):
        yield Mistake(key, f"is not a name; allowed are {NAMES_ARE}")
    yield from unknown_records(settings, f"{key}/corpus", one["corpus"])
    for role in ("model", "reference"):
        if role in one:
            yield from missing_folder(settings, f"{key}/{role}", one[role])
    block = settings.block("records")
    if name in block["models"] and one["corpus"] in block["corpora"]:
        yield Mistake(
            key, f"is the name of a model that is trained on {one['corpus']}; give it another one"
        )
    if one["corpus"] in settings.records:
        is_trained = settings.corpus(one["corpus"]).is_trained
        if is_trained is not None and not is_trained.any():
            yield Mistake(
                f"{key}/corpus",
                f"no record of {one['corpus']} is said to be trained on, by its split or the "
                "column trained; give some such a split or true, or leave the column out",
            )
        if "reference" not in one and (is_trained is None or is_trained.all()):
            yield Mistake(
                key,
                "has nothing to compare its losses with; name a reference, or give some records of "
                f"{one['corpus']} a split such as holdout, or false in the column trained",
            )
    if "reference" in one and is_one_model(settings, one["model"], one["reference"]):
        yield Mistake(f"{key}/reference", "is the model itself; name another model")


def limits(settings: Settings) -> Iterator[tuple[str, str]]:
    """Corpora with too few records that are never trained on, each once."""
    block = settings.block("records")
    needed = fewest_unseen(block["false_alarms"])
    of_trained = block["corpora"] if block["models"] else []
    keys = {name: f"records/corpora[{place}]" for place, name in enumerate(of_trained)}
    for name, one in checkpoints(settings).items():
        keys.setdefault(one.corpus, f"records/checkpoints/{name}/corpus")
    for name, key in keys.items():
        n_unseen = _n_unseen(settings, name, name in of_trained)
        if n_unseen < needed:
            yield key, said_of_few(name, n_unseen, needed, block["false_alarms"])


def _n_unseen(settings: Settings, name: str, is_trained_here: bool) -> int:
    """Records of a corpus that are never trained on, of the seed with the fewest."""
    corpus = settings.corpus(name)
    if not is_trained_here:
        return 0 if corpus.is_trained is None else int((~corpus.is_trained).sum())
    holdout = settings.block("records")["holdout"]
    return min(int((~corpus.sides(seed, holdout)).sum()) for seed in settings.seeds)


def said_of_few(name: str, n_unseen: int, needed: int, false_alarms: float) -> str:
    return (
        f"{name} has {plural(n_unseen, 'record')} never trained on; with fewer than {needed}, no "
        f"p-value can be {false_alarms:g} or less (records/false_alarms), so no record can be "
        "detected; give more records that are not trained on"
    )


def facts(settings: Settings) -> dict:
    return {"false_alarms_of_records": settings.block("records")["false_alarms"]}


def _too_few_groups(settings: Settings, key: str, name: str) -> Iterator[Mistake]:
    block = settings.block("records")
    try:
        n_groups = settings.corpus(name).n_trained_groups(block["holdout"])
    except UserError as error:
        yield Mistake(key, str(error))
        return
    folds, n_without = block["folds"], len(without(settings))
    if n_groups < 2 * folds:
        yield Mistake(
            key,
            f"{name} has {n_groups} groups of records to train on, too few for {folds} folds with "
            "two groups each; lower records/folds, or add records",
        )
    n_known = n_groups * n_without // folds
    if block["verdict"] == CONFORMAL and n_known < FEWEST_KNOWN:
        yield Mistake(
            key,
            f"of the {n_groups} groups of records of {name} to train on, {n_without} of {folds} "
            f"folds have {n_known}, too few to bound the others; {FEWEST_KNOWN} are needed: raise "
            "records/retrained, lower records/folds, or add records",
        )


def _without_bounds(block: Mapping) -> Iterator[Mistake]:
    """Roads whose losses allow no bounds: no record has a loss without it, or all have one."""
    if block["checkpoints"]:
        yield Mistake(
            "records/verdict",
            "conformal needs losses without some of the records, and checkpoints have none; leave "
            "them out, or give a table in records/losses (docs/records.md)",
        )
    if block["corpora"] and block["models"] and block["retrained"] in (None, block["folds"]):
        yield Mistake(
            "records/verdict",
            "conformal bounds the records of folds that no model is trained without, and there are "
            "none; set records/retrained below records/folds",
        )


SECTION = Section(
    name="records",
    title="Which records are memorised",
    requests=requests,
    outputs=outputs,
    asked=asked,
    mistakes=mistakes,
    limits=limits,
    facts=facts,
    reported=(kinds.SHARES, kinds.ANSWERS, kinds.CONFORMAL),
    interventions=INTERVENTIONS,
    opens=(kinds.AS_CSV,),
)
