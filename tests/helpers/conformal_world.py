"""A world in which exact values follow from cheap measures, but for chance."""

import numpy as np


def world(chance, n, centre=0.0):
    """Two cheap measures and exact values; errors grow with the first measure, as widths do not."""
    first = centre + chance.standard_normal(n)
    second = chance.standard_normal(n)
    noise = (0.3 + 0.3 * np.exp(first)) * chance.standard_normal(n)
    exact = 0.01 * np.sinh(2 + first + 0.5 * second + noise)
    return np.column_stack([first, second]), exact
