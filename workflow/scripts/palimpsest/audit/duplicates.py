"""Records that are said to be no members, and nearly are one.

A model that was trained on a text knows what is nearly this text, so such a record is neither a
member nor a placebo. Membership inference cannot be judged by it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import pandas as pd

LETTERS = 5  # of the n-grams
NEARLY = 0.9  # share of the n-grams of one text that another one has; a Jaccard index of about 0.8
MOST = 0.5  # share of a record that is a member; a short text in a long one makes it no member
AT_ONCE = 64  # records that are compared with all members at the same time
FEATURES = 2**20
NO_WORD = re.compile(r"[\W_]+")


def duplicates(texts: Sequence[str], member: np.ndarray, other: np.ndarray) -> np.ndarray:
    """bool[texts]: whether a text of the others is that of a member, or nearly.

    Texts are compared without case, punctuation and white space, by their n-grams of `LETTERS`
    letters. A text is nearly a member if a single member has a share `NEARLY` of its n-grams, or if
    it has this share of those of a member, and these are a share `MOST` of its own.

    Parameters
    ----------
    member, other : bool[texts]; texts of which nothing is known are neither
    """
    found = np.zeros(len(texts), dtype=bool)
    if not (member.any() and other.any()):
        return found
    plain = [normal(text) for text in texts]
    members = {plain[place] for place in np.flatnonzero(member)}
    others = np.flatnonzero(other)
    found[others] = [plain[place] in members for place in others]
    left = others[~found[others]]
    of_members = _n_grams(sorted(members))
    for rows in np.array_split(left, -(-len(left) // AT_ONCE)) if len(left) else []:
        found[rows] = _nearly(_n_grams([plain[row] for row in rows]), of_members)
    return found


def _nearly(texts, members) -> np.ndarray:
    """bool[texts]: whether a text is nearly a member; of both, the n-grams are given."""
    shared = (texts @ members.T).tocoo()
    of_text = shared.data / texts.sum(axis=1).A1[shared.row]
    of_member = shared.data / members.sum(axis=1).A1[shared.col]
    is_nearly = (of_text >= NEARLY) | ((of_member >= NEARLY) & (of_text >= MOST))
    found = np.zeros(texts.shape[0], dtype=bool)
    found[shared.row[is_nearly]] = True
    return found


def duplicates_of(texts: Sequence[str], trained: pd.Series) -> np.ndarray:
    """The same of records; `trained` is the column of this name, null where nothing is known."""
    known = trained.astype("boolean")
    member, other = (side.fillna(value=False).to_numpy(dtype=bool) for side in (known, ~known))
    return duplicates(list(texts), member, other)


def known_unseen(about: pd.DataFrame) -> np.ndarray:
    """bool[records]: known to be no members, and not nearly members.

    `about` has the columns `trained` and `duplicate`.
    """
    unseen = ~about["trained"].astype("boolean")  # of nothing known, pandas makes no truth values
    unseen &= ~about["duplicate"].astype(bool)
    return unseen.fillna(value=False).to_numpy(dtype=bool)


def normal(text: str) -> str:
    """The letters and digits of a text in lower case, with one blank between words."""
    return NO_WORD.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


def _n_grams(texts: Sequence[str]):
    """A sparse matrix [texts, n-grams], 1 where a text has an n-gram."""
    from sklearn.feature_extraction.text import HashingVectorizer

    given = HashingVectorizer(
        analyzer="char",
        ngram_range=(LETTERS, LETTERS),
        n_features=FEATURES,
        binary=True,
        norm=None,
        alternate_sign=False,
        lowercase=False,
        dtype=np.float32,
    )
    return given.transform(texts)
