"""The sources of a configuration: its files, and the file that last set a key."""

import yaml

from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.yaml_files import read_file
from palimpsest.errors import UserError


class Sources:
    """The files of a configuration, and the values of `--config` (`command_line`).

    Later files override earlier ones, and the command line overrides all files.
    """

    def __init__(self, files: list[str], command_line: dict | None = None):
        self.files = [str(file) for file in files]
        self.command_line = command_line or {}

    def error(self, mistake: Mistake) -> UserError:
        """A mistake as an error that names the source of the key."""
        key, text, place = mistake
        where = self.of(key if place is None else place)
        return UserError(f"{where}: {key + ': ' if key else ''}{text}")

    def of(self, key: str) -> str:
        """The source that last set a key; if none did, the source of the nearest key above it."""
        read = [("--config", self.command_line)]
        read += [(file, _load(file)) for file in reversed(self.files)]
        steps = key.split("[")[0].split("/")
        for depth in range(len(steps), 0, -1):
            for name, settings in read:
                if _has(settings, steps[:depth]):
                    return name
        return self.files[-1] if self.files else "--config"


def as_yaml(tree):
    """Values from the command line, with texts read as YAML: '3' becomes 3, 'null' becomes None."""
    if isinstance(tree, dict):
        return {name: as_yaml(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [as_yaml(value) for value in tree]
    if not isinstance(tree, str):
        return tree
    try:
        return yaml.safe_load(tree)
    except yaml.YAMLError:
        return tree


def _load(file: str) -> dict:
    return read_file(file) or {}


def _has(tree, steps: list[str]) -> bool:
    for step in steps:
        if not isinstance(tree, dict) or step not in tree:
            return False
        tree = tree[step]
    return True
