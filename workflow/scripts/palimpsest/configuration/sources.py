"""The sources of a configuration: its files, and the file that last set a key."""

from collections.abc import Iterable, Iterator
from functools import cached_property

import yaml

from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.yaml_files import check_values, read_file
from palimpsest.errors import UserError

COMMAND_LINE = "--config"
QUOTES = "\"'"


class Sources:
    """The files of a configuration, and the values of `--config` (`command_line`).

    Later files override earlier ones, and the command line overrides all files. Each of them is a
    layer, a pair of its name and its values; the first layer has the defaults.
    """

    def __init__(self, files: list[str], command_line: dict | None = None):
        self.files = [str(file) for file in files]
        self.command_line = command_line or {}

    @cached_property
    def layers(self) -> list[tuple[str, dict]]:
        return [*((file, _load(file)) for file in self.files), (COMMAND_LINE, self.command_line)]

    def error(self, mistake: Mistake) -> UserError:
        key, text, place, because = mistake
        where = self.of(key if place is None else place)
        if because and self.place(because) > self._order(where):
            setting = key.split("[")[0]
            section, *inner = setting.split("/")
            remedy = f", or {section}: null" if inner else ""
            return UserError(
                f"{self.of(because)}: {because}: does not go with {where}: {key}: {text}; or set "
                f"{setting}{remedy} as well"
            )
        said = f"{key + ': ' if key else ''}{text}"
        default, *given = self.files or [where]
        if key and given and where == default:
            return UserError(
                f"{given[-1]}: {said}; the value is that of {default}: set the key in {given[-1]}"
            )
        return UserError(f"{where}: {said}")

    def _order(self, source: str) -> int:
        """The position of the last layer with this name."""
        return max(place for place, (name, _) in enumerate(self.layers) if name == source)

    def of(self, key: str) -> str:
        """The source that last set a key; if none did, the source of the nearest key above it."""
        steps = key.split("[")[0].split("/")
        for depth in range(len(steps), 0, -1):
            for name, settings in self._visible(steps):
                if has(settings, steps[:depth]):
                    return name
        return self.files[-1] if self.files else COMMAND_LINE

    def place(self, key: str) -> int:
        """The position of the layer that last set exactly this key; -1 if none did."""
        steps = key.split("/")
        found = (place for place, (_, tree) in enumerate(self.layers) if has(tree, steps))
        return max(found, default=-1)

    def _visible(self, steps: list[str]) -> Iterator[tuple[str, dict]]:
        """The layers that a value may come from, the last first.

        A layer that sets a block above the key to null hides the layers before it. If a later
        layer opens the block again, the block has the defaults.
        """
        for place in range(len(self.layers) - 1, -1, -1):
            yield self.layers[place]
            tree = self.layers[place][1]
            if any(has(tree, s := steps[:depth]) and not isinstance(value_at(tree, s), dict)
                   for depth in range(1, len(steps))):  # fmt: skip
                if place > 0:
                    yield self.layers[0]
                return


def of_command_line(entries: Iterable[str]) -> dict:
    """The values of `--config`, from the entries as they were given, such as "seeds=[0, 1]".

    Snakemake reads an entry without the types of YAML: inside of a block, 3 and "3" are one text.
    So each entry is read again, as a configuration file would be. A plain text is itself, whatever
    is in it. Raises `UserError` for a value that YAML would change, such as 010.
    """
    values: dict = {}
    for entry in entries:
        key, _, text = entry.partition("=")
        try:
            check_values(text, f"{COMMAND_LINE}: {key}")
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            value = text
        # In a plain text, YAML takes what follows " #" for a comment.
        is_plain = isinstance(value, str) and text.lstrip()[0] not in QUOTES
        _update(values, key, text if is_plain else value)
    return values


def _update(block: dict, key: str, value: object) -> None:
    """Set a key of a block; the keys of a block of values are set one by one."""
    if isinstance(value, dict) and isinstance(block.get(key), dict):
        for name, inner in value.items():
            _update(block[key], name, inner)
    else:
        block[key] = value


def has(tree, steps: list[str]) -> bool:
    for step in steps:
        if not isinstance(tree, dict) or step not in tree:
            return False
        tree = tree[step]
    return True


def value_at(tree, steps: list[str]):
    """The value of a key; None if there is no such key."""
    for step in steps:
        if not isinstance(tree, dict) or step not in tree:
            return None
        tree = tree[step]
    return tree


def _load(file: str) -> dict:
    read = read_file(file)
    return read if isinstance(read, dict) else {}
