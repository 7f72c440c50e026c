"""Takes the pictures of the report's page and of the site: docs/images/{report,site}-*.png.

python -m tests.report.screenshots
"""

import io
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import litebnn
from litebnn.report.inspection import inspect_model
from litebnn.report.page import report_page
from tests.report.browser import chromium
from tests.report.quicknet import quicknet
from toolchains.targets import BUILD, ROOT

FOLDER = ROOT / "docs" / "images"
DESK = {"viewport": {"width": 1440, "height": 900}, "device_scale_factor": 1.25}
PHONE = {"viewport": {"width": 360, "height": 740}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
# The layer that is chosen in the second picture.
CHOSEN = "section_2/residual_0/batch_norm"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    converted, conversion = litebnn.convert_tflite(quicknet(), return_report=True)
    inspection = replace(inspect_model(converted), name="quicknet.tflite")
    chosen = next(row.index for row in inspection.ops if row.name.endswith(CHOSEN))
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        report = Path(folder) / "report.html"
        report.write_text(report_page(inspection, conversion), encoding="utf-8")
        take(browser, report.as_uri(), "report-light", DESK, "light")
        take(browser, f"{report.as_uri()}#row-{chosen}", "report-dark", DESK, "dark")
        take(browser, report.as_uri(), "report-phone", PHONE, "light")
        site = BUILD / "docs" / "index.html"
        take(browser, site.as_uri(), "site-light", DESK, "light")
        take(browser, site.as_uri(), "site-dark", DESK, "dark")
        take(browser, site.as_uri(), "site-phone", PHONE, "dark")


def take(browser: Any, address: str, name: str, window: dict[str, Any], theme: str) -> None:
    """One picture of what a window shows at first."""
    context = browser.new_context(**window, color_scheme=theme)
    page = context.new_page()
    page.goto(address)
    page.evaluate("Promise.all(document.getAnimations().map((animation) => animation.finished))")
    page.wait_for_timeout(500)
    save(page.screenshot(), FOLDER / f"{name}.png")
    context.close()


def save(picture: bytes, path: Path) -> None:
    """Writes a picture in few bytes: a page has few colours."""
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
