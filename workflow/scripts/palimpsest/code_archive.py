"""Copies of the code that made the results: one archive for each version of the code."""

import io
import tarfile
from pathlib import Path

import pyarrow as pa

from palimpsest import tables
from palimpsest.fingerprint import code_files, name_of, of_all_code


def keep_code(folder: str | Path) -> Path:
    """Save the scripts and the library in an archive in a folder; the path of the archive.

    The archive is named by the hash of its code; an existing archive stays as it is. Unpack an
    archive with `tar --zstd -xf`.
    """
    path = Path(folder) / f"{of_all_code()}.tar.zst"
    if not path.exists():
        with (
            tables.replacing(path) as temporary,
            pa.CompressedOutputStream(temporary, "zstd") as out,
        ):
            out.write(_packed())
    return path


def _packed() -> bytes:
    """An archive of all code, without dates and owners: equal code gives equal bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in code_files():
            content = path.read_bytes()
            entry = tarfile.TarInfo(name_of(path))
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
