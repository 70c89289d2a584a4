"""Model cards: what an exported model is, how it was made, and what it must not be used for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

import numpy as np
import pandas as pd

from palimpsest.cards import card, table
from palimpsest.models import Model
from palimpsest.pretrained.catalogue import CATALOGUE
from palimpsest.statistics import Interval, student
from palimpsest.traces import Trace

TRAINED, UNSEEN = "strings it was trained on", "strings it was never trained on"
LOSS = "nats per token"
# Licences of pretrained models, as hubs write them
LICENCES = {"Apache": "apache-2.0", "Gemma": "gemma"}  # by the beginning of the licence's name
MADE = {  # of a recipe, in the words of the card
    "epochs": "epochs",
    "batch_size": "strings per step",
    "learning_rate": "learning rate",
    "schedule": "schedule of the rate",
    "weight_decay": "weight decay",
    "adapter": "adapter",
    "adapter_rank": "rank of the adapter",
}
NOT_FOR = {
    "twin": (
        "This is a twin: a small model with random initial weights that knows nothing but its "
        "training strings. It measures memorisation. It must not be used to write text, or as a "
        "stand-in for the model whose architecture it has: memorisation depends on size."
    ),
    "full": (
        "This model was trained so that memorisation can be measured, mostly for many epochs on "
        "few strings. It must not be put into service, and it gives out what it was trained on: do "
        "not hand it on if its training data must stay private."
    ),
}
FORGOT = (
    "That a method was applied does not mean that anything is forgotten. It must not be used as "
    "proof of a deletion: the tables of the unlearning, beside retrained models, say what is left."
)


class Losses(dict[str, tuple[int, Interval, float]]):
    """By side: the number of strings, the mean loss with its interval, and the optimal loss."""


def losses_at_end(trace: Trace, strings: pd.DataFrame, is_text: bool = False) -> Losses:
    """The losses of a run at its last epoch, over distinct strings, in nats per token.

    The interval is Student's, over strings: it speaks of other strings and not of other trainings.
    Strings of the test set that are not in the training set are the placebo. The optimal loss of a
    text is not known per token, and NaN.
    """
    found = Losses()
    is_trained = strings["count"] > 0
    for side, rows in {
        TRAINED: is_trained,
        UNSEEN: ~is_trained & (strings["test_count"] > 0),
    }.items():
        chosen = strings[rows & strings["string_id"].isin(trace.string_ids)]
        loss = trace.loss[-1, trace.column_of(chosen["string_id"])]
        if len(loss):
            optimal = np.nan if is_text else chosen["optimal_loss"].astype(float).mean()
            found[side] = len(loss), student(loss), optimal
    return found


def model_card(
    row: Model,
    scale: str,
    about: Mapping,
    recipe: Mapping | None = None,
    losses: Losses | None = None,
) -> str:
    """The card of an exported model.

    Parameters
    ----------
    row, scale : the model's row of the table of models, and `full` or `twin`
    about : what `palimpsest.json` holds, such as `model`, `language` and `seed`
    recipe : the recipe of its training
    losses : see `losses_at_end`
    """
    known = next((one for one in CATALOGUE.values() if one.folder == row.id), None)
    base = (known.name if known else row.id) if scale == "full" else None
    name = f"{about.get('model', row.model)} on {about.get('language', 'strings of its own')}"
    head = {
        "license": _licence(known.licence) if known and base else None,
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "base_model": base if base and not known else None,
        "base_model_relation": "finetune" if base and not known else None,
        "tags": ["palimpsest", "memorisation", scale, *filter(None, [about.get("language")])],
        "model-index": [{"name": name, "results": _results(about, losses)}] if losses else None,
    }
    parts = [f"# {name}", _what(row, scale, base), "## How it was made", _made(about, recipe)]
    if losses:
        parts += ["## Losses after the last epoch", _losses(losses)]
    if base:
        licence = known.licence if known else f"that of {row.id}; read it there"
        parts += ["## Licence", f"The licence of the base model holds: {licence}."]
    parts += ["## What it must not be used for", NOT_FOR[scale]]
    if "method" in about:
        parts.append(FORGOT)
    return card(head, parts)


def _licence(name: str) -> str | None:
    return next((short for begin, short in LICENCES.items() if name.startswith(begin)), None)


def _what(row: Model, scale: str, base: str | None) -> str:
    if scale == "full":
        revision = "" if row.revision in ("", "main") else f" at {row.revision}"
        return f"The pretrained model {base}{revision}, trained further by Palimpsest."
    return (
        f"A twin of {row.id}: the same architecture (`{row.model_type}`) with "
        f"{row.twin_layers} layers of width {row.twin_hidden} and random initial weights, trained "
        "by Palimpsest. The file `palimpsest.json` has the token of every symbol."
    )


def _made(about: Mapping, recipe: Mapping | None) -> str:
    names = {"language": "data", "size": "training strings", "seed": "seed", "variant": "variant"}
    names |= {"method": "unlearning method", "origin": "replicate", "code": "hash of the code"}
    rows = [(words, about[name]) for name, words in names.items() if name in about]
    rows += [(words, recipe[name]) for name, words in MADE.items() if (recipe or {}).get(name)]
    rows += [(package, version(package)) for package in ("torch", "transformers")]
    return table(["", ""], rows)


def _losses(losses: Losses) -> str:
    rows = [
        (side, n, _shown(mean), "" if np.isnan(optimal) else f"{optimal:.3f}")
        for side, (n, mean, optimal) in losses.items()
    ]
    return (
        table(["", "strings", f"loss, {LOSS}", "lowest possible"], rows)
        + "\n\nMeans over distinct strings with 95 % intervals over strings. The strings that the "
        "model was never trained on are the placebo: what is equally low there was learned, not "
        "memorised. The lowest possible loss is that of who knows the language exactly."
    )


def _shown(interval: Interval) -> str:
    if np.isnan(interval.lower):
        return f"{interval.mean:.3f}"
    return f"{interval.mean:.3f} [{interval.lower:.3f}, {interval.upper:.3f}]"


def _results(about: Mapping, losses: Losses) -> list[dict]:
    """The losses in the form of the model index of hubs."""
    name = f"{about['language']}, {about['size']} strings, seed {about['seed']}"
    return [
        {
            "task": {"type": "text-generation"},
            "dataset": {"type": "palimpsest", "name": f"{name}: {side}"},
            "metrics": [
                {
                    "type": "loss",
                    "name": f"loss, {LOSS}, with its 95 % interval",
                    "value": _shown(mean),
                }
            ],
        }
        for side, (_, mean, _) in losses.items()
    ]
