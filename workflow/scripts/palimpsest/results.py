"""Results of all sections: figures, answers, claims and the report."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from palimpsest import tables
from palimpsest.arguments import PATH, TEXT, takes
from palimpsest.commands import snakemake
from palimpsest.datasets.kinds import GRAMMAR
from palimpsest.errors import UserError, nearest
from palimpsest.lazy_import import lazy_import, named
from palimpsest.making import makes, reads
from palimpsest.paths import FIGURE, WILDCARD, fill
from palimpsest.sections import FIGURES, SECTIONS
from palimpsest.tables.claims import CLAIMS
from palimpsest.tables.headline import HEADLINE

if TYPE_CHECKING:
    import matplotlib.pyplot as plt

# Imported on first use, because claims and figures have different environments
pd = lazy_import("pandas")
judging = lazy_import("palimpsest.claims")
drawing = lazy_import("palimpsest.figures.render")
manifest_files = lazy_import("palimpsest.manifests")
reports = lazy_import("palimpsest.report")
parts = lazy_import("palimpsest.report.part")


def figure(figure: str, svg: str, **files: Iterable[str]) -> None:
    """Draw a figure from the files of its tables; a PNG goes to the folder of the SVG."""
    drawing.render(FIGURES[figure], files, svg)


@takes(name=TEXT, language=TEXT, folder=PATH)
def draw(name: str, language: str, folder: str | Path = "results") -> "plt.Figure":
    """A figure of the report, from the tables in a folder of results.

    Parameters
    ----------
    name : such as "tradeoff"
    language : its language, text or records, as the table names them
    folder : where Snakemake wrote the results

    Raises `UserError` if there is no figure of this name, or no table of it in the folder.
    """
    if name not in FIGURES:
        raise UserError(
            f"unknown figure {name!r}{nearest(name, FIGURES)}; known: {', '.join(FIGURES)}"
        )
    figure = FIGURES[name]
    contents = []
    for kind in figure.tables:
        pattern = fill(kind.path, language=language).removeprefix("results/")
        files = sorted(map(str, Path(folder).glob(WILDCARD.sub("*", pattern))))
        if not files:
            target = fill(FIGURE, figure=name, language=language, format="svg")
            raise UserError(f"{folder}/{pattern}: no such file; make it: {snakemake(target)}")
        some_empty = kind in figure.some_empty
        all_empty = some_empty and kind is not figure.tables[0]
        contents.append(drawing.read_filled(files, kind, some_empty, all_empty))
    return named(figure.draw)(*contents)


@makes(CLAIMS)
def claims(
    sections: Iterable[str],
    families: Mapping[str, str],
    facts: Mapping,
    powers: str | None = None,
    least_power: float = 0.0,
    csv: str | None = None,
    json: str | None = None,
    **files: Iterable[str],
) -> "pd.DataFrame":
    """The claims of some sections, each with its statistic and its verdict.

    Parameters
    ----------
    families : the family of every model
    facts : arguments of statistics that depend on the configuration
    powers : a TSV file as `power_table` writes it, or none
    least_power : rows of this file with less power are not tested
    csv, json : files that get the same rows, or none
    files : tables, by the names of their kinds
    """
    asked = [section for section in SECTIONS if section.name in sections]
    kinds = [kind for section in asked for kind in section.judged]
    given = {kind.name: tables.read_all(files[kind.name], kind) for kind in kinds}
    # A section of which nothing is asked, as the audit in the default, has no claims to test.
    tested = [one for one in asked if any(files[kind.name] for kind in one.judged)]
    found = [claim for section in tested for claim in section.load("claims")]
    for claim in found:
        for kind in set(claim.statistic.reads.split()) - given.keys():
            raise UserError(
                f"the claim {claim.claim!r} reads {kind!r}, on which no claim of its section is "
                f"tested{nearest(kind, given)}; known: {', '.join(given)}"
            )
    table = judging.judge_all(found, given, families, facts, too_weak(powers, least_power))
    if csv and json:
        tables.write_copies(table, csv, json)
    return table


def too_weak(powers: str | None, least_power: float) -> "pd.DataFrame | None":
    """The tests of a table of powers with less power than this.

    Tests with equal `ROW_KEYS`, which are of one claim on several methods, are left out together,
    or not at all: their largest power decides.
    """
    if not powers:
        return None
    table = pd.read_csv(powers, sep="\t", keep_default_na=False)
    try:
        power = table.astype({"power": float}).groupby(judging.ROW_KEYS)["power"].transform("max")
        return table.loc[power < least_power, [*judging.ROW_KEYS, *judging.SIZE]]
    except (KeyError, ValueError) as error:
        columns = ", ".join([*judging.ROW_KEYS, *judging.SIZE, "power"])
        raise UserError(f"{powers}: not a table of powers ({error}); it has: {columns}") from None


@makes(HEADLINE)
def headline(rows: Iterable[str], csv: str, json: str, **files: Iterable[str]) -> "pd.DataFrame":
    """The answers of some sections; the files `csv` and `json` get the same rows.

    Parameters
    ----------
    rows : the locations of the functions that make the sections' rows
    files : tables, by the names of their kinds
    """
    found = [pd.DataFrame(columns=HEADLINE.names)]
    for function in map(named, rows):
        kinds = function.reads
        given = {name: tables.read_all(files[kind.name], kind) for name, kind in kinds.items()}
        found.append(function(**given))
    table = pd.concat([part for part in found if not part.empty] or found)[HEADLINE.names]
    tables.write_copies(table, csv, json)
    return table


@reads(claims=CLAIMS)
def power_table(claims: "pd.DataFrame", table: str) -> None:
    """Write the power of each test that counts, as TSV, to choose the tests of other seeds."""
    rows = claims[~claims["by_construction"].astype(bool)]
    # Some statistics are undefined for some seeds; all claims of a question have the same seeds.
    rows = rows.assign(n_seeds=rows.groupby("question")["n_seeds"].transform("max"))
    columns = [*judging.ROW_KEYS, *judging.SIZE, "estimate", "power"]
    rounded = rows.assign(**{name: rows[name].map("{:.3g}".format) for name in columns[-2:]})
    rounded[columns].to_csv(table, sep="\t", index=False)


@reads(headline=HEADLINE, claims=CLAIMS, grammars=GRAMMAR)
def report(
    page: str,
    pages: str,
    headline: "pd.DataFrame",
    claims: "pd.DataFrame",
    grammars: "pd.DataFrame",
    manifests: Iterable[str],
    models: Iterable[str],
    *,
    sections: Mapping[str, str],
    facts: Mapping,
    drawn: Mapping[str, Mapping],
    title: str,
    is_short: bool,
    own_pages: Mapping[str, str],
    powers: str | None = None,
    least_power: float = 0.0,
    **files: Iterable[str],
) -> None:
    """Write the report: every figure, the claims, and how the results were made.

    Parameters
    ----------
    page, pages : the HTML file to write, and the folder of pages
    manifests, models : manifests of all runs, and one of every model
    sections : titles by name
    facts : arguments of the sections' parts that depend on the configuration
    drawn : what `palimpsest.report.entries` takes, by SVG file
    is_short : as of `palimpsest.report.render`
    own_pages : pages that sections deliver beside the report, by section
    powers, least_power : as of `claims`
    files : tables by the names of their kinds
    """
    asked = [section for section in SECTIONS if section.name in sections]
    reported = {
        kind.name: tables.read_all(files.get(kind.name, []), kind)
        for section in asked
        for kind in section.reported
    }
    reports.render(
        page,
        folder=pages,
        parts=[
            parts.part_of(section, reported, facts, own_pages.get(section.name, ""))
            for section in asked
        ],
        figures=reports.entries(drawn, FIGURES),
        headline=headline,
        claims=claims,
        n_left_out=0 if (weak := too_weak(powers, least_power)) is None else len(weak),
        grammars=grammars,
        models=manifest_files.initial_weights(models),
        totals=manifest_files.totals(manifests),
        title=title,
        is_short=is_short,
    )
