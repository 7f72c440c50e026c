"""Tests the camera program on a video that the test makes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from litebnn.flatbuffer.metadata import ImageClassifier, with_metadata
from tests.needs import imported
from toolchains.targets import ROOT

cv2 = imported("cv2", "camera")
FRAMES = 12


@pytest.fixture
def model(tmp_path: Path, library: Path) -> Path:
    digits = (ROOT / "examples" / "label_image" / "digits.tflite").read_bytes()
    metadata = ImageClassifier("digits", labels=tuple(f"digit {n}" for n in range(10)), mean=(0.0,), std=(255.0,))
    (tmp_path / "digits.tflite").write_bytes(with_metadata(digits, metadata))
    return tmp_path / "digits.tflite"


@pytest.fixture
def video(tmp_path: Path) -> Path:
    writer = cv2.VideoWriter(str(tmp_path / "in.avi"), cv2.VideoWriter_fourcc(*"MJPG"), 25.0, (320, 240))
    for _ in range(FRAMES):
        writer.write(np.zeros((240, 320, 3), np.uint8))
    writer.release()
    return tmp_path / "in.avi"


def camera(*arguments: object) -> subprocess.CompletedProcess[str]:
    program = ROOT / "examples" / "camera" / "camera.py"
    return subprocess.run([sys.executable, program, *map(str, arguments)], capture_output=True, text=True)


def frames_of(path: Path) -> list[np.ndarray]:
    capture, frames = cv2.VideoCapture(str(path)), []
    while True:
        came, frame = capture.read()
        if not came:
            return frames
        frames.append(frame)


@pytest.mark.deep
def test_each_frame_gets_its_name_and_the_rate(model: Path, video: Path, tmp_path: Path) -> None:
    result = camera(model, f"--video={video}", f"--output={tmp_path / 'out.avi'}", "--threads=1")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{FRAMES} frames, ")
    frames = frames_of(tmp_path / "out.avi")
    assert len(frames) == FRAMES
    # The frames are black, so bright pixels are text: the class at the top, the frame rate at the bottom.
    for frame in frames:
        bright = (frame.max(axis=-1) > 150).any(axis=1)
        assert bright[:40].any()
        assert bright[-40:].any()
        assert not bright[60:180].any()


@pytest.mark.deep
def test_it_ends_after_a_number_of_frames(model: Path, video: Path, tmp_path: Path) -> None:
    result = camera(model, f"--video={video}", f"--output={tmp_path / 'out.avi'}", "--frames=5")
    assert result.stdout.startswith("5 frames, ")
    assert len(frames_of(tmp_path / "out.avi")) == 5


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--video=none.avi"], "none.avi is no video that can be read"),
        (["--video={video}", "--output=/nowhere/out.avi"], "/nowhere/out.avi cannot be written"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, model: Path, video: Path) -> None:
    result = camera(model, *(each.format(video=video) for each in arguments))
    assert result.returncode == 1
    assert any(line.startswith(f"camera: {message}") for line in result.stderr.splitlines())
    assert "Traceback" not in result.stderr
