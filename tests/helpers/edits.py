"""Changes of a project's files, each a function of its folder; and of a table's cells."""

import shutil
from collections.abc import Callable
from pathlib import Path


def edited(file: str, old: str, new: str) -> Callable[[Path], None]:
    """Replace the first occurrence of a text in a file."""

    def change(folder: Path) -> None:
        text = (folder / file).read_text()
        assert old in text
        replace(folder / file, text.replace(old, new, 1))

    return change


def commented(file: str, comment: str = "# another thought") -> Callable[[Path], None]:
    """Add a comment to a file."""

    def change(folder: Path) -> None:
        replace(folder / file, f"{(folder / file).read_text()}\n{comment}\n")

    return change


def changed(file: str) -> Callable[[Path], None]:
    """Add a statement that is run whenever the file is imported."""
    return commented(file, "assert True")


def touched(file: str) -> Callable[[Path], None]:
    """Give a file a new date and its old content."""
    return lambda folder: replace(folder / file, (folder / file).read_bytes())


def both(*changes: Callable[[Path], None]) -> Callable[[Path], None]:
    """One change after another."""

    def change(folder: Path) -> None:
        for one in changes:
            one(folder)

    return change


def deleted(*files: str) -> Callable[[Path], None]:
    """Delete files or folders."""

    def change(folder: Path) -> None:
        for file in files:
            path = folder / file
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return change


def replace(path: Path, content: str | bytes) -> None:
    """Write a new file, and do not change the old one: cases share it with the tour by a link."""
    path.unlink()
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def changed_cell(column, row, value):
    """An edit of one cell; rows are counted from 1."""

    def edit(frame):
        frame = frame.astype({column: object})
        frame.loc[row - 1, column] = value
        return frame

    return edit
