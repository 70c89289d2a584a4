"""Records of one's own: which of them a model memorised, and what its false alarms are."""

from palimpsest.lazy_import import lazy_names, listing

MODULES = {
    "Answers": "verdicts",
    "answers": "verdicts",
    "Conformal": "unretrained",
    "conformal": "unretrained",
    "Losses": "losses",
    "in_windows": "palimpsest.corpora.records",
    "Records": "palimpsest.corpora.records",
    "measure": "checkpoint",
    "placebo_p_values": "verdicts",
    "read_losses": "losses",
    "read_records": "palimpsest.corpora.records",
    "to_losses": "losses",
    "to_records": "palimpsest.corpora.records",
}
__all__ = list(MODULES)
__getattr__ = lazy_names(__name__, MODULES)
__dir__ = listing(__name__, MODULES)
