"""Reading and checking single configuration files."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from palimpsest.configuration.messages import joined
from palimpsest.errors import UserError

# Ten times as fast, if PyYAML was built with it.
_FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST = 100  # blocks inside of blocks; the fast loader crashes at some ten thousand
_TAG = "tag:yaml.org,2002:"
# A number that everyone reads alike: decimal, without a zero before it
_DECIMAL = re.compile(r"[-+]?(0|[1-9]\d*|(?=\.\d))(\.\d*)?([eE][-+]?\d+)?", re.ASCII)
AS_KEYS = "write keys and their values in YAML, such as: seeds: [0, 1, 2]"
_AS_WRITTEN = {"true", "false", "null", ""}
# What keys must not be, by the kind that YAML takes them for
_NOT_TEXT = {"int": "a number", "float": "a number", "bool": "true or false", "null": "nothing"}


def read_file(path: str | Path) -> Any:
    """The content of a file that is known to be valid: the project's own, or a checked file."""
    return yaml.load(Path(path).read_text(encoding="utf-8-sig"), _FAST_LOADER)


def check_file(path: str | Path) -> None:
    """Raise `UserError` with file and line, unless a file is YAML that nobody reads otherwise.

    Keys must occur once, and values must be as YAML reads them (`check_values`).
    """
    path = os.path.relpath(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        check_values(text, path, lines=True)
        content = yaml.load(text, _FAST_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise UserError(
            f"{path}:{mark.line + 1 if mark else 1}: {error.problem or error.context}; {AS_KEYS}"
        ) from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(
            f"{path}: is not text in YAML: {error}; save it as text in UTF-8, and {AS_KEYS}"
        ) from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: must hold keys and their values; {AS_KEYS}")


def check_values(text: str, where: str, lines: bool = False) -> None:
    """Raise `UserError` for a key given twice, and for what YAML reads as something else.

    Examples without quotes are 010 (the number 8), 1:30 (90), no (false) and 2020-01-01 (a date);
    of a key given twice, YAML keeps the last value. `where` begins the message, with the number of
    the line if `lines`. Raises `yaml.YAMLError` if the text is no YAML.
    """
    root = _composed(text)
    if root:
        _check_loops(root, where, lines, above=set(), done=set())
    # Aliases may lead to one node, so each node is looked at once.
    todo, seen = [((), root)] if root else [], set()
    while todo:
        path, node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        place = f"{where}:{node.start_mark.line + 1}" if lines else where
        if isinstance(node, yaml.ScalarNode):
            _check_scalar(node, f"{place}: {joined(path)}: " if path else f"{place}: ")
        elif isinstance(node, yaml.SequenceNode):
            todo += [((*path, number), item) for number, item in enumerate(node.value)][::-1]
        else:
            _check_keys(node, path, where, lines)
            for key, value in reversed(node.value):
                todo += [((*path, str(key.value)[:60]), value), (path, key)]


def _check_loops(
    node: yaml.Node, where: str, lines: bool, above: set, done: set, path: tuple = ()
) -> None:
    """Refuse an alias of a node that it is a part of; `above` and `done` hold nodes by their id."""
    if isinstance(node, yaml.ScalarNode) or id(node) in done:
        return
    above.add(id(node))
    for step, child in _children(node):
        below = (*path, *step)
        if id(child) in above:
            place = f"{where}:{child.start_mark.line + 1}" if lines else where
            key = f"{joined(below)}: " if below else ""
            raise UserError(
                f"{place}: {key}a value is a part of itself; write it out, without an alias"
            )
        _check_loops(child, where, lines, above, done, below)
    above.remove(id(node))
    done.add(id(node))


def _children(node: yaml.Node) -> Iterator[tuple[tuple, yaml.Node]]:
    """The nodes right below a block or a list, each with the step of the path to it."""
    if not isinstance(node, yaml.MappingNode):
        yield from (((number,), item) for number, item in enumerate(node.value))
        return
    for key, value in node.value:
        yield (), key
        yield (str(key.value)[:60],), value


def _composed(text: str) -> yaml.Node | None:
    depth = 0
    try:
        for event in yaml.parse(text, _FAST_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise yaml.YAMLError("it has blocks inside of too many other blocks")
        return yaml.compose(text, _FAST_LOADER)
    except yaml.MarkedYAMLError:
        # The messages of the slow loader are easier to read.
        yaml.compose(text, yaml.SafeLoader)
        raise


def _check_keys(node: yaml.MappingNode, path: tuple, where: str, lines: bool) -> None:
    seen = set()
    for key, _ in node.value:
        place = f"{where}:{key.start_mark.line + 1}" if lines else where
        if not isinstance(key, yaml.ScalarNode):
            raise UserError(f"{place}: a key is a list or a block; {AS_KEYS}")
        if key.value in seen:
            raise UserError(
                f"{place}: the key {key.value!r} is there a second time; keep one of them"
            )
        seen.add(key.value)
        if (kind := key.tag.removeprefix(_TAG)) in _NOT_TEXT and not _is_read_otherwise(key):
            block = f"{joined(path)}: " if path else ""
            raise UserError(
                f"{place}: {block}the key {key.value or 'null'} is read as {_NOT_TEXT[kind]}, and "
                f"keys are text; write {key.value!r} with quotes, or another name"
            )


def _is_read_otherwise(node: yaml.ScalarNode) -> bool:
    """Whether YAML reads a value as another one, which `_check_scalar` refuses in its own words."""
    return _other_reading(node.value, node.tag.removeprefix(_TAG)) is not None


def _check_scalar(node: yaml.ScalarNode, where: str) -> None:
    written = node.value
    # A value with a tag, such as !!int '010', is read by its tag, in quotes too.
    is_text = node.tag == f"{_TAG}str" or node.style not in (None, "", "'", '"')
    read = None if is_text else _other_reading(written, node.tag.removeprefix(_TAG))
    if read is None:
        return
    meant, hint = read
    instead = f"{hint}, or " if hint else ""
    raise UserError(
        f"{where}{written} is read as {meant}; write {instead}{written!r} with quotes for the text"
    )


def _other_reading(written: str, kind: str) -> tuple[str, str] | None:
    """What YAML makes of a value, and how to write that; None for a value that is as written."""
    if kind in ("int", "float"):
        if _DECIMAL.fullmatch(written):
            # Nothing is left of a number that is too close to 0.
            is_lost = float(written) == 0 and any(
                c in "123456789" for c in re.split("[eE]", written)[0]
            )
            return ("the number 0", "0") if is_lost else None
        if written.lower().lstrip("+-") in (".inf", ".nan"):
            return None
        try:
            value = yaml.safe_load(written)
        except ValueError:
            return "a number that cannot be worked out", ""
        # Other readers take a number with zeros before it as it stands.
        plain = written.lstrip("+-").lstrip("0")
        has_zero = plain.isdecimal() and written.lstrip("+-")[0] == "0" and plain != str(value)
        other = f" or {plain}" if has_zero else ""
        return f"the number {value}", f"{value}{other}"
    if kind == "bool" and written.lower() not in _AS_WRITTEN:
        value = "true" if yaml.safe_load(written) else "false"
        return value, value
    if kind == "null" and written not in _AS_WRITTEN:
        return "null, which is nothing", "null"
    if kind == "timestamp":
        return "a date", ""
    return None
