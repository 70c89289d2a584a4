"""The files of a job: written when all of its work is done, and described by a manifest."""

from dataclasses import dataclass
from pathlib import Path

from palimpsest import manifests, tables
from palimpsest.errors import UserError
from palimpsest.tables import Kind


@dataclass(frozen=True)
class Files:
    """The files that a job delivers: tables with their kinds, other files, and a manifest.

    The manifest holds a key: a hash of everything that decides the other files. The manifest is
    written last, and deleted first when the files are made again. So a manifest always means that
    all files are complete.
    """

    manifest: str
    tables: tuple[tuple[str, Kind], ...]
    others: tuple[str, ...] = ()

    def are_of(self, key: str) -> bool:
        """Whether all files exist, are complete and belong to this key."""
        try:
            if manifests.read(self.manifest)["key"] != key:
                return False
            for path, kind in self.tables:
                tables.read(path, kind)
        except UserError:
            return False
        return all(Path(path).exists() for path in self.others)

    def disown(self) -> None:
        """Delete the manifest, before any other file is written again."""
        Path(self.manifest).unlink(missing_ok=True)
