"""Tests TFLite Metadata in a model, as litebnn and as other tools read it."""

import contextlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model, write_model
from litebnn.flatbuffer.metadata import (
    BUFFER_NAME,
    CROP,
    LABELS_FILE,
    ImageClassifier,
    labels_in,
    read_metadata,
    with_metadata,
)
from tests.needs import imported

ROOT = Path(__file__).resolve().parents[3]
DIGIT_NAMES = tuple("0123456789")
DIGITS = (ROOT / "examples" / "label_image" / "digits.tflite").read_bytes()
CLASSIFIER = ImageClassifier(
    "digits", "A test.", "somebody", "Apache-2.0", tuple(f"größe {n}" for n in range(10)), (0.5,), (2.0,), 0.875
)


def test_metadata_is_read_as_it_was_written() -> None:
    tflite = with_metadata(DIGITS, CLASSIFIER)
    assert read_metadata(tflite) == CLASSIFIER
    assert with_metadata(DIGITS, CLASSIFIER) == tflite
    other = ImageClassifier(labels=DIGIT_NAMES, mean=(1.0,), std=(1.0,))
    assert read_metadata(with_metadata(tflite, other)) == other
    assert sum(name == BUFFER_NAME for name, _ in read_model(with_metadata(tflite, other)).metadata) == 1


def test_a_model_without_metadata_has_none() -> None:
    assert read_metadata(DIGITS) is None


def test_a_classifier_without_normalization_has_none() -> None:
    classifier = ImageClassifier(labels=DIGIT_NAMES)
    assert read_metadata(with_metadata(DIGITS, classifier)) == classifier


def test_labels_must_fit_the_output() -> None:
    with pytest.raises(ConversionError, match="and a score for each of the 2 labels"):
        with_metadata(DIGITS, ImageClassifier(labels=("a", "b"), mean=(0.0,), std=(1.0,)))


def test_the_size_of_the_image_is_known() -> None:
    model = read_model(DIGITS)
    model.graphs[0].inputs[0].shape = (1, -1, -1, 1)
    with pytest.raises(ConversionError, match=r"takes images of \[1, -1, -1, 1\], expected a known height and width"):
        with_metadata(write_model(model), ImageClassifier(labels=DIGIT_NAMES))


def test_the_means_are_as_many_as_the_channels() -> None:
    with pytest.raises(ConversionError, match="has 3 means, but the model takes images of 1 channels"):
        with_metadata(DIGITS, ImageClassifier(labels=DIGIT_NAMES, mean=(0.0,) * 3, std=(1.0,) * 3))


@pytest.mark.parametrize("label", ["", "\ufeffcat", *(f"a{end}b" for end in "\0\n\r\v\x1b\x85\u2028\u2029\ud800")])
def test_a_label_is_one_line_of_text(label: str) -> None:
    with pytest.raises(ConversionError, match='the label ".*" for class 9, expected one line of text') as caught:
        with_metadata(DIGITS, ImageClassifier(labels=(*DIGIT_NAMES[:9], label)))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("label", [" a ", "crème\xa0brûlée", "\N{CAT FACE}", "\N{ZERO WIDTH JOINER}"])
def test_a_label_may_have_any_other_characters(label: str) -> None:
    classifier = ImageClassifier(labels=(*DIGIT_NAMES[:9], label))
    assert read_metadata(with_metadata(DIGITS, classifier)) == classifier


@pytest.mark.parametrize("field", ["name", "description", "author", "license"])
def test_other_texts_have_an_encoding(field: str) -> None:
    with pytest.raises(ConversionError, match=rf'^the {field} "a\\udc80" has no encoding in UTF-8$'):
        with_metadata(DIGITS, ImageClassifier(labels=DIGIT_NAMES, **{field: "a\udc80"}))


@pytest.mark.parametrize("crop", [0.0, -0.5, 1e-60, 1.0001, float("inf"), float("nan")])
def test_a_crop_that_is_no_share_is_not_written(crop: float) -> None:
    with pytest.raises(ConversionError, match="has the crop .*, expected a number above 0, at most 1"):
        with_metadata(DIGITS, ImageClassifier(labels=DIGIT_NAMES, crop=crop))


@pytest.mark.parametrize("crop", [1, 1e-5, np.float64(0.5)])
def test_a_crop_of_any_kind_of_number_is_read_again(crop: float) -> None:
    found = read_metadata(with_metadata(DIGITS, ImageClassifier(labels=DIGIT_NAMES, crop=crop)))
    assert found is not None
    assert found.crop == crop


