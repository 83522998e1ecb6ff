"""What one can measure of a written digit: thickness, slant, size, loops.

After Castro, Tan, Kainz, Konukoglu, Glocker 2019, "Morpho-MNIST" (JMLR 20:178, https://jmlr.org/papers/v20/19-033.html):
pictures are enlarged four times and cut at half the ink; thickness comes from the distances along the skeleton, slant
from the moments, size from the parallelogram with that slant. Place and loops are ours. Needs scikit-image.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

ZOOM = 4


@dataclass(frozen=True)
class Property:
    """unit: pixels of the picture, of area, or none (a tangent). typical: a difference that one sees, as over MNIST."""

    unit: str
    typical: float


PROPERTIES = {
    "thickness": Property("px", 0.5),
    "slant": Property("", 0.25),
    "width": Property("px", 2),
    "height": Property("px", 2),
    "length": Property("px", 5),
    "loop": Property("px²", 15),
    "across": Property("px", 1),
    "down": Property("px", 1),
}
MEANINGFUL = ("thickness", "slant", "width", "height", "loop")  # what one may want to change of a digit


def measure(pictures: Tensor) -> Tensor:
    """Properties of pictures (N, 1, H, W), ink 1 on paper 0 → (N, len(PROPERTIES)) in the order of `PROPERTIES`.

    thickness: twice the mean distance of the skeleton from the paper. slant: tangent of the lean to the right.
    width, height: of the parallelogram around the ink, upright edges along the slant. length: of the skeleton.
    loop: paper that ink surrounds. across, down: centre of the ink from the middle of the picture.
    A picture without ink is NaN throughout.
    """
    large = F.interpolate(pictures.float().cpu(), scale_factor=ZOOM, mode="bicubic")[:, 0]
    framed = F.pad(large, (1, 1, 1, 1)).numpy()  # paper around ink at the edge
    return torch.tensor([_measure(picture) for picture in framed], dtype=torch.float32).view(-1, len(PROPERTIES))


def _measure(picture: np.ndarray) -> list[float]:
    from scipy.ndimage import binary_fill_holes, distance_transform_edt
    from skimage.morphology import skeletonize

    ink = picture >= 0.5
    if not ink.any():
        return [math.nan] * len(PROPERTIES)
    skeleton = skeletonize(ink)
    y, x = np.nonzero(ink)
    middle_y, middle_x = y.mean(), x.mean()
    slant = -((x - middle_x) * (y - middle_y)).mean() / max(((y - middle_y) ** 2).mean(), 1e-9)
    upright = x + slant * (y - middle_y)
    centre = (np.array(picture.shape) - 1) / 2
    return [
        2 * distance_transform_edt(ink)[skeleton].mean() / ZOOM,
        slant,
        (np.ptp(upright) + 1) / ZOOM,
        (np.ptp(y) + 1) / ZOOM,
        _length(skeleton) / ZOOM,
        (binary_fill_holes(ink) & ~ink).sum() / ZOOM**2,
        (middle_x - centre[1]) / ZOOM,
        (middle_y - centre[0]) / ZOOM,
    ]


def _length(skeleton: np.ndarray) -> float:
    """Steps between neighbouring pixels of a skeleton; diagonal ones where no two straight ones do the same."""
    right, down = skeleton[:, :-1] & skeleton[:, 1:], skeleton[:-1] & skeleton[1:]
    falling = skeleton[:-1, :-1] & skeleton[1:, 1:] & ~skeleton[:-1, 1:] & ~skeleton[1:, :-1]
    rising = skeleton[:-1, 1:] & skeleton[1:, :-1] & ~skeleton[:-1, :-1] & ~skeleton[1:, 1:]
    return right.sum() + down.sum() + math.sqrt(2) * (falling.sum() + rising.sum())
