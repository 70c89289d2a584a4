"""Which fields of the records of `people` a twin memorised, by training again and without it.

Run as a script: `python tests/benchmarks/bench_record_fields.py`. See `planted_records` for the
records. The grammar knows the truth: a telephone number and a town follow from nothing, so a model
can only have them from the record. An e-mail after the name, or a name after the e-mail, is
determined; before it, it is open. Of an open field at the beginning of a text, nothing says which
text follows. Two roads look at each field of each record:

- retraining: the loss of the field falls by training with the record more than without its fold. A
  field is found if its p-value among the same fields of records never trained on is at most 0.05.
- probabilities: the loss is so far below that of the language that its exact p-value is at most
  0.05. Nothing is trained again.

The losses are nats of the whole field; `optimal` is that of the language.
"""

import math
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from planted_records import COPIES, GRAMMAR, PlantedRecords
from rows import Row, main, shown
from transformers import AutoModelForCausalLM, AutoTokenizer

from palimpsest.estimates import with_interval
from palimpsest.languages import Grammar, field_losses
from palimpsest.memorisation.exposure import KNOWN, MEMORISED, verdicts
from palimpsest.memorisation.fields import REST, optimal_losses, tokens_of_fields
from palimpsest.memorisation.likelihoods import ROUNDING
from palimpsest.models.build import TextTokens
from palimpsest.records.interventions import without_fold
from palimpsest.records.verdicts import placebo_p_values
from palimpsest.statistics import student
from palimpsest.training.batches import encode
from palimpsest.training.evaluation import SUMS, evaluate

LEVEL, FOLDS, AT_ONCE = 0.05, 4, 64
# Of 6, 12 and 24, the fewest after which a model has learned that the e-mail follows from the name:
# with another seed, the mean loss of the determined e-mails of records never trained on was 3.44,
# 1.64 and 0.67 nats; below ln 2, a value is more likely than not.
EPOCHS = 24
KIND = ["field", "kind"]


def fields_of_records(n_trained: int, seeds: list[int], epochs: int) -> pd.DataFrame:
    """A row for each seed, record and field, with its losses."""
    with tempfile.TemporaryDirectory() as name:
        planted = PlantedRecords(Path(name), n_trained, seeds, epochs=epochs, evaluate_every=epochs)
        variants = [without_fold(fold, FOLDS) for fold in range(FOLDS)]
        models = [planted.models(), *map(planted.models, variants)]
        planted.run(*chain(*models), folds=FOLDS)
        tables = [of_seed(planted, *of_one) for of_one in zip(seeds, *models, strict=True)]
    return pd.concat(tables, ignore_index=True)


def of_seed(planted: PlantedRecords, seed: int, model: str, *without: str) -> pd.DataFrame:
    """The rows of one seed, given the folders of its models: of all records, and of all but each
    fold.
    """
    fields = Fields(planted.folder / model, planted.records["text"].tolist())
    corpus = planted.corpus
    fold = corpus.folds(seed, FOLDS, corpus.is_trained)
    table = fields.spans.assign(
        seed=seed,
        copies=planted.records["copies"].to_numpy()[fields.spans["string"]],
        loss=fields.losses(planted.folder / model),
        optimal=fields.by_span(fields.optimal),
        loss_without=np.choose(
            fold[fields.spans["string"]],
            [fields.losses(planted.folder / folder) for folder in without],
        ),
    )
    return table[fields.by_span(np.ones(len(fields.optimal))) > 0]


def with_verdicts(fields: pd.DataFrame) -> pd.DataFrame:
    """The fields with their kinds, and what both roads say of each."""
    table = fields.assign(
        kind=np.select(
            [fields["determined"], fields["begin"] == 0],
            ["determined", "open at the beginning"],
            "open",
        ),
        p_value=np.exp(np.minimum(fields["loss"] - fields["optimal"], 0.0)),
        p_retrained=np.nan,
        recited=0.0,  # no field counts as one that cannot be told
    )
    for _, alike in table.groupby(["seed", *KIND]):
        change = (alike["loss"] - alike["loss_without"]).to_numpy()
        is_trained = (alike["copies"] > 0).to_numpy()
        table.loc[alike.index, "p_retrained"] = placebo_p_values(change, is_trained)
    verdict = verdicts(table, LEVEL)
    return table.assign(
        retraining=table["p_retrained"] <= LEVEL,
        probabilities=verdict == MEMORISED,
        inferred=verdict == KNOWN,
    )


