"""Training state: what a killed run leaves behind, from which it resumes.

State lives outside the declared outputs (Snakemake deletes those of a failed job), in a folder
named by a hash of everything that decides the trace, so that another configuration or other data
never resume from it.
"""

import hashlib
import json
import logging
import os
import shutil
from pathlib import Path

from safetensors.torch import save_file

from palimpsest import tables
from palimpsest.errors import UserError

SIZES = "sizes.json"  # of a checkpoint's files, written last

log = logging.getLogger("palimpsest")


def key(configuration: dict, dataset: str | Path) -> str:
    """20 hexadecimal digits that stand for a resolved configuration and a dataset's content."""
    digest = hashlib.sha256(json.dumps(configuration, sort_keys=True).encode())
    try:
        digest.update(Path(dataset).read_bytes())
    except FileNotFoundError:
        raise UserError(
            f"{dataset}: no such table; make it with: snakemake --cores 1 {dataset}"
        ) from None
    return digest.hexdigest()[:20]


class State:
    """The folder of one run's state: its checkpoints and, once finished, its trace and manifest."""

    def __init__(self, folder: str | Path, run_key: str):
        self.key = run_key
        self.folder = Path(folder) / run_key
        self.trace = self.folder / "trace.parquet"
        self.manifest = self.folder / "manifest.json"
        self.weights = self.folder / "weights.safetensors"

    def is_finished(self, with_weights: bool = False) -> bool:
        """Whether the run was trained to its end; the manifest is written last."""
        return self.manifest.exists() and (self.weights.exists() or not with_weights)

    def checkpoints(self) -> list[Path]:
        """Complete checkpoints, the newest first."""
        return sorted(self.folder.glob("epoch-[0-9]*"), reverse=True)

    def newest(self) -> Path | None:
        """The newest checkpoint whose files are all there in full; torn ones are discarded."""
        for checkpoint in self.checkpoints():
            if _is_whole(checkpoint):
                return checkpoint
            self.discard(checkpoint, "a file of it is missing or torn")
        return None

    def discard(self, checkpoint: Path, reason: object) -> None:
        """Forget a checkpoint, with a warning."""
        log.warning("%s: damaged checkpoint, discarded (%s)", checkpoint, reason)
        shutil.rmtree(checkpoint, ignore_errors=True)

    def begin(self, epoch: int) -> Path:
        """A new folder to save a checkpoint into; it counts only after `commit`."""
        partial = self.folder / f"partial-{epoch:06d}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        return partial

    def commit(self, partial: Path) -> None:
        """Make a saved checkpoint count, and drop the older ones."""
        older = self.checkpoints()
        tables.write_json(partial / SIZES, _sizes(partial))
        os.replace(partial, self.folder / partial.name.replace("partial", "epoch"))
        for folder in older:
            shutil.rmtree(folder)

    def finish(self, trace, manifest: dict, weights: dict | None = None) -> None:
        """Keep the result until every run of the job is done; checkpoints are no longer needed."""
        # The manifest vouches for the others: an older one, without weights, must not.
        self.manifest.unlink(missing_ok=True)
        tables.write(self.trace, trace, "trace")
        if weights is not None:
            weights = {name: tensor.contiguous() for name, tensor in weights.items()}
            with tables.replacing(self.weights) as temporary:
                save_file(weights, temporary)
        for folder in self.folder.glob("*-[0-9]*"):
            shutil.rmtree(folder)
        tables.write_json(self.manifest, manifest)

    def clear(self) -> None:
        """Forget the run."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _sizes(checkpoint: Path) -> dict[str, int]:
    """Bytes of each file of a checkpoint."""
    files = [path for path in sorted(checkpoint.rglob("*")) if path.is_file()]
    return {str(path.relative_to(checkpoint)): path.stat().st_size for path in files}


def _is_whole(checkpoint: Path) -> bool:
    """Whether a checkpoint's files are those that were saved, in full."""
    try:
        saved = json.loads((checkpoint / SIZES).read_text())
        found = _sizes(checkpoint)
    except (OSError, ValueError):
        return False
    found.pop(SIZES)
    return found == saved
