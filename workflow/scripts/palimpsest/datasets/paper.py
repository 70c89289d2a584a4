"""The paper of the figures of languages."""

PAPER = "Learning Without Memorizing Considered Infeasible"
