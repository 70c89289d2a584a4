"""Unlearning methods. A method is a list of phases in config/unlearning.yaml.

A phase is a small class in any file of this folder (see `phases`), also in a new file. Modules that
load slowly are not imported before a phase runs.
"""

from palimpsest.unlearning.methods.phases import Edit, Phase, Select, Training, phase, registered
from palimpsest.unlearning.methods.sets import FORGET, RETAIN, SETS, VALIDATION
from palimpsest.unlearning.methods.table import Method, methods_of, read_methods
from palimpsest.unlearning.methods.values import choice, choices, number, whole

__all__ = [
    "FORGET",
    "RETAIN",
    "SETS",
    "VALIDATION",
    "Edit",
    "Method",
    "Phase",
    "Select",
    "Training",
    "choice",
    "choices",
    "methods_of",
    "number",
    "phase",
    "read_methods",
    "registered",
    "whole",
]
