"""`python train/export.py`: ONNX files that read and draw as the network does."""

import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from scripts import load_script

import capsnet
from capsnet.checkpoint import save_model


@pytest.fixture
def export():
    return load_script("export")


@pytest.fixture
def main(export, monkeypatch):
    def main(*arguments):
        monkeypatch.setattr(sys, "argv", ["export.py", *map(str, arguments)])
        return export.main()

    return main


def run(path, **inputs):
    return onnxruntime.InferenceSession(path).run(None, {name: value.numpy() for name, value in inputs.items()})


def test_a_trained_network_reads_and_draws(main, tmp_path, capsys):
    assert main("efficient-capsnet", "--out", tmp_path) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in said] == [f"{tmp_path}/encoder.onnx", f"{tmp_path}/decoder.onnx"]
    from capsnet.demo.examples import digits

    model = capsnet.load_model("efficient-capsnet")
    images, labels = torch.from_numpy(digits()["images"][:30])[:, None] / 255, digits()["labels"][:30]
    with torch.no_grad():
        out = model(images)
    for few in (slice(0, 1), slice(0, 30)):  # any number
        lengths, poses = run(tmp_path / "encoder.onnx", images=images[few])
        assert np.abs(lengths - out.lengths[few].numpy()).max() < 1e-4
        assert np.abs(poses - out.poses[few].numpy()).max() < 1e-4
        assert (lengths.argmax(1) == labels[few]).mean() > 0.9
        asked = torch.from_numpy(labels[few].astype(np.int64))
        (pictures,) = run(tmp_path / "decoder.onnx", poses=torch.from_numpy(poses), digits=asked)
        assert np.abs(pictures - model.decode(out.poses[few], asked).detach().numpy()).max() < 1e-4
    notes = {note.key: note.value for note in onnx.load(tmp_path / "encoder.onnx").metadata_props}
    assert notes == {"name": "efficient-capsnet", "class_names": "\n".join("0123456789")}


def test_the_paper_network_becomes_plain_convolutions(export, small):
    model = capsnet.create_model("small").eval()
    content, difference = export.convert(export.Encoder(model), {"images": export.real_digits(model)}, model)
    operations = [node.op_type for node in onnx.load_from_string(content).graph.node]
    assert operations.count("Conv") == 2 and difference < 1e-5  # neither Fourier matrices nor unfolded patches


def test_one_without_capsules_has_no_decoder_and_other_sizes_go(export):
    assert list(export.exported(capsnet.create_model("cnn", input_size=20, in_channels=3).eval())) == ["encoder.onnx"]


def test_a_student_reads_and_draws(export):
    student = capsnet.create_model("student", channels=[4, 4, 4, 8], decoder_hidden=[8, 8]).eval()
    assert list(export.exported(student)) == ["encoder.onnx", "decoder.onnx"]


def test_what_differs_is_not_written(main, export, monkeypatch, small, tmp_path, capsys):
    save_model(capsnet.create_model("small"), tmp_path / "model")
    monkeypatch.setattr(export, "compare", lambda *_: 0.5)
    assert main(tmp_path / "model", "--out", tmp_path / "onnx") == 1
    assert capsys.readouterr().err == "ONNX gives other numbers than PyTorch, by 0.5: nothing was written.\n"
    assert not (tmp_path / "onnx").exists()


def test_no_model_is_one_sentence(main, capsys):
    assert main("nobody") == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "nobody" in said
