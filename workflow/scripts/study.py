"""A study's table on one language, from the tables of memorisation that it reads."""

from importlib import import_module

from palimpsest import tables
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        # Imported by name, so that a study's table does not depend on the code of other studies.
        study = import_module(f"palimpsest.memorisation.studies.{snakemake.wildcards.study}").STUDY
        given = dict(snakemake.input.items())
        kinds = {kind.name: kind for kind in study.reads}
        read = {name: tables.read_all(given.pop(name), kind) for name, kind in kinds.items()}
        table = study.table(**read, **given, **snakemake.params.parameters)
        tables.write(snakemake.output.table, table, study.kind)
