"""Parquet tables: written atomically, and checked when they are read.

A table is a pandas frame with exactly the columns of its kind. Each kind, and each column, is
declared once, by the section or part that makes the tables. The kinds are the public contract;
`docs/tables.md` is made from them. Tables that users bring have kinds of their own, which their
readers check.
"""

from palimpsest.lazy_import import lazy_names
from palimpsest.tables.kinds import Column, Document, Glossary, Kind, UserKind

MODULES = {
    "check_columns": "files",
    "read": "files",
    "read_all": "files",
    "read_arrow": "files",
    "read_json": "files",
    "read_user_table": "user_tables",
    "replacing": "files",
    "replacing_folder": "files",
    "user_table": "user_tables",
    "write": "files",
    "write_copies": "files",
    "write_json": "files",
    "write_parts": "files",
}
__all__ = ["Column", "Document", "Glossary", "Kind", "UserKind", *MODULES]
__getattr__ = lazy_names(__name__, MODULES)
