"""Rows of the table `audit_continuations`."""


def continuation(name, n_right, role="target", trained=True, **others):
    """A record of ten tokens, of which a model gives some; `others` are further columns."""
    return {
        "language": "mine",
        "model": "m",
        "role": role,
        "id": name,
        "group": name,
        "trained": trained,
        "duplicate": False,
        "n_tokens": 10,
        "n_right": n_right,
        "n_generated": n_right,
        "nll": 1.0,
        **others,
    }
