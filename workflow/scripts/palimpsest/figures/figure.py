"""What a figure is: a function from tables to a drawing, with its title and caption.

Only light modules are imported: Snakemake reads this while it builds its graph of jobs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from palimpsest.errors import UserError
from palimpsest.paths import FIGURE, FIGURE_FORMATS, WILDCARD, fill, of_pattern, values_in
from palimpsest.tables.kinds import Document, Kind


@dataclass(frozen=True)
class Figure:
    """A figure that every language has one of.

    `draw` names a function ("palimpsest.memorisation.figures.tradeoff:tradeoff") that takes what
    each of the kinds `tables` holds, in their order: a frame of a table, a dict of a document. The
    first kind says which languages have the figure. The caption is two sentences: what the figure
    shows, and what to see. `numbers` lists the figures of the paper `paper` that it corresponds to,
    if any. `chapter` is the part of the report in which it stands.
    """

    name: str
    chapter: str
    title: str
    caption: str
    numbers: str
    paper: str
    tables: tuple[Kind | Document, ...]
    draw: str

    def languages(self, outputs: Iterable[str]) -> list[str]:
        """The languages that have the figure, where a section delivers these outputs."""
        found = (values_in(self.tables[0].path, path) for path in outputs)
        return list(dict.fromkeys(values["language"] for values in found if values))

    def inputs(self, outputs: Iterable[str], language: str) -> dict[str, list[str]]:
        """The files of a language that it is drawn from, by kind.

        They are those among a section's outputs; or, of a language for which the section delivers
        none, the one file that the language alone names. Raises `UserError` if there is none such.
        """
        outputs = list(outputs)
        found = {}
        for kind in self.tables:
            delivered = of_pattern(kind.path, outputs, {"language": language})
            found[kind.name] = delivered or [fill(kind.path, language=language)]
            if WILDCARD.search(found[kind.name][0]):
                raise UserError(
                    f"{self.files(language)[0]}: the configuration asks for no `{kind.name}` of "
                    f"{language}; add {language} to the languages of the section that makes them"
                )
        return found

    @property
    def code(self) -> tuple[str, ...]:
        """The places of the code that draws it, for its fingerprint."""
        return "palimpsest.figures.render:render", self.draw

    def files(self, language: str) -> list[str]:
        """The figure of a language, as vector graphics and as a picture."""
        pattern = fill(FIGURE, figure=self.name, language=language)
        return [fill(pattern, format=format) for format in FIGURE_FORMATS]
