"""The class of figures: a function from tables to a drawing, with a title and a caption."""

from collections.abc import Iterable
from dataclasses import dataclass

from palimpsest.errors import UserError
from palimpsest.lazy_import import declared_in
from palimpsest.paths import FIGURE, FIGURE_FORMATS, WILDCARD, fill, of_pattern, values_in
from palimpsest.tables.kinds import Document, Kind

NOTHING_DRAWN = "nothing-drawn"  # id of a text that only says why there is nothing to draw


@dataclass(frozen=True)
class Figure:
    """A figure that is drawn for every language, declared in the file that draws it.

    `module` is the file's `__name__`. The file, the figure and the function that draws it have one
    name. The function takes one argument for each kind in `tables`, in this order: a frame for a
    table, a dict for a document. A language has the figure if it has tables of the first kind.
    `order` is the figure's position among those of its section. `chapter` is the id of the figure's
    chapter in the report. The caption has two sentences: what the figure shows, and what to look
    for. `numbers` lists the corresponding figures of the paper `paper`, if any. Tables of the kinds
    in `some_empty` may have no rows; of the first kind, at least one must have some. `drawn_for`
    says what takes the place of a language, such as a panel; it is empty if there is only one.
    """

    module: str
    order: int
    chapter: str
    title: str
    caption: str
    tables: tuple[Kind | Document, ...]
    numbers: str = ""
    paper: str = ""
    some_empty: tuple[Kind, ...] = ()
    drawn_for: str = "language"

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    @property
    def draw(self) -> str:
        """For example "palimpsest.density.figures.density_truth:density_truth", a location."""
        return f"{self.module}:{self.name}"

    @property
    def declaration(self) -> str:
        """The location of the figure's declaration, for a fingerprint."""
        return f"{self.module}:FIGURE"

    def languages(self, outputs: Iterable[str]) -> list[str]:
        """The languages for which `outputs`, those of a section, have a table of the first kind."""
        found = (values_in(self.tables[0].path, path) for path in outputs)
        return list(dict.fromkeys(values["language"] for values in found if values))

    def inputs(self, outputs: Iterable[str], language: str) -> dict[str, list[str]]:
        """The files from which the figure of a language is drawn, by the name of their kind.

        Files are taken from a section's outputs. If the section delivers no file of a kind for the
        language, the file is the kind's path, if the language is its only wildcard; otherwise
        raises `UserError`.
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
    def beginning(self) -> str:
        """The common beginning of the paths of the figure's files, for any language."""
        return fill(FIGURE, figure=self.name).split("{")[0]

    @property
    def code(self) -> tuple[str, ...]:
        """The locations of the code that draws the figure, for a fingerprint."""
        return "palimpsest.figures.render:render", self.draw

    def files(self, language: str) -> list[str]:
        """The files of the figure for a language: one SVG and one PNG."""
        pattern = fill(FIGURE, figure=self.name, language=language)
        return [fill(pattern, format=format) for format in FIGURE_FORMATS]


def figures_in(package: str) -> tuple[Figure, ...]:
    return tuple(sorted(declared_in(package, "FIGURE"), key=lambda figure: figure.order))
