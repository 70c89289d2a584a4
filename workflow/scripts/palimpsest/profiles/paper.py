"""The paper of the section."""

PAPER = "Causal Estimation of Memorisation Profiles"
