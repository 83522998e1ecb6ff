"""How a network's error grows with distortions, and on affine digits."""

from capsnet.affnist import SHEET, affine_digits, centred
from capsnet.data import Images, to_float
from capsnet.distortions import DISTORTIONS, distort
from capsnet.evaluation import Result, evaluate_images, evaluate_mnist
from capsnet.models import Network

EVERY = 5  # of the test images: 2,000 a point


def evaluate_robustness(model: Network, test: Images) -> dict[str, dict[float, Result]]:
    """Error by kind and amount of each distortion, on every fifth image; amount 0 are those images as they are."""
    chosen = test[::EVERY]
    images, labels = to_float(chosen.images), [model.info.class_names[k] for k in chosen.labels.tolist()]
    clean = evaluate_images(model, images, labels)
    return {
        kind: {
            amount: evaluate_images(model, distort(images, kind, amount), labels) if amount else clean
            for amount in distortion.amounts
        }
        for kind, distortion in DISTORTIONS.items()
    }


def evaluate_affine(model: Network, test: Images) -> Result:
    """Error on affine versions of the test digits.

    A network of another size than the sheet gets what MNIST's own preparation would cut out of it: the digit with its
    centre of mass in the middle. For such a network the place on the sheet is no challenge.
    """
    sheets, size = affine_digits(test.images), model.info.input_size
    return evaluate_mnist(model, Images(sheets if size == SHEET else centred(sheets, size), test.labels))
