"""State: the files from which a killed run resumes.

State is not among the outputs of a rule, because Snakemake deletes the outputs of a failed job. The
name of a state's folder is a key: a hash of everything that decides the trace. So a run with
another configuration or other data never resumes from this state.
"""

import contextlib
import hashlib
import json
import logging
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from palimpsest import tables
from palimpsest.commands import snakemake
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import WRITE_REMEDY, UserError
from palimpsest.fingerprint import of_all_code
from palimpsest.recovery import ends_as_parquet
from palimpsest.tables.tokens import TOKENS
from palimpsest.tables.trace import TRACE
from palimpsest.training.kept_weights import weights_after

CONTENTS = "contents.json"  # sizes and checksums of a checkpoint's files, written last
ABOUT = "about.json"  # a description of a state's run, for people; the code that worked on it
CODE = "code"  # in a description: hashes of the versions of the code that worked on the state
BLOCK = 1 << 24

log = logging.getLogger("palimpsest")


def key(configuration: dict, dataset: str | Path) -> str:
    """20 hexadecimal digits: a hash of a resolved configuration and of a dataset's content."""
    try:
        changed = os.stat(dataset).st_mtime_ns
    except FileNotFoundError:
        raise UserError(f"{dataset}: no such table; make it with: {snakemake(dataset)}") from None
    digest = hashlib.sha256(json.dumps(configuration, sort_keys=True).encode())
    digest.update(_content_of(str(dataset), changed))
    return digest.hexdigest()[:20]


@cache
def _content_of(dataset: str, changed: int) -> bytes:
    """A hash of a dataset's values, which does not depend on the format of the file.

    `changed` is the time of the file's last change, in nanoseconds. The column `cohort` only counts
    in a stream, so that runs of versions without streams keep their key.
    """
    strings = tables.read(dataset, STRINGS)
    if strings["cohort"].isna().all():
        strings = strings.drop(columns="cohort")
    return hashlib.sha256(strings.to_csv(index=False).encode()).digest()


class StateFolder:
    """A folder for unfinished work, named by the key of everything that decides the result.

    `about` is a short description of the work.
    """

    def __init__(self, folder: str | Path, key_of_state: str, about: dict | None = None):
        self.key, self.about = key_of_state, about or {}
        self.folder = Path(folder) / key_of_state
        self._is_introduced = False

    def introduce(self) -> None:
        """Write the description and the hash of the running code, once for each version of it."""
        if not self._is_introduced:
            versions = _versions_in(self.folder)
            if of_all_code() not in versions:
                # Each write costs time, waiting for the disk.
                about = {**self.about, CODE: [*versions, of_all_code()]}
                tables.write_json(self.folder / ABOUT, about)
            self._is_introduced = True

    def earlier_code(self) -> list[str]:
        """Hashes of other versions of the code that worked on this state, oldest first."""
        return [code for code in _versions_in(self.folder) if code != of_all_code()]

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def description(folder: Path) -> dict:
    """The description of the state in a folder; empty if it is missing or broken."""
    try:
        return json.loads((folder / ABOUT).read_text())
    except (OSError, ValueError):
        return {}


def _versions_in(folder: Path) -> list[str]:
    return description(folder).get(CODE, [])


