"""Reading and checking single configuration files."""

import os
from pathlib import Path
from typing import Any

import yaml

from palimpsest.errors import UserError


class _Loader(yaml.SafeLoader):
    """A loader of plain values that refuses a key given twice; YAML would keep the last one."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} is there a second time; keep one of them",
                    problem_mark=key.start_mark,
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


# Ten times as fast, if PyYAML was built with it. `check_file` does not use it, because of messages.
_FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_file(path: str | Path) -> Any:
    """The content of a file that is known to be valid: the project's own, or a checked file."""
    return yaml.load(Path(path).read_text(encoding="utf-8-sig"), _FAST_LOADER)


def check_file(path: str | Path) -> None:
    """Raise `UserError` with file and line, unless a file is YAML with keys that occur once."""
    path = os.path.relpath(path)
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8-sig"), _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise UserError(
            f"{path}:{mark.line + 1 if mark else 1}: {error.problem or error.context}"
        ) from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise UserError(f"{path}: is not text in YAML: {error}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: must hold keys and their values, such as: seeds: [0, 1, 2]")
