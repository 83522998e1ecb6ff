"""Write a network as ONNX: `python train/export.py capsnet` writes runs/capsnet-onnx/encoder.onnx and decoder.onnx.

encoder: images (B, C, H, W), ink 1 on paper 0 → lengths (B, K) and, of a network that has them, poses (B, K, P).
decoder: poses (B, K, P) and digits (B,), int64, of whose capsule each is drawn → pictures (B, C, H, W).

Both take any number of images. They are compared with PyTorch on MNIST's digits before they are kept, and carry the
network's name and class names.
"""

import sys
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from capsnet.baseline import CNN  # noqa: E402
from capsnet.checkpoint import ModelError, load_model, write_atomically  # noqa: E402
from capsnet.command_line import Parser  # noqa: E402
from capsnet.demo.examples import digits  # noqa: E402
from capsnet.models import Network  # noqa: E402
from capsnet.redrawer import Redrawer  # noqa: E402

BATCHES = 1, 2, 300  # digits at a time, in the comparison
TOLERANCE = 1e-4  # most that a length, a pose number or a pixel may differ by
OPSET = 20


class Encoder(nn.Module):
    """What a network reads, as a tuple."""

    def __init__(self, model: Network):
        super().__init__()
        self.model = model
        self.names: tuple[str, ...] = ("lengths",) if isinstance(model, CNN) else ("lengths", "poses")

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        out = self.model(images)
        return tuple(getattr(out, name) for name in self.names)


class Drawer(nn.Module):
    """What a network draws."""

    names = ("pictures",)

    def __init__(self, model: Redrawer):
        super().__init__()
        self.decoder = model.decoder

    def forward(self, poses: Tensor, digits: Tensor) -> tuple[Tensor]:
        return (self.decoder(poses, digits),)


def main() -> int:
    parser = Parser(description="Write a network as ONNX files that are compared with PyTorch on real digits.")
    parser.add_argument("model", help="a name in weights/, a folder, or user/repo on the Hub")
    parser.add_argument("--out", help="the folder to write into (default: runs/NAME-onnx)")
    options = parser.parse_args()
    try:
        model = load_model(options.model)
        out = Path(options.out or ROOT / "runs" / f"{Path(options.model).name}-onnx")
        for name, (content, difference) in exported(model).items():
            write_atomically(out / name, content)
            print(f"{out / name}: {len(content) / 1e6:.1f} MB, off by {difference:.1g} at most")
    except (ModelError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"{error.name} is missing: pip install onnx onnxscript onnxruntime.", file=sys.stderr)
        return 1
    return 0


def exported(model: Network) -> dict[str, tuple[bytes, float]]:
    """The files by name, and by how much their numbers differ at most from those of PyTorch.

    Raises:
        ModelError: they differ by more than rounding.
    """
    images = real_digits(model)
    files = {"encoder.onnx": convert(Encoder(model), {"images": images}, model)}
    if isinstance(model, Redrawer):
        with torch.inference_mode():
            read = model(images)
        poses, winners = read.poses.clone(), read.lengths.argmax(1).clone()
        files["decoder.onnx"] = convert(Drawer(model), {"poses": poses, "digits": winners}, model)
    return files


def real_digits(model: Network) -> Tensor:
    """MNIST's digits of the page, (300, C, H, W) in the network's size."""
    images = torch.from_numpy(digits()["images"])[:, None] / 255
    images = F.interpolate(images, size=(model.info.input_size,) * 2, mode="bilinear")
    return images.repeat(1, model.info.in_channels, 1, 1)


def convert(part: Encoder | Drawer, inputs: dict[str, Tensor], model: Network) -> tuple[bytes, float]:
    """A part of a network as ONNX, and how far it is off. Raises ModelError where that is more than rounding."""
    import onnx

    part.eval()
    few = tuple(value[:3] for value in inputs.values())
    any_number: Any = tuple({0: torch.export.Dim.DYNAMIC} for _ in inputs)
    with torch.no_grad():
        program = torch.onnx.export(
            part,
            few,
            dynamo=True,
            dynamic_shapes=any_number,
            input_names=list(inputs),
            output_names=list(part.names),
            opset_version=OPSET,
            verbose=False,
        )
    assert program is not None  # with dynamo
    proto = program.model_proto
    onnx.helper.set_model_props(proto, {"name": model.info.name, "class_names": "\n".join(model.info.class_names)})
    content = proto.SerializeToString()
    difference = max(compare(content, part, {name: value[:B] for name, value in inputs.items()}) for B in BATCHES)
    if not difference <= TOLERANCE:
        raise ModelError(f"ONNX gives other numbers than PyTorch, by {difference:.1g}: nothing was written.")
    return content, difference


def compare(content: bytes, part: Encoder | Drawer, inputs: dict[str, Tensor]) -> float:
    """The largest difference between what ONNX Runtime and PyTorch make of the inputs."""
    import onnxruntime

    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, quiet, providers=["CPUExecutionProvider"])
    theirs = session.run(list(part.names), {name: value.numpy() for name, value in inputs.items()})
    with torch.inference_mode():
        ours = part(*inputs.values())
    return max((torch.from_numpy(one) - other).abs().max().item() for one, other in zip(theirs, ours, strict=True))


if __name__ == "__main__":
    sys.exit(main())
