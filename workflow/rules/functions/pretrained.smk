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
    model = CATALOGUE[wildcards.model]
    if works and not all(Path(model.folder, name).exists() for name in FILES):
        try:
            find(model)
        except UserError as error:
            sys.exit(f"error: {error}")
    return []


def catalogue_row(wildcards):
    """All that the catalogue says of a model."""
    return str(CATALOGUE[wildcards.model])


def installed_embedder(wildcards):
    """No files, but one line and the end if the package of a model to copy is missing."""
    embedder = EMBEDDERS[wildcards.model]
    files = (Path(embedder.folder, name) for name in FILES_OF_EMBEDDER)
    if works and not all(path.exists() for path in files):
        try:
            find_folder(embedder)
        except UserError as error:
            sys.exit(f"error: {error}")
    return []


def embedder_row(wildcards):
    """All that the catalogue says of a model of sentences."""
    return str(EMBEDDERS[wildcards.model])
