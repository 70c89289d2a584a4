"""What the rules of pretrained models call: a model's folder is made from its package."""

import hashlib
import json
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO

from palimpsest.errors import UserError
from palimpsest.pretrained.catalogue import CATALOGUE
from palimpsest.pretrained.embedders import (
    EMBEDDERS,
    FILES_OF_EMBEDDER,
    MANIFEST,
    WEIGHTS,
    Embedder,
)
from palimpsest.pretrained.packages import INSTALL, find, find_folder, replacing


def converted(model: str, log: TextIO) -> None:
    """Convert a model of language from its package, and say its licence."""
    pretrained = CATALOGUE[model]
    parts = find(pretrained)
    # The libraries' bars of progress, and other words of theirs, go to the log.
    with redirect_stdout(log), redirect_stderr(log):
        # Imported after `find`, because it needs one of the packages that may be missing.
        from palimpsest.pretrained.conversion import convert

        convert(pretrained, parts, pretrained.folder)
    _say(pretrained.about, log)


def copied(model: str, log: TextIO) -> None:
    """Copy a model of sentences from its package, and say its licence."""
    embedder = EMBEDDERS[model]
    copy(embedder, find_folder(embedder), embedder.folder)
    _say(embedder.about, log)


def _say(line: str, log: TextIO) -> None:
    for place in (log, sys.stderr):
        print(line, file=place)


def copy(embedder: Embedder, package_folder: Path, folder: str | Path) -> None:
    """Copy the files of a model, with a manifest; an existing folder is replaced.

    Raises `UserError` if a file is missing, if the weights have another checksum than the authors
    publish, or if the folder cannot be written.
    """
    again = f"{INSTALL} --force-reinstall {embedder.package}=={embedder.version}"
    for name in FILES_OF_EMBEDDER:
        if not (package_folder / name).is_file():
            raise UserError(
                f"{embedder.name}: {package_folder / name}: no such file; install again with: "
                f"{again}"
            )
    with (package_folder / WEIGHTS).open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != embedder.sha256:
        raise UserError(
            f"{embedder.name}: {package_folder / WEIGHTS}: the SHA-256 is {found} and must be "
            f"{embedder.sha256}; install again with: {again}"
        )
    with replacing(Path(folder)) as work:
        for name in FILES_OF_EMBEDDER:
            target = work / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(package_folder / name, target)
        content = {
            "model": embedder.name,
            "source": {"package": embedder.package, "version": embedder.version},
            "weights_sha256": embedder.sha256,
            "licence": embedder.licence,
        }
        (work / MANIFEST).write_text(json.dumps(content, indent=2) + "\n")
