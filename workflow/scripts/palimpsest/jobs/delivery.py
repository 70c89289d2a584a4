"""The files of a job: written when all of its work is done, and vouched for by a manifest."""

from dataclasses import dataclass
from pathlib import Path

from palimpsest import manifests, tables
from palimpsest.errors import UserError
from palimpsest.tables import Kind


@dataclass(frozen=True)
class Files:
    """The files that a job delivers: tables with their kinds, other files, and a manifest.

    The manifest holds the key of all that decides the other files. It is written last, and taken
    away first when the files are made anew, so that it never vouches for a part of them.
    """

    manifest: str
    tables: tuple[tuple[str, Kind], ...]
    others: tuple[str, ...] = ()

    def are_of(self, key: str) -> bool:
        """Whether all files are there, whole, and those of this key."""
        try:
            if manifests.read(self.manifest)["key"] != key:
                return False
            for path, kind in self.tables:
                tables.read(path, kind)
        except UserError:
            return False
        return all(Path(path).exists() for path in self.others)

    def disown(self) -> None:
        """Take the manifest away, before another file is written anew."""
        Path(self.manifest).unlink(missing_ok=True)
