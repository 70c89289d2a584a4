"""The report: every figure, the claims and their verdicts, and how it was all made."""

from palimpsest import manifests, report, tables
from palimpsest.door import door

if __name__ == "__main__":
    with door(snakemake):
        given = snakemake.input
        unlearning = list(given.get("unlearning", []))
        report.render(
            figures=[
                report.FigureEntry.of(path, unlearning)
                for path in given.figures
                if path.endswith(".svg")
            ],
            claims=tables.read(given.claims, "claims"),
            study=manifests.totals(given.manifests),
            agreement=tables.read_all(given.agreement, "agreement"),
            tradeoff=tables.read_all(given.tradeoff, "tradeoff"),
            approximation=tables.read_all(given.approximation, "approximation"),
            out_path=snakemake.output[0],
            unlearning=unlearning,
        )
