"""Random samples of two kinds of models, for property-based tests of epsilon."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

DECIMALS = 9


@st.composite
def samples(draw, most_models=12):
    """Two float[models, examples] of as many examples: tied, shifted, scaled or far apart.

    Two values are equal, or differ by far more than rounding errors, which epsilon takes for ties.
    """
    n_examples = draw(st.integers(1, 3))
    values = draw(
        st.sampled_from(
            [
                st.integers(0, 4).map(float),
                st.integers(-300, 300).map(lambda i: i / 100),
                st.floats(-20, 20, width=32),
            ]
        )
    )
    scale, shift = draw(st.sampled_from([1.0, 0.05, 0.5])), draw(st.sampled_from([0.0, 1.0, 9.0]))
    shapes = [(draw(st.integers(2, most_models)), n_examples) for _ in range(2)]
    unlearned, retrained = (draw(arrays(float, s, elements=values)) for s in shapes)
    return np.round(unlearned * scale + shift, DECIMALS), np.round(retrained, DECIMALS)
