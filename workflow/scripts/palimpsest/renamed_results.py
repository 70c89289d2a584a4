"""Results of earlier versions, under their names of today: folders, and columns of tables.

The paths of earlier versions did not name the recipe. A folder is renamed only if its manifest says
that it was made by the recipe of the new path. Tables in folders without a manifest stay where they
are: they are made again in seconds. So only tables that need a trained model get new columns.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow.parquet as pq

from palimpsest import paths, tables
from palimpsest.configuration.settings import Settings
from palimpsest.errors import WRITE_REMEDY, UserError
from palimpsest.requests import Runs

EARLIER_REPLICATES = (
    "results/unlearning/{model}/{language}/n{size}-seed{seed}/{variant}/draws-{first}-{last}"
)
MANIFEST = "manifest.json"
# Columns that had another name, of the tables that match a pattern
EARLIER_REPLICATE = {"draw": "unlearning_replicate"}
EARLIER_INFORMATION = {"mutual_information_exchanged": "mutual_information_permuted"}
EARLIER_COLUMNS = {
    "results/unlearning/**/unlearned.parquet": EARLIER_REPLICATE,
    "results/unlearning/**/models.parquet": EARLIER_REPLICATE,
    "results/unlearning/**/stages.parquet": EARLIER_REPLICATE,
    "results/information/**/layers.parquet": EARLIER_INFORMATION,
    # Finished parts of killed jobs: the first and last model, and the name of the kind
    f"{paths.STATE}/*/*-*-unlearned.parquet": EARLIER_REPLICATE,
    f"{paths.STATE}/*/*-*-unlearned_models.parquet": EARLIER_REPLICATE,
    f"{paths.STATE}/*/*-*-unlearning_stages.parquet": EARLIER_REPLICATE,
    f"{paths.STATE}/*/*-*-layers.parquet": EARLIER_INFORMATION,
}
# The values of a recipe that decide a trace on any machine
OF_TRACES = (
    "epochs",
    "batch_size",
    "warmup_ratio",
    "weight_decay",
    "gradient_clipping",
    "evaluate_every",
)


def folders_of_recipes(
    settings: Settings, requests: Iterable[Runs], outputs: Iterable[str]
) -> Iterator[dict]:
    """Every folder with a manifest, of runs and of sections' `outputs`, for `rename`."""
    for runs in requests:
        values = _values_of_traces(settings, runs.recipe)
        if runs.one_pass is not None:  # a stream has an epoch for each macro-batch
            values |= {"epochs": runs.one_pass.cohorts, "evaluate_every": runs.one_pass.every}
        for path in runs.paths(paths.RUN if runs.replicates is None else paths.REPLICATES):
            yield {"path": path, "recipe": runs.recipe, "values": values}
    for path in outputs:
        folder, name = os.path.split(path)
        for recipe in settings.config["recipes"] if name == MANIFEST else ():
            if recipe in folder.split("/"):
                values = _values_of_traces(settings, recipe)
                yield {"path": folder, "recipe": recipe, "values": values}


def _values_of_traces(settings: Settings, recipe: str) -> dict:
    return {key: settings.recipe(recipe)[key] for key in OF_TRACES}


def earlier_folders(folder: str, recipe: str) -> list[str]:
    """The folders that a folder of a recipe may have been, before paths named recipes."""
    if replicates := paths.values_in(paths.REPLICATES, folder):
        variants = replicates["variant"], f"{replicates['variant']}-innocent"
        return [EARLIER_REPLICATES.format(**{**replicates, "variant": name}) for name in variants]
    results, section, *others = folder.split("/")
    if section == "runs":
        variant, _, model, language, seed = others
        return ["/".join([results, section, model, language, seed, variant])]
    others.remove(recipe)
    return ["/".join([results, section, *others])]


def rename(folders: Iterable[Mapping]) -> list[str]:
    """Rename earlier folders, and say how many; a folder that exists already stays.

    Each of the `folders` has a `path`, the name of its `recipe`, and the `values` of the recipe
    that its manifest must have.
    """
    moved, others = 0, []
    for folder in folders:
        target = Path(folder["path"])
        for before in map(Path, earlier_folders(folder["path"], folder["recipe"])):
            if not (before / MANIFEST).is_file():
                continue
            if target.exists() or not _is_by(before / MANIFEST, folder["values"]):
                others.append(str(before))
                continue
            _move(before, target)
            moved += 1
    said = [f"renamed {moved} folders: their paths now name the recipe"]
    if changed := rename_columns():
        said.append(f"renamed columns of {changed} tables")
    if moved or changed:
        said.append("to train nothing again, add --rerun-triggers mtime to the next call")
    left = [path for path in dict.fromkeys(others) if Path(path).exists()]
    if left:
        said.append(
            f"left in place: {len(left)} folders that were made by other recipes, or whose new "
            f"path exists, such as {left[0]}"
        )
    return said


def rename_columns() -> int:
    """Give the columns of tables their names of today; the number of tables that had others.

    A table stays as old as it was, so that nothing is made from it again.
    """
    changed = 0
    for pattern, new in EARLIER_COLUMNS.items():
        for path in Path().glob(pattern):
            names = pq.read_schema(path).names
            if not new.keys() & set(names):
                continue
            table = pq.read_table(path, partitioning=None)
            before = path.stat()
            renamed = table.rename_columns([new.get(name, name) for name in names])
            with tables.replacing(path) as temporary:
                pq.write_table(
                    renamed.replace_schema_metadata(table.schema.metadata),
                    temporary,
                    compression="zstd",
                )
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            changed += 1
    return changed


def _is_by(manifest: Path, values: Mapping) -> bool:
    """Whether a manifest records these values of a recipe."""
    try:
        recorded = json.loads(manifest.read_text())["configuration"]["recipe"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return all(recorded.get(key) == value for key, value in values.items())


def _move(before: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(before, target)
    except OSError as error:
        raise UserError(f"{before}: cannot be renamed: {error.strerror}; {WRITE_REMEDY}") from None
    parent = before.parent
    while parent != Path("results") and not any(parent.iterdir()):
        parent.rmdir()
        parent = parent.parent