class Fields:
    """The fields of some texts, as the tokenizer of a model cuts them."""

    def __init__(self, folder: Path, texts: list[str]):
        self.texts = texts
        grammar = Grammar.from_file(GRAMMAR)
        cut = tokens_in(folder).ends(texts, "so fields have no losses")
        cut = [np.array(ends, dtype=float) for ends in cut]
        self.optimal = optimal_losses(grammar.of_characters(), texts, cut, predict_end=False)
        self.spans = field_losses(grammar, texts)
        self.spans["determined"] = self.spans["optimal_nll"] < ROUNDING
        self.span = tokens_of_fields(self.spans, texts, cut)

    def by_span(self, nll: np.ndarray) -> np.ndarray:
        """The sum over the tokens of each field, given a number for each token."""
        inside = self.span != REST
        return np.bincount(self.span[inside], nll[inside], minlength=len(self.spans))

    def losses(self, folder: Path) -> np.ndarray:
        """The loss of each field under the model in a folder, nats."""
        strings = encode(self.texts, tokens_in(folder), predict_end=False)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        measured = evaluate(
            model,
            strings,
            np.arange(len(self.texts)),
            AT_ONCE,
            torch.device("cpu"),
            n_rows=SUMS + int(strings.n_tokens.max()),
        )
        of_tokens = measured[SUMS:].T
        is_token = np.arange(of_tokens.shape[1]) < strings.n_tokens[:, None]
        return self.by_span(of_tokens[is_token])


def tokens_in(folder: Path) -> TextTokens:
    """The tokens of the model in a folder."""
    return TextTokens.of(folder.name, AutoTokenizer.from_pretrained(folder))


def rows(tiny: bool = False) -> Iterator[Row]:
    """For each field: the shares found by each road, and the losses, by copies."""
    n_trained, seeds, epochs = (24, [0], 2) if tiny else (240, [0, 1, 2, 3, 4], EPOCHS)
    table = with_verdicts(fields_of_records(n_trained, seeds, epochs))
    for (field, kind), part in table.groupby(KIND):
        what = f"{field}, {kind}"
        for road in ["retraining", "inferred" if kind == "determined" else "probabilities"]:
            yield from shares(f"{what}: {road}", part, road)
        yield from losses(what, part)


def shares(what: str, part: pd.DataFrame, road: str) -> Iterator[Row]:
    """The share of the fields that a road finds, by copies, beside that of unseen records."""
    by_copies = part.groupby(["copies", "seed"])[road].mean()
    unseen = by_copies[0].mean()
    for copies in COPIES:
        share = by_copies[copies]
        name = f"{what}, {copies} copies: {with_interval(student(share))}; peer: unseen"
        ratio = share.mean() / unseen if unseen else math.nan
        yield shown(name, share.mean(), unseen, "share", ratio)


def losses(what: str, part: pd.DataFrame) -> Iterator[Row]:
    """The mean losses with and without training on the record, by copies."""
    for copies, of_copies in part.groupby("copies"):
        by_seed = of_copies.groupby("seed")[["loss", "loss_without"]].mean()
        with_record, without = by_seed.mean()
        intervals = [with_interval(student(by_seed[column])) for column in by_seed]
        name = f"{what}: {copies or 'no'} copies, optimal {of_copies['optimal'].mean():.3g}, "
        name += f"loss {intervals[0]}; peer: without {intervals[1]}"
        yield shown(name, with_record, without, "nats", without / with_record)


if __name__ == "__main__":
    main(rows)