class State(StateFolder):
    """The folder of one run's state: its checkpoints and, once finished, its trace and manifest."""

    def __init__(self, folder: str | Path, run_key: str, about: dict | None = None):
        super().__init__(folder, run_key, about)
        self.trace = self.folder / "trace.parquet"
        self.manifest = self.folder / "manifest.json"
        self.weights = self.folder / "weights.safetensors"
        self.tokens = self.folder / "tokens.parquet"
        self.kept = self.folder / "kept"

    def is_finished(
        self, with_weights: bool = False, with_tokens: bool = False, kept: Iterable[int] = ()
    ) -> bool:
        """Whether the run was trained to its end; the manifest is written last.

        `kept` are the epochs whose weights must be there.
        """
        return (
            self.manifest.exists()
            and self.trace.exists()
            and ends_as_parquet(self.trace)
            and (self.weights.exists() or not with_weights)
            and (self.tokens.exists() or not with_tokens)
            and all(self.weights_after(epoch).exists() for epoch in kept)
        )

    def weights_after(self, epoch: int) -> Path:
        return self.kept / weights_after(epoch)

    def keep(self, epoch: int, weights: dict[str, torch.Tensor]) -> None:
        _save(weights, self.weights_after(epoch))
        self.introduce()

    def discard_after_gap(self, kept: Iterable[int]) -> None:
        """Delete the checkpoints after an epoch whose weights must be kept, and are not.

        They come from a training that did not keep weights.
        """
        missing = [epoch for epoch in kept if not self.weights_after(epoch).exists()]
        for checkpoint in self.checkpoints():
            if missing and int(checkpoint.name.partition("-")[2]) >= min(missing):
                shutil.rmtree(checkpoint, ignore_errors=True)

    def checkpoints(self) -> list[Path]:
        """The committed checkpoints, newest first."""
        return sorted(self.folder.glob("epoch-[0-9]*"), reverse=True)

    def newest(self) -> Path | None:
        """The newest checkpoint with all files complete; damaged checkpoints are deleted."""
        for partial in self.folder.glob("partial-[0-9]*"):
            shutil.rmtree(partial, ignore_errors=True)
        for checkpoint in self.checkpoints():
            if _is_whole(checkpoint):
                return checkpoint
            self.discard(checkpoint, "a file of it is missing, torn or changed")
        return None

    def discard(self, checkpoint: Path, reason: object) -> None:
        log.warning("%s: damaged checkpoint, discarded (%s)", checkpoint, reason)
        shutil.rmtree(checkpoint, ignore_errors=True)

    def begin(self, epoch: int) -> Path:
        """A new folder for a checkpoint; the checkpoint counts only after `commit`."""
        partial = self.folder / f"partial-{epoch:06d}"
        shutil.rmtree(partial, ignore_errors=True)
        with writing(partial):
            partial.mkdir(parents=True)
        self.introduce()
        return partial

    def commit(self, partial: Path) -> None:
        """Make a saved checkpoint count, and delete the older ones."""
        older = self.checkpoints()
        with writing(partial):
            contents = _contents(partial, flush=True)
        tables.write_json(partial / CONTENTS, contents)
        os.replace(partial, self.folder / partial.name.replace("partial", "epoch"))
        for folder in older:
            shutil.rmtree(folder)

    def finish(self, trace, manifest: dict, weights: dict | None = None, tokens=None) -> None:
        """Keep the result until every run of the job is done; checkpoints are no longer needed.

        `trace` and `tokens` are tables of these kinds; `weights` and `tokens` are None unless they
        are wanted.
        """
        # The manifest means that all files are complete, so an older manifest is deleted first.
        self.manifest.unlink(missing_ok=True)
        tables.write(self.trace, trace, TRACE)
        if tokens is not None:
            tables.write(self.tokens, tokens, TOKENS)
        if weights is not None:
            _save(weights, self.weights)
        self.introduce()
        tables.write_json(self.manifest, {**manifest, "earlier_code": self.earlier_code()})
        # Checkpoints are deleted last, because a kill can interrupt the deletion of large files.
        for folder in self.folder.glob("*-[0-9]*"):
            shutil.rmtree(folder)


def _save(weights: dict[str, torch.Tensor], path: Path) -> None:
    contiguous = {name: tensor.contiguous() for name, tensor in weights.items()}
    with tables.replacing(path) as temporary, writing(path):
        save_file(contiguous, temporary)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn libraries' errors in writing files into a `UserError`, one line with the remedy.

    If `path` is a folder, the folder is deleted, because its disk may be full.
    """
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (OSError, RuntimeError, SafetensorError) as error:
        # PyTorch raises RuntimeError for many reasons; only a failed write is handled here.
        if type(error) is RuntimeError and "writ" not in str(error):
            raise
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        reason = str(error).strip().partition("\n")[0]
        raise UserError(f"{path}: cannot be written: {reason}; {WRITE_REMEDY}") from None


def _contents(checkpoint: Path, flush: bool = False) -> dict[str, list[int]]:
    """Size and checksum of each file of a checkpoint; `flush` waits until the disk has the files.

    Several threads work on different files, because the files of a large model would take minutes
    one after another.
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
    """Whether the sizes and checksums of a checkpoint's files are those that were saved."""
    try:
        saved = json.loads((checkpoint / CONTENTS).read_text())
        found = _contents(checkpoint)
    except (OSError, ValueError):
        return False
    found.pop(CONTENTS)
    return found == saved
