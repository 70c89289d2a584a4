"""The intervention of the section `audit`: all members are trained on, and all others measured."""

from palimpsest.interventions import Intervention

MEMBERS = "members"
INTERVENTIONS = (Intervention(MEMBERS, "palimpsest.audit.members:members"),)
