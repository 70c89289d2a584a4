"""Results of all sections: figures, claims and the report."""

from collections.abc import Iterable, Mapping

from palimpsest import tables
from palimpsest.datasets.kinds import GRAMMAR
from palimpsest.errors import UserError, nearest
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.sections import FIGURES, SECTIONS
from palimpsest.tables.claims import CLAIMS

# Imported on first use, because claims and figures have different environments
pd = lazy_import("pandas")
judging = lazy_import("palimpsest.claims")
drawing = lazy_import("palimpsest.figures.render")
manifest_files = lazy_import("palimpsest.manifests")
pages = lazy_import("palimpsest.report")
parts = lazy_import("palimpsest.report.part")


def figure(figure: str, svg: str, **files: Iterable[str]) -> None:
    """Draw a figure from the files of its tables; a PNG goes to the folder of the SVG."""
    drawing.render(FIGURES[figure], files, svg)


@makes(CLAIMS)
def claims(
    sections: Iterable[str],
    families: Mapping[str, str],
    facts: Mapping,
    **files: Iterable[str],
) -> "pd.DataFrame":
    """The claims of some sections, each with its statistic and its verdict.

    `families` maps every model to its family. `facts` are arguments of statistics that depend on
    the configuration. `files` are tables, by the names of their kinds.
    """
    asked = [section for section in SECTIONS if section.name in sections]
    kinds = [kind for section in asked for kind in section.judged]
    given = {kind.name: tables.read_all(files[kind.name], kind) for kind in kinds}
    found = [claim for section in asked for claim in section.load("claims")]
    for claim in found:
        for kind in set(claim.statistic.reads.split()) - given.keys():
            raise UserError(
                f"the claim {claim.claim!r} reads {kind!r}, on which no claim of its section is "
                f"tested{nearest(kind, given)}; known: {', '.join(given)}"
            )
    return judging.judge_all(found, given, families, facts)


@reads(claims=CLAIMS, grammars=GRAMMAR)
def report(
    page: str,
    claims: "pd.DataFrame",
    grammars: "pd.DataFrame",
    manifests: Iterable[str],
    models: Iterable[str],
    *,
    sections: Mapping[str, str],
    drawn: Mapping[str, Mapping],
    title: str,
    **files: Iterable[str],
) -> None:
    """Write the report: every figure, the claims, and how the results were made.

    Parameters
    ----------
    page : the HTML file to write
    manifests, models : manifests of all runs, and one of every model
    sections : titles by name
    drawn : what `palimpsest.report.entries` takes, by SVG file
    files : tables by the names of their kinds
    """
    asked = [section for section in SECTIONS if section.name in sections]
    reported = {
        kind.name: tables.read_all(files.get(kind.name, []), kind)
        for section in asked
        for kind in section.reported
    }
    pages.render(
        page,
        parts=[parts.part_of(section, reported) for section in asked],
        figures=pages.entries(drawn, FIGURES),
        claims=claims,
        grammars=grammars,
        models=manifest_files.initial_weights(models),
        totals=manifest_files.totals(manifests),
        title=title,
    )
