"""The languages that come with the library."""

from __future__ import annotations

import warnings

from palimpsest import paths
from palimpsest.arguments import TEXT, takes
from palimpsest.errors import nearest
from palimpsest.languages.errors import GrammarError, GrammarWarning
from palimpsest.languages.grammar import Grammar

FOLDER, SUFFIX = "config/languages", ".pcfg"


@takes(name=TEXT)
def load(name: str) -> Grammar:
    """The grammar of a shipped language, such as "L3".

    Raises `GrammarError` if there is no language of this name; the message names all.
    """
    folder = paths.workflow()
    files = sorted(folder.glob(f"{FOLDER}/*{SUFFIX}")) if folder else []
    by_name = {file.stem: file for file in files}
    if not by_name:
        raise GrammarError("no language is installed; install palimpsest again with pip")
    if name not in by_name:
        raise GrammarError(
            f"unknown language {name!r}{nearest(name, by_name)}; known: {', '.join(by_name)}; "
            "read a file of your own with Grammar.from_file"
        )
    with warnings.catch_warnings():
        # The rules that are never reached are as the paper prints them.
        warnings.simplefilter("ignore", GrammarWarning)
        return Grammar.from_string(by_name[name].read_text(encoding="utf-8"), name=name)
