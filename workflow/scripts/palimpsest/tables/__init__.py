"""Parquet tables: written atomically, and checked when they are read.

A table is a pandas frame with exactly the columns of its kind. Each kind is declared once, by the
section or part that makes the tables. The kinds are the public contract; `docs/tables.md` is made
from them.
"""

from palimpsest.lazy_import import lazy_names
from palimpsest.tables.kinds import Column, Document, Kind

MODULES = {
    "check_columns": "files",
    "read": "files",
    "read_all": "files",
    "read_arrow": "files",
    "read_json": "files",
    "replacing": "files",
    "replacing_folder": "files",
    "write": "files",
    "write_json": "files",
    "write_parts": "files",
}
__all__ = ["Column", "Document", "Kind", *MODULES]
__getattr__ = lazy_names(__name__, MODULES)
