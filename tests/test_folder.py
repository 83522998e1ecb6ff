"""One's own pictures as data, and training that starts from trained weights."""

from dataclasses import replace

import pytest
import torch
from PIL import Image

from capsnet.card import write_card
from capsnet.checkpoint import ModelError, load_model, read_json, save_model, write_json
from capsnet.configuration import recipe
from capsnet.data import DataError, Images
from capsnet.digits import prepare_digit
from capsnet.finetuning import take_over
from capsnet.folder import load_folder, split_folder
from capsnet.models import create_model
from capsnet.training import train


def refusal(*arguments):
    with pytest.raises(DataError) as error:
        load_folder(*arguments)
    assert "\n" not in str(error.value) and str(error.value).endswith(".")
    return str(error.value)


def test_a_folder(shapes):
    data = load_folder(shapes, 28)
    data.check()
    assert data.class_names == ["circle", "cross", "square"] and data.images.shape == (36, 1, 28, 28)
    assert data.labels.tolist() == [0] * 12 + [1] * 12 + [2] * 12
    train, held_out = split_folder(data)
    assert held_out.labels.tolist() == [0, 1, 2] and len(train) == 33
    assert train.class_names == held_out.class_names == data.class_names
    assert split_folder(data)[1].fingerprint() == held_out.fingerprint()


def test_pictures_keep_their_proportions(tmp_path):
    """40×20 on 32×32: twice as wide as high, and the corner's colour above and below."""
    for name in "ab":
        (tmp_path / name).mkdir()
        for n in range(2):
            image = Image.new("RGB", (40, 20), (10, 20, 30))
            image.paste((250, 0, 0), (10, 5, 30, 15))
            image.save(tmp_path / name / f"{n}.png")
    image = load_folder(tmp_path, 32).images[0]
    assert image.shape == (3, 32, 32)
    assert (image[:, 0, 0] == image[:, 31, 31]).all() and image[:, 0, 0].tolist() == [10, 20, 30]
    red = image[0] > 130
    assert red.any(0).sum() == 16 and red.any(1).sum() == 8


def test_one_coloured_picture_gives_all_three_channels(shapes):
    Image.new("RGB", (30, 30), (255, 0, 0)).save(shapes / "circle" / "red.png")
    data = load_folder(shapes)
    assert data.images.shape == (37, 3, 28, 28)
    assert (data.images[0, 0] == data.images[0, 2]).all()


def test_drawings_are_brought_into_the_form_of_the_page(shapes):
    data = load_folder(shapes, 28, True)
    wanted = prepare_digit(shapes / "cross" / "03.png")
    assert (data.images[15].float() / 255 - wanted).abs().max() < 0.003


def test_folders_that_are_no_data(shapes, tmp_path):
    assert "there is no folder" in refusal(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    assert "has 0 folders; it needs one for each of at least two classes" in refusal(tmp_path / "empty")
    (shapes / "blob").mkdir()
    assert "blob has 0 pictures; a class needs two" in refusal(shapes)
    (shapes / "blob").rmdir()
    (shapes / "cross" / "05.png").write_bytes(b"PNG or not")
    message = refusal(shapes)
    assert str(shapes / "cross" / "05.png") in message and "is no picture to train with" in message


@pytest.mark.parametrize(
    ("images", "labels", "says"),
    [
        (torch.zeros(2, 1, 8, 8), torch.zeros(2).long(), "images are torch.float32 of shape (2, 1, 8, 8); they must"),
        (torch.zeros(2, 1, 8, 9).byte(), torch.zeros(2).long(), "they must be square"),
        (torch.zeros(2, 1, 8, 8).byte(), torch.zeros(3).long(), "there must be one of torch.int64 for each"),
        (torch.zeros(0, 1, 8, 8).byte(), torch.zeros(0).long(), "of at least one image"),
        (torch.zeros(2, 1, 8, 8).byte(), torch.tensor([0, 2]), "labels go from 0 to 2; with 2 classes they go from 0"),
    ],
)
def test_data_of_the_wrong_form(tmp_path, images, labels, says):
    with pytest.raises(ValueError) as error:
        train(recipe(pen_share=0), Images(images, labels, ["a", "b"]), Images(images, labels, ["a", "b"]), tmp_path)
    assert says in str(error.value)


def test_class_names_reach_the_model_and_its_card(small, shapes, tmp_path):
    data, validation = split_folder(load_folder(shapes))
    config = recipe("small", epochs=8, batch_size=8, dataset=str(shapes), learning_rate=1e-2)
    assert config.pen_share == 0
    train(config, data, validation, tmp_path / "out", log=lambda line: None)
    model = load_model(tmp_path / "out")
    assert model.info.class_names == read_json(tmp_path / "out" / "config.json")["class_names"] == data.class_names
    card = (tmp_path / "out" / "README.md").read_text()
    assert "Reads images of 28×28 pixels: circle, cross, square" in card and "33 pictures from a folder" in card
    assert "| 3 |" in card and "MNIST" not in card
    history = read_json(tmp_path / "out" / "metrics.json")["history"]
    assert history[-1]["loss"] < history[0]["loss"]
    with pytest.raises(ValueError, match="pen digits are digits, not circle, cross, square; train with pen_share 0."):
        train(recipe("small", pen_share=0.1), data, validation, tmp_path / "pens", log=lambda line: None)


def test_a_model_of_own_digits_is_tested_on_mnist(small, digits, tmp_path):
    data = replace(digits, class_names=list("0123456789"))
    config = recipe("small", epochs=1, batch_size=20, pen_share=0, dataset=str(tmp_path / "own"))
    model = train(config, data, data, tmp_path / "out", log=lambda line: None)
    metrics = read_json(tmp_path / "out" / "metrics.json")
    write_json(tmp_path / "out" / "metrics.json", {**metrics, "test": {"images": 10_000, "error": 0.0123}})
    write_card(tmp_path / "out", model)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "40 pictures from a folder" in card
    assert "| MNIST test | 10,000 | 1.23% | `python train/evaluate.py --model small --suite mnist` |" in card


def test_weights_are_taken_over(small, tmp_path):
    torch.manual_seed(0)
    trained = create_model("small")
    save_model(trained, tmp_path)
    wanted = load_model(tmp_path).state_dict()
    same, other = create_model("small"), create_model("small", class_names=["a", "b", "c"])
    before = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    assert take_over(same, tmp_path) == []
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in same.state_dict().items())
    anew = take_over(other, tmp_path)
    assert anew == ["routing.weight", "routing.bias", "decoder.net.0.weight"]
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, before[name] if name in [*anew, "pose_range"] else wanted[name])
    with pytest.raises(ModelError, match="are those of another network; name its configuration with --model"):
        take_over(create_model("capsnet-small"), tmp_path)


def test_training_starts_from_trained_weights(small, digits, tmp_path):
    torch.manual_seed(0)
    save_model(create_model("small"), tmp_path / "start")
    config = recipe("small", epochs=1, pen_share=0, batch_size=20, start=str(tmp_path / "start"), learning_rate=1e-9)
    lines = []
    train(config, digits, digits, tmp_path / "out", log=lines.append)
    assert lines[0] == f"weights of {tmp_path / 'start'}"
    a, b = (load_model(tmp_path / name).trunk.conv.weight for name in ("start", "out"))
    assert torch.allclose(a, b, atol=1e-3)
    train(config, digits, digits, tmp_path / "out", resume=True, log=lambda line: None)
