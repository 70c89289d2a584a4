"""A study's table on one language, from the tables of memorisation that it reads."""

from palimpsest import manifests, tables
from palimpsest.door import door
from palimpsest.memorisation.studies import STUDIES

if __name__ == "__main__":
    with door(snakemake):
        given = dict(snakemake.input.items())
        families = snakemake.params.get("families")
        models = {"models": manifests.models(given.pop("manifests"), families)} if families else {}
        read = {kind: tables.read_all(paths, kind) for kind, paths in given.items()}
        name, share = snakemake.params.study, snakemake.params.get("share")
        parameters = {} if share is None else {"share": share}
        study = STUDIES[name](**read, **models, **parameters)
        tables.write(snakemake.output.table, study, name)
