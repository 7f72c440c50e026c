"""Classifies what a camera sees, and writes the class and the frames per second on the picture.

Usage: python camera.py quicknet.tflite [--video=FILE] [--output=FILE] [--frames=N] [--threads=N]

The model is a file that `litebnn zoo` has written. The program needs litebnn and OpenCV:
`pip install 'litebnn[camera]'`, or on a Raspberry Pi `apt install python3-opencv python3-picamera2`. It reads a
Raspberry Pi's camera by picamera2, and other cameras and videos by OpenCV. Without a screen, the option --output writes
the pictures to a video file. The key q ends the program.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2

import litebnn

SIZE = 640, 480
COLOR, SHADOW = (255, 255, 255), (0, 0, 0)
SMOOTHING = 0.9  # the share of the old value in the average of a frame's time


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Classify what a camera sees.")
    parser.add_argument("model", type=Path, help=".tflite file that litebnn zoo has written")
    parser.add_argument("--video", type=Path, help="video file to read instead of the camera")
    parser.add_argument("--camera", type=int, default=0, help="number of the camera for OpenCV")
    parser.add_argument("--output", type=Path, help=".avi file to write instead of showing a window")
    parser.add_argument("--frames", type=int, help="number of frames after which the program ends")
    parser.add_argument("--threads", type=int, default=4, help="number of threads")
    options = parser.parse_args(arguments)
    try:
        classifier = litebnn.Classifier(options.model, num_threads=options.threads)
        frames = itertools.islice(open_frames(options.video, options.camera), options.frames)
        count, rate = run(classifier, frames, options.output)
    except (ValueError, OSError, ImportError, cv2.error) as error:
        print(f"camera: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(f"{count} frames, {rate:.1f} frames per second")
    return 0


def open_frames(video: Path | None, camera: int) -> Iterator[Any]:
    """Yields the frames of a video file or of a camera: uint8 [height, width, 3] in blue, green and red.

    Raises:
        OSError: the video does not exist, or the camera was not found.
    """
    if video is None and (frames := raspberry_pi_frames()) is not None:
        return frames
    capture = cv2.VideoCapture(camera if video is None else str(video))
    if not capture.isOpened():
        raise OSError(f"camera {camera} cannot be opened" if video is None else f"{video} is no video that can be read")
    return frames_of(capture)


def frames_of(capture: Any) -> Iterator[Any]:
    """Yields the frames that OpenCV reads, up to the end of a video."""
    while True:
        came, frame = capture.read()
        if not came:
            return
        yield frame


def raspberry_pi_frames() -> Iterator[Any] | None:
    """Returns an iterator of the frames of a Raspberry Pi's camera; None if picamera2 is missing or finds no camera."""
    try:
        from picamera2 import Picamera2
    except ImportError:
        return None
    if not Picamera2.global_camera_info():
        return None
    camera = Picamera2()
    # picamera2 names a format by the order of the bits in a word. Therefore RGB888 has blue first in memory, as OpenCV
    # expects.
    camera.configure(camera.create_video_configuration(main={"format": "RGB888", "size": SIZE}))
    camera.start()
    return (camera.capture_array() for _ in itertools.count())


def run(classifier: litebnn.Classifier, frames: Iterator[Any], output: Path | None) -> tuple[int, float]:
    """Classifies frames, and shows them or writes them to a file; returns their number and the frames per second at the
    end.

    Raises:
        OSError: the output file cannot be written.
    """
    writer, seconds, count = None, 0.0, 0
    start = time.perf_counter()
    for count, frame in enumerate(frames, 1):
        label, probability = classifier(frame[..., ::-1])[0]
        now = time.perf_counter()
        seconds = now - start if count == 1 else SMOOTHING * seconds + (1 - SMOOTHING) * (now - start)
        start = now
        picture = frame.copy()
        write(picture, f"{label} {probability:.0%}", 30)
        write(picture, f"{1 / seconds:.1f} frames per second", picture.shape[0] - 15)
        if output is None:
            cv2.imshow("litebnn", picture)
            if cv2.waitKey(1) == ord("q"):
                break
            continue
        if writer is None:
            height, width = picture.shape[:2]
            writer = cv2.VideoWriter(str(output), cv2.VideoWriter_fourcc(*"MJPG"), 25.0, (width, height))
            if not writer.isOpened():
                raise OSError(f"{output} cannot be written: expected the name of an .avi file in a folder that exists")
        writer.write(picture)
    if writer is not None:
        writer.release()
    if not count:
        raise OSError("no frame came")
    return count, 1 / seconds


def write(picture: Any, text: str, y: int) -> None:
    """Writes text on a picture, with an outline, so that it is readable on a bright and on a dark background."""
    for color, thickness in ((SHADOW, 4), (COLOR, 1)):
        cv2.putText(picture, text, (10, y), cv2.FONT_HERSHEY_SIMPLEX, 0.8, color, thickness, cv2.LINE_AA)


if __name__ == "__main__":
    sys.exit(main())
