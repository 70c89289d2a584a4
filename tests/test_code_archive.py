"""The code that made the results is kept in the same folder."""

import io
import tarfile

import pyarrow as pa
import pytest

from palimpsest import code_archive
from palimpsest.code_archive import keep_code
from palimpsest.fingerprint import SCRIPTS, code_files, of_all_code
from palimpsest.training.manifest import provenance


def unpacked(path) -> dict[str, bytes]:
    """The files of an archive."""
    with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as stream:
        content = io.BytesIO(stream.read())
    with tarfile.open(fileobj=content) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive.getmembers()}


def test_all_scripts_and_the_library_are_kept_once(tmp_path, monkeypatch):
    """The file's name is the hash that every manifest has; a second call writes nothing."""
    path = keep_code(tmp_path / "code")
    assert path.name == f"{of_all_code()}.tar.zst"
    assert provenance()["code"] == of_all_code()
    kept = unpacked(path)
    assert kept == {f.relative_to(SCRIPTS).as_posix(): f.read_bytes() for f in code_files()}
    assert {"finetune.py", "palimpsest/report/frame.html.j2"} <= kept.keys()
    monkeypatch.setattr(code_archive, "_packed", lambda: pytest.fail("it is there already"))
    assert keep_code(tmp_path / "code") == path


def test_equal_code_makes_equal_bytes(tmp_path):
    one, other = (keep_code(tmp_path / name) for name in "ab")
    assert one.read_bytes() == other.read_bytes()
