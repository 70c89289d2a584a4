"""The paper of the section."""

PAPER = "LMD3: Language Model Data Density Dependence"
