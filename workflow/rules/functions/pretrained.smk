# Inputs and parameters of the conversion of pretrained models.
import re
from pathlib import Path

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
