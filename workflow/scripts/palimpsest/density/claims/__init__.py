"""The claims on training-data density: what all files of this folder declare."""

from palimpsest.lazy_import import declared_in

CLAIMS = [claim for rows in declared_in(__name__, "CLAIMS") for claim in rows]
QUESTIONS = {
    key: words
    for questions in declared_in(__name__, "QUESTIONS")
    for key, words in questions.items()
}
