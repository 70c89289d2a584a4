"""The paper of the section."""

PAPER = "Are we making progress in unlearning?"
