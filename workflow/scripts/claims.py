"""Write the table of claims of every section, each with its statistic and its verdict."""

from palimpsest import tables
from palimpsest.claims import judge_all
from palimpsest.script_job import script_job
from palimpsest.sections import SECTIONS
from palimpsest.tables.claims import CLAIMS

if __name__ == "__main__":
    with script_job(snakemake):
        asked = [section for section in SECTIONS if section.name in snakemake.params.sections]
        kinds = [kind for section in asked for kind in section.judged]
        # Every input is named by its kind of table.
        given = {kind.name: tables.read_all(snakemake.input[kind.name], kind) for kind in kinds}
        claims = [claim for section in asked for claim in section.load("claims")]
        judged = judge_all(claims, given, snakemake.params.families)
        tables.write(snakemake.output.table, judged, CLAIMS)
