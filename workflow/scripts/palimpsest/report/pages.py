"""The pages of the report: an overview, a page for each section, all claims, and the methods.

They are written as files of a folder, or one after another in one file. Both have one frame and the
same templates; only drawings, and links to other pages, differ.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from palimpsest import tables
from palimpsest.claims import CANNOT_TELL
from palimpsest.number_format import number
from palimpsest.report import claims as tests
from palimpsest.report.part import Part
from palimpsest.report.templates import template

OVERVIEW = {"file": "index.html", "title": "Overview", "template": "overview.html.j2"}
CLAIMS = {"file": "claims.html", "title": "Claims", "template": "claims.html.j2"}
METHODS = {"file": "methods.html", "title": "Methods", "template": "methods.html.j2"}
OF_SECTION = "section.html.j2"
FRAME = "frame.html.j2"
# Templates that other templates include; named here, so that a change of them makes the report anew
INCLUDED = ("macros.html.j2", "style.css.j2", "testing.html.j2")
SCRIPT = "claims.js.j2"
NUMBER = r"−?(?:[\d.,]+(?:e[−+]?\d+)?|∞)"  # as `number_format.number` writes it


def content(
    parts: Sequence[Part],
    chapters: Sequence[Mapping],
    claims: pd.DataFrame,
    undrawn: Sequence[Mapping] = (),
    **known: object,
) -> dict:
    """What the templates of all pages are filled with.

    Parameters
    ----------
    parts : the sections' parts, before the one that every report has, which has no name
    chapters : those with something to show: `it`, a `Chapter`, and `figures`, what is shown of each
    claims : the table of this name
    undrawn : the figures that only say why there is nothing to draw: `chapter`, `described`, `file`
    known : what templates take by these names
    """
    asked = (section(part, chapters, claims, undrawn) for part in parts if part.name)
    shown = ("figure", "chapters", "n_tests", "sentences")
    sections = [one for one in asked if any(one[name] for name in shown)]
    listed = listed_claims(sections, claims, parts, is_short=bool(known["is_short"]))
    return {
        **known,
        "pages": [OVERVIEW, *sections, CLAIMS, METHODS],
        "sections": sections,
        "claims_page": CLAIMS["file"],
        "shared": chapters_in([part for part in parts if not part.name], chapters),
        "claims": listed,
        "anchors": {claim["anchor"] for claim in listed},
        "choices": tests.choices(listed),
        "notes": tests.shared_notes(listed),
    }


def write_pages(folder: Path, known: Mapping) -> None:
    for page in known["pages"]:
        write(folder / page["file"], known, [page], to=another_page)


def write_file(path: Path, known: Mapping) -> None:
    write(path, known, known["pages"], to=further_down)


def used_terms(known: Mapping) -> dict[str, str]:
    """The terms of the glossary that the pages use, whose content names the files of drawings."""
    page = rendered({**known, "glossary": {}}, known["pages"], to=further_down)
    text = re.sub(r"<[^>]*>", " ", page)
    return {
        term: meaning
        for term, meaning in known["glossary"].items()
        if re.search(rf"\b{re.escape(term)}s?\b", text, flags=re.IGNORECASE)
    }


def write(path: Path, known: Mapping, shown: Sequence[Mapping], to) -> None:
    """Write one file that shows some pages; `to` makes the link to a page or an anchor on it."""
    save(path, unbroken(rendered(known, shown, to)))


def rendered(known: Mapping, shown: Sequence[Mapping], to) -> str:
    has_script = any(page["template"] == CLAIMS["template"] for page in shown)
    return framed(
        __file__,
        **known,
        shown=shown,
        is_whole=to is further_down,
        to=to,
        page_id=page_id,
        script=template(__file__, SCRIPT).render() if has_script else None,
    )


def framed(module_file: str, script: str | None, **known: object) -> str:
    """A page: the templates of what it shows, in the frame of all pages.

    Parameters
    ----------
    module_file : a module in the folder of the templates
    script : the page's only script, which its policy allows by its hash
    known : what the frame and the templates take by these names
    """
    allowed = hashed(script) if script else None
    return template(module_file, FRAME).render(**known, script=allowed)


def save(path: Path, page: str) -> None:
    with tables.replacing(path) as temporary:
        Path(temporary).write_text(page, encoding="utf-8")


def unbroken(html: str) -> str:
    """The same page, in which no line ends inside of an interval, a p-value or a percentage.

    A script stays as it is, because the page's policy names its hash.
    """
    page, *script = html.partition("<script>")
    page = re.sub(rf"\[({NUMBER}), ({NUMBER})\]", r"[\1,&nbsp;\2]", page)
    page = re.sub(r"(p =|&lt;) (0\.\d+)", r"\1&nbsp;\2", page)
    page = re.sub(r"(\d) %", r"\1&nbsp;%", page)
    return page + "".join(script)


def another_page(file: str, anchor: str = "") -> str:
    return f"{file}#{anchor}" if anchor else file


def further_down(file: str, anchor: str = "") -> str:
    return f"#{anchor or page_id(file)}"


def page_id(file: str) -> str:
    return f"page-{Path(file).stem}"


def section(
    part: Part,
    chapters: Sequence[Mapping],
    claims: pd.DataFrame,
    undrawn: Sequence[Mapping] = (),
) -> dict:
    """What the pages show of a section.

    `answered` has the tests of the claim that answers its question. Where there are none, `lacking`
    says what would decide, and `first` is the row of the clearest verdict, unless sentences answer.
    `figure` is the
    first figure; its chapters have the others. `drawn` has the number and the anchor of every
    figure by its name.
    """
    counted = tests.tested(tests.own_claims(claims, part))
    of_part = tests.of_part(claims, part)
    found = chapters_in([part], chapters)
    figures = [drawn for chapter in found for drawn in chapter["figures"]]
    first = figures[0] if figures else None
    rest = [
        {**chapter, "figures": [drawn for drawn in chapter["figures"] if drawn is not first]}
        for chapter in found
    ]
    answered = tests_of_answer(counted, part)
    decided = counted[counted["verdict"] != CANNOT_TELL].sort_values("p_holm", kind="stable")
    is_first = not answered and not part.sentences and not decided.empty
    return {
        **of_part,
        "name": part.name,
        "file": f"{part.name}.html",
        "template": OF_SECTION,
        "part": part,
        "sentences": part.sentences,
        "n_tests": len(counted),
        "words": ", ".join(f"{n} {word}" for word, n in of_part["counts"].items()),
        "answered": answered,
        "lacking": None if answered else lacking(tests.own_claims(claims, part), part),
        "first": decided.iloc[0].to_dict() if is_first else None,
        "figure": first,
        "undrawn": [one for one in undrawn if one["chapter"] in part.ids],
        "others": [drawn for chapter in rest for drawn in chapter["figures"]],
        "drawn": {drawn["name"]: drawn for drawn in figures},
        "chapters": [one for one in rest if one["figures"] or one["it"].before or one["it"].after],
    }


def tests_of_answer(counted: pd.DataFrame, part: Part) -> list[dict]:
    """The tests of the first claim that was tested and answers the section's question."""
    for answer in part.answers:
        rows = counted[counted["claim"] == answer.claim]
        if len(rows):
            return [
                {**row, "reasons": [*uncorrected(row), *filter(None, row["note"].split("; "))]}
                for row in rows.to_dict("records")
            ]
    return []


