"""The figures of the report: their order, their texts, and their drawings inside the page."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote

from palimpsest.commands import snakemake
from palimpsest.errors import UserError
from palimpsest.figures.figure import NOTHING_DRAWN, Figure
from palimpsest.number_format import slug


@dataclass(frozen=True)
class FigureEntry:
    """A figure for one language.

    `svg` is the figure's file, and `tables` are the files from which it was drawn.
    """

    figure: Figure
    language: str
    svg: str | Path
    tables: tuple[str | Path, ...]

    @property
    def command(self) -> str:
        """Draws it again."""
        return snakemake("--force", self.svg)

    @property
    def described(self) -> str:
        """The drawing in words, for those who do not see it; its caption stands below it."""
        return ", ".join(filter(None, [self.figure.title, self.subject]))

    @property
    def subject(self) -> str:
        """What is drawn, such as "language L1"; empty if there is only one."""
        what = self.figure.drawn_for
        return f"{what} {self.language}" if what else ""

    @property
    def anchor(self) -> str:
        return f"figure-{slug(self.figure.name)}-{slug(self.language)}"


def entries(drawn: Mapping[str, Mapping], figures: Mapping[str, Figure]) -> list[FigureEntry]:
    """The figures that the workflow made.

    Parameters
    ----------
    drawn : the drawings, by their SVG file: `name` of the figure, `language`, and `tables`, the
        files from which it was drawn
    figures : figures by name
    """
    return [
        FigureEntry(
            figures[it["name"]],
            it["language"],
            svg,
            tuple(it["tables"]),
        )
        for svg, it in drawn.items()
    ]


def says_nothing(entry: FigureEntry) -> bool:
    """Whether a drawing only says why there is nothing to draw. A missing file does not."""
    path = Path(entry.svg)
    return path.is_file() and f'id="{NOTHING_DRAWN}"' in path.read_text(encoding="utf-8")


def linked(entry: FigureEntry, folder: Path) -> dict[str, str]:
    """What a page in a folder says of a drawing that it does not show."""
    return {
        "chapter": entry.figure.chapter,
        "described": entry.described,
        "file": link(entry.svg, folder),
    }


def in_order(found: list[FigureEntry], chapters: list[str]) -> list[FigureEntry]:
    """The figures sorted by chapter, then in the given order; the languages of a figure together.

    Raises `ValueError` if a figure's chapter is not in `chapters`.
    """
    for entry in found:
        if entry.figure.chapter not in chapters:
            raise ValueError(
                f"figure {entry.figure.name!r} is in chapter {entry.figure.chapter!r}, which no "
                f"section's part of the report has; there are: {', '.join(chapters)}"
            )
    names = list(dict.fromkeys(entry.figure.name for entry in found))
    return sorted(
        found,
        key=lambda entry: (
            chapters.index(entry.figure.chapter),
            names.index(entry.figure.name),
        ),
    )


def numbered(
    entries: list[FigureEntry], folder: Path, styles: dict[str, str] | None = None
) -> list[dict]:
    """What a page in a folder shows of its figures, each with a drawing for each language.

    Of the figures of a package that are in one paper, the first names the paper. The page names the
    files of the drawings. With `styles`, the drawings are in the page, and the dict gets their
    styles, each with the name of its class.
    """
    found: dict[str, list[FigureEntry]] = {}
    for entry in entries:
        found.setdefault(entry.figure.name, []).append(entry)
    made, cited = [], set()
    for number, own in enumerate(found.values(), start=1):
        figure = own[0].figure
        source = figure.module.rpartition(".")[0], figure.paper
        made.append(
            {
                **shown(number, own, folder, styles),
                "paper": "" if source in cited else figure.paper,
            }
        )
        cited.add(source)
    return made


def shown(
    number: int, entries: list[FigureEntry], folder: Path, styles: dict[str, str] | None
) -> dict:
    """A figure; its words are there once, whatever the number of its drawings."""
    figure = entries[0].figure
    return {
        "name": figure.name,
        "number": number,
        "anchor": f"figure-{slug(figure.name)}",
        "chapter": figure.chapter,
        "title": figure.title,
        "caption": figure.caption,
        "numbers": figure.numbers,
        "command": snakemake("--force", *(entry.svg for entry in entries)),
        "drawings": [
            {
                "anchor": entry.anchor,
                "language": entry.language,
                "subject": entry.subject,
                "file": link(entry.svg, folder),
                "described": entry.described,
                "tables": [
                    {"name": str(path), "link": link(path, folder)}
                    for path in first_of_each_name(entry.tables)
                ],
                "n_tables": len(entry.tables),
                **({} if styles is None else inlined(entry, f"f{number}-{place}", styles)),
            }
            for place, entry in enumerate(entries)
        ],
    }


def first_of_each_name(paths: Iterable[str | Path]) -> list[str | Path]:
    """The first file of each name; the others differ from it in their folders."""
    by_name: dict[str, str | Path] = {}
    for path in paths:
        by_name.setdefault(Path(path).name, path)
    return list(by_name.values())


def link(path: str | Path, folder: Path) -> str:
    return quote(Path(os.path.relpath(path, folder)).as_posix())


# What a drawing can do without: its file's comments and description; names of parts that nothing
# refers to; line breaks; turns by no angle; namespaces, which look like links
NEEDLESS = re.compile(
    r"<metadata>.*?</metadata>|<!--.*?-->|\s*\n\s*(?=<)"
    r'|\sxmlns(?::\w+)?="[^"]*"|\sversion="[^"]*"|\stransform="rotate\(-?0 [^"]*"',
    flags=re.DOTALL,
)
NAMES = re.compile(r'\sid="([^"]*)"')
REFERENCES = re.compile(r'(url\(#|href="#)([^")]+)')
GROUPS = re.compile(r"(<g\b[^>]*>|</g>)")
STYLES = re.compile(r'\sstyle="([^"&]*)"')
# Attributes with coordinates in points. A hundredth of a point is finer than any screen or printer.
COORDINATES = re.compile(r'\b(?:d|x|y|points)="[^"]*"|translate\([^)]*\)')
PATHS = re.compile(r'\bd="[^"]*"')
BLANKS = re.compile(r' (?=[A-Z"])|(?<=[A-Z]) ')
TOO_FINE = re.compile(r"-?\d+\.\d{3,}")


def inlined(entry: FigureEntry, own: str, styles: dict[str, str]) -> dict[str, str]:
    """The SVG as part of the page, as small as it can be drawn alike.

    Its ids begin with `own`, so that they are unique, and its style sheet applies only to itself.
    Styles of parts are named in `styles`. The SVG's own id is `id`; `shape` is its viewBox, with
    which a page shows the drawing once more, smaller.
    """
    try:
        svg = Path(entry.svg).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{entry.svg}: cannot be read: {error}; make it with: {entry.command}"
        ) from None
    found = re.search(r"<svg.*</svg>", svg, flags=re.DOTALL)
    if found is None:
        raise UserError(f"{entry.svg}: not an SVG file; delete it and rerun: {entry.command}")
    svg = NEEDLESS.sub("", found.group()).replace("xlink:href", "href")
    used = dict.fromkeys(part[1] for part in REFERENCES.findall(svg))
    numbers = {name: str(place) for place, name in enumerate(used)}
    svg = NAMES.sub(lambda part: named(part.group(1), own, numbers), svg)
    svg = REFERENCES.sub(lambda part: f"{part.group(1)}{own}-{numbers[part.group(2)]}", svg)
    svg = without_bare_groups(svg)
    svg = COORDINATES.sub(lambda part: TOO_FINE.sub(rounded, part.group()), svg)
    svg = PATHS.sub(lambda part: BLANKS.sub("", part.group()), svg)
    svg = STYLES.sub(
        lambda part: f' class="{styles.setdefault(part.group(1), f"s{len(styles)}")}"', svg
    )
    svg = svg.replace("*{", f":where(#{own}) *{{")
    opening = f'<svg id="{own}" role="img" aria-label="{escape(entry.described)}"'
    shape = re.search(r'viewBox="([^"]*)"', svg)
    return {
        "svg": svg.replace("<svg", opening, 1),
        "id": own,
        "shape": shape.group(1) if shape else "",
    }


def named(name: str, own: str, numbers: Mapping[str, str]) -> str:
    """The attribute of a part that something refers to; nothing for other parts."""
    return f' id="{own}-{numbers[name]}"' if name in numbers else ""


def without_bare_groups(svg: str) -> str:
    """The SVG without groups that have neither a name nor a style."""
    kept, groups = [], []
    for part in GROUPS.split(svg):
        if part.startswith("<g") and not part.endswith("/>"):
            groups.append(part != "<g>")
            kept.append(part * groups[-1])
        elif part == "</g>":
            kept.append(part * groups.pop())
        else:
            kept.append(part)
    return "".join(kept)


def rounded(number: re.Match) -> str:
    return f"{round(float(number.group()), 2) + 0.0:g}"
