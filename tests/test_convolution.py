import pytest
import torch
import torch.nn.functional as F

from capsnet import convolution
from capsnet.convolution import Conv2d, fourier_conv2d, unfolded_conv2d

# (size, kernel, stride), with sizes and kernels that are no multiple of the stride
GEOMETRIES = [
    (20, 9, 2),
    (19, 9, 2),
    (21, 10, 2),
    (17, 7, 3),
    (16, 6, 3),
    (15, 8, 3),
    (12, 5, 1),
    (9, 9, 2),
    (11, 4, 4),
]


def tensors(size, kernel, channels=3, outputs=4, batch=2, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    shapes = (batch, channels, size, size), (outputs, channels, kernel, kernel), (outputs,)
    return [torch.randn(shape, dtype=dtype, generator=generator, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize(("size", "kernel", "stride"), GEOMETRIES)
def test_fourier_equals_direct_in_values_and_gradients(size, kernel, stride):
    inputs = tensors(size, kernel)
    direct = F.conv2d(*inputs, stride=stride)
    ours = fourier_conv2d(*inputs, stride)
    assert ours.shape == direct.shape
    torch.testing.assert_close(ours, direct, rtol=0, atol=1e-11)
    pull = torch.randn_like(direct)
    for a, b in zip(*(torch.autograd.grad(y, inputs, pull) for y in (ours, direct)), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(("size", "kernel", "stride"), GEOMETRIES)
def test_unfolded_equals_direct(size, kernel, stride, layout):
    image, weight, bias = tensors(size, kernel)
    image, weight = image.contiguous(memory_format=layout), weight.contiguous(memory_format=layout)
    direct = F.conv2d(image, weight, bias, stride)
    torch.testing.assert_close(unfolded_conv2d(image, weight, bias, stride), direct, rtol=0, atol=1e-11)


def test_unfolded_takes_images_that_are_not_square():
    image, weight, bias = tensors(12, 5)
    direct = F.conv2d(image[:, :, :9], weight, bias, 2)
    torch.testing.assert_close(unfolded_conv2d(image[:, :, :9], weight, bias, 2), direct, rtol=0, atol=1e-11)


def test_gradcheck():
    assert torch.autograd.gradcheck(lambda *x: fourier_conv2d(*x, 2), tensors(5, 3, channels=2, outputs=2, batch=1))


def test_float32_rounds_no_worse_than_the_direct_sum():
    inputs = [t.detach() for t in tensors(20, 9, channels=64, outputs=16, batch=4)]
    exact = F.conv2d(*inputs, stride=2)
    single = [t.float() for t in inputs]
    ours = (fourier_conv2d(*single, 2) - exact).square().mean()
    direct = (F.conv2d(*single, stride=2) - exact).square().mean()
    assert ours < 2 * direct


def test_bf16_rounds_little_worse_than_the_direct_sum():
    """In values and gradients, for features after a ReLU, whose mean is the largest part of the sums."""
    inputs = [t.detach() for t in tensors(20, 9, channels=64, outputs=16, batch=4)]
    inputs[0].relu_()
    pull = torch.randn(4, 16, 6, 6, dtype=torch.float64)

    def results(convolve, dtype):
        given = [t.to(dtype, copy=True).requires_grad_() for t in inputs]
        y = convolve(*given)
        return [y, *torch.autograd.grad(y, given, pull.to(dtype))]

    def direct(image, weight, bias):
        return F.conv2d(image, weight, bias, 2)

    exact = results(direct, torch.float64)
    ours = results(lambda *x: fourier_conv2d(*x, 2), torch.bfloat16)
    theirs = results(direct, torch.bfloat16)
    for a, b, c in zip(ours, theirs, exact, strict=True):
        assert (a - c).norm() < 4 * (b - c).norm() and (a - c).norm() < 0.01 * c.norm()


def test_number_of_products_of_the_primary_capsules():
    # 100 frequencies: 4 are their own conjugates, 48 pairs take three products each.
    A, K, C = convolution._fourier_matrices(10, 5, 6)
    assert (A.shape, K.shape, C.shape) == ((148, 100), (148, 25), (36, 148))


def images(batch=16, channels=16, side=20, width=None, dtype=torch.float32):
    return torch.zeros(batch, channels, side, width or side, dtype=dtype)


@pytest.fixture
def taken(monkeypatch):
    """Names of the evaluations of our own that have been called."""
    names = []
    for function in (fourier_conv2d, unfolded_conv2d):
        name = function.__name__
        monkeypatch.setattr(convolution, name, lambda *x, f=function, n=name: names.append(n) or f(*x))
    return names


@pytest.mark.parametrize(
    ("image", "kernel", "stride", "fourier"),
    [
        (images(), 9, 2, True),
        (images(side=32), 9, 2, True),
        (images(batch=15), 9, 2, False),
        (images(channels=15), 9, 2, False),
        (images(side=33), 9, 2, False),
        (images(width=22), 9, 2, False),
        (images(), 5, 2, False),
        (images(dtype=torch.bfloat16), 9, 2, True),
        (images(dtype=torch.float64), 9, 2, False),
        (images(side=32), 9, 1, False),
        (images(side=16), 3, 1, True),
    ],
)
def test_fourier_only_where_it_is_faster(image, kernel, stride, fourier, taken):
    layer = Conv2d(image.shape[1], 4, kernel, stride).to(image.dtype)
    layer(image)
    assert taken == ["fourier_conv2d"] * fourier


@pytest.mark.parametrize(
    ("batch", "layout", "gradients", "unfolded"),
    [
        (1, torch.channels_last, False, True),
        (8, torch.channels_last, False, True),
        (9, torch.channels_last, False, False),
        (1, torch.contiguous_format, False, False),
        (1, torch.channels_last, True, False),
    ],
)
def test_unfolded_only_where_it_is_faster(batch, layout, gradients, unfolded, taken):
    layer = Conv2d(16, 4, 9, 2).to(memory_format=layout)
    with torch.set_grad_enabled(gradients):
        layer(images(batch))
    assert taken == ["unfolded_conv2d"] * unfolded


@pytest.mark.parametrize(
    ("batch", "dtype", "names"),
    [(1, torch.bfloat16, ["unfolded_conv2d"]), (16, torch.bfloat16, ["fourier_conv2d"]), (16, torch.float16, [])],
    ids=str,
)
def test_autocast(batch, dtype, names, taken):
    layer, image = Conv2d(16, 4, 9, 2).to(memory_format=torch.channels_last), torch.randn(batch, 16, 20, 20)
    with torch.no_grad(), torch.autocast("cpu", dtype):
        y = layer(image)
    assert taken == names and y.dtype == dtype
    torch.testing.assert_close(y.float(), F.conv2d(image, layer.weight, layer.bias, 2), rtol=0.02, atol=0.02)


@pytest.mark.parametrize(("batch", "names"), [(16, ["fourier_conv2d"]), (12, []), (3, ["unfolded_conv2d"])])
def test_module_equals_the_plain_one(batch, names, taken):
    layer = Conv2d(16, 4, 9, 2).to(memory_format=torch.channels_last)
    image = torch.randn(batch, 16, 20, 20)
    with torch.no_grad():
        torch.testing.assert_close(layer(image), F.conv2d(image, layer.weight, layer.bias, 2), rtol=1e-4, atol=1e-5)
    assert taken == names


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_training_after_evaluation_in_inference_mode(dtype):
    convolution._fourier_matrices.cache_clear()
    inputs = tensors(20, 9, dtype=dtype)
    with torch.inference_mode():
        fourier_conv2d(*inputs, 2)
    fourier_conv2d(*inputs, 2).sum().backward()
    assert all(t.grad.isfinite().all() for t in inputs)


def test_channels_last_images_and_weights():
    inputs = tensors(20, 9)
    last = [t.contiguous(memory_format=torch.channels_last) for t in inputs[:2]] + inputs[2:]
    torch.testing.assert_close(fourier_conv2d(*last, 2), fourier_conv2d(*inputs, 2), rtol=0, atol=1e-11)


def test_compiled_equals_eager():
    layer, image = Conv2d(16, 4, 9, 2), torch.randn(16, 16, 20, 20)
    torch.testing.assert_close(torch.compile(layer, backend="aot_eager")(image), layer(image), rtol=1e-4, atol=1e-5)


def test_compiler_takes_the_matrices_as_constants():
    def plain():
        return None

    mark = vars(torch.compiler.assume_constant_result(plain))
    assert mark and vars(convolution._constant_matrices) == mark
