"""The zip archive that may follow the bytes of a model: labels, and other files of its metadata."""

from __future__ import annotations

import io
import zipfile
import zlib

from litebnn.errors import ConversionError

MOST_FILE_BYTES = 16 << 20
DAMAGES = (zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError, RuntimeError, EOFError, OSError, ValueError)


def with_files_of(source: bytes, result: bytes) -> bytes:
    """The rewritten model `result`. If files in a zip archive follow the bytes of the model `source`, they are appended
    to the result.
    """
    if not zipfile.is_zipfile(io.BytesIO(source)):
        return result
    try:
        with zipfile.ZipFile(io.BytesIO(source)) as archive:
            if sum(info.file_size for info in archive.infolist()) > MOST_FILE_BYTES:
                raise ConversionError("the files after the model have more than 16 MiB")
            for info in archive.infolist():
                result = with_file(result, info.filename, archive.read(info))
    except DAMAGES as error:
        raise ConversionError(f"the files after the model cannot be read: {error}") from None
    return result


def with_file(tflite: bytes, name: str, content: bytes) -> bytes:
    """A model with a file in a zip archive after its own bytes."""
    whole = io.BytesIO(tflite)
    whole.seek(0, io.SEEK_END)
    with zipfile.ZipFile(whole, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return whole.getvalue()
