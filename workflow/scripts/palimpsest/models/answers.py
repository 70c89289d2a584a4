"""Answers that models gave before, kept in a file: a job asks only what is new."""

from __future__ import annotations

import hashlib
import io
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
import transformers

from palimpsest.errors import UserError

log = logging.getLogger("palimpsest")

TABLE = "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer BLOB) WITHOUT ROWID"


class Rows(Protocol):
    """Rows of token ids: see `palimpsest.training.batches.TokenisedStrings`."""

    ids: np.ndarray
    lengths: np.ndarray
    contexts: np.ndarray | int


class Answers:
    """The answers of a job's models about rows of tokens, in a file of SQLite.

    A job that was stopped goes on from them, and one more text costs one text. The answers to a
    row depend, within rounding, on the rows that were read with it. Two jobs must not share a
    file at the same time.

    Raises `UserError` if the file cannot be written.
    """

    def __init__(self, file: str | Path):
        self._file = Path(file)
        self._used: set[bytes] = set()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._database = self._connected()
        except sqlite3.OperationalError as error:
            raise UserError(f"{file}: {error}; make its folder writable") from None
        except sqlite3.DatabaseError:
            log.warning("%s: is broken, so models are asked everything again", file)
            self._file.unlink()
            self._database = self._connected()

    def _connected(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._file)
        database.execute(TABLE)
        return database

    def of_model(self, model: torch.nn.Module) -> OfModel:
        return OfModel(self, digest(model))

    def find(self, keys: Iterable[bytes]) -> Iterator[np.ndarray | None]:
        """The answers to some keys, or None."""
        for key in keys:
            self._used.add(key)
            found = self._database.execute("SELECT answer FROM answers WHERE key = ?", (key,))
            row = found.fetchone()
            yield None if row is None else np.load(io.BytesIO(row[0]), allow_pickle=False)

    def keep(self, answers: Mapping[bytes, np.ndarray]) -> None:
        with self._database:
            self._database.executemany(
                "INSERT OR REPLACE INTO answers VALUES (?, ?)",
                ((key, _as_bytes(answer)) for key, answer in answers.items()),
            )

    def close(self) -> None:
        """Remove what was not asked for since the file was opened."""
        kept = [key for (key,) in self._database.execute("SELECT key FROM answers")]
        with self._database:
            self._database.executemany(
                "DELETE FROM answers WHERE key = ?",
                ((key,) for key in kept if key not in self._used),
            )
        self._database.close()


@dataclass(frozen=True)
class OfModel:
    """The answers of one model. A question is a name of what is asked about each row of tokens."""

    answers: Answers
    model: bytes

    def find(self, question: str, encoded: Rows) -> dict[int, np.ndarray]:
        """The answers that are known, by row."""
        rows = range(len(encoded.lengths))
        found = self.answers.find(self._key(question, encoded, row) for row in rows)
        return {row: answer for row, answer in zip(rows, found, strict=True) if answer is not None}

    def keep(self, question: str, encoded: Rows, answers: Mapping[int, np.ndarray]) -> None:
        """Keep the answers about some rows."""
        self.answers.keep(
            {self._key(question, encoded, row): answer for row, answer in answers.items()}
        )

    def _key(self, question: str, encoded: Rows, row: int) -> bytes:
        context = np.broadcast_to(encoded.contexts, encoded.lengths.shape)[row]
        made = hashlib.sha256(self.model)
        made.update(f"{question} {context} ".encode())
        made.update(encoded.ids[row, : encoded.lengths[row]].tobytes())
        return made.digest()


class NotKept:
    """In place of `OfModel`, where no answers are kept: none is known, and none is written."""

    def find(self, question: str, encoded: Rows) -> dict[int, np.ndarray]:
        return {}

    def keep(self, question: str, encoded: Rows, answers: Mapping[int, np.ndarray]) -> None:
        pass


NOT_KEPT = NotKept()


def digest(model: torch.nn.Module) -> bytes:
    """A hash of a model's weights and configuration, and of what computes with them."""
    made = hashlib.sha256(model.config.to_json_string().encode())
    made.update(f"{torch.__version__} {transformers.__version__} {model.device.type}".encode())
    _add_weights(made, model)
    return made.digest()


def digest_of_weights(model: torch.nn.Module) -> str:
    """A hash of a model's weights alone, as text: equal for one model under two names."""
    made = hashlib.sha256()
    _add_weights(made, model)
    return made.hexdigest()


def _add_weights(made: hashlib._Hash, model: torch.nn.Module) -> None:
    for name, weight in model.state_dict().items():
        made.update(name.encode())
        made.update(weight.contiguous().cpu().view(torch.uint8).numpy())


def _as_bytes(answer: np.ndarray) -> bytes:
    made = io.BytesIO()
    np.save(made, answer, allow_pickle=False)
    return made.getvalue()
