"""Tables of answers about records, from tables of losses by any road."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from palimpsest.corpora.records import Records, records_of_table
from palimpsest.making import makes, reads
from palimpsest.memorisation.measures import Start
from palimpsest.records import kinds
from palimpsest.records.alike import BLIND_LOOK, told_apart
from palimpsest.records.losses import Losses, read_losses, to_losses
from palimpsest.records.unretrained import conformal
from palimpsest.records.verdicts import answers
from palimpsest.tables import replacing

# Of losses whose models the table does not name
ITS_MODEL = "model"


@reads(corpus=[records_of_table], retrained=[kinds.RETRAINED], measured=[kinds.MEASURED])
@makes(kinds.ANSWERS, kinds.SHARES)
def answer(
    language: str,
    *,
    corpus: Sequence[Records] = (),
    retrained: Sequence[pd.DataFrame] = (),
    measured: Sequence[pd.DataFrame] = (),
    given: str | Path | Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    start: Start,
    loss_threshold: float | None,
    false_alarms: float,
) -> dict[str, pd.DataFrame]:
    """Which records of a corpus, or of a user's table of losses, are memorised.

    Parameters
    ----------
    corpus : the records with their texts; () of a table of losses, which has none
    retrained, measured : losses of the records by training again, and under checkpoints
    given, columns : the table of losses of the user's own, see `read_losses`; () without one
    start, loss_threshold, false_alarms : see `answers`
    """
    found, shares, looks = [], [], {}
    texts = {
        record: text
        for one in corpus
        for record, text in zip(one.ids, one.whole_texts, strict=True)
    }
    for keys, losses, threshold in _losses(retrained, measured, given, columns, loss_threshold):
        of_model = answers(losses, start=start, loss_threshold=threshold, false_alarms=false_alarms)
        about = {"language": language, **keys}
        share_unseen = of_model.placebo.set_index("measure")["share_unseen"]
        table = of_model.table.assign(**about)
        found.append(table.assign(share_unseen=table["measure"].map(share_unseen)))
        sides = losses.is_trained.tobytes()  # those of many models are the same
        if sides not in looks:
            looks[sides] = dict(zip(BLIND_LOOK, told_apart(texts, losses), strict=True))
        shares.append(of_model.placebo.assign(**about, **looks[sides]))
    whole, placebo = (pd.concat(parts, ignore_index=True) for parts in (found, shares))
    return {
        kinds.ANSWERS.name: _with_seed(whole)[kinds.ANSWERS.names],
        kinds.SHARES.name: _with_seed(placebo)[kinds.SHARES.names],
    }


@reads(retrained=[kinds.RETRAINED])
@makes(kinds.CONFORMAL)
def bounds(
    language: str,
    *,
    retrained: Sequence[pd.DataFrame] = (),
    given: str | Path | Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    false_alarms: float,
) -> pd.DataFrame:
    """Intervals for the records that no training left out, see `conformal`.

    Parameters
    ----------
    retrained, given, columns, false_alarms : see `answer`
    """
    found = []
    for keys, losses, _ in _losses(retrained, (), given, columns, None):
        of_model = conformal(losses, false_alarms=false_alarms)
        names = ("level", "limit", "n_known", "n_known_unseen", "shift")
        about = {name: getattr(of_model, name) for name in names}
        found.append(of_model.table.assign(language=language, **keys, **about))
    return _with_seed(pd.concat(found, ignore_index=True))[kinds.CONFORMAL.names]


def _losses(
    retrained: Sequence[pd.DataFrame],
    measured: Sequence[pd.DataFrame],
    given: str | Path | Sequence[str],
    columns: Mapping[str, str] | None,
    loss_threshold: float | None,
) -> Iterator[tuple[dict, Losses, float | None]]:
    """Yield the losses of every model with its keys, and the threshold of recollection.

    Bits per byte have no such threshold.
    """
    for table in retrained:
        for (model, seed), losses in table.groupby(["model", "seed"], sort=False):
            yield {"model": model, "seed": seed}, to_losses(losses, model), loss_threshold
    for table in measured:
        model = table["model"].iloc[0]
        # A column that is null in all rows is one that the road does not have.
        losses = to_losses(table.dropna(axis="columns", how="all"), model)
        yield {"model": model, "seed": None}, losses, None
    if given:
        yield {"model": ITS_MODEL, "seed": None}, read_losses(given, columns), loss_threshold


def _with_seed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({"seed": "Int64"})


@reads(answers=kinds.ANSWERS)
@makes(kinds.RECORDS)
def all_answers(answers: pd.DataFrame, csv: str) -> pd.DataFrame:
    """The answers about all corpora, which are written to the file `csv`, too."""
    with replacing(csv) as temporary:
        answers.to_csv(temporary, index=False)
    return answers
