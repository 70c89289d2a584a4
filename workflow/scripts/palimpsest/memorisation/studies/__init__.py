"""The studies: every file of this folder with a `STUDY` is a study, and is found automatically."""

from palimpsest.configuration.settings import Settings
from palimpsest.lazy_import import declared_in
from palimpsest.memorisation import kinds
from palimpsest.memorisation.study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in sorted(declared_in(__name__, "STUDY"), key=lambda study: study.order)
}
KINDS = (*kinds.KINDS, *(study.kind for study in STUDIES.values()))


def requested(settings: Settings) -> list[Study]:
    return [study for study in STUDIES.values() if study.block(settings) is not None]
