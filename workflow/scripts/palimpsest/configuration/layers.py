"""What a later file of a configuration changes in the values that earlier files set.

Snakemake lays one file over another, key by key. This module knows which file set a key. It needs
that for blocks that are set to null and opened again, for entries that are taken out with null, and
for lists of names from a grid that a later file replaces.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from palimpsest.configuration.sources import Sources, value_at
from palimpsest.corpora import corpus_names
from palimpsest.requests import DEFAULT

# Keys that do not change what an experiment finds
MANNERS = {
    "title",
    "short_report",
    "extensions",
    "claims",
    "hardware",
    "trackers",
    "save_weights",
}
FOLDER, COUNTERPARTS = "languages_folder", "datasets/high_entropy_counterpart"


@dataclass(frozen=True)
class PartOf:
    """A key whose list has some values of another list, such as models of the grid.

    In `key`, a * in place of its block stands for any name. If a later file sets the list `whole`,
    the values that an earlier file chose in `key` are replaced: those that are in the new list
    stay, and others of the new list follow until there are as many as before. Only names that end
    with `ending` are taken. If there are none, the block with the key is left out. `among` is a key
    that may list the names that * stands for.
    """

    key: str
    whole: str
    ending: str = ""
    among: str = ""


def complete(config: dict, sources: Sources, schema: dict) -> list[str]:
    """Open blocks again and take out what is null, in place, before the schema checks the rest.

    Return a line for each value of a user's file that the recipe `default` of a later file drops.
    """
    _open_again(config, sources)
    dropped = list(_default_recipe_of_later_files(config, sources))
    _take_out(config, schema)
    return dropped


def follow(config: dict, sources: Sources, parts: Iterable[PartOf]) -> Iterator[str]:
    """Replace in place what a later file's lists and folder do not have, and say so in lines.

    The schema allows the configuration.
    """
    _test_all_claims(config, sources)
    _drop_counterparts(config, sources)
    for part in parts:
        yield from _follow(config, sources, part)


def _open_again(config: dict, sources: Sources) -> None:
    """Give a block its defaults if one file set the block to null and a later one opened it."""
    (_, defaults), *later = sources.layers
    closed, opened = set(), {}
    for _, layer in later:
        for steps, value in _blocks(layer):
            if value is None:
                closed.add(steps)
                opened.pop(steps, None)
            elif steps in closed:
                opened[steps] = value_at(defaults, steps)
    for steps, default in opened.items():
        above = value_at(config, steps[:-1])
        # Snakemake leaves null where an empty block is laid over it.
        if isinstance(above, dict) and isinstance(default, dict):
            above[steps[-1]] = _laid_over(default, above.get(steps[-1]) or {})


def _blocks(tree: dict, above: tuple = ()) -> Iterator[tuple[tuple, dict | None]]:
    for name, value in tree.items():
        if value is None or isinstance(value, dict):
            yield (*above, name), value
            yield from _blocks(value or {}, (*above, name))


def _laid_over(under: dict, over: dict) -> dict:
    merged = copy.deepcopy(under)
    for name, value in over.items():
        blocks = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = _laid_over(merged[name], value) if blocks else value
    return merged


def _default_recipe_of_later_files(config: dict, sources: Sources) -> Iterator[str]:
    """Drop an earlier file's values of recipes where a later file sets the key of `default`."""
    recipes = config.get("recipes")
    if not isinstance(recipes, dict) or not isinstance(recipes.get(DEFAULT), dict):
        return
    set_last = {key: sources.place(f"recipes/{DEFAULT}/{key}") for key in recipes[DEFAULT]}
    for name, values in recipes.items():
        if name == DEFAULT or not isinstance(values, dict):
            continue
        for key in list(values):
            place = sources.place(f"recipes/{name}/{key}")
            if place >= set_last.get(key, -1):
                continue
            del values[key]
            if place > 0:  # not of the defaults
                yield (
                    f"{sources.layers[set_last[key]][0]}: recipes/{DEFAULT}/{key} holds for the "
                    f"recipe {name}, too, because only the earlier {sources.layers[place][0]} "
                    f"sets recipes/{name}/{key}"
                )


def _take_out(block: dict, rules: dict) -> None:
    """Take out keys that are null where null is no value, unless they are required.

    If a block of entries with names of the user's own may be null, null means no entry.
    """
    for name in list(block):
        inner = rules.get("properties", {}).get(name, rules.get("additionalProperties"))
        value = block[name]
        if not isinstance(inner, dict):
            continue
        if isinstance(value, dict):
            _take_out(value, inner)
        elif value is None and "null" not in inner.get("type", ()):
            if name not in rules.get("required", ()):
                del block[name]
        elif value is None and isinstance(inner.get("additionalProperties"), dict):
            block[name] = {}


def _test_all_claims(config: dict, sources: Sources) -> None:
    """Drop an earlier file's choice of claims if a later file changes the experiment."""
    later = sources.layers[sources.place("claims") + 1 :]
    if any(layer.keys() - MANNERS for _, layer in later):
        config["claims"] = None


def _drop_counterparts(config: dict, sources: Sources) -> None:
    """Drop an earlier file's pairs of languages that a later file's folder does not have."""
    pairs, chosen = value_at(config, COUNTERPARTS.split("/")), sources.place(FOLDER)
    known = set(corpus_names(config[FOLDER]))
    for pair in list(pairs.items()):
        if sources.place(f"{COUNTERPARTS}/{pair[0]}") < chosen and not known.issuperset(pair):
            del pairs[pair[0]]


def _follow(config: dict, sources: Sources, part: PartOf) -> Iterator[str]:
    """Replace what an earlier file chose from a list that a later file sets; say what followed."""
    whole, chosen = value_at(config, part.whole.split("/")), sources.place(part.whole)
    followed, left_out = [], []
    for name, steps in _matching(config, part) if whole else ():
        block, old = value_at(config, steps[:-1]), value_at(config, steps)
        is_earlier = 0 <= sources.place("/".join(steps)) < chosen
        if not is_earlier or not isinstance(old, list) or set(old) <= set(whole):
            continue
        fit = [value for value in whole if str(value).endswith(part.ending)]
        new = [*(value for value in old if value in fit), *(v for v in fit if v not in old)]
        if not new:
            value_at(config, steps[:-2])[steps[-2]] = None
            left_out.append(name)
            continue
        block[steps[-1]] = new[: len(old)]
        if not set(old).issuperset(block[steps[-1]]):
            followed.append(name)
    where = f"{sources.of(part.whole)}: {part.whole}"
    if followed:
        names = f" of {', '.join(followed)}" if "*" in part.key else ""
        yield (
            f"{where}: {part.key}{names} takes values of this list, because only an earlier file "
            "chose others"
        )
    if left_out:
        yield (
            f"{where}: {', '.join(left_out)} is left out, because this list has no name that ends "
            f"with {part.ending}; name one in {part.key}"
        )


def _matching(config: dict, part: PartOf) -> list[tuple[str, list[str]]]:
    """The keys that a part may mean, each with the name of its block."""
    pattern = part.key.split("/")
    above = value_at(config, pattern[:-2])
    among = value_at(config, part.among.split("/"))
    names = list(above or {}) if pattern[-2] == "*" else [pattern[-2]]
    chosen = names if among is None else [name for name in names if name in among]
    return [(name, [*pattern[:-2], name, pattern[-1]]) for name in chosen]
