"""The numbers for the words in the claims on memorisation."""

STRONG = 0.5  # rank association from which on it is called strong; below, "uncorrelated"
ALMOST_ALL = 0.9  # share of strings called almost all
NEXT_TO_NONE = 0.1  # share of strings called none, or too few to be sizable
NEARLY_EQUAL = 0.1  # difference of shares or scores, or relative difference of losses
USUALLY = 0.5  # share of cases called usual, typical or often
RARE = 0.05  # share of cases called rare
SAME_ORDER = 0.9  # rank correlation at which two orders are called the same
