"""Writing habits: how people draw the ten digits with a pen, each as a few strokes with free parameters.

A habit is a function of `u`, where u(low, high) draws a uniform number, and returns strokes: lists of points
(x right, y down) in a box about 0.6 wide and 1 high. A smooth curve runs through the points of a stroke;
`corner` marks where it breaks. Every call draws the habit's own parameters (length of an up-stroke, place of
a slash, depth of a hook), within limits that leave no reader in doubt about the digit; `pens` adds what all
hands have in common: tremor, slant, uneven size.
"""

from . import five_to_nine, zero_to_four  # both fill HABITS
from .parts import HABITS

__all__ = ["HABITS", "five_to_nine", "zero_to_four"]
