"""Messages about mistakes in a configuration, in one line: key, value and allowed values."""

import math
from functools import partial
from typing import NamedTuple

import jsonschema
import yaml

from palimpsest.errors import nearest

MOST_BLOCKS = 3  # that a message names


class Mistake(NamedTuple):
    """A key of the configuration, and a text on what is wrong with its value.

    The message names the file in which `place` is set; by default, `place` is `key`. `because` is
    another key, such as that of a folder: if a later file than that of `key` sets it, the message
    is about that file.
    """

    key: str
    text: str
    place: str | None = None
    because: str | None = None


def joined(path) -> str:
    """A key as users write it: recipes/default/epochs, languages[2]."""
    key = ""
    for step in path:
        key += f"[{step}]" if isinstance(step, int) else f"/{step}" if key else str(step)
    return key


def stranger_of(error: jsonschema.ValidationError) -> list[str]:
    """The unknown key that an error is about; [] for other errors."""
    if error.validator != "additionalProperties":
        return []
    known = error.schema.get("properties", {})
    return [next(name for name in error.instance if name not in known)]


def explained(error: jsonschema.ValidationError, schema: dict) -> str:
    """One line on what is wrong with a value, and what is allowed by the schema of everything."""
    value, rules = error.instance, error.schema
    if error.validator == "additionalProperties":
        known = list(rules.get("properties", {}))
        (stranger,) = stranger_of(error)
        # A schema may say where a value belongs that has no key in a block.
        hint = rules.get("elsewhere", {}).get(stranger) or _blocks_with(stranger, schema)
        near = f"; {hint}" if hint else nearest(stranger, known)
        return f"unknown key {stranger!r}; known: {', '.join(known)}{near}"
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in value)
        return f"the key {missing!r} is missing"
    if error.validator == "uniqueItems":
        return f"{value!r} lists a value twice; each value is allowed once"
    return f"{shown(value)} is not allowed; must be {allowed(rules)}{_hint(value, rules)}"


def _blocks_with(key: str, schema: dict) -> str:
    """Says which blocks have a key; empty if none has, or more than `MOST_BLOCKS` have."""
    blocks, todo = [], [((), schema)]
    while todo:
        path, rules = todo.pop(0)
        known = rules.get("properties", {})
        if path and key in known:
            blocks.append(joined(path))
        todo += [((*path, name), inner) for name, inner in known.items()]
    if not 0 < len(blocks) <= MOST_BLOCKS:
        return ""
    return f"it is a key of the block{'s' if len(blocks) > 1 else ''} {' and '.join(blocks)}"


def shown(value) -> str:
    words = {None: "null", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _hint(value, rules: dict) -> str:
    if "enum" in rules:
        return nearest(value, rules["enum"])
    kinds = [rule.get("type") for rule in (rules, *rules.get("oneOf", ()))]
    is_numeric = "number" in kinds or "integer" in kinds
    is_whole = is_numeric and "number" not in kinds
    if isinstance(value, str) and is_numeric and (number := _number(value, is_whole)):
        return f" (YAML reads it as text; write {number})"
    if isinstance(value, float) and is_whole and value.is_integer():
        return f" (write {int(value)})"
    if isinstance(value, bool | int | float) and kinds == ["string"]:
        return " (YAML reads a name without letters as a number; write it with quotes)"
    return ""


def _number(text: str, is_whole: bool) -> str:
    """How YAML writes the finite number that a text stands for; empty if it is no such number."""
    for reading in (int, partial(int, base=0), float):
        try:
            number = reading(text)
        except ValueError:
            continue
        if not math.isfinite(number) or (is_whole and number != int(number)):
            return ""
        return yaml.safe_dump(int(number) if is_whole else number).split()[0]
    return ""


def allowed(rules: dict) -> str:
    """What a schema allows, in words; a schema's own title takes precedence."""
    if "title" in rules:
        return rules["title"]
    if "enum" in rules:
        return "one of " + ", ".join(map(str, rules["enum"]))
    if "const" in rules:
        return repr(rules["const"])
    if "oneOf" in rules:
        return " or ".join(allowed(rule) for rule in rules["oneOf"])
    kind = rules.get("type")
    if isinstance(kind, list):
        return ", or ".join(allowed({**rules, "type": one}) for one in kind)
    if kind == "null":
        return "null"
    if kind == "array":
        least = f" of at least {rules['minItems']}" if rules.get("minItems") else ""
        return f"a list{least}, each {allowed(rules['items'])}"
    words = {
        "integer": "a whole number",
        "number": "a number",
        "string": "a text",
        "boolean": "true or false",
        "object": "a block of keys",
    }[kind]
    bounds = [
        (f"from {rules['minimum']}" if "minimum" in rules else ""),
        (f"above {rules['exclusiveMinimum']}" if "exclusiveMinimum" in rules else ""),
        (f"to {rules['maximum']}" if "maximum" in rules else ""),
        (f"below {rules['exclusiveMaximum']}" if "exclusiveMaximum" in rules else ""),
    ]
    return " ".join([words, *filter(None, bounds)])
