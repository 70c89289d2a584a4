"""Characters of a user's names and texts that the font of the figures lacks."""

from __future__ import annotations

import functools
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from palimpsest.errors import Notice
from palimpsest.figures.libraries import font_manager, plt, text

LAST_RESORT = "Last Resort"  # matplotlib's font of boxes with the number of a character
MOST_NAMED = 3


def find_glyphs(figure: plt.Figure, svg_path: Path) -> None:
    """Draw characters that the font lacks with other installed fonts; warn, in one line, of others.

    `figure` must be drawn already, because ticks have no labels before.
    """
    lacking = {one: _without_glyph(one) for one in figure.findobj(text.Text)}
    missing = set().union(*lacking.values())
    if not missing:
        return
    fonts = list(_fonts_with(missing))
    for one, characters in lacking.items():
        if characters and fonts:
            one.set_fontfamily([_font_of(one).family_name, *(font.family_name for font in fonts)])
    if left := missing.difference(*(map(chr, font.get_charmap()) for font in fonts)):
        warnings.warn(Notice(_said(svg_path, left)), stacklevel=2)


def _said(svg_path: Path, characters: Iterable[str]) -> str:
    first = sorted(characters)[:MOST_NAMED]
    named = [
        f"{c} (U+{ord(c):04X}, {unicodedata.name(c, 'without a name').lower()})" for c in first
    ]
    more = len(set(characters)) - len(first)
    others = f" and {more} more" if more else ""
    return (
        f"{svg_path}: no installed font has {', '.join(named)}{others}, so there are boxes in the "
        "PNG (the SVG shows the characters where its reader has a font for them); install a font "
        "that has them, such as Noto Sans CJK for Chinese, Japanese and Korean, and make the "
        "figure again"
    )


def _font_of(one: text.Text):
    return font_manager.get_font(font_manager.findfont(one.get_fontproperties()))


@functools.cache
def _known(path: str) -> frozenset[int]:
    """The characters of a font's file, by their numbers."""
    return frozenset(font_manager.get_font(path).get_charmap())


def _without_glyph(one: text.Text) -> set[str]:
    """The visible characters of a text that its font lacks."""
    words = one.get_text() if one.get_visible() else ""
    if words.isascii():
        return set()
    known = _known(font_manager.findfont(one.get_fontproperties()))
    return {c for c in words if c.isprintable() and not c.isspace() and ord(c) not in known}


def _fonts_with(missing: set[str]) -> Iterator:
    """Installed fonts that have some of the characters, in the order of their names."""
    left = {ord(character) for character in missing}
    for entry in sorted(font_manager.fontManager.ttflist, key=lambda font: (font.name, font.fname)):
        if entry.name.startswith(LAST_RESORT) or not left:
            continue
        try:
            font = font_manager.get_font(entry.fname)
        except (OSError, RuntimeError):  # such as a font of pictures, which matplotlib cannot draw
            continue
        if own := left & font.get_charmap().keys():
            left -= own
            yield font
