"""The claims on information measures: the rows of `CLAIMS` in all files of this folder."""

from palimpsest.lazy_import import declared_in

CLAIMS = [claim for rows in declared_in(__name__, "CLAIMS") for claim in rows]
