"""The section `audit`: was a text in a model's training data, and can it be extracted?

The models are those of others: they are only asked. Source of the reference-model audit: Learning
Without Memorizing Considered Infeasible, section 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from palimpsest.audit import kinds
from palimpsest.audit.checkpoints import kinds as checkpoint_kinds
from palimpsest.audit.checkpoints import sets
from palimpsest.audit.interventions import INTERVENTIONS, MEMBERS
from palimpsest.audit.kinds import TARGET
from palimpsest.audit.membership import ATTACKS
from palimpsest.configuration.checks import (
    id_of,
    is_one_model,
    missing_folder,
    unknown_models,
    unknown_records,
)
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.errors import nearest
from palimpsest.models.table import NAME, NAMES_ARE
from palimpsest.paths import MODEL_FOLDER
from palimpsest.records.interventions import ALL as RECORDS
from palimpsest.records.section import n_tokens
from palimpsest.requests import TRACE, WEIGHTS, Runs
from palimpsest.section import Asked, Section

ALL = "all"


@dataclass(frozen=True)
class Target:
    """A model that is audited on the records of a corpus, and its references by name.

    Models are folders, or names on the Hugging Face hub. The folder of a target that `runs` train
    is made from their weights. `coin` says that a coin chose the member of each group of two.
    """

    corpus: str
    model: str
    runs: Runs | None = None
    references: Mapping[str, str] = field(default_factory=dict)
    coin: bool = False


def targets(settings: Settings) -> dict[str, Target]:
    """The targets of the block, by name. A name of the table of models stands for its id."""
    return {
        name: _target(settings, one) for name, one in settings.block("audit")["targets"].items()
    }


def _target(settings: Settings, one: Mapping) -> Target:
    references = one.get("references", {})
    references = {role: id_of(settings, model) for role, model in references.items()}
    coin = one.get("coin", False)
    if "model" in one:
        return Target(one["corpus"], id_of(settings, one["model"]), None, references, coin)
    runs = Runs(
        one["train"],
        one["corpus"],
        int(settings.corpus(one["corpus"]).most_draws()),
        MEMBERS,
        settings.seeds[:1],
        recipe=settings.block("audit")["recipe"],
        keeps=frozenset({TRACE, WEIGHTS}),
    )
    if is_retrained(settings, runs):
        runs = replace(runs, intervention=RECORDS, job=RECORDS)
    (folder,) = runs.paths(MODEL_FOLDER)
    return Target(one["corpus"], folder, runs, references, coin)


def is_retrained(settings: Settings, runs: Runs) -> bool:
    """Whether the section `records` trains a target's model with and without these records.

    Then the target is its model of all records, so that what both sections say is of one model.
    """
    block = settings.block("records")
    return (
        block is not None
        and (runs.corpus in block["corpora"] and runs.model in block["models"])
        and runs.recipe == block["recipe"]
        and settings.corpus(runs.corpus).is_trained is not None
    )


def requests(settings: Settings) -> Iterator[Runs]:
    """The trainings of targets whose training records are known, because they are trained here."""
    found = (target.runs for target in targets(settings).values())
    yield from (runs for runs in found if runs is not None)


def attacks(settings: Settings) -> list[str]:
    """The names of the attacks."""
    asked = settings.block("audit")["attacks"]
    return list(ATTACKS) if asked == ALL else asked


def outputs(settings: Settings) -> Iterator[str]:
    for name, target in targets(settings).items():
        of_attacks = kinds.OF_ATTACKS if attacks(settings) else ()
        of_truth = (kinds.DETECTORS,) if of_attacks and has_both_sides(settings, target) else ()
        for kind in (
            *kinds.OF_ASKING,
            *kinds.OF_EXTRACTION,
            *of_attacks,
            *of_truth,
            *kinds.OF_RECITING,
        ):
            yield kind.path.format(language=target.corpus, model=name)
        for path in kinds.COPIES.values():
            yield path.format(language=target.corpus, model=name)
    yield from sets.outputs(settings)


def asked(settings: Settings) -> Iterator[Asked]:
    """The models that are asked and not trained: targets, their references, and checkpoints."""
    for name, target in targets(settings).items():
        models = [target.model] if target.runs is None else []
        file = kinds.PASSES.path.format(language=target.corpus, model=name)
        for model in (*models, *target.references.values()):
            yield Asked(model, n_tokens(settings, target.corpus), file)
    for (corpus, name), one in sets.checkpoints(settings).items():
        file = checkpoint_kinds.SCORES.path.format(language=corpus, model=name)
        yield Asked(one.model, n_tokens(settings, corpus), file)


def has_both_sides(settings: Settings, target: Target) -> bool:
    """Whether some records are known to be members of a target's training data, and others not."""
    is_trained = settings.corpus(target.corpus).is_trained
    return is_trained is not None and 0 < is_trained.sum() < len(is_trained)


def mistakes(settings: Settings) -> Iterator[Mistake]:
    block = settings.block("audit")
    for name, one in block["targets"].items():
        yield from _mistakes_of(settings, f"audit/targets/{name}", name, one)
    yield from sets.mistakes(settings)
    if block["attacks"] != ALL:
        for place, attack in enumerate(block["attacks"]):
            if attack not in ATTACKS:
                known = f"known: {', '.join(ATTACKS)}{nearest(attack, ATTACKS)}"
                yield Mistake(f"audit/attacks[{place}]", f"unknown attack {attack!r}; {known}")


def _mistakes_of(settings: Settings, key: str, name: str, one: Mapping) -> Iterator[Mistake]:
    if not NAME.fullmatch(name):
        yield Mistake(key, f"is not a name; allowed are {NAMES_ARE}")
    yield from unknown_records(settings, f"{key}/corpus", one["corpus"])
    if "train" in one:
        yield from unknown_models(settings, f"{key}/train", [one["train"]])
    references = one.get("references", {})
    target = {"model": one["model"]} if "model" in one else {}
    for role, model in {**target, **references}.items():
        at = f"{key}/model" if role == "model" else f"{key}/references/{role}"
        yield from missing_folder(settings, at, model)
        if role != "model" and (role == TARGET or not NAME.fullmatch(role)):
            yield Mistake(at, f"{role!r} cannot be its name; allowed are {NAMES_ARE}, but target")
        if role != "model" and target and is_one_model(settings, model, one["model"]):
            yield Mistake(at, "is the target itself; name another model")


SECTION = Section(
    name="audit",
    title="Was it in the training data?",
    answers=("Most strings that a model recites are recited by a model of other data, too.",),
    requests=requests,
    interventions=INTERVENTIONS,
    outputs=outputs,
    asked=asked,
    mistakes=mistakes,
    judged=(kinds.EXPLAINED, kinds.PRIVATE),
    reported=(
        kinds.ROC,
        kinds.EXPLAINED,
        kinds.PRIVATE,
        kinds.FINDINGS,
        *checkpoint_kinds.OF_SETS,
    ),
    opens=(kinds.FINDINGS.path, kinds.EXPLAINED.path, checkpoint_kinds.GAPS.path),
)
