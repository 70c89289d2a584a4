"""A first check of what a command line gives with `--configfile` and `--config`.

Snakemake reads both before the Snakefile. Its own error does not name an empty or broken file. For
a binary file, and for a blank value, its error is a traceback. The profiles call this function,
because Snakemake reads profiles first: see `profiles/default/config.yaml`.
"""

import argparse
import os
import sys
from collections.abc import Sequence

import yaml

from palimpsest.configuration.yaml_files import check_file
from palimpsest.errors import UserError

SUFFIXES = (".yaml", ".yml", ".json")
# These flags take all words that follow, so that a target behind them is taken for a value.
OF_TARGETS = "give a target first, or put -- between the target and the values of"


def refuse_broken_files(arguments: Sequence[str]) -> None:
    """End the program with one line unless every given file and value can be read."""
    # With abbreviations, argparse would take `--config` as `--configfile`.
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", default=[])
    parser.add_argument("--config", "-C", nargs="*", default=[])
    given, _ = parser.parse_known_args(arguments)
    try:
        for pair in given.config:
            key, equals, value = pair.partition("=")
            if not equals:
                raise UserError(f"--config: {pair!r} is no key=value; {OF_TARGETS} --config")
            value = value.strip("'\"")  # as Snakemake does
            if value and _is_blank(value):
                raise UserError(f"--config: {key}: {value!r} is no value; give one, or drop it")
        for path in given.configfile:
            if not os.path.exists(path):
                hint = "" if path.endswith(SUFFIXES) else f"; {OF_TARGETS} --configfile"
                raise UserError(f"{path}: no such file; it was given with --configfile{hint}")
            check_file(path)
    except UserError as error:
        sys.exit(f"error: {error}")


def _is_blank(value: str) -> bool:
    """Whether YAML finds nothing in a text, as in spaces or in a comment."""
    try:
        return yaml.load(value, Loader=yaml.BaseLoader) is None
    except yaml.YAMLError:
        return False
