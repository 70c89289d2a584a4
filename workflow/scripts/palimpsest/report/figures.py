"""The figures of the report: their order, their texts, and their drawings inside the page."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote

from palimpsest.commands import snakemake
from palimpsest.errors import UserError
from palimpsest.figures.figure import Figure
from palimpsest.number_format import slug


@dataclass(frozen=True)
class FigureEntry:
    """A figure for one language.

    `svg` is the figure's file, `tables` are the files from which it was drawn, and `command` draws
    it again.
    """

    figure: Figure
    language: str
    svg: str | Path
    tables: tuple[str | Path, ...]
    command: str

    @property
    def described(self) -> str:
        """The figure in words, for those who do not see it."""
        return f"{self.figure.title}, language {self.language}. {self.figure.caption}"

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
            snakemake("--force", svg),
        )
        for svg, it in drawn.items()
    ]


def in_order(found: list[FigureEntry], chapters: list[str]) -> list[FigureEntry]:
    """The figures sorted by chapter, then by language, then in the given order.

    Raises `ValueError` if a figure's chapter is not in `chapters`.
    """
    for entry in found:
        if entry.figure.chapter not in chapters:
            raise ValueError(
                f"figure {entry.figure.name!r} is in chapter {entry.figure.chapter!r}, which no "
                f"section's part of the report has; there are: {', '.join(chapters)}"
            )
    languages = list(dict.fromkeys(entry.language for entry in found))
    names = list(dict.fromkeys(entry.figure.name for entry in found))
    return sorted(
        found,
        key=lambda entry: (
            chapters.index(entry.figure.chapter),
            languages.index(entry.language),
            names.index(entry.figure.name),
        ),
    )


def numbered(entries: list[FigureEntry], folder: Path, are_inside: bool = False) -> list[dict]:
    """What a page in a folder shows of its figures; with `are_inside`, the drawings too."""
    return [
        shown(entry, number, folder) | ({"svg": inlined(entry)} if are_inside else {})
        for number, entry in enumerate(entries, start=1)
    ]


def shown(entry: FigureEntry, number: int, folder: Path) -> dict:
    return {
        "number": number,
        "anchor": entry.anchor,
        "chapter": entry.figure.chapter,
        "title": entry.figure.title,
        "caption": entry.figure.caption,
        "numbers": entry.figure.numbers,
        "paper": entry.figure.paper,
        "language": entry.language,
        "file": link(entry.svg, folder),
        "described": entry.described,
        "tables": [{"name": str(path), "link": link(path, folder)} for path in entry.tables],
        "command": entry.command,
    }


def link(path: str | Path, folder: Path) -> str:
    return quote(Path(os.path.relpath(path, folder)).as_posix())


def inlined(entry: FigureEntry) -> str:
    """The SVG as part of the page; its ids are unique, and its style applies only to itself."""
    try:
        svg = Path(entry.svg).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{entry.svg}: cannot be read: {error}; make it with: {entry.command}"
        ) from None
    found = re.search(r"<svg.*</svg>", svg, flags=re.DOTALL)
    if found is None:
        raise UserError(f"{entry.svg}: not an SVG file; delete it and rerun: {entry.command}")
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", found.group(), flags=re.DOTALL)
    # HTML needs no namespaces, and their addresses would look like links.
    svg = re.sub(r'\s(xmlns(:\w+)?|version)="[^"]*"', "", svg)
    own = f"{entry.anchor}-"
    svg = re.sub(r'(\bid="|url\(#|href="#)', lambda match: match.group() + own, svg)
    svg = svg.replace("*{", f"#{own}svg *{{")
    opening = f'<svg id="{own}svg" role="img" aria-label="{escape(entry.described)}"'
    return svg.replace("<svg", opening, 1)
