"""A first check of what a command line gives with `--configfile` and `--config`.

Snakemake reads both before the Snakefile. Its own error does not name an empty or broken file. For
a binary file, and for a blank value, its error is a traceback. The profiles call this function,
because Snakemake reads profiles first: see `profiles/default/config.yaml`.
"""

import argparse
import os
from collections import Counter
from collections.abc import Sequence

import yaml

from palimpsest.configuration.yaml_files import check_file, check_values
from palimpsest.errors import UserError, refusing

SUFFIXES = (".yaml", ".yml", ".json")
# These flags take all words that follow, so a target after them is taken for a value.
OF_TARGETS = "give a target first, or put -- between the target and the values of"


def refuse_broken_files(arguments: Sequence[str]) -> None:
    """End the program with one line unless every given file and value can be read."""
    # With abbreviations, argparse would take `--config` as `--configfile`.
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", default=[])
    parser.add_argument("--config", "-C", nargs="*", default=[])
    given, _ = parser.parse_known_args(arguments)
    with refusing():
        for pair in given.config:
            if "=" not in pair:
                raise UserError(f"--config: {pair!r} is no key=value; {OF_TARGETS} --config")
        values = [pair.partition("=")[::2] for pair in given.config]
        for key, value in values:
            _check_value(key, value.strip("'\""))  # as Snakemake does
        for key, count in Counter(key for key, _ in values).items():
            if count > 1:
                raise UserError(f"--config: {key}: is given {count} times; give it once")
        for path in given.configfile:
            if not os.path.exists(path):
                hint = "" if path.endswith(SUFFIXES) else f"; {OF_TARGETS} --configfile"
                raise UserError(f"{path}: no such file; it was given with --configfile{hint}")
            check_file(path)


def _check_value(key: str, value: str) -> None:
    """Refuse a value in which YAML finds nothing, or something else than is written."""
    try:
        if value and yaml.load(value, Loader=yaml.BaseLoader) is None:
            raise UserError(f"--config: {key}: {value!r} is no value; give one, or drop it")
        check_values(value, f"--config: {key}")
    except yaml.YAMLError:
        return  # Snakemake takes it as a text.
