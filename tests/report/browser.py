"""The system's Chromium, driven by Playwright, for tests and screenshots of pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def chromium() -> Iterator[Any]:
    """Playwright's browser.

    Raises:
        FileNotFoundError: there is no Chromium here.
    """
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise FileNotFoundError(
            f"there is no browser here: none of {', '.join(NAMES)} (on Debian: apt install chromium)"
        )
    with sync_playwright() as playwright:
        # Containers let root have no sandbox, and may give little shared memory.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        try:
            yield browser
        finally:
            browser.close()
