"""The libraries that draw, imported on first use: figures are declared before any is drawn."""

from palimpsest.lazy_import import lazy_import

collections = lazy_import("matplotlib.collections")
colors = lazy_import("matplotlib.colors")
figures = lazy_import("matplotlib.figure")
font_manager = lazy_import("matplotlib.font_manager")
lines = lazy_import("matplotlib.lines")
matplotlib = lazy_import("matplotlib")
np = lazy_import("numpy")
patches = lazy_import("matplotlib.patches")
pd = lazy_import("pandas")
plt = lazy_import("matplotlib.pyplot")
text = lazy_import("matplotlib.text")
ticker = lazy_import("matplotlib.ticker")
