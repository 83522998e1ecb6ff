"""A strided convolution with large kernels that picks the fastest exact evaluation: torch's own, one in the frequency
domain, or one matrix product over unfolded patches.

A convolution with stride s is a sum of s² ordinary ones over the s² sub-grids (phases) of the image. Each phase
is small, so its cyclic convolution is a product of small Fourier transforms, and those are plain matrices:

    Y = C · ((A · X) ⊙ (K · W)) / n²

with ⊙ a product per frequency: a matrix product over channels. A complex product takes three real ones (Gauss),
and the sums that this needs are folded into A, K and C, so everything is real. For CapsNet's primary capsules
(20×20 image, 9×9 kernel, stride 2) 148 products replace the 729 of the direct form: 4.9 times fewer
multiplications, exact up to rounding, whose error is smaller than that of the direct sum in float32.
"""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@lru_cache(maxsize=8)
def _fourier_matrices(n: int, k: int, m: int) -> tuple[Tensor, Tensor, Tensor]:
    """A (R, n²), K (R, k²) and C (m², R) of the cyclic correlation n×n with k×k, first m×m outputs; float64.

    The result is n² times the correlation: so the entries for the mean, the largest part of it, are whole numbers.
    Frequencies come in conjugate pairs; a pair takes three real products, a frequency that is its own
    conjugate one.
    """
    image_rows, kernel_rows, output_columns, seen = [], [], [], set()

    def wave(a: int, b: int, size: int) -> tuple[Tensor, Tensor]:
        position = torch.arange(size, dtype=torch.float64)
        angle = 2 * math.pi / n * ((a * position)[:, None] + (b * position)[None, :])
        return angle.cos().flatten(), angle.sin().flatten()

    for a, b in ((a, b) for a in range(n) for b in range(n)):
        conjugate = (-a % n, -b % n)
        if (a, b) in seen:
            continue
        seen |= {(a, b), conjugate}
        cos, sin = wave(a, b, n)  # X = cos − i sin
        kernel_cos, kernel_sin = wave(a, b, k)  # conj(W) = cos + i sin: a correlation
        out_cos, out_sin = wave(a, b, m)  # y = Re(Y (cos + i sin)) = Re Y cos − Im Y sin
        if conjugate == (a, b):
            image_rows.append(cos)
            kernel_rows.append(kernel_cos)
            output_columns.append(out_cos)
        else:
            # P₁ = (Xr + Xi) Wr, P₂ = Xr (Wi − Wr), P₃ = Xi (Wr + Wi): Re Y = P₁ − P₃, Im Y = P₁ + P₂
            image_rows += [cos - sin, cos, -sin]
            kernel_rows += [kernel_cos, kernel_sin - kernel_cos, kernel_cos + kernel_sin]
            output_columns += [2 * (out_cos - out_sin), -2 * out_sin, -2 * out_cos]
    return torch.stack(image_rows), torch.stack(kernel_rows), torch.stack(output_columns, 1)


def _constant_matrices(n: int, k: int, m: int) -> tuple[Tensor, Tensor, Tensor]:
    """`_fourier_matrices`, which torch.compile would trace, and so compute at every call."""
    return _fourier_matrices(n, k, m)


# The mark that torch.compiler.assume_constant_result sets; calling that would import the whole compiler, two seconds.
_constant_matrices._dynamo_marked_constant = True  # type: ignore[attr-defined]  # functions may have attributes


