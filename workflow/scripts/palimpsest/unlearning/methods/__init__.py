"""Unlearning methods: lists of phases, in config/unlearning.yaml; a phase is a small class here.

Any file of this folder may register phases (see `phases`), and is found by itself. Nothing heavy is
imported until a phase runs.
"""

from palimpsest.unlearning.methods.phases import Edit, Phase, Select, Training, phase, registered
from palimpsest.unlearning.methods.table import Method, read_methods
from palimpsest.unlearning.methods.values import choice, choices, number, whole
from palimpsest.unlearning.sets import FORGET, RETAIN, SETS, VALIDATION

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
    "number",
    "phase",
    "read_methods",
    "registered",
    "whole",
]
