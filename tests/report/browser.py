"""The system's Chromium, driven by Playwright, for tests and screenshots of pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

DESK = {"viewport": {"width": 1440, "height": 900}}
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
COMPLAINTS = ("error", "warning", "assert")  # of what a page says on the console
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


@contextmanager
def opened(browser: Any, address: str, **options: Any) -> Iterator[Any]:
    """A page in a window of its own, where nothing may be complained of, and nothing loaded but what is below it."""
    complaints, requests = [], []
    context = browser.new_context(**{**DESK, **options})
    try:
        page = context.new_page()
        page.on("console", lambda message: message.type in COMPLAINTS and complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        yield page
        assert complaints == []
        assert [url for url in requests if not url.startswith(address)] == []
    finally:
        context.close()


def background(page: Any) -> str:
    """The colour behind a page."""
    return page.evaluate("getComputedStyle(document.body).backgroundColor")
