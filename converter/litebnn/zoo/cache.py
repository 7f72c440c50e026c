"""The folder in which fetched files are kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# The environment variable that names a folder to use instead of the default one.
VARIABLE = "LITEBNN_CACHE"


def cache_folder() -> Path:
    """The folder that LITEBNN_CACHE names, or litebnn's folder among the platform's caches. The folder may not exist
    yet."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser().absolute()
    try:
        home = Path.home()
    except RuntimeError:  # neither HOME nor the user's entry in the system's list says where it is
        raise ValueError(f"this user has no home folder: set {VARIABLE} to a folder for fetched files") from None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "litebnn" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "litebnn"
    # The XDG standard says that a relative path must be ignored.
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if Path(named).is_absolute() else home / ".cache") / "litebnn"
