"""Neighbours of a text's queries that another program found, in a file of the user.

Source: LMD3: Language Model Data Density Dependence, section 4.2 and footnote 2: any vector search
engine can take the place of the search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from palimpsest.density.neighbours import Neighbours
from palimpsest.density.texts import GIVEN
from palimpsest.errors import UserError
from palimpsest.tables import user_tables

Places = Mapping[str, tuple[int, int]]


def read_neighbours(
    path: str, queries: Sequence[str], places_of: Callable[[set[str]], Places], k: int
) -> Neighbours:
    """The k nearest neighbours of every query, with copies, from a file.

    A segment with n copies in the corpus is n neighbours. Rows of other queries do not count.
    `places_of` gives the first row and the copies of those segments that the corpus has.

    Raises `UserError` if the file cannot be read, if a distance is negative, if a neighbour is no
    segment of the corpus or is there twice, or if a query has fewer than k.
    """
    table = user_tables.read_user_table(path, GIVEN)
    distances = table.numbers("distance")
    if (distances < 0).any():
        raise table.wrong("distance", int((distances < 0).argmax()), "is below 0")
    frame = pd.DataFrame(
        {name: table.names(name).by_row() for name in ("query", "neighbour")}
    ).assign(distance=distances)
    frame = frame[frame["query"].isin(set(queries))]
    places = places_of(set(frame["neighbour"]))
    unknown = ~frame["neighbour"].isin(list(places))
    if unknown.any():
        row = frame.index[unknown.to_numpy().argmax()]
        raise table.wrong("neighbour", int(row), "is no segment of the corpus")
    again = frame.duplicated(["query", "neighbour"])
    if again.any():
        row = frame.index[again.to_numpy().argmax()]
        raise table.wrong("neighbour", int(row), "is there twice for its query")
    found = pd.DataFrame([places[name] for name in frame["neighbour"]], columns=["row", "count"])
    frame = frame.reset_index(drop=True).join(found)
    frame["query"] = pd.Index(queries).get_indexer(frame["query"])
    frame = frame.sort_values(["query", "distance", "row"], ignore_index=True)
    frame = frame.loc[frame.index.repeat(frame["count"])]
    frame["row"] += frame.groupby(level=0).cumcount()
    frame = frame[frame.groupby("query").cumcount() < k]
    n_found = np.bincount(frame["query"], minlength=len(queries))
    if (n_found < k).any():
        few = int(n_found.argmin())
        raise UserError(
            f"{path}: the query {queries[few]} has {n_found[few]} neighbours, with their copies in "
            f"the corpus, and {k} are needed; add rows, or lower density/approximation/k and "
            "density/neighbours"
        )
    of_shape = (len(queries), k)
    return Neighbours(
        frame["distance"].to_numpy().reshape(of_shape), frame["row"].to_numpy().reshape(of_shape)
    )
