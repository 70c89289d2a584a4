"""The intervention of the section `atlas`: base, handed out only after its runs were foretold."""

from palimpsest.interventions import Intervention

FORETOLD = "foretold"
INTERVENTIONS = (Intervention(FORETOLD, "palimpsest.datasets.plain:base"),)
