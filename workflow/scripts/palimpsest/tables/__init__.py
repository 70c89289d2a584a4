"""The Parquet tables: every kind declared once by its owner, written atomically, checked on read.

A table is a pandas frame with exactly the columns of its kind. The kinds are the public contract;
`docs/tables.md` is written from them.
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
    "write": "files",
    "write_json": "files",
    "write_parts": "files",
}
__all__ = ["Column", "Document", "Kind", *MODULES]
__getattr__ = lazy_names(__name__, MODULES)
