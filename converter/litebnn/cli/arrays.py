"""Arrays that a command is given in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from litebnn.errors import reason_of


def read_arrays(path: Path) -> dict[str, Any]:
    """The arrays of a .npz file by name, in order; the one of a .npy file under "".

    Raises:
        ValueError: the file is neither, or its arrays do not all hold as many samples, batch first.
        OSError: it cannot be read.
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
