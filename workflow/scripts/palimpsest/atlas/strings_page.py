"""The page of the atlas's strings: of each string all that the tables say, in one screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from palimpsest.atlas import kinds
from palimpsest.atlas.contenders import WITH_STARTS
from palimpsest.atlas.kinds import AGAIN, AMOUNT, CROSS, RANK
from palimpsest.atlas.packed import Packer, as_json
from palimpsest.atlas.titles import title_of
from palimpsest.datasets.choices import placebos_of
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.making import reads
from palimpsest.report import pages

PAGE = {"file": "strings.html", "title": "Strings", "template": "strings.html.j2"}
STYLE, SCRIPT = "strings.css.j2", "strings.js.j2"
MANY = 5_000  # strings of all runs together, beyond which the page keeps less of each
FEWEST_LETTERS = 6  # of an identifier of a string in links
CELL, DATASET = ["model", "language", "size"], ["language", "size", "seed"]
OF_AGREEMENT = ["value", "lower", "upper", "placebo"]


class Detail(NamedTuple):
    """What the page keeps of each string.

    `neighbours` each way, `epochs` of its curves and `ranks` that are told apart, at most; and the
    precision of losses and influence, `loss`, in nats per token.
    """

    neighbours: int
    epochs: int
    ranks: int
    loss: float


WHOLE = Detail(neighbours=8, epochs=64, ranks=10_000, loss=1e-4)
SHORT = Detail(neighbours=4, epochs=6, ranks=64, loss=5e-3)


class Tables(NamedTuple):
    """Tables of one cell, or of one of its runs."""

    truth: pd.DataFrame
    curves: pd.DataFrame
    influence: pd.DataFrame
    contenders: pd.DataFrame

    def of_seed(self, seed: int) -> Tables:
        return Tables(*(table[table["seed"] == seed] for table in self))


@reads(
    datasets=[STRINGS],
    truth=[kinds.TRUTH],
    curves=[kinds.CURVES],
    influence=[kinds.INFLUENCE],
    contenders=[kinds.CONTENDERS],
    atlas=[kinds.ATLAS],
)
def strings_page(
    page: str,
    datasets: Sequence[pd.DataFrame],
    truth: Sequence[pd.DataFrame],
    curves: Sequence[pd.DataFrame],
    influence: Sequence[pd.DataFrame],
    contenders: Sequence[pd.DataFrame],
    atlas: Sequence[pd.DataFrame],
) -> None:
    """Write a page with every string that retraining left out.

    Parameters
    ----------
    page : the HTML file to write
    datasets : tables `strings`, of every language, size and seed
    truth, curves, influence, contenders, atlas : one of each for every model, language and size, in
        the same order

    Raises `UserError` if a dataset is missing or lacks a string.
    """
    strings = {tuple(table[DATASET].iloc[0]): table for table in datasets}
    detail = SHORT if sum(map(len, truth)) > MANY else WHOLE
    runs = [
        run
        for *tables, agreement in zip(truth, curves, influence, contenders, atlas, strict=True)
        for run in packed_runs(Tables(*tables), strings, agreement, detail)
    ]
    known = {
        "pages": [PAGE],
        "shown": [PAGE],
        "styles": {},
        "style": STYLE,
        "is_whole": False,
        "title": "",
        "to": pages.another_page,
        "cells": as_json([about for about, _ in runs]),
        "data": [data for _, data in runs],
    }
    script = pages.template(__file__, SCRIPT).render()
    pages.save(Path(page), pages.framed(__file__, script, **known))


def packed_runs(
    cell: Tables, strings: Mapping[tuple, pd.DataFrame], agreement: pd.DataFrame, detail: Detail
) -> Iterator[tuple[dict, str]]:
    """Of every run of a cell, what the page must know to read it, and its packed columns.

    `strings` are datasets by language, size and seed, and `agreement` is the cell's table `atlas`.
    """
    about = cell.truth[CELL].iloc[0].to_dict() | {"size": int(cell.truth["size"].iloc[0])}
    for seed in cell.truth["seed"].unique():
        key = about["language"], about["size"], int(seed)
        if key not in strings:
            raise UserError(f"{key[0]}, {key[1]} strings, seed {key[2]}: no dataset is given")
        run = cell.of_seed(seed)
        measures = measures_of(run, agreement)
        packer = Packer()
        epochs = pack_strings(packer, run, strings[key], detail)
        pack_neighbours(packer, run, detail)
        pack_measures(packer, run, [one["name"] for one in measures], detail)
        yield (
            {
                **about,
                "seed": int(seed),
                "n": len(run.truth),
                "epochs": epochs,
                "measures": measures,
                "neighbours": agreement_of(agreement, AGAIN, CROSS),
                "columns": packer.columns,
            },
            packer.base64(),
        )


def measures_of(run: Tables, agreement: pd.DataFrame) -> list[dict]:
    """The measures that say something of the run's strings, the best one first.

    Retraining once more is the first of all.
    """
    costs = (
        agreement[agreement["question"] == AMOUNT].groupby("measure", sort=False)["cost"].first()
    )
    needs = run.contenders.groupby("measure", sort=False)["needs"].first()
    rows = [
        {
            "name": name,
            "title": title_of(name),
            "needs": need,
            "cost": finite(costs.get(name)),
            "has_starts": name in (AGAIN, *WITH_STARTS),
            **agreement_of(agreement, name, AMOUNT),
        }
        for name, need in {AGAIN: AGAIN, **needs}.items()
    ]
    unknown = -np.inf
    order = [unknown if row["value"] is None else row["value"] for row in rows[1:]]
    return [rows[0], *(rows[1 + place] for place in np.argsort(order, kind="stable")[::-1])]


def agreement_of(agreement: pd.DataFrame, measure: str, question: str) -> dict[str, float | None]:
    """The rank correlation of a measure with exact retraining, its interval and its placebo."""
    wanted = {"measure": measure, "question": question, "statistic": RANK}
    rows = agreement[(agreement[list(wanted)] == pd.Series(wanted)).all(axis=1)]
    row = rows.iloc[0] if len(rows) else {}
    return {name: finite(row.get(name)) for name in OF_AGREEMENT}


def finite(value: float | None) -> float | None:
    """The number for JSON, with five digits; None if there is none."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.5g}")


