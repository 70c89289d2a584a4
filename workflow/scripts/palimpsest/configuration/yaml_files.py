"""Configuration files as they are written, before anything is made of them."""

import os
from pathlib import Path
from typing import Any

import yaml

from palimpsest.errors import UserError


class _Loader(yaml.SafeLoader):
    """A loader of plain values that refuses a key given twice, of which YAML keeps the last."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} stands there a second time; keep one of them",
                    problem_mark=key.start_mark,
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


# Ten times as fast, where PyYAML was built with it; `check_file` has words of its own.
_FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_file(path: str | Path) -> Any:
    """What a file holds that is known to be right: it is the project's own, or was checked."""
    return yaml.load(Path(path).read_text(encoding="utf-8-sig"), _FAST_LOADER)


def check_file(path: str | Path) -> None:
    """Raise `UserError`, naming file and line, unless a file is YAML with keys, each given once."""
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
