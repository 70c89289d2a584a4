"""Parquet tables and JSON files: written atomically, checked on read."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from palimpsest.commands import remake, snakemake
from palimpsest.errors import WRITE_REMEDY, UserError
from palimpsest.tables.kinds import Kind


def write(path: str | Path, frame: pd.DataFrame, kind: Kind) -> None:
    """Write a table atomically: a reader sees the old file or the complete new file.

    Raises `UserError` if the frame does not have exactly the columns of the kind, if a column has a
    null that is not allowed, or if the file cannot be written.
    """
    write_parts(path, [frame], kind)


def write_parts(path: str | Path, frames: Iterable[pd.DataFrame], kind: Kind) -> None:
    """Like `write`, from parts that do not have to be in memory at the same time."""
    schema = kind.schema
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd") as writer,
    ):
        for frame in frames:
            check_columns(path, list(frame.columns), kind)
            for field in schema:
                if not field.nullable and frame[field.name].isna().any():
                    raise UserError(
                        f"{path}: column {field.name!r} of a {kind.name} table must not be null"
                    )
            table = pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False)
            writer.write_table(table)


def read(path: str | Path, kind: Kind) -> pd.DataFrame:
    """Read a table and check that it is complete and of this kind.

    Raises `UserError` with the remedy if the file is missing, truncated or of another kind.
    """
    return read_arrow(path, kind).to_pandas()


def read_arrow(
    path: str | Path,
    kind: Kind,
    columns: list[str] | None = None,
    filters: list[tuple] | None = None,
) -> pa.Table:
    """Like `read`, but only some columns, and only the rows that pass all filters.

    `filters` are filters of pyarrow: (column, operator, value).
    """
    try:
        schema = pq.read_schema(path)
        check_columns(path, schema.names, kind)
        table = pq.read_table(path, columns=columns, filters=filters, partitioning=None)
    except FileNotFoundError:
        raise UserError(f"{path}: no such table; make it with: {snakemake(path)}") from None
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"{path}: not a complete Parquet file ({Path(path).stat().st_size:,} bytes: "
            f"{str(error).splitlines()[0]}); {remake(path)}"
        ) from None
    for field in kind.schema:
        if schema.field(field.name).type != field.type:
            raise UserError(
                f"{path}: column {field.name!r} is {schema.field(field.name).type}, "
                f"must be {field.type}; {remake(path)}"
            )
    return table


def read_all(paths: Iterable[str], kind: Kind) -> pd.DataFrame:
    """Read several tables of one kind and stack them; without paths, an empty table."""
    paths = list(paths)
    if not paths:
        return kind.schema.empty_table().to_pandas()
    return pd.concat([read(path, kind) for path in paths], ignore_index=True)


def check_columns(path: str | Path, columns: list[str], kind: Kind) -> None:
    """Raise `UserError` unless `columns` are those of the kind."""
    wanted = kind.names
    missing = [name for name in wanted if name not in columns]
    unknown = [name for name in columns if name not in wanted]
    if missing or unknown:
        parts = [f"lacks {', '.join(missing)}"] if missing else []
        parts += [f"has unknown {', '.join(unknown)}"] if unknown else []
        raise UserError(
            f"{path}: not a {kind.name} table: it {' and '.join(parts)}; {remake(path)}"
        )


def write_copies(frame: pd.DataFrame, csv_path: str | Path, json_path: str | Path) -> None:
    """Write the rows of a table for other programs, as CSV and as JSON."""
    with replacing(csv_path) as as_csv, replacing(json_path) as as_json:
        frame.to_csv(as_csv, index=False)
        frame.to_json(as_json, orient="records", indent=2, force_ascii=False, double_precision=15)


def read_json(path: str | Path) -> dict:
    """Read a JSON file. Raises `UserError` with the remedy if the file is missing or broken."""
    try:
        return json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a complete JSON file ({error}); {remake(path)}") from None


def write_json(path: str | Path, content: dict) -> None:
    """Write a JSON file atomically, keys in the order given."""
    with replacing(path) as temporary:
        Path(temporary).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[str]:
    """Yield a temporary path near `path`; on success rename it to `path`, on failure delete it."""
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=path.suffix)
        os.close(handle)
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())
        _flush(temporary)
        os.replace(temporary, path)
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]
        raise UserError(f"{path}: cannot be written: {reason}; {WRITE_REMEDY}") from None
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


@contextlib.contextmanager
def replacing_folder(folder: str | Path) -> Iterator[str]:
    """Like `replacing`, for a folder: a reader sees the old folder, none, or the complete new one.

    Raises `UserError` if the folder cannot be written.
    """
    folder = Path(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as near:
            made = Path(near) / folder.name
            made.mkdir()
            yield str(made)
            for file in (path for path in made.rglob("*") if path.is_file()):
                os.chmod(file, 0o666 & ~_umask())
                _flush(file)
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(made, folder)
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]
        raise UserError(f"{folder}: cannot be written: {reason}; {WRITE_REMEDY}") from None


def _flush(path: str | Path) -> None:
    """Wait until the disk has a file's content, so that a power cut cannot leave an empty file."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    """The process's file mode mask. It can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
