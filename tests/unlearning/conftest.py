"""What tests of unlearning share."""

import pytest


@pytest.fixture(scope="module")
def on_the_cpu():
    """On the CPU, a model's bits do not depend on the models trained with it."""
    import torch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        yield
