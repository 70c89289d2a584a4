"""A hash of the library's code, by which rules rerun when what is behind their script changes."""

import hashlib
from pathlib import Path

HERE = Path(__file__).parent
SHARED = ("errors.py", "variants.py", "tables.py", "traces.py", "manifests.py", "door.py")


def of_code(*rooms: str) -> str:
    """12 hexadecimal digits that change with the code of the rooms, or that shared by all."""
    files = [HERE / name for name in SHARED]
    for room in rooms:
        files += [path for path in (HERE / room).rglob("*") if path.suffix in (".py", ".j2")]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.relative_to(HERE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
