"""Characters of a user's names that the font of the figures lacks."""

import warnings

import matplotlib.pyplot as plt
import pytest
from matplotlib import font_manager

from palimpsest.errors import Notice
from palimpsest.figures import style

CHINESE = "模型"


@pytest.fixture(autouse=True)
def only_fonts_of_matplotlib(monkeypatch):
    """As on a machine without other fonts; the fonts come with matplotlib."""
    own = [font for font in font_manager.fontManager.ttflist if "mpl-data" in font.fname]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    yield
    plt.close("all")


def saved(folder, label):
    """The SVG of a figure with a label on an axis, and what was said."""
    figure, axes = plt.subplots()
    axes.bar([label], [1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        style.save(figure, folder / "a.svg")
    return (folder / "a.svg").read_text(), [each.message for each in caught]


def test_characters_that_no_font_has_are_named_once(tmp_path):
    """In one line, and matplotlib adds none of its own."""
    content, (said,) = saved(tmp_path, f"{CHINESE} {CHINESE}-1b")
    assert isinstance(said, Notice)
    assert str(said).startswith(f"{tmp_path}/a.svg: no installed font has 型 (U+578B, ")
    assert "模 (U+6A21" in str(said)
    assert "install a font that has them" in str(said)
    assert CHINESE in content


@pytest.mark.parametrize("label", ["opt-1.3b-twin", "café α → β", "😀"])
def test_nothing_is_said_of_characters_that_the_font_has(tmp_path, label):
    content, said = saved(tmp_path, label)
    assert not said
    assert label in content


def test_another_installed_font_takes_over(tmp_path):
    """For the text with the character alone."""
    fonts = {
        name: font_manager.get_font(font_manager.findfont(name)).get_charmap()
        for name in ("DejaVu Sans", "STIXGeneral")
    }
    beyond = sorted(fonts["STIXGeneral"].keys() - fonts["DejaVu Sans"].keys())
    character = next(chr(n) for n in beyond if chr(n).isprintable())
    content, said = saved(tmp_path, f"a{character}")
    assert not said
    (line,) = [line for line in content.splitlines() if f"a{character}" in line and "<text" in line]
    assert "DejaVu Sans" in line
    assert line.count("'") >= 4, "the font, and one that has the character"
