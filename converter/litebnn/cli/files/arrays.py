"""Reads arrays from a file that the user names on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from litebnn.errors import reason_of


def read_arrays(path: Path) -> dict[str, Any]:
    """The arrays of a .npz file by name, in order; the array of a .npy file has the name "".

    Raises:
        ValueError: the file is no .npz or .npy file, or its arrays differ in their number of samples (the first axis).
        OSError: the file cannot be read.
    """
    import zipfile

    import numpy as np

    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {name: loaded[name] for name in loaded.files} if hasattr(loaded, "files") else {"": loaded}
    except (EOFError, OSError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as .npy or .npz: {reason_of(error)}") from None
    if not arrays or any(np.ndim(array) == 0 for array in arrays.values()) or len({*map(len, arrays.values())}) != 1:
        raise ValueError(f"{path} must hold as many samples of each input, batch first")
    return arrays


def by_input(arrays: dict[str, Any], model: bytes) -> list[Any]:
    """Assigns arrays to a model's inputs. If arrays and inputs have the same names, they are assigned by name,
    otherwise in order.
    """
    from litebnn.flatbuffer import read_model

    names = read_model(model).input_names
    return [arrays[name] for name in names] if set(arrays) == set(names) else list(arrays.values())
