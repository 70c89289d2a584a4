"""The report as pages: an overview, a page for each section, all claims, and the methods."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from palimpsest import tables
from palimpsest.claims import CANNOT_TELL
from palimpsest.report import claims as tests
from palimpsest.report.part import Part
from palimpsest.report.templates import template

OVERVIEW, CLAIMS, METHODS = "index.html", "claims.html", "methods.html"
TEMPLATES = {
    OVERVIEW: "overview.html.j2",
    CLAIMS: "claims.html.j2",
    METHODS: "methods.html.j2",
}
OF_SECTION = "section.html.j2"
# Templates that other templates include; named here, so that a change of them makes the report anew
INCLUDED = ("frame.html.j2", "macros.html.j2", "style.css.j2", "testing.html.j2")
SCRIPT = "claims.js.j2"
CHOICES = ("section", "language", "evidence", "verdict")  # of the page of claims


def write(
    folder: Path,
    parts: Sequence[Part],
    chapters: Sequence[Mapping],
    claims: pd.DataFrame,
    **shared: object,
) -> None:
    """Write the pages.

    Parameters
    ----------
    parts : the sections' parts, after the one that every report has, which has no name
    chapters : those with something to show: `it`, a `Chapter`, and `figures`, what is shown of each
    claims : the table of this name
    shared : what the report's page is made from, too
    """
    asked = (section(part, chapters, claims) for part in parts if part.name)
    sections = [one for one in asked if one["figure"] or one["chapters"] or one["n_tests"]]
    pages = [{"file": OVERVIEW, "title": "Overview"}]
    pages += [*sections, {"file": CLAIMS, "title": "Claims"}, {"file": METHODS, "title": "Methods"}]
    rows = tests_of(sections)
    known = {
        **shared,
        "pages": pages,
        "sections": sections,
        "claims_page": CLAIMS,
        "shared": chapters_in([part for part in parts if not part.name], chapters),
        "tests": rows,
        "choices": {name: sorted({row[name] for row in rows} - {""}) for name in CHOICES},
    }
    script = hashed(template(__file__, SCRIPT).render())
    for page in pages:
        name = TEMPLATES.get(page["file"], OF_SECTION)
        allowed = script if page["file"] == CLAIMS else None
        made = template(__file__, name).render(
            **known, here=page["file"], section=page, script=allowed
        )
        with tables.replacing(folder / page["file"]) as temporary:
            Path(temporary).write_text(made, encoding="utf-8")


def section(part: Part, chapters: Sequence[Mapping], claims: pd.DataFrame) -> dict:
    """What the pages show of a section.

    `first` is the row of its clearest verdict, and `figure` the first figure; its chapters have the
    others.
    """
    counted = tests.tested(tests.own_claims(claims, part))
    of_part = tests.of_part(claims, part)
    found = chapters_in([part], chapters)
    figure = next((drawn for chapter in found for drawn in chapter["figures"]), None)
    rest = [
        {**chapter, "figures": [drawn for drawn in chapter["figures"] if drawn is not figure]}
        for chapter in found
    ]
    decided = counted[counted["verdict"] != CANNOT_TELL].sort_values("p_holm", kind="stable")
    return {
        **of_part,
        "name": part.name,
        "file": f"{part.name}.html",
        "part": part,
        "n_tests": len(counted),
        "words": ", ".join(f"{n} {word}" for word, n in of_part["counts"].items()),
        "first": None if decided.empty else decided.iloc[0].to_dict(),
        "figure": figure,
        "chapters": [one for one in rest if one["figures"] or one["it"].before or one["it"].after],
    }


def chapters_in(parts: Sequence[Part], chapters: Sequence[Mapping]) -> list[Mapping]:
    own = [chapter.id for part in parts for chapter in part.chapters]
    return [chapter for chapter in chapters if chapter["it"].id in own]


def tests_of(sections: Sequence[Mapping]) -> list[dict]:
    """A row for each test of a claim, with the section that it belongs to."""
    return [
        {
            **row,
            "section": one["title"],
            "file": one["file"],
            "agrees_if": claim["agrees_if"],
            "language": row["language"] or "",
            "verdict": row["shown"],
        }
        for one in sections
        for question in one["questions"]
        for claim in question["claims"]
        for row in claim["tests"]
    ]


def hashed(script: str) -> dict[str, str]:
    """A script with the hash by which a page's policy allows it alone."""
    digest = hashlib.sha256(script.encode()).digest()
    return {"text": script, "hash": base64.b64encode(digest).decode()}
