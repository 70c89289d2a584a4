"""The sets of strings that methods of unlearning work on."""

FORGET, RETAIN, VALIDATION = SETS = ("forget", "retain", "validation")
