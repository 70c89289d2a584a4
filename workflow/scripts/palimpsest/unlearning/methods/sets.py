"""The sets of strings that methods of unlearning work on."""

FORGET, RETAIN, VALIDATION = SETS = ("forget", "retain", "validation")
REFUSED = "refused"  # the prompts of the forget set, each with a refusal
# A set for measurements only: some test strings that no model was trained on
UNSEEN = "unseen"
MOST_UNSEEN = 48  # enough for a mean; they are measured many times
