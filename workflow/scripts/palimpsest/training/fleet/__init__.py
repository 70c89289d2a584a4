"""The `fleet` engine trains many small models of one architecture at once, in one process."""

from palimpsest.training.fleet.engine import FleetEngine

__all__ = ["FleetEngine"]