def fourier_conv2d(image: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
    """`F.conv2d(image, weight, bias, stride)` for a square image and kernel, through small Fourier matrices.

    Computes in the image's dtype. In bf16 the result is about half as exact as the direct form.

    Args:
        image: (B, C, H, H).
        weight: (O, C, K, K).
        bias: (O,).
        stride: in pixels.
    Returns:
        (B, O, M, M) with M = (H − K) // stride + 1, the channels of a pixel side by side in memory.
    Source: Mathieu, Henaff, LeCun 2014 (convolution by FFT); the phases and the real form are ours.
    """
    B, channels, height, _ = image.shape
    outputs, _, kernel, _ = weight.shape
    n, k, m = -(-height // stride), -(-kernel // stride), (height - kernel) // stride + 1
    # Copies: what inference mode has left in the cache could not take part in training.
    A, K, C = (matrix.to(image, copy=True) for matrix in _constant_matrices(n, k, m))
    weight, bias = weight.to(image), bias.to(image)

    def phases(x: Tensor, size: int) -> Tensor:  # (P, Q, s·size, s·size) → (size, size, P, s, s, Q)
        missing = size * stride - x.shape[-1]
        x = F.pad(x, (0, missing, 0, missing)) if missing else x
        return x.reshape(*x.shape[:2], size, stride, size, stride).permute(2, 4, 0, 3, 5, 1)

    inner = stride**2 * channels
    X = A @ phases(image, n).reshape(n * n, B * inner)
    W = K @ phases(weight, k).permute(0, 1, 3, 4, 5, 2).reshape(k * k, inner * outputs)
    product = X.view(-1, B, inner) @ W.view(-1, inner, outputs)  # (R, B, O)
    y = C @ product.view(-1, B * outputs)  # (M², B·O)
    return torch.add(bias[:, None, None], y.view(m, m, B, outputs).permute(2, 3, 0, 1), alpha=1 / n**2)


def unfolded_conv2d(image: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
    """`F.conv2d(image, weight, bias, stride)` for a square kernel, as one product of patches and weights.

    Computes in the image's dtype.

    Args:
        image: (B, C, H, W).
        weight: (O, C, K, K), in channels_last order, so that it is read as it lies.
        bias: (O,).
        stride: in pixels.
    Returns:
        (B, O, H', W'), the channels of a pixel side by side in memory.
    """
    outputs, _, kernel, _ = weight.shape
    weight, bias = weight.to(image), bias.to(image)
    patches = image.unfold(2, kernel, stride).unfold(3, kernel, stride)  # (B, C, H', W', K, K)
    B, _, rows, columns = patches.shape[:4]
    patches = patches.permute(0, 2, 3, 4, 5, 1).reshape(B * rows * columns, -1)  # (B·H'·W', K·K·C)
    y = torch.addmm(bias, patches, weight.permute(0, 2, 3, 1).reshape(outputs, -1).T)  # (B·H'·W', O)
    return y.view(B, rows, columns, outputs).permute(0, 3, 1, 2)


class Conv2d(nn.Conv2d):
    """`nn.Conv2d` (valid, square kernel) that picks the fastest of three exact evaluations.

    On a CPU the Fourier form wins once the transform of the weights is shared by a batch, in float32 and in bf16.
    Without gradients the matrix product wins for a few images: torch's convolution brings the weights into an order of
    its own at every call. On a GPU torch's own form is left alone, and in what torch.export writes, too: that is for
    batches of any size.
    """

    bias: Tensor  # never left out

    def forward(self, image: Tensor) -> Tensor:
        if image.device.type == "cpu" and not torch.compiler.is_exporting():
            dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else image.dtype
            if dtype in (torch.float32, torch.bfloat16):
                if self._fourier_is_faster(image):
                    return fourier_conv2d(image.to(dtype), self.weight, self.bias, self.stride[0])
                if self._unfolding_is_faster(image):
                    return unfolded_conv2d(image.to(dtype), self.weight, self.bias, self.stride[0])
        return super().forward(image)

    def _fourier_is_faster(self, image: Tensor) -> bool:
        B, channels, height, width = image.shape
        stride, kernel = self.stride[0], self.kernel_size[0]
        return (
            height == width
            and B >= 16
            and channels >= 16  # fewer make the products per frequency too thin
            and kernel >= 3 * stride  # few taps a phase save nothing
            and height <= 16 * stride  # the matrices grow with the fourth power of the side
        )

    def _unfolding_is_faster(self, image: Tensor) -> bool:
        in_place = self.weight.is_contiguous(memory_format=torch.channels_last)  # else the product copies them first
        return len(image) <= 8 and in_place and not torch.is_grad_enabled()
