"""Names of the variants of a dataset that more than one part of the library has to know."""

import re

WITH_TARGET = re.compile(r"with-s(\d+)")  # the target string of some rank is trained on
LEAVE_ONE_OUT = "leave-one-out"  # every training string has a run of its own, without that string
ORIGINAL = "original"  # all of a train set, some of whose strings are to be forgotten
RETAIN = "retain"  # the same without these
UNLEARNED = "unlearned"  # no dataset: models that were trained on original and forgot
DRAWN = "drawn"  # what is to be forgotten is drawn at random, and not read from a file
