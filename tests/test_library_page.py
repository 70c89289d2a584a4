"""The page of the library: its examples run, and every public function is on it."""

import doctest
import inspect
import pydoc
import re
from importlib import import_module
from pathlib import Path

import pytest

import palimpsest
from helpers.commands import printed_by
from helpers.tiny_language_models import write
from palimpsest import records

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/library.md"
PUBLIC = palimpsest.__all__


@pytest.mark.filterwarnings("ignore")
def test_the_examples_show_what_the_page_says(tmp_path, monkeypatch):
    (tmp_path / "config").symlink_to(ROOT / "config")
    write(tmp_path / "my-model")
    monkeypatch.chdir(tmp_path)
    done = doctest.testfile(
        str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert done.attempted > 50
    assert not done.failed


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_function_is_on_the_page(name):
    package = import_module(f"palimpsest.{name}")
    words = set(re.findall(r"\w+", PAGE.read_text()))
    functions = {one for one in package.__all__ if inspect.isfunction(getattr(package, one))}
    assert functions <= words, functions - words


@pytest.mark.parametrize("name", PUBLIC)
def test_signatures_are_short(name):
    """`help` names types as the code does: ArrayLike, and not all that it stands for."""
    package = import_module(f"palimpsest.{name}")
    for function in filter(inspect.isfunction, (getattr(package, one) for one in package.__all__)):
        signature = str(inspect.signature(function))
        assert "Union" not in signature, (function.__name__, signature)
        assert "palimpsest." not in signature, (function.__name__, signature)


@pytest.mark.parametrize("name", PUBLIC)
def test_help_shows_the_public_functions(name):
    package = import_module(f"palimpsest.{name}")
    shown = pydoc.plain(pydoc.render_doc(package))
    functions = [one for one in package.__all__ if inspect.isfunction(getattr(package, one))]
    assert all(f"\n    {one}(" in shown for one in functions)
    assert "__getattr__" not in shown
    assert "__all__" not in shown


def test_what_is_not_installed_is_left_out():
    """Otherwise, `help` ends in an error."""
    code = """import importlib.util, sys
class Missing:
    def find_spec(name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing)
found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "torch" else found(name)
from palimpsest import records
print(*dir(records))"""
    assert {*records.__all__} - {*printed_by(code)} == {"measure"}
