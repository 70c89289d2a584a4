"""The attacks: every file of this folder with an `ATTACK` is an attack, and is found by itself."""

from palimpsest.audit.membership.attack import Attack, Given
from palimpsest.lazy_import import declared_in

ATTACKS: dict[str, Attack] = {attack.name: attack for attack in declared_in(__name__, "ATTACK")}

__all__ = ["ATTACKS", "Attack", "Given"]