def uncorrected(row: Mapping) -> list[str]:
    """A note where a verdict does not stand the correction for all tests."""
    if row["verdict"] == CANNOT_TELL or not row["p_holm"] >= tests.ERROR_RATE:
        return []
    return [f"p (Holm) {number(row['p_holm'])}"]


def lacking(claims: pd.DataFrame, part: Part) -> dict | None:
    """The claim that would answer a section's question, and the tables that would decide it.

    Without tables, the experiment is too small for the claim. None if the section names no claim,
    or if its sentences answer and none of its claims was tested.
    """
    if not part.answers or (part.sentences and tests.tested(claims).empty):
        return None
    first = part.answers[0]
    is_left_out = not claims.empty and not (claims["claim"] == first.claim).any()
    return {**first._asdict(), "tables": () if is_left_out else first.tables}


def chapters_in(parts: Sequence[Part], chapters: Sequence[Mapping]) -> list[Mapping]:
    own = [name for part in parts for name in part.ids]
    return [chapter for chapter in chapters if chapter["it"].id in own]


def listed_claims(
    sections: Sequence[Mapping], claims: pd.DataFrame, parts: Iterable[Part], is_short: bool
) -> list[dict]:
    """The claims that were tested, with their tests, question by question.

    Those on questions of no section come last. In a short report, only tests that are decided.
    """
    rest = tests.of_part(claims, tests.part_of_the_rest(claims, parts))
    groups = [*sections, {**rest, "title": "Other questions", "file": "", "drawn": {}}]
    found = []
    for group in groups:
        for question in group["questions"]:
            for claim in question["claims"]:
                rows = [
                    row for row in claim["tests"] if not is_short or row["verdict"] != CANNOT_TELL
                ]
                if rows:
                    drawn = drawing_of(group, claim["claim"])
                    found.append(
                        {
                            **claim,
                            "tests": rows,
                            "file": group["file"],
                            "title": group["title"],
                            "question": question["words"] or question["question"],
                            "anchor": question["anchor"],
                            "figure": drawn,
                        }
                    )
    return found


def drawing_of(group: Mapping, claim: str) -> Mapping | None:
    """The first figure of a section that is drawn from the tables on which a claim is tested."""
    names = group["part"].figures_of.get(claim, ()) if "part" in group else ()
    return next((group["drawn"][name] for name in names if name in group["drawn"]), None)


def hashed(script: str) -> dict[str, str]:
    """A script with the hash by which a page's policy allows it alone."""
    digest = hashlib.sha256(script.encode()).digest()
    return {"text": script, "hash": base64.b64encode(digest).decode()}
