"""The last lines of a command: what a person can open, and what is not of this configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from palimpsest.commands import snakemake
from palimpsest.ends.files import FEW, files_of_targets, files_to_open, has_rows
from palimpsest.ends.leftovers import notice
from palimpsest.paths import PLAN


class Ending:
    """The last lines of a command of Snakemake. `workflow` is Snakemake's."""

    def __init__(self, experiment, workflow):
        self._experiment, self._workflow = experiment, workflow

    def print(self) -> None:
        """Print the lines, unless the command is to print nothing (`--quiet all`)."""
        if "ALL" in {each.name for each in self._workflow.output_settings.quiet or ()}:
            return
        for line in self._lines():
            print(line, file=sys.stderr, flush=True)

    def known_targets(self) -> list[str]:
        patterns = self.patterns()
        names = (rule.name for rule in self._workflow.rules if rule.name not in patterns)
        return [*names, *self._experiment.all_files]

    def patterns(self) -> dict[str, str]:
        """The first output of each rule that has wildcards, and so is no target, by its name.

        A rule for the variants of models, of which there are none, has no output.
        """
        rules = self._workflow.rules
        return {
            rule.name: str(rule.output[0]) for rule in rules if rule.has_wildcards() and rule.output
        }

    def _lines(self) -> Iterator[str]:
        files = files_of_targets(self._workflow.dag)
        first = [path for section in self._experiment.known for path in section.opens]
        there = [*filter(os.path.exists, files)]
        if there:
            filled = [*filter(has_rows, there)]
            yield files_to_open(filled, first) or f"without rows: {'; '.join(there[:FEW])}"
            if files == [PLAN]:  # other results may be those of other configurations
                return
            left = [path for path in self._experiment.leftovers if path not in files]
            if line := notice(left, self._command()):
                yield line

    def _command(self) -> str:
        """The command that sets leftovers apart, with the same configuration."""
        command = snakemake("set_leftovers_apart")
        has_more = self._workflow.config_settings.config
        return f"{command} (and the same --config)" if has_more else command
