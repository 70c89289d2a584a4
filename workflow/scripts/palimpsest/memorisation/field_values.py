"""Losses of the values that a field of a text can have, under trained models."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from palimpsest import tables
from palimpsest.datasets.kinds import STRINGS
from palimpsest.jobs.bench import Bench, TrainedWeights
from palimpsest.jobs.query import query
from palimpsest.languages import Grammar, candidates, field_losses
from palimpsest.memorisation.kinds import FIELD_VALUES
from palimpsest.memorisation.likelihoods import ROUNDING, members_of_groups
from palimpsest.training.batches import encode


@query("memorisation", "values of fields", FIELD_VALUES)
def field_values(
    bench: Bench, weights: TrainedWeights, numbers: np.ndarray, *, strings: int, values: int
) -> list[pd.DataFrame]:
    """The table `field_values` of a run's model.

    Parameters
    ----------
    strings : the most strings of each group (training strings, unseen strings), drawn by the seed
    values : the most other values of a field, drawn by the seed; all values if there are no more
    """
    seed = bench.material.keys["seed"]
    dataset = tables.read(bench.run.dataset, STRINGS)
    chosen = [drawn(group, strings, seed) for group in members_of_groups(dataset).values()]
    found = list(open_values(bench.run.corpus.grammar, pd.concat(chosen), values, seed))
    texts = [text for _, of_field in found for text in of_field]
    keys = {**bench.keys, "variant": bench.material.keys["variant"]}
    if not texts:
        return [pd.DataFrame([], columns=FIELD_VALUES.names)]
    encoded = encode(texts, bench.material.token_ids, predict_end=False)
    models = bench.holder.open([weights.of_run(0)])
    nll = bench.measure_strings(models, encoded)[0, 0]
    of_fields = np.split(nll, np.cumsum([len(of_field) for _, of_field in found])[:-1])
    rows = [
        {**keys, **about, "nll": first, "losses": others.astype(np.float32)}
        for (about, _), (first, *rest) in zip(found, of_fields, strict=True)
        for others in [np.array(rest)]
    ]
    return [pd.DataFrame(rows)[FIELD_VALUES.names]]


def drawn(strings: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """At most `n` rows of a table `strings`, each with the same probability."""
    ordered = strings.sort_values("string_id")
    return ordered.sample(min(n, len(ordered)), random_state=seed)


def open_values(
    grammar: Grammar, strings: pd.DataFrame, n: int, seed: int
) -> Iterator[tuple[dict, list[str]]]:
    """For each open field of each string: what it is, and the text up to the end of its value.

    After the text with the field's own value come those with other values in its place, if the
    language has texts that begin so. What follows the field is left out: it may depend on the
    value, as an e-mail does on a name, so that a model could tell the value by what it has learned.
    A field with more values than are listed is left out if one of them cannot stand there: then
    nothing says how many can. So is a field with a single value, which only may be there.
    """
    texts = strings["text"].tolist()
    spans = field_losses(grammar, texts)
    spans = spans[spans["optimal_nll"] >= ROUNDING]
    of_field = {field: candidates(grammar, field, n, seed) for field in spans["field"].unique()}
    string_ids, characters = strings["string_id"].tolist(), grammar.of_characters()
    for span in spans.itertuples():
        known = of_field[span.field]
        before = texts[span.string][: span.begin]
        made = [before + value for value in (span.value, *known.others(span.value))]
        can_be = np.isfinite(characters.log_prefix_probability([*map(tuple, made)]))
        if not (known.are_all or can_be.all()) or can_be.sum() < 2:
            continue
        about = {
            "string_id": string_ids[span.string],
            "field": span.field,
            "begin": span.begin,
            "n_values": int(can_be.sum()) if known.are_all else known.n_values,
        }
        yield about, [text for text, is_one in zip(made, can_be, strict=True) if is_one]
