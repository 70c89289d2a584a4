"""The paper's claims, each with its statistic and this study's verdict."""

from collections import defaultdict
from pathlib import Path

import pandas as pd

from palimpsest import tables
from palimpsest.door import door
from palimpsest.memorisation.claims import claims

if __name__ == "__main__":
    with door(snakemake):
        studies = defaultdict(list)
        for path in snakemake.input.studies:
            study = Path(path).parent.name
            studies[study].append(tables.read(path, study))
        judged = claims(
            {study: pd.concat(found, ignore_index=True) for study, found in studies.items()},
            tables.read_all(snakemake.input.agreement, "agreement"),
            tables.read_all(snakemake.input.approximation, "approximation"),
        )
        tables.write(snakemake.output.table, judged, "claims")
