"""The paper of the section."""

PAPER = "Learning Without Memorizing Considered Infeasible"
