"""Single records that are found: those whose p-value is small, by the main measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from palimpsest.records import headline, kinds
from palimpsest.records.intervals import fewest_unseen
from palimpsest.report.templates import given, groups


def found(tables: Mapping[str, pd.DataFrame], level: float) -> Iterator[dict]:
    """For each corpus and model: its records trained on, and which of them are found.

    `measure` is the main one: the first of `headline.MEASURES` that there is. `records` are those
    trained on with a p-value, the surest first: a row each with `p`, `corrected` (medians over the
    seeds), `score`, and in how many of how many trainings it is called memorised. `ids` are those
    with a p-value of `level` or less. `n_standing` of them have a corrected one of `level` or less.
    `needed` is the number of unseen records with which all of them could, and `n_seeds` that of the
    trainings whose median a p-value is.
    """
    (answers,) = given(tables, kinds.ANSWERS)
    if answers.empty:
        return
    for row, of_model in groups(answers, ["language", "model"]):
        measure = headline.main_measure(of_model["measure"])
        own = of_model[of_model["measure"] == measure]
        trained = own["trained"].astype("boolean").fillna(True).astype(bool)
        records = _surest(own[trained])
        ids = records.index[records["p"] <= level].tolist()
        yield {
            **row,
            "measure": measure,
            "evidence": own["evidence"].iloc[0],
            "records": records,
            "ids": ids,
            "n_standing": int((records["corrected"] <= level).sum()),
            "n_trained": len(records),
            "n_seeds": of_model["seed"].nunique(dropna=False),
            "n_unseen": own.loc[~trained, "id"].nunique(),
            "needed": fewest_unseen(level * len(ids) / len(records)) if ids else None,
        }


def _surest(answers: pd.DataFrame) -> pd.DataFrame:
    """A row for each record that has a p-value, by its id; of equal ones the higher score first."""
    by_record = answers.groupby("id", sort=False).agg(
        p=("p_value", "median"),
        corrected=("p_corrected", "median"),
        score=("score", "mean"),
        n=("memorised", "sum"),
        of=("id", "size"),
    )
    return by_record.dropna(subset="p").sort_values(["p", "score"], ascending=[True, False])