def pack_strings(packer: Packer, run: Tables, strings: pd.DataFrame, detail: Detail) -> list[int]:
    """Pack the strings, their exact values and their curves; the epochs of the curves."""
    ids = run.truth["string_id"].to_numpy(dtype=object)
    known = strings.set_index("string_id")
    if missing := set(ids) - set(known.index):
        language, size, seed = run.truth[DATASET].iloc[0]
        raise UserError(
            f"{language}, {size} strings, seed {seed}: the dataset lacks {min(missing)}, which "
            "retraining left out; the tables are of another dataset: delete them and rerun"
        )
    packer.texts("id", short_ids(ids))
    texts = known.loc[ids, "text"]
    letters = texts.str.replace(" ", "")
    one_letter_each = letters.map(" ".join).equals(texts)
    packer.texts("letters" if one_letter_each else "text", letters if one_letter_each else texts)
    packer.numbers("count", run.truth["count"])
    packer.numbers("log_prob", run.truth["log_prob"], 1e-3)
    packer.numbers("optimal_loss", known.loc[ids, "optimal_loss"], detail.loss)
    for name in ("self_influence", "self_influence_again", "placebo_influence"):
        packer.numbers(name, run.truth[name], min(detail.loss, 1e-3))
    packer.numbers("start", run.truth["start"])
    epochs = np.sort(run.curves["epoch"].unique())
    chosen = np.linspace(0, len(epochs) - 1, min(detail.epochs, len(epochs))).round().astype(int)
    curves = {
        name: run.curves.pivot(index="epoch", columns="string_id", values=name)[list(ids)]
        for name in ("loss", "loss_without", "placebo_loss")
    }
    packer.numbers("lowest_without", curves["loss_without"].min(), detail.loss)
    of_placebo, placebos = pd.factorize(np.array(placebos_of(strings, ids), dtype=object))
    packer.numbers("placebo", np.where(of_placebo < 0, np.nan, of_placebo))
    first = [int(np.argmax(of_placebo == number)) for number in range(len(placebos))]
    curves["placebo_loss"] = curves["placebo_loss"].iloc[:, first]
    # Early in training, they are nearly the same with and without the string.
    curves["rise_without"] = curves.pop("loss_without") - curves["loss"]
    for name, table in curves.items():
        packer.numbers(name, table.to_numpy(dtype=float)[chosen], detail.loss)
    return epochs[chosen].tolist()


def pack_neighbours(packer: Packer, run: Tables, detail: Detail) -> None:
    """Pack the strings whose removal raised a string's loss most, and those that its own did."""
    place = pd.Index(run.truth["string_id"])
    pairs = pd.DataFrame(
        {
            "removed": place.get_indexer(run.influence["removed"]),
            "measured": place.get_indexer(run.influence["string_id"]),
            "influence": run.influence["influence"].to_numpy(),
            "again": run.influence["influence_again"].to_numpy(),
        }
    )
    raised = pairs[(pairs["removed"] != pairs["measured"]) & (pairs["influence"] > 0)]
    raised = raised.sort_values("influence", ascending=False, kind="stable")
    for name, own, other in (
        ("raised_by", "measured", "removed"),
        ("raises", "removed", "measured"),
    ):
        strongest = raised.groupby(own, sort=False).head(detail.neighbours)
        rank = strongest.groupby(own, sort=False).cumcount()
        for column, step in ((other, 1), ("influence", detail.loss), ("again", detail.loss)):
            values = np.full((detail.neighbours, len(place)), np.nan)
            values[rank, strongest[own]] = strongest[column]
            packer.numbers(name if column == other else f"{name}_{column}", values, step)


def pack_measures(packer: Packer, run: Tables, names: Sequence[str], detail: Detail) -> None:
    """Pack the rank of every string by each measure, 1 for the most memorised, and its start.

    Equal strings have their mean rank; where all are equal, none has a rank.
    """
    ids = run.truth["string_id"]
    tables = {"amount": "self_influence_again", "measured_start": "start_again"}
    said = {
        column: run.contenders.pivot(index="string_id", columns="measure", values=column)
        .reindex(ids)
        .assign(**{AGAIN: run.truth[exact].to_numpy()})
        for column, exact in tables.items()
    }
    amounts = said["amount"][list(names)]
    ranks = amounts.rank(ascending=False)
    ranks.loc[:, amounts.nunique() < 2] = np.nan
    step = max(0.5, len(ids) / detail.ranks)
    packer.numbers("rank", ranks.to_numpy(dtype=float).T, step)
    starts = said["measured_start"][[name for name in names if name in (AGAIN, *WITH_STARTS)]]
    packer.numbers("measured_start", starts.to_numpy(dtype=float).T)


def short_ids(ids: Sequence[str]) -> list[str]:
    """The shortest beginnings of identifiers that tell them apart, of one length."""
    longest = max(map(len, ids))
    letters = next(
        (n for n in range(FEWEST_LETTERS, longest) if len({one[:n] for one in ids}) == len(ids)),
        longest,
    )
    return [one[:letters] for one in ids]
