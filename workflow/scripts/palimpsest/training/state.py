"""Training state: what a killed run leaves behind, from which it resumes.

State lives outside the declared outputs (Snakemake deletes those of a failed job), in a folder
named by a hash of everything that decides the trace, so that another configuration or other data
never resume from it.
"""

import contextlib
import hashlib
import json
import logging
import os
import shutil
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from palimpsest import tables
from palimpsest.errors import WRITE_REMEDY, UserError
from palimpsest.recovery import ends_as_parquet
from palimpsest.tables.trace import TRACE

CONTENTS = "contents.json"  # sizes and checksums of a checkpoint's files, written last
ABOUT = "about.json"  # what run a state is of, for people
BLOCK = 1 << 24

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


class StateFolder:
    """A folder for what is not finished, named by the key of all that decides it.

    `about` says in a few words what it is of.
    """

    def __init__(self, folder: str | Path, key_of_state: str, about: dict | None = None):
        self.key, self.about = key_of_state, about or {}
        self.folder = Path(folder) / key_of_state

    def introduce(self) -> None:
        """Say once what the state is of; each write waits for the disk."""
        if not (self.folder / ABOUT).exists():
            tables.write_json(self.folder / ABOUT, self.about)

    def clear(self) -> None:
        """Forget the state."""
        shutil.rmtree(self.folder, ignore_errors=True)


class State(StateFolder):
    """The folder of one run's state: its checkpoints and, once finished, its trace and manifest."""

    def __init__(self, folder: str | Path, run_key: str, about: dict | None = None):
        super().__init__(folder, run_key, about)
        self.trace = self.folder / "trace.parquet"
        self.manifest = self.folder / "manifest.json"
        self.weights = self.folder / "weights.safetensors"

    def is_finished(self, with_weights: bool = False) -> bool:
        """Whether the run was trained to its end; the manifest is written last."""
        return (
            self.manifest.exists()
            and self.trace.exists()
            and ends_as_parquet(self.trace)
            and (self.weights.exists() or not with_weights)
        )

    def checkpoints(self) -> list[Path]:
        """Complete checkpoints, the newest first."""
        return sorted(self.folder.glob("epoch-[0-9]*"), reverse=True)

    def newest(self) -> Path | None:
        """The newest checkpoint whose files are all there in full; torn ones are discarded."""
        for partial in self.folder.glob("partial-[0-9]*"):
            shutil.rmtree(partial, ignore_errors=True)
        for checkpoint in self.checkpoints():
            if _is_whole(checkpoint):
                return checkpoint
            self.discard(checkpoint, "a file of it is missing, torn or changed")
        return None

    def discard(self, checkpoint: Path, reason: object) -> None:
        """Forget a checkpoint, with a warning."""
        log.warning("%s: damaged checkpoint, discarded (%s)", checkpoint, reason)
        shutil.rmtree(checkpoint, ignore_errors=True)

    def begin(self, epoch: int) -> Path:
        """A new folder to save a checkpoint into; it counts only after `commit`."""
        partial = self.folder / f"partial-{epoch:06d}"
        shutil.rmtree(partial, ignore_errors=True)
        with writing(partial):
            partial.mkdir(parents=True)
        self.introduce()
        return partial

    def commit(self, partial: Path) -> None:
        """Make a saved checkpoint count, and drop the older ones."""
        older = self.checkpoints()
        with writing(partial):
            contents = _contents(partial, flush=True)
        tables.write_json(partial / CONTENTS, contents)
        os.replace(partial, self.folder / partial.name.replace("partial", "epoch"))
        for folder in older:
            shutil.rmtree(folder)

    def finish(self, trace, manifest: dict, weights: dict | None = None) -> None:
        """Keep the result until every run of the job is done; checkpoints are no longer needed."""
        # The manifest vouches for the others: an older one, without weights, must not.
        self.manifest.unlink(missing_ok=True)
        tables.write(self.trace, trace, TRACE)
        if weights is not None:
            weights = {name: tensor.contiguous() for name, tensor in weights.items()}
            with tables.replacing(self.weights) as temporary, writing(self.weights):
                save_file(weights, temporary)
        self.introduce()
        tables.write_json(self.manifest, manifest)
        # Last, because taking large ones away takes long enough to be killed meanwhile.
        for folder in self.folder.glob("*-[0-9]*"):
            shutil.rmtree(folder)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the ways in which libraries fail to write into one line with the remedy.

    A folder that was being filled is taken away: its disk may be full.
    """
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (OSError, RuntimeError, SafetensorError) as error:
        # PyTorch says that a file could not be written with an error that says much else as well.
        if type(error) is RuntimeError and "writ" not in str(error):
            raise
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        reason = str(error).strip().partition("\n")[0]
        raise UserError(f"{path}: cannot be written: {reason}; {WRITE_REMEDY}") from None


def _contents(checkpoint: Path, flush: bool = False) -> dict[str, list[int]]:
    """Bytes and checksum of each file of a checkpoint; `flush` makes sure that the disk has them.

    A file each in a few threads: the files of a large model take minutes one after another.
    """
    files = [path for path in sorted(checkpoint.rglob("*")) if path.is_file()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda path: _content(path, flush), files)
        names = [str(path.relative_to(checkpoint)) for path in files]
        return dict(zip(names, found, strict=True))


def _content(path: Path, flush: bool) -> list[int]:
    size = checksum = 0
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            size += len(block)
            checksum = zlib.crc32(block, checksum)
        if flush:
            os.fsync(file.fileno())
    return [size, checksum]


def _is_whole(checkpoint: Path) -> bool:
    """Whether a checkpoint's files are those that were saved, to the last byte."""
    try:
        saved = json.loads((checkpoint / CONTENTS).read_text())
        found = _contents(checkpoint)
    except (OSError, ValueError):
        return False
    found.pop(CONTENTS)
    return found == saved
