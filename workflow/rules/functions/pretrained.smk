# Inputs and parameters of the conversion of pretrained models.
import re
from pathlib import Path

from palimpsest.models.folders import is_folder
from palimpsest.pretrained.catalogue import CATALOGUE
from palimpsest.pretrained.embedders import EMBEDDERS, FILES_OF_EMBEDDER
from palimpsest.pretrained.embedders import MANIFEST as MANIFEST_OF_EMBEDDER
from palimpsest.pretrained.packages import find, find_folder


def installed(wildcards):
    """No files, but one line and the end if a package that a model must be made from is missing.

    Snakemake calls input functions before the first job. The packages' files are no inputs: a
    finished folder stays as it is when a package is removed or moves to another environment.
    """
    return there_or_installed(CATALOGUE[wildcards.model], FILES, find)


def installed_embedder(wildcards):
    """No files, but one line and the end if the package of a model to copy is missing."""
    return there_or_installed(EMBEDDERS[wildcards.model], FILES_OF_EMBEDDER, find_folder)


def there_or_installed(model, names, find_package):
    """[], if the model's folder has all files, or if `find_package` finds what it is made from."""
    if works and not all(Path(model.folder, name).exists() for name in names):
        with refusing():
            find_package(model)
    return []


def files_in(folder):
    """The files in a folder and in its folders, but for hidden ones."""
    found = (path for path in Path(folder).rglob("*") if path.is_file())
    return sorted(str(path) for path in found if not any(p.startswith(".") for p in path.parts))


def made_files_of(models):
    """The files of those models that are made from packages."""
    made = filter(None, map(made_in, models))
    return [f"{model.folder}/{name}" for model in made for name in FILES]


def local_files_of(models):
    """The files of those models that are in folders of the user's own."""
    folders = [model for model in models if is_folder(model) and not made_in(model)]
    return [file for folder in folders for file in files_in(folder)]


def gpus_of_checkpoints(wildcards):
    """One GPU, if there are any: a machine without one counts none."""
    return 1
