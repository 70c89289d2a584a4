"""The studies: every file of this folder with a `STUDY` is a study, and is found automatically.

Only modules that load fast are imported, because Snakemake reads this folder before it builds its
graph of jobs.
"""

import importlib
import pkgutil

from palimpsest.configuration.settings import Settings
from palimpsest.memorisation import kinds
from palimpsest.memorisation.study import Study


def _found() -> dict[str, Study]:
    modules = (
        importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)
    )
    studies = [module.STUDY for module in modules if hasattr(module, "STUDY")]
    return {study.name: study for study in sorted(studies, key=lambda study: study.order)}


STUDIES = _found()
KINDS = (*kinds.KINDS, *(study.kind for study in STUDIES.values()))
FIGURES = tuple(figure for study in STUDIES.values() for figure in study.figures)


def asked(settings: Settings) -> list[Study]:
    """The studies that the configuration asks for, in the report's order."""
    return [study for study in STUDIES.values() if study.block(settings) is not None]
