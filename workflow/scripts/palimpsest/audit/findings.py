"""What a target recites, for who must decide: what is private, and what another model explains."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from palimpsest.audit.duplicates import known_unseen
from palimpsest.audit.kinds import (
    CONTINUATIONS,
    EXPLAINED,
    FINDINGS,
    OF_ALL,
    OF_RECITED,
    PRIVATE,
    RECITED,
    TARGET,
    URL,
)
from palimpsest.audit.private import Secret, masked, secrets
from palimpsest.audit.references import (
    MOSTLY,
    category,
    explained,
    is_private,
    share,
    sides,
    with_accuracies,
)
from palimpsest.corpora.kinds import CORPUS
from palimpsest.making import makes, reads
from palimpsest.tables import write_copies

ENOUGH = 0.5  # share of a secret's letters that are in the continuation


@reads(continuations=CONTINUATIONS, records=CORPUS)
@makes(RECITED, EXPLAINED, PRIVATE, FINDINGS)
def findings(
    continuations: pd.DataFrame,
    records: pd.DataFrame,
    csv: str,
    json: str,
    *,
    show_secrets: bool,
) -> dict[str, pd.DataFrame]:
    """What a target recites, what references explain of it, and what is private.

    The findings are written to the files `csv` and `json`, too. Private information is looked for
    in whole records, so that a continuation that ends within a number shows no half of it.
    """
    target = continuations[continuations["role"] == TARGET]
    texts = records.set_index("id")["text"].loc[target["id"]]
    of_records = pd.DataFrame(_private(target, texts), index=target["id"])
    measured = with_accuracies(continuations).join(of_records, on="id")
    found = explained(measured)
    of_target = measured[measured["role"] == TARGET]
    table = _findings(of_target[of_target["accuracy"] >= MOSTLY], found[RECITED.name])
    found |= {
        FINDINGS.name: table,
        PRIVATE.name: pd.DataFrame(private_shares(of_target), columns=PRIVATE.names),
    }
    if not show_secrets:
        for name in (RECITED.name, FINDINGS.name):
            of_rows = of_records.loc[found[name]["id"]]
            for column in ("prompt", "continuation"):
                found[name][column] = of_rows[f"masked_{column}"].to_numpy()
    write_copies(found[FINDINGS.name], csv, json)
    return found


def _private(target: pd.DataFrame, texts: pd.Series) -> Iterator[dict]:
    """For each continuation, the columns `private` and `verbatim`, and the masked texts."""
    given = (target["prompt"] + target["continuation"]).tolist()
    # A record with a prompt of its own is continued to its end.
    whole = [
        text if text.startswith(part) else part for text, part in zip(texts, given, strict=True)
    ]
    rows = zip(target.itertuples(), whole, given, secrets(whole), strict=True)
    for row, text, part, found in rows:
        begin, end = len(row.prompt), len(part)
        inside = [one for one in found if _is_inside(one, begin, end)]
        pieces = [one.within(begin, end) for one in inside if one.kind != URL]
        is_known = not pd.isna(row.generated)
        said = [is_known and text[one.begin : one.end] in row.generated for one in pieces]
        yield {
            "private": ", ".join(sorted({one.kind for one in inside})) or None,
            "verbatim": any(said) if said and is_known else None,
            "masked_prompt": masked(text, found, 0, begin),
            "masked_continuation": masked(text, found, begin, end),
        }


def _is_inside(secret: Secret, begin: int, end: int) -> bool:
    return secret.within(begin, end).n_letters >= ENOUGH * secret.n_letters


def _findings(recited: pd.DataFrame, by_reference: pd.DataFrame) -> pd.DataFrame:
    """The table `audit_findings` with raw texts, of the rows of recited records."""
    best = by_reference.sort_values("accuracy_reference", kind="stable")
    best = best.drop_duplicates("id", keep="last").set_index("id")
    table = recited.join(best[["reference", "accuracy_reference"]], on="id")
    table["category"] = table["continuation"].map(category)
    is_explained = table["accuracy_reference"] >= table["accuracy"]
    table["explained"] = is_explained.astype("boolean").mask(table["reference"].isna())
    table["matters"] = is_private(table["private"]) & ~is_explained & ~known_unseen(table)
    table["verbatim"] = table["verbatim"].astype("boolean")
    order = ["matters", "accuracy"]
    return table.sort_values(order, ascending=False, kind="stable")[FINDINGS.names]


def private_shares(target: pd.DataFrame) -> Iterator[dict]:
    """The rows of the table `private_shares`, of a target's continuations."""
    n_duplicates = int(target["duplicate"].sum())
    target = target[~target["duplicate"]]
    for side, rows in target.groupby(sides(target["trained"]), sort=False):
        recited = rows[rows["accuracy"] >= MOSTLY]
        about = {name: rows[name].iloc[0] for name in ("language", "model")}
        about |= {"n_duplicates": n_duplicates, "side": side}
        about |= {"n_records": len(rows), "n_recited": len(recited)}
        for statistic, among in ((OF_ALL, rows), (OF_RECITED, recited)):
            found = share(is_private(among["private"]), among["group"])
            yield {**about, "statistic": statistic, **found.columns()}
