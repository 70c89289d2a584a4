"""An experiment: a checked configuration, with the runs and the files of all its sections."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from palimpsest import paths
from palimpsest.configuration import checks
from palimpsest.configuration.layers import complete, follow
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.configuration.sources import Sources, value_at
from palimpsest.configuration.yaml_files import read_file
from palimpsest.datasets.figures import FIGURES as LANGUAGE_FIGURES
from palimpsest.ends.leftovers import leftovers
from palimpsest.errors import UserError
from palimpsest.figures.figure import Figure
from palimpsest.interventions import maker
from palimpsest.lazy_import import named
from palimpsest.models.table import resolve
from palimpsest.planning.asking import lines
from palimpsest.planning.bill import Bill, Made, made_by, of_everything, of_targets
from palimpsest.planning.fit import does_not_fit
from palimpsest.planning.plan import Planner
from palimpsest.planning.summary import additions, only_asked, summary
from palimpsest.planning.wall_time import gpu_hours_left
from palimpsest.requests import FOLDER, WEIGHTS, Runs, Unfinished, merged
from palimpsest.section import Asked, Derived, Part, Section, nothing
from palimpsest.sections import FIGURES, NAMES, SECTIONS, interventions_of
from palimpsest.tables.kinds import Kind

# What can be made without any section: pretrained models, and what is known of a language alone
PLAN = "plan"  # the target
WITHOUT_SECTIONS = ("pretrained",)
FILES_WITHOUT_SECTIONS = (
    paths.GRAMMAR.split("{")[0],
    paths.PRETRAINED.split("{")[0],
    *(figure.beginning for figure in LANGUAGE_FIGURES),
)


def is_without_sections(target: str) -> bool:
    """Whether a target needs no section, and so no training."""
    is_free = target in WITHOUT_SECTIONS or target.startswith(FILES_WITHOUT_SECTIONS)
    return is_free or paths.values_in(paths.BASE_DATASET, target) is not None


@dataclass(frozen=True)
class Drawing:
    """A figure for one language; `inputs` maps the name of a kind to the files that are drawn."""

    section: str
    figure: Figure
    language: str
    inputs: dict[str, list[str]]

    @property
    def files(self) -> list[str]:
        return self.figure.files(self.language)


class Experiment:
    """The settings of a configuration, and the sections for which the configuration has a block.

    `config` is completed in place (`palimpsest.configuration.layers`); `notes` says in a line each
    what changed by that. `targets` are the targets and files that Snakemake is to make; None is for
    everything.

    Raises `UserError` for the first mistake. The message names the file, the key, the value, the
    allowed values and, if there is one, a similar correct spelling. Values that the schema does not
    allow, and mistakes in the shared keys, are always refused. Other mistakes in the block of a
    section, or of a study, are refused if a target needs the block; otherwise the block is left out
    of the experiment, as if it were null, and `refused` has its error. A job (`is_job`) makes what
    the main process has checked, and does not read the user's records again, see `Settings`.
    `planned` are the targets of the main process, of which the plan is; none is for everything.
    """

    def __init__(
        self,
        config: dict,
        sources: Sources,
        schemas: str | Path,
        sections: Sequence[Section] = SECTIONS,
        targets: Iterable[str] | None = None,
        is_job: bool = False,
        planned: Iterable[str] = (),
    ):
        self.config, self._sources, self.known = config, sources, sections
        schema = schema_of(schemas, sections)
        # The default configuration has no block of a section that an extension brings.
        config.update({section.name: None for section in sections if section.name not in config})
        self.notes = complete(config, sources, schema)
        self._refuse(checks.of_schema(config, schema))
        parts = [part for section in sections for part in section.follows]
        self.notes += follow(config, sources, parts)
        self._made: Made | None = None
        self.planned = sorted({*map(os.path.normpath, planned)} - {PLAN, paths.PLAN})
        whole = Settings(config, is_job=is_job)
        self._refuse(checks.of_values(whole))
        self.notes += checks.unnamed_recipes(whole, sources)
        self._refuse(self._left_out(map(os.path.normpath, targets or ())))
        self.refused = self._broken_blocks(whole)
        needed = self._needed(targets)
        for block, error in self.refused.items():
            if needed is None or block in needed:
                raise error
        self.settings = whole.without(self.refused)
        self.sections = [each for each in sections if self.settings.block(each.name) is not None]
        self.notes += self._unused_keys()
        self.notes += self._limits(needed)
        if not self.refused:
            _ = self.requests  # requests of two sections that contradict each other are refused now

    def _unused_keys(self) -> Iterator[str]:
        """A line for each key without an effect, unless its value is the default."""
        for section in self.sections:
            for key, why in section.unused(self.settings):
                if self._sources.place(key) > 0:
                    yield f"{self._sources.of(key)}: {key}: has no effect: {why}; leave it out"

    def _limits(self, needed: set[str] | None) -> Iterator[str]:
        """A line for each key of a needed section whose answers cannot tell what they are to."""
        for section in self.sections:
            if needed is None or section.name in needed:
                for key, what in section.limits(self.settings):
                    yield f"{self._sources.of(key)}: {key}: {what}"

    def _broken_blocks(self, settings: Settings) -> dict[str, UserError]:
        """The error of each block, of a section or of a part of one, that has a mistake."""
        broken = {}
        planner = Planner(settings)
        for section in self.known:
            if settings.block(section.name) is None:
                continue
            alone = settings.without(part.key for part in section.parts)
            error = self._first_error(section, alone, planner, section.on_demand(alone))
            if error:
                broken[section.name] = error
                continue
            for part in section.parts:
                if error := self._first_error(part, settings, planner):
                    broken[part.key] = error
        return broken

    def _first_error(
        self,
        block: Section | Part,
        settings: Settings,
        planner: Planner,
        on_demand: Iterable[Runs] = (),
    ) -> UserError | None:
        try:
            self._refuse(block.mistakes(settings))
            requests = merged(block.requests(settings))
            models = [runs.model for runs in requests]
            self._refuse(checks.adapters(settings, [*requests, *on_demand]))
            checks.incomplete_folders(settings, models)
            checks.split_terminals(settings, models, dict.fromkeys(r.corpus for r in requests))
            checks.long_strings(settings, requests)
            self._refuse(does_not_fit(settings, planner, requests))
        except UserError as error:
            return error

    def _left_out(self, targets: Iterable[str]) -> Iterator[Mistake]:
        """Why there is nothing to make for some targets: a block is null, or not in a list.

        Tables of runs are no such targets: a run that no block requests can be made, too.
        """
        for target, section in itertools.product(targets, self.known):
            if not section.is_made_by(target):
                continue
            part = section.part_of(target)
            nothing_to_make = f"so there is nothing to make for the target {target}"
            for key in (section.name, *([part.key] if part else ())):
                if value_at(self.config, key.split("/")) is None:
                    remedy = "give it a block, or leave the target out"
                    yield Mistake(key, f"is null, {nothing_to_make}; {remedy}")
            chosen = value_at(self.config, part.chosen_in.split("/")) if part else None
            if chosen is not None and part.name not in chosen:
                what = f"does not name {part.name}, {nothing_to_make}"
                remedy = f"add {part.name} to it, or leave the target out"
                yield Mistake(part.chosen_in, f"{what}; {remedy}")

    def _needed(self, targets: Iterable[str] | None) -> set[str] | None:
        """The blocks that some targets of Snakemake need; None for every block."""
        if targets is None:
            return None
        found = set()
        for target in map(os.path.normpath, targets):
            if is_without_sections(target):
                continue
            # The names of replicates do not say which section requests them.
            of_replicates = paths.values_in(f"{paths.REPLICATES}/{{file}}", target)
            blocks = [key for section in self.known for key in section.needed_by(target)]
            if of_replicates or not blocks:
                return None
            found.update(blocks)
        return found

    def _refuse(self, mistakes: Iterable[Mistake]) -> None:
        for mistake in mistakes:
            raise self._sources.error(mistake)

    # Training

    @cached_property
    def requests(self) -> list[Runs]:
        """All runs to train; each run is in exactly one request.

        Raises `ValueError` for an intervention that is not registered.
        """
        asked = merged(
            runs for section in self.sections for runs in section.requests(self.settings)
        )
        interventions = interventions_of(self.known)
        for runs in asked:
            maker(interventions, runs.intervention)
        saved = self.config["save_weights"]
        if not saved:
            return asked
        folder = {FOLDER} if saved == FOLDER else set()
        return [
            replace(
                runs,
                keeps=runs.keeps | {WEIGHTS} | (folder if runs.regime.has_one_model else set()),
            )
            for runs in asked
        ]

    @cached_property
    def single_runs(self) -> list[Runs]:
        return [runs for runs in self.requests if runs.replicates is None]

    @cached_property
    def replicates(self) -> list[Runs]:
        return [runs for runs in self.requests if runs.replicates is not None]

    @cached_property
    def replicates_on_demand(self) -> list[Runs]:
        """Replicates that only the target of one section needs; the plan leaves them out."""
        return [runs for section in self.sections for runs in section.on_demand(self.settings)]

    @cached_property
    def training_jobs(self) -> list[list[list[Runs]]]:
        """The jobs that train single runs, in groups with equal variants, seeds, files and regimes.

        A job is a list of `Runs`. A twin's job trains all seeds and variants of one language, size
        and recipe, except for requests that name a job of their own. A full model's job trains at
        most `hardware/seeds_per_job` seeds of one variant, one after another.
        """
        of_twins: dict[tuple, list[Runs]] = {}
        of_full_models: list[list[Runs]] = []
        for runs in self.single_runs:
            if self.settings.is_twin(runs.model):
                where = runs.recipe, runs.model, runs.corpus, runs.size, runs.job
                of_twins.setdefault(where, []).append(runs)
            else:
                most = self.config["hardware"]["seeds_per_job"]
                of_full_models += [[part] for part in runs.of_some_seeds(most)]
        alike: dict[tuple, list[list[Runs]]] = {}
        for job in (*of_twins.values(), *of_full_models):
            own = tuple((r.variant, r.seeds, r.keeps, r.regime.name) for r in job)
            alike.setdefault(own, []).append(job)
        return list(alike.values())

    @cached_property
    def derived(self) -> list[Derived]:
        return [made for section in self.sections for made in section.derived(self.settings)]

    @property
    def unfinished(self) -> list[Unfinished]:
        return [job for section in self.sections for job in section.unfinished(self.settings)]

    @property
    def rules_of_extensions(self) -> list[str]:
        """The files of rules of the sections that extensions bring."""
        of_extensions = [each for each in self.known if each.name not in NAMES]
        return [str(section.folder / "rules.smk") for section in of_extensions]

    @property
    def sections_with_state(self) -> list[str]:
        return [each.name for each in self.known if each.unfinished is not nothing]

    @cached_property
    def planner(self) -> Planner:
        return Planner(self.settings)

    def made_by(self, files: Iterable[str]) -> Made:
        """What the jobs with these outputs make of what the plan bills, for `bill_alone`."""
        asked = [one for models in self.asked.values() for one in models]
        return made_by(self.requests, self.derived, asked, {*files})

    def bill_alone(self, made: Made) -> None:
        """Bill only what some jobs make; call it before the bill is read."""
        self._made = made

    @cached_property
    def asked(self) -> dict[str, list[Asked]]:
        """The models that each section asks and does not train as runs."""
        found = {each.name: list(each.asked(self.settings)) for each in self.sections}
        return {name: models for name, models in found.items() if models}

    @cached_property
    def bill(self) -> Bill:
        """What the targets besides the plan train; what the experiment trains if there is none."""
        known = self.sections, self.settings, self.requests
        if self.planned:
            jobs = itertools.chain.from_iterable(self.training_jobs)
            trained = [target for target in self.planned if not is_without_sections(target)]
            if found := of_targets(trained, *known, self.derived, jobs, self._made):
                return found
        return of_everything(*known, self.derived)

    @cached_property
    def plan(self) -> list[dict]:
        return self.planner.rows(self.bill.requests, self.bill.derived)

    @property
    def plan_summary(self) -> str:
        """A text with the runs that each section and study adds, and the totals of all runs."""
        whole = summary(self.plan, self.planner.hardware, self.bill.derived)
        asked = only_asked(lines(self._asked_alone, self.settings.models, self.planner.hardware))
        alone = f"What {', '.join(self.planned)} needs:" if self.planned else ""
        parts = self.bill.parts.items()
        hours = {name: gpu_hours_left(self.planner.rows(*part)) for name, part in parts}
        n_derived = {name: sum(one.n for one in derived) for name, (_, derived) in parts}
        added = additions(self.bill.added, hours, n_derived, gpu_hours_left(self.plan))
        return "\n\n".join(filter(None, (alone, added, whole, asked)))

    @property
    def _asked_alone(self) -> dict[str, list[Asked]]:
        """The models that the planned targets ask; those of all sections without a target."""
        named = [one.name for one in self.sections if any(map(one.needed_by, self.planned))]
        found = {name: self.asked.get(name, []) for name in named} if named else self.asked
        if named and self._made is not None:
            models = [one for own in self.asked.values() for one in own]
            made = {models[place] for place in self._made.asked}
            found = {name: [one for one in own if one in made] for name, own in found.items()}
        return {name: own for name, own in found.items() if own}

    @cached_property
    def families(self) -> dict[str, str]:
        names = dict.fromkeys(runs.model for runs in self.requests)
        return {name: resolve(name, self.settings.models)[0].family for name in names}

    @cached_property
    def facts(self) -> dict:
        """What claims and the report have to know of the configuration, by names of arguments."""
        return {
            name: value
            for section in self.sections
            for name, value in section.facts(self.settings).items()
        }

    # Corpora

    @cached_property
    def languages(self) -> list[str]:
        return list(dict.fromkeys(runs.corpus for runs in self.requests))

    @cached_property
    def n_targets(self) -> int:
        """Number of target strings of a language that any section needs; at least 1."""
        return max((section.n_targets(self.settings) for section in self.sections), default=1)

    @cached_property
    def datasets(self) -> list[str]:
        found = (path for runs in self.requests for path in runs.datasets)
        return list(dict.fromkeys(found))

    # Results

    @property
    def judged(self) -> list[Kind]:
        return [kind for section in self.sections for kind in section.judged]

    @property
    def reported(self) -> list[Kind]:
        return [kind for section in self.sections for kind in section.reported]

    @property
    def headlined(self) -> list[Kind]:
        """The kinds from which the sections make their rows of the table `headline`."""
        made = map(named, self.locations("headline"))
        return [kind for rows in made for kind in rows.reads.values()]

    def locations(self, part: str) -> list[str]:
        """The location of a part, such as `claims`, in each section's code, for a fingerprint."""
        found = (section.location(part) for section in self.sections)
        return [location for location in found if location is not None]

    @cached_property
    def outputs(self) -> dict[str, list[str]]:
        """The files that each section delivers, by section; `languages` has the languages' files.

        A corpus that is a text has no such files, because they describe probabilities.
        """
        patterns = (
            paths.GRAMMAR,
            paths.DERIVATION,
            paths.LANGUAGE_SAMPLE,
            paths.LANGUAGE_TARGETS,
            paths.LANGUAGE_SUMMARY,
        )
        shared = [
            pattern.format(language=name)
            for name in self.languages
            if self.settings.corpus(name).has_probabilities
            for pattern in patterns
        ]
        own = {each.name: list(each.outputs(self.settings)) for each in self.sections}
        return {"languages": shared, **own}

    @property
    def pages(self) -> dict[str, str]:
        """The HTML pages that sections deliver, by section."""
        return {
            section.name: section.page
            for section in self.sections
            if section.page in self.outputs[section.name]
        }

    def tables(self, kind: Kind) -> list[str]:
        return paths.of_pattern(
            kind.path, (path for found in self.outputs.values() for path in found)
        )

    @cached_property
    def drawings(self) -> dict[tuple[str, str], Drawing]:
        """Every figure for every language, by the names of figure and language."""
        own = [(section.name, section.figures) for section in self.sections]
        return {
            (figure.name, language): Drawing(
                section, figure, language, figure.inputs(self.outputs[section], language)
            )
            for section, figures in [("languages", LANGUAGE_FIGURES), *own]
            for figure in figures
            for language in figure.languages(self.outputs[section])
        }

    @property
    def all_figures(self) -> list[str]:
        return [file for drawing in self.drawings.values() for file in drawing.files]

    def figure_files(self, section: str, chapter: str | None = None) -> list[str]:
        """The figures of a section, or of one of its chapters, for all languages.

        The list is empty if the configuration has no block for the section.
        """
        return [
            file
            for drawing in self.drawings.values()
            if drawing.section == section and chapter in (None, drawing.figure.chapter)
            for file in drawing.files
        ]

    @property
    def all_files(self) -> list[str]:
        """The files that can be requested by name: datasets, traces, tables and figures."""
        traces = (path for runs in self.single_runs for path in runs.paths(paths.TRACE))
        delivered = (path for files in self.outputs.values() for path in files)
        copies = *paths.HEADLINE_COPIES.values(), *paths.CLAIMS_COPIES.values()
        shared = paths.REPORT, paths.HEADLINE, paths.CLAIMS, *copies, paths.PLAN
        return [*shared, *self.all_figures, *delivered, *self.datasets, *traces]

    @property
    def leftovers(self) -> list[str]:
        """Figures, and tables that claims are tested on, of other configurations.

        Tables of other kinds may be steps on the way to these, and no list has all of them.
        """
        judged = (kind.path for section in self.known for kind in section.judged)
        figures = (paths.fill(paths.FIGURE, format=each) for each in paths.FIGURE_FORMATS)
        return leftovers([*figures, *judged], self.all_files)

    @property
    def other_runs(self) -> list[str]:
        """The manifests of runs that only other configurations request."""
        wanted = (path for runs in self.single_runs for path in runs.paths(paths.MANIFEST))
        return leftovers([paths.MANIFEST], wanted)

    def figure_inputs(self, name: str, language: str) -> dict[str, list[str]]:
        """The files from which a figure for a language is drawn, by the name of their kind."""
        if (name, language) in self.drawings:
            return self.drawings[name, language].inputs
        # A user may still request a figure of a language that no section uses.
        outputs = [
            path
            for section in self.sections
            if FIGURES[name] in section.figures
            for path in self.outputs[section.name]
        ]
        return FIGURES[name].inputs(outputs, language)


def schema_of(folder: str | Path, sections: Sequence[Section]) -> dict:
    schema = read_file(Path(folder) / "config.schema.yaml")
    for section in sections:
        block = read_file(_schema_file(folder, section))
        schema["properties"][section.name] = section.schema(block)
        schema["required"].append(section.name)
    return schema


def _schema_file(folder: str | Path, section: Section) -> Path:
    """The schema of a section's block: in the folder of schemas, or in that of the section."""
    shared = Path(folder) / f"{section.name}.schema.yaml"
    return shared if shared.is_file() else section.folder / "schema.yaml"
