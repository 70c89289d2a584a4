# Inputs and parameters of the conversion of pretrained models.
import re
from pathlib import Path

from palimpsest.pretrained.catalogue import CATALOGUE
from palimpsest.pretrained.packages import find


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
