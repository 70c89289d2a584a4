"""Mutations of grammars: the same rules in another layout, and rules with a damage."""

import json
import math
import random
import re

from helpers.mutations.judge import Mutation

# A language whose probabilities are known in closed form: 'a' once, or twice with a 'b' or 'c'.
RULES = [("S", "A B", 0.75), ("S", "'a'", 0.25), ("A", "'a'", 1.0), ("B", "'b'", 0.5)]
RULES += [("B", "'c' 'c'", 0.25), ("B", "'é'", 0.25)]
STRINGS = [("a",), ("a", "b"), ("a", "c", "c"), ("a", "é"), ("b",)]
PROBABILITIES = [0.25, 0.375, 0.1875, 0.1875, 0]


def _expected() -> bytes:
    shown = [f"{math.log(p):.12g}" if p else "-inf" for p in PROBABILITIES]
    return json.dumps([["a", "b", "c", "é"], shown]).encode()


EXPECTED = _expected()


def _written(rules: list[tuple], arrow=" -> ", end="\n", number=str, quote="'") -> str:
    lines = [
        f"{left}{arrow}{right.replace(chr(39), quote)} [{number(p)}]" for left, right, p in rules
    ]
    return end.join(lines) + end


def _joined(rules: list[tuple]) -> str:
    """All rules of a symbol in one line."""
    sides: dict[str, list[str]] = {}
    for left, right, p in rules:
        sides.setdefault(left, []).append(f"{right} [{p}]")
    return "".join(f"{left} -> {' | '.join(right)}\n" for left, right in sides.items())


def draw(chance: random.Random) -> Mutation:
    """A mutation of the grammar: half of them keep the language."""
    if chance.random() < 0.5:
        return _in_another_layout(chance)
    return chance.choice([_damaged_rule, _damaged_file])(chance)


def _in_another_layout(chance: random.Random) -> Mutation:
    rules = list(RULES)
    if chance.random() < 0.4:  # the first rule's symbol is the start
        rest = rules[2:]
        chance.shuffle(rest)
        rules = rules[:2] + rest
    if chance.random() < 0.3:
        text, what = _joined(rules), "joined"
    else:
        number = chance.choice([str, lambda p: f"{p:.6f}", lambda p: str(p).lstrip("0")])
        number = number if chance.random() < 0.7 else lambda p: f"{p:e}"
        arrow = chance.choice([" -> ", "->", "\t->  "])
        quote = chance.choice(["'", '"'])
        text = _written(rules, arrow, chance.choice(["\n", "\r\n", "\n\n"]), number, quote)
        what = f"layout: {text.splitlines()[0]}"
    text = chance.choice(["", "# a comment\n", "\n\n"]) + text
    text = chance.choice(["", "\ufeff"]) + text
    return Mutation(what, {"my.pcfg": text.encode()}, EXPECTED, must_be_read=True)


def _damaged_rule(chance: random.Random) -> Mutation:
    place = chance.randrange(len(RULES))
    left, right, p = RULES[place]
    wrong = chance.choice(
        [
            (f"{left} -> {right} [{p / 3:.4f}]", "a sum"),
            (f"{left} -> {right} [{-p}]", "a negative probability"),
            (f"{left} -> {right} [{p + 1}]", "more than one"),
            (f"{left} -> {right} [nan]", "nan"),
            (f"{left} -> {right} [inf]", "inf"),
            (f"{left} -> {right} [half]", "a word for a number"),
            (f"{left} -> {right} [{p},0]", "a comma"),
            (f"{left} -> {right} [{p}", "an open bracket"),
            (f"{left} -> {right} {p}]", "a closing bracket alone"),
            (f"{left} {right} [{p}]", "no arrow"),
            (f"-> {right} [{p}]", "no left side"),
            (f"{left} -> 'a [{p}]", "an open quote"),
            (f"{left} -> a' [{p}]", "a closing quote alone"),
            (f"{left} -> Nowhere [{p}]", "a symbol without rules"),
            (f"{left} -> {left} [{p}]", "a rule for itself"),
            (f"{left} -> {left} {left} [{p}]", "a rule that grows"),
            (f"{left} {left} -> {right} [{p}]", "two symbols at the left"),
            (f"'a' -> {right} [{p}]", "a terminal at the left"),
        ]
    )
    if p == 1 and wrong[1] in ("a rule that grows", "a rule for itself"):
        named = (r"my\.pcfg",)
    elif wrong[1] in ("a rule that grows", "a rule for itself", "two symbols at the left"):
        return _damaged_rule(chance)  # these may be a language, too
    else:
        named = (r"my\.pcfg(:\d+)?",)
    lines = _written(RULES).splitlines()
    lines[place] = wrong[0]
    return Mutation(
        f"rule: {wrong[1]}: {wrong[0]}", {"my.pcfg": "\n".join(lines).encode()}, None, named
    )


def _damaged_file(chance: random.Random) -> Mutation:
    name, content, what = chance.choice(
        [
            ("my.pcfg", b"", "empty"),
            ("my.pcfg", b"# nothing\n", "comments alone"),
            ("my.pcfg", b"\xff\xfe\x00\x01" * 9, "binary"),
            ("my.pcfg", _written(RULES).encode("utf-16"), "utf-16"),
            ("my.pcfg", _written(RULES).encode("latin-1"), "latin-1"),
            ("my.pcfg", b"\0" * 5, "zero bytes"),
            ("my.pcfg", b"the cat sat\n", "a text"),
            ("my.cfg", _written(RULES).encode(), "another ending"),
            ("my", _written(RULES).encode(), "no ending"),
        ]
    )
    return Mutation(f"grammar: {what}", {name: content}, None, (re.escape(name),))
