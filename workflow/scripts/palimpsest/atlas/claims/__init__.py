"""The claims of the atlas: what all files of this folder declare."""

from palimpsest.lazy_import import declared_in

CLAIMS = [claim for rows in declared_in(__name__, "CLAIMS") for claim in rows]
QUESTIONS = dict(item for part in declared_in(__name__, "QUESTIONS") for item in part.items())
