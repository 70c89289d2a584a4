"""The report: every figure, the claims with their verdicts, and how the results were made."""

from palimpsest import manifests, report, tables
from palimpsest.datasets.kinds import GRAMMAR
from palimpsest.report.part import part_of
from palimpsest.script_job import script_job
from palimpsest.sections import FIGURES, SECTIONS
from palimpsest.tables.claims import CLAIMS

if __name__ == "__main__":
    with script_job(snakemake):
        given, params = snakemake.input, snakemake.params
        sections = [section for section in SECTIONS if section.name in params.sections]
        reported = {
            kind.name: tables.read_all(given.get(kind.name, []), kind)
            for section in sections
            for kind in section.reported
        }
        report.render(
            snakemake.output[0],
            parts=[part_of(section, reported) for section in sections],
            figures=report.entries(params.drawn, FIGURES),
            claims=tables.read(given.claims, CLAIMS),
            grammars=tables.read_all(given.get("grammars", []), GRAMMAR),
            models=manifests.initial_weights(given.models),
            totals=manifests.totals(given.manifests),
            title=params.title,
        )
