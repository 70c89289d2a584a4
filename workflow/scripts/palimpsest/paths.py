"""Where results are: the patterns of the files that every section shares, each written once.

A wildcard in braces stands for a part of a path. A section's own tables have their paths in their
kinds (`{section}/kinds.py`).
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache

STATE = "results/.state"
LANGUAGE_SAMPLE = "results/languages/{language}/sample.parquet"
LANGUAGE_TARGETS = "results/languages/{language}/targets.parquet"
LANGUAGE_SUMMARY = "results/languages/{language}/summary.json"
DATASET = "results/datasets/{language}/n{size}-seed{seed}/{variant}/strings.parquet"
RUNS = "results/runs"
RUN = RUNS + "/{model}/{language}/n{size}-seed{seed}/{variant}"
TRACE = f"{RUN}/trace.parquet"
MANIFEST = f"{RUN}/manifest.json"
WEIGHTS = f"{RUN}/weights.safetensors"
# Many trainings of one dataset: a job leaves the replicates from `first` to `last` together. The
# folder is older than sections: replicates of any section are there.
REPLICATES = (
    "results/unlearning/{model}/{language}/n{size}-seed{seed}/{variant}/draws-{first}-{last}"
)
REPLICATES_TRACE = f"{REPLICATES}/trace.parquet"
REPLICATES_MANIFEST = f"{REPLICATES}/manifest.json"
REPLICATES_WEIGHTS = f"{REPLICATES}/weights.safetensors"
STUDY_TABLE = "results/studies/{study}/{language}.parquet"
PLAN = "results/plan.parquet"
CLAIMS = "results/claims.parquet"
FIGURE = "results/figures/{figure}-{language}.{format}"
FIGURE_FORMATS = ("svg", "png")
REPORT = "results/report.html"

WILDCARD = re.compile(r"{(\w+)}")


def fill(pattern: str, **values) -> str:
    """The pattern with some wildcards filled in and the others left as they are."""
    return WILDCARD.sub(lambda found: str(values.get(found[1], found[0])), pattern)


def values_in(pattern: str, path: str) -> dict[str, str] | None:
    """The values of the wildcards of a path of a pattern; None if the path is not of the pattern.

    A value holds no slash. A wildcard that stands twice has one value.
    """
    # Most paths are of other patterns: their ends tell so at once.
    if not (path.startswith(_ends(pattern)[0]) and path.endswith(_ends(pattern)[1])):
        return None
    found = _expression(pattern).fullmatch(path)
    return found.groupdict() if found else None


def of_pattern(
    pattern: str, paths: Iterable[str], wanted: Mapping[str, object] | None = None
) -> list[str]:
    """The paths of a pattern, with the wanted values of some wildcards."""
    asked = {name: str(value) for name, value in (wanted or {}).items()}
    found = ((path, values_in(pattern, path)) for path in paths)
    return [path for path, values in found if values and asked.items() <= values.items()]


@cache
def _ends(pattern: str) -> tuple[str, str]:
    """What stands before the first wildcard of a pattern, and behind the last."""
    parts = WILDCARD.split(pattern)
    return parts[0], parts[-1]


@cache
def _expression(pattern: str) -> re.Pattern:
    """The regular expression of a pattern."""
    parts, seen = [], set()
    for number, part in enumerate(WILDCARD.split(pattern)):
        if number % 2 == 0:
            parts.append(re.escape(part))
        elif part in seen:
            parts.append(f"(?P={part})")
        else:
            seen.add(part)
            parts.append(f"(?P<{part}>[^/]+)")
    return re.compile("".join(parts))
