"""The paper of the section."""

PAPER = "the paper on information measures of neurons"
