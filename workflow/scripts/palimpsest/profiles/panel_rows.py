"""The strings of a panel that is made from checkpoints: which of them are measured.

In the paper, a macro-batch holds what is trained on between two checkpoints. Of each, 10 batches
are drawn, and 10 strings of each batch; 2,000 strings of a validation set are never trained on.

Source: Causal Estimation of Memorisation Profiles, section 6.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd

from palimpsest.errors import Notice, UserError
from palimpsest.making import makes
from palimpsest.profiles.kinds import PANEL_ROWS
from palimpsest.tables.kinds import NAME, NUMBER, TEXT, TIME, Column, UserKind
from palimpsest.tables.user_columns import check_columns
from palimpsest.tables.user_tables import UserTable, read_user_table
from palimpsest.tables.user_values import NUMBER as A_NUMBER

STEPS = UserKind(
    "table of steps",
    "one row for each row of the token file",
    "row",
    (
        Column("row", NUMBER, "the row of the token file, from 0"),
        Column("step", TIME, "the step at which it is trained on, or nothing if it never is", True),
    ),
)
STRINGS = UserKind(
    "table of strings",
    "one row for each string",
    "unit",
    (
        Column("unit", NAME, "the name of the string"),
        Column("text", TEXT, "the string"),
        Column("step", TIME, "the step at which it is trained on, or nothing if it never is", True),
    ),
)
NPY = ".npy"
MOST_COPIES = 0.02  # share of the drawn rows
FIRST_STEP = "the first batch is step 1, so that checkpoint 1000 has seen the steps 1 to 1000"


@makes(PANEL_ROWS)
def drawn(
    tokens: Sequence[str],
    steps: Sequence[str],
    texts: Sequence[str],
    *,
    language: str,
    times: Sequence[float],
    batches: int | None,
    instances: int | None,
    validation: int | None,
    seed: int,
) -> pd.DataFrame:
    """The rows of a panel's strings that are measured.

    Parameters
    ----------
    tokens, steps : the token file and the file of the steps of its rows; or no files
    texts : in their place, a table of strings with their steps
    language : the name of the panel
    times : the steps of the checkpoints
    batches, instances : the number of steps that are drawn between two checkpoints, and of strings
        of each step; None for all
    validation : the number of strings never trained on that are drawn; None for all
    seed : of the draws

    A unit is the string's name in the table, or the hash of its tokens. Strings that are drawn more
    than once are left out, with a line.

    Raises `UserError` if a file is not as it should be, if there is nothing to draw from, if names
    of strings are not unique, or if more than a few strings are there more than once.
    """
    of_rows = steps_of_texts(*texts) if texts else read_steps(*steps, *tokens)
    where = f"profiles/panels/{language}"
    found = draw(of_rows, times, batches, instances, validation, seed, where)
    if texts:
        table = read_user_table(*texts, STRINGS)
        names, strings = (table.names(name).by_row() for name in ("unit", "text"))
        _check_names(table, names)
        units, contents = names[found["row"]], strings[found["row"]]
    else:
        units = contents = hashes(read_tokens(*tokens), found["row"])
    return _without_copies(found.assign(unit=units), contents, *(texts or tokens))


def hashes(tokens: np.ndarray, rows: Iterable[int]) -> list[str]:
    """Names of rows of int[rows, tokens]: rows of the same tokens have the same name.

    A name is the first 32 digits of the SHA-256 of the row's tokens as int64.
    """
    return [sha256(np.asarray(tokens[row], "<i8").tobytes()).hexdigest()[:32] for row in rows]


def _check_names(table: UserTable, names: np.ndarray) -> None:
    again = pd.Series(names).duplicated().to_numpy()
    if again.any():
        row = int(again.argmax())
        raise UserError(
            f"{table.at(row)}: unit {names[row]!r} is there a second time, after "
            f"{table.another(int((names == names[row]).argmax()))}; give each string its own name"
        )


def _without_copies(rows: pd.DataFrame, contents: Sequence[str], path: str) -> pd.DataFrame:
    """The rows without strings that are there more than once: they may be trained on twice.

    Raises `UserError` if they are more than `MOST_COPIES` of the rows.
    """
    is_copy = pd.Series(contents).duplicated(keep=False).to_numpy()
    if not is_copy.any():
        return rows
    first = int(is_copy.argmax())
    places = rows.loc[[content == contents[first] for content in contents], "row"].tolist()
    what = (
        f"{path}: {is_copy.sum()} of {len(rows)} drawn rows have the string of another row, such "
        f"as the rows {places[0]} and {places[1]}"
    )
    if is_copy.mean() > MOST_COPIES:
        raise UserError(f"{what}; keep one row of each string, with the step of its training")
    _say(f"{what}; they are left out, because such a string may be trained on twice")
    return rows[~is_copy].reset_index(drop=True)


def draw(
    steps: np.ndarray,
    times: Sequence[float],
    batches: int | None,
    instances: int | None,
    validation: int | None,
    seed: int,
    where: str = "panel",
) -> pd.DataFrame:
    """A table `panel_rows` of rows whose steps are float[rows]; NaN is never. See `drawn`."""
    chance = np.random.default_rng(seed)
    ends = np.sort(np.asarray(times, dtype=float))
    never = np.flatnonzero(np.isnan(steps))
    if len(never) < 2:
        raise UserError(
            f"{where}: {len(never)} rows are never trained on, and two or more are needed to "
            "compare with; add rows of a validation set, without a step"
        )
    outside = (steps <= ends[0]) | (steps > ends[-1])
    if outside.any():
        _say(
            f"{where}: {outside.sum()} rows are left out: their steps are not after the first "
            f"checkpoint, {ends[0]:g}, or are after the last one, {ends[-1]:g}; {FIRST_STEP}"
        )
    chosen = [_some(chance, never, validation)]
    for before, end in itertools.pairwise(ends):
        known = np.unique(steps[(steps > before) & (steps <= end)])
        for step in _some(chance, known, batches):
            chosen.append(_some(chance, np.flatnonzero(steps == step), instances))
    rows = np.sort(np.concatenate(chosen))
    if len(rows) == len(chosen[0]):
        raise UserError(
            f"{where}: no row is trained on between two of the checkpoints "
            f"{', '.join(f'{end:g}' for end in ends[:3])}, ...; check the steps of the rows: "
            f"{FIRST_STEP}"
        )
    return pd.DataFrame({"row": rows, "cohort": steps[rows]})


def _some(chance: np.random.Generator, values: np.ndarray, most: int | None) -> np.ndarray:
    if most is None or len(values) <= most:
        return values
    return np.sort(chance.choice(values, most, replace=False))


def read_tokens(path: str) -> np.ndarray:
    """The memmap int[rows, tokens] in a `.npy` file, of which nothing is read yet."""
    found = _npy(path)
    if found.ndim != 2 or found.dtype.kind not in "iu" or 0 in found.shape or found.shape[1] < 2:
        raise UserError(
            f"{path}: is an array of {found.dtype} with the shape {found.shape}, and must be one "
            "of whole numbers with a row for each string and two columns or more: the tokens"
        )
    return found


def read_steps(path: str, tokens: str) -> np.ndarray:
    """float64[rows]: the step at which each row of a token file is trained on; NaN if never.

    In a `.npy` file, a negative number is never, as well as one that is not finite.
    """
    n_rows = len(read_tokens(tokens))
    if Path(path).suffix == NPY:
        steps = _npy_of_steps(path).astype(float)
        steps[~np.isfinite(steps) | (steps < 0)] = np.nan
    else:
        steps = _of_table(path, n_rows, tokens)
    if len(steps) != n_rows:
        raise UserError(
            f"{path}: has the steps of {len(steps)} rows, and {tokens} has {n_rows} rows; give "
            "each row its step"
        )
    return steps


def check_steps(path: str) -> None:
    """Raise `UserError` unless a file is an array or a table of steps; only its head is read."""
    if Path(path).suffix == NPY:
        _npy_of_steps(path)
    else:
        check_columns(path, STEPS)


def _npy_of_steps(path: str) -> np.ndarray:
    found = _npy(path)
    if found.ndim != 1 or found.dtype.kind not in "iuf":
        raise UserError(
            f"{path}: is an array of {found.dtype} with the shape {found.shape}, and must be one "
            "of numbers [rows]: the step of each row of tokens"
        )
    return found


def _of_table(path: str, n_rows: int, tokens: str) -> np.ndarray:
    table = read_user_table(path, STEPS)
    rows, steps = table.numbers("row"), _steps(table)
    wrong = (rows != np.round(rows)) | (rows < 0) | (rows >= n_rows)
    if wrong.any():
        raise UserError(
            f"{table.at(int(wrong.argmax()))}: {rows[wrong][0]:g} is no row of {tokens}, which has "
            f"the rows 0 to {n_rows - 1}"
        )
    counts = np.bincount(rows.astype(int), minlength=n_rows)
    if (counts != 1).any():
        row = int((counts != 1).argmax())
        raise UserError(
            f"{path}: row {row} of {tokens} has {counts[row]} steps, and must have one, which is "
            "empty if it is never trained on"
        )
    found = np.empty(n_rows)
    found[rows.astype(int)] = steps
    return found


def steps_of_texts(path: str) -> np.ndarray:
    """float64[rows]: the steps in a table of strings; NaN if never."""
    return _steps(read_user_table(path, STRINGS))


def texts_at(path: str, rows: np.ndarray) -> list[str]:
    """The texts in some rows of a table of strings."""
    return list(read_user_table(path, STRINGS).names("text").by_row()[rows])


def _steps(table) -> np.ndarray:
    (steps,), kind = table.times("step")
    if kind != A_NUMBER:
        raise UserError(f"{table.source}: the column 'step' holds dates; it must hold numbers")
    return np.where(np.isfinite(steps) & (steps >= 0), steps, np.nan)


def _npy(path: str) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path}: cannot be read as a .npy file: {error}; save it with numpy.save"
        ) from None


def _say(what: str) -> None:
    warnings.warn(Notice(what), stacklevel=3)
