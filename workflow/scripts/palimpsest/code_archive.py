"""The code behind the results: kept beside them, once for each state that it was in."""

import io
import tarfile
from pathlib import Path

import pyarrow as pa

from palimpsest import tables
from palimpsest.fingerprint import SCRIPTS, code_files, of_all_code


def keep_code(folder: str | Path) -> Path:
    """Keep all scripts and the library in an archive of a folder, named by their hash; its path.

    `tar --zstd -xf` unpacks it. An archive that is there already is left as it is.
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
    """All code as an archive without dates and owners, so that equal code makes equal bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in code_files():
            content = path.read_bytes()
            entry = tarfile.TarInfo(path.relative_to(SCRIPTS).as_posix())
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
