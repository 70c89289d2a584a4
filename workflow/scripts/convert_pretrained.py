"""Convert a pretrained model from the package that holds it, and say its licence."""

import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from palimpsest.pretrained.catalogue import CATALOGUE
from palimpsest.pretrained.packages import find
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake) as log:
        model = CATALOGUE[snakemake.wildcards.model]
        parts = find(model)
        # The libraries' bars of progress, and other words of theirs, go to the log.
        with redirect_stdout(log), redirect_stderr(log):
            # Imported after `find`, because it needs one of the packages that may be missing.
            from palimpsest.pretrained.conversion import convert

            convert(model, parts, Path(snakemake.output.config).parent)
        for place in (log, sys.stderr):
            print(model.about, file=place)
