"""A first check of the files that a command line gives with `--configfile`.

Snakemake reads these files before the Snakefile. Its own error does not name an empty or broken
file, and for a binary file it is a traceback. The profiles call this function, because Snakemake
reads profiles first: see `profiles/default/config.yaml`.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from palimpsest.configuration.yaml_files import check_file
from palimpsest.errors import UserError


def refuse_broken_files(arguments: Sequence[str]) -> None:
    """End the program with one line unless every given configuration file can be read."""
    # With abbreviations, argparse would take `--config` as `--configfile`.
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", default=[])
    given, _ = parser.parse_known_args(arguments)
    try:
        for path in given.configfile:
            if not os.path.exists(path):
                raise UserError(f"{path}: no such file; it was given with --configfile")
            check_file(path)
    except UserError as error:
        sys.exit(f"error: {error}")
