"""How a command ends: done, interrupted, or refused because its target is misspelt."""
