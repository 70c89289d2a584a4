"""The `fleet` engine: many small models of one architecture trained at once in one process."""

from palimpsest.training.fleet.engine import FleetEngine

__all__ = ["FleetEngine"]
