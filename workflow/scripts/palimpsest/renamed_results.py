"""Results of earlier versions, whose paths did not name the recipe, at their paths of today.

Only paths have changed, and no content: a trace, a manifest or a table is right wherever it is.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from palimpsest import paths
from palimpsest.errors import WRITE_REMEDY, UserError

EARLIER_REPLICATES = (
    "results/unlearning/{model}/{language}/n{size}-seed{seed}/{variant}/draws-{first}-{last}"
)


def earlier_path(path: str, recipes: Iterable[str]) -> str:
    """The path that a file had before paths named recipes."""
    for file in ("trace.parquet", "manifest.json", "weights.safetensors"):
        if replicates := paths.values_in(f"{paths.REPLICATES}/{file}", path):
            return f"{EARLIER_REPLICATES.format(**replicates)}/{file}"
    results, section, *others = path.split("/")
    if section == "runs":
        variant, _, model, language, seed, file = others
        return "/".join([results, section, model, language, seed, variant, file])
    for place, name in enumerate(others):
        if name in recipes:
            return "/".join([results, section, *others[:place], *others[place + 1 :]])
    return path


def rename(files: Iterable[str], recipes: Iterable[str]) -> list[str]:
    """Rename earlier files to `files`, and say how many; a file that exists already stays."""
    recipes, moved, taken = list(recipes), 0, []
    for file in files:
        before = Path(earlier_path(file, recipes))
        if before == Path(file) or not before.exists():
            continue
        if Path(file).exists():
            taken.append(str(before))
            continue
        try:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(before, file)
        except OSError as error:
            raise UserError(
                f"{before}: cannot be renamed: {error.strerror}; {WRITE_REMEDY}"
            ) from None
        moved += 1
        _remove_empty(before.parent)
    said = [f"renamed {moved} files: their paths now name the recipe"]
    if taken:
        said.append(f"left in place: {len(taken)} files whose new path exists, such as {taken[0]}")
    return said


def _remove_empty(folder: Path) -> None:
    while folder != Path("results") and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
