"""The paths of results that all sections share, as patterns.

A wildcard in braces stands for a part of a path. The paths of a section's own tables are in
`{section}/kinds.py`.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

STATE = "results/.state"
PRETRAINED = "results/pretrained/{model}"
CORPUS_OF_RECORDS = "results/corpora/{language}.parquet"
LANGUAGE_SAMPLE = "results/languages/{language}/sample.parquet"
LANGUAGE_TARGETS = "results/languages/{language}/targets.parquet"
LANGUAGE_SUMMARY = "results/languages/{language}/summary.json"
GRAMMAR = "results/languages/{language}/grammar.parquet"
DERIVATION = "results/languages/{language}/derivation.parquet"
DATASET = "results/datasets/{language}/n{size}-seed{seed}/{variant}/strings.parquet"
# A dataset as a folder for other programs, with a card
EXPORTED_DATASET = "results/exported/{language}/n{size}-seed{seed}/{variant}"
# Datasets that no section has changed
BASE_DATASET = DATASET.replace("{variant}", "base")
RUNS = "results/runs"
# The variant comes first: it tells the rules of training apart, and Snakemake compares a file with
# the outputs of all rules whose paths begin as the file's.
RUN = RUNS + "/{variant}/{recipe}/{model}/{language}/n{size}-seed{seed}"
TRACE = f"{RUN}/trace.parquet"
MANIFEST = f"{RUN}/manifest.json"
WEIGHTS = f"{RUN}/weights.safetensors"
TOKENS = f"{RUN}/tokens.parquet"
# A folder with the weights after every epoch that is measured
CHECKPOINTS = f"{RUN}/checkpoints"
# The model as a folder that Hugging Face's `from_pretrained` reads
MODEL_FOLDER = f"{RUN}/huggingface"
# Many trainings on one dataset: one job delivers the replicates from `first` to `last` together.
REPLICATES = (
    "results/replicates/{recipe}/{model}/{language}/n{size}-seed{seed}/{variant}/{first}-{last}"
)
REPLICATES_TRACE = f"{REPLICATES}/trace.parquet"
REPLICATES_MANIFEST = f"{REPLICATES}/manifest.json"
REPLICATES_WEIGHTS = f"{REPLICATES}/weights.safetensors"
STUDY_TABLE = "results/studies/{study}/{language}.parquet"
PLAN = "results/plan.parquet"
CLAIMS = "results/claims.parquet"
HEADLINE = "results/headline.parquet"
# The same table for other programs
CLAIMS_COPIES = {"csv": "results/claims.csv", "json": "results/claims.json"}
HEADLINE_COPIES = {"csv": "results/headline.csv", "json": "results/headline.json"}
FIGURE = "results/figures/{figure}-{language}.{format}"
FIGURE_FORMATS = ("svg", "png")
REPORT = "results/report.html"
REPORT_PAGES = "results/report"  # the same as pages

WILDCARD = re.compile(r"{(\w+)}")
INSTALLED = "share/palimpsest"  # where a wheel puts the workflow, in the folder of its environment


def workflow() -> Path | None:
    """The folder of the workflow: the checkout of this library, or what a wheel installed.

    Of a wheel, it is `share/palimpsest` in one of the folders above the library. None if there is
    neither.
    """
    library = Path(__file__).resolve().parent
    folders = [library.parents[2], *(above / INSTALLED for above in library.parents)]
    return next((folder for folder in folders if (folder / "Snakefile").is_file()), None)


def fill(pattern: str, **values) -> str:
    return WILDCARD.sub(lambda found: str(values.get(found[1], found[0])), pattern)


def values_in(pattern: str, path: str) -> dict[str, str] | None:
    """The values of a pattern's wildcards in a path; None if the path does not fit the pattern.

    A value holds no slash. A wildcard that occurs twice has the same value twice.
    """
    # Most paths fit other patterns; comparing the ends of the path shows this fast.
    if not (path.startswith(_ends(pattern)[0]) and path.endswith(_ends(pattern)[1])):
        return None
    found = _expression(pattern).fullmatch(path)
    return found.groupdict() if found else None


def of_pattern(
    pattern: str, paths: Iterable[str], wanted: Mapping[str, object] | None = None
) -> list[str]:
    asked = {name: str(value) for name, value in (wanted or {}).items()}
    found = ((path, values_in(pattern, path)) for path in paths)
    return [path for path, values in found if values and asked.items() <= values.items()]


@cache
def _ends(pattern: str) -> tuple[str, str]:
    """The text before the first wildcard of a pattern, and the text after the last wildcard."""
    parts = WILDCARD.split(pattern)
    return parts[0], parts[-1]


@cache
def _expression(pattern: str) -> re.Pattern:
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
