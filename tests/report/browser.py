"""The system's Chromium, driven by Playwright, for tests and screenshots of pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toolchains.needs import CHROMIUM, missing
from toolchains.probes import find_program

DESK = {"viewport": {"width": 1440, "height": 900}}
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
COMPLAINTS = ("error", "warning", "assert")  # console messages of these types fail a test


@contextmanager
def chromium() -> Iterator[Any]:
    """Starts Chromium by Playwright, and closes it in the end. Raises FileNotFoundError if Chromium is missing."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(find_program, CHROMIUM)), "")
    if not path:
        raise FileNotFoundError(missing("chromium"))
    with sync_playwright() as playwright:
        # In a container, Chromium cannot use its sandbox as root, and shared memory may be small.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, address: str, **options: Any) -> Iterator[Any]:
    """Opens a page in a new window. The test fails on a console error or a request outside the page's own folder."""
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
    """The background colour of a page."""
    return page.evaluate("getComputedStyle(document.body).backgroundColor")