@pytest.mark.parametrize(
    ("text", "labels"),
    [("", ()), ("\n\n", ()), ("a", ("a",)), ("a\r\n\r\n", ("a",)), ("ä\n\nb c\x0b\n", ("ä", "", "b c\x0b"))],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_labels_are_lines(text: str, labels: tuple[str, ...], encoding: str) -> None:
    assert labels_in(text.encode(encoding), "labels.txt") == labels


NOT_UTF_8 = {
    "ä\n".encode("latin-1"): "is no text in UTF-8: .* byte 0xe4",
    "ä\n".encode("utf-16"): "is text in UTF-16, expected UTF-8",
    "ä\n".encode("utf-16-be"): "is no text in UTF-8: .* byte 0xe4",
    "a\n".encode("utf-16-le"): "is no text in UTF-8: it has zero bytes",
    b"\xff\xfea\n\n": "is text in UTF-16, expected UTF-8",
}


@pytest.mark.parametrize(("content", "reason"), NOT_UTF_8.items())
def test_labels_in_another_encoding_are_refused(content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^mine.txt {reason}"):
        labels_in(content, "mine.txt")
    with pytest.raises(ConversionError, match=f"^labels.txt in the metadata {reason}"):
        read_metadata(with_labels(content))


def test_the_metadatas_labels_may_begin_with_a_byte_order_mark() -> None:
    found = read_metadata(with_labels(b"\xef\xbb\xbfone\r\ntwo\r\n"))
    assert found is not None
    assert found.labels == ("one", "two")


def test_labels_of_more_than_16_mib_are_refused() -> None:
    with pytest.raises(ConversionError, match=r"^the labels labels.txt in the metadata have more than 16 MiB$"):
        read_metadata(with_labels(b"a\n" * (9 << 20)))


def with_labels(content: bytes) -> bytes:
    """A classifier whose labels are this file in its archive."""
    tflite, archive = with_metadata(DIGITS, CLASSIFIER), io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(LABELS_FILE, content)
    return tflite[: tflite.rfind(b"PK\3\4")] + archive.getvalue()


@pytest.mark.parametrize("std", [(0.0,), (-1.0,), (1e-50,), (1e-38,), (float("inf"),), (float("nan"),), (1.0, 1.0), ()])
def test_each_mean_has_a_deviation_above_0(std: tuple[float, ...]) -> None:
    with pytest.raises(ConversionError, match=r"the deviations .* for the means \(0.5,\): expected one above 0 each"):
        with_metadata(DIGITS, ImageClassifier(labels=DIGIT_NAMES, mean=(0.5,), std=std))


@pytest.mark.parametrize("mean", [float("nan"), float("inf"), 1e39])
def test_means_are_numbers_of_float32(mean: float) -> None:
    with pytest.raises(ConversionError, match="and a result within float32"):
        with_metadata(DIGITS, ImageClassifier(labels=DIGIT_NAMES, mean=(mean,), std=(1.0,)))


def test_the_runtime_runs_a_model_with_metadata(library: Path) -> None:
    image = np.random.default_rng(0).standard_normal((1, 28, 28, 1)).astype(np.float32)
    outputs = [litebnn.Interpreter(model).predict(image) for model in (DIGITS, with_metadata(DIGITS, CLASSIFIER))]
    np.testing.assert_array_equal(*outputs)


@pytest.mark.deep
@pytest.mark.parametrize("part", [b"labels.txt", "größe 3".encode(), b"PK\5\6", b"PK\1\2", b"PK\3\4", b"M001"])
def test_damaged_files_are_one_line_or_other_words(part: bytes) -> None:
    tflite = with_metadata(DIGITS, CLASSIFIER)
    for at in range(tflite.find(part), len(tflite) - len(part)):
        if tflite[at : at + len(part)] != part:
            continue
        for changed in (b"\xff" * len(part), b"\0" * len(part)):
            # Damaged metadata may only raise ConversionError, which the command line prints as one line.
            with contextlib.suppress(ConversionError):
                read_metadata(tflite[:at] + changed + tflite[at + len(part) :])
    for end in range(len(tflite) - 200, len(tflite)):
        with pytest.raises(ConversionError, match="which cannot be read from the archive after the model: "):
            read_metadata(tflite[:end])


@pytest.mark.parametrize("crop", [b"", b"0", b"-1", b"1.5", b"nan", b"half", b"\xff"])
def test_a_crop_is_a_share(crop: bytes) -> None:
    tflite = with_metadata(DIGITS, CLASSIFIER)
    assert tflite.count(b"0.875") == 1
    with pytest.raises(ConversionError, match=f"{CROP} is .*, expected a number from 0 to 1"):
        read_metadata(tflite.replace(b"0.875", crop.ljust(5, b" ")))


def test_conversion_keeps_metadata_and_its_files() -> None:
    classifier = ROOT / "tests" / "golden" / "quant_dense.float.tflite"
    (output,) = read_model(classifier.read_bytes()).graphs[0].outputs
    labels = tuple(map(str, range(output.shape[-1])))
    source = with_metadata(classifier.read_bytes(), ImageClassifier(labels=labels, mean=(0.0,), std=(1.0,)))
    converted = litebnn.convert_tflite(source)
    assert converted != source
    assert read_metadata(converted) == read_metadata(source)


def test_tflite_support_reads_it(tmp_path: Path) -> None:
    metadata = imported("tensorflow_lite_support.metadata.python.metadata", "tflite-support")
    path = tmp_path / "digits.tflite"
    path.write_bytes(with_metadata(DIGITS, CLASSIFIER))
    displayer = metadata.MetadataDisplayer.with_model_file(str(path))
    assert displayer.get_packed_associated_file_list() == [LABELS_FILE]
    text = displayer.get_metadata_json()
    for expected in ('"color_space": "GRAYSCALE"', '"type": "TENSOR_AXIS_LABELS"', '"min_parser_version": "1.5.0"'):
        assert expected in text
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        assert archive.infolist()[0].compress_type == zipfile.ZIP_STORED
