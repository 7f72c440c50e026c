"""Takes the pictures of the report's page and of the documentation site: docs/images/{report,site}-*.png.

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
from tests.report.browser import DESK, PHONE, chromium
from tests.report.quicknet import quicknet
from toolchains.targets import BUILD, ROOT

FOLDER = ROOT / "docs" / "images"
CRISP_DESK, CRISP_PHONE = {**DESK, "device_scale_factor": 1.25}, {**PHONE, "device_scale_factor": 2}
# The pictures: of the report's page, of this page with a selected layer, or of the site. Each has a window size and a
# theme.
PICTURES = {
    "report-light": ("report", CRISP_DESK, "light"),
    "report-dark": ("layer", CRISP_DESK, "dark"),
    "report-phone": ("report", CRISP_PHONE, "light"),
    "site-light": ("site", CRISP_DESK, "light"),
    "site-dark": ("site", CRISP_DESK, "dark"),
    "site-phone": ("site", CRISP_PHONE, "dark"),
}
CHOSEN = "section_2/residual_0/batch_norm"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    converted, conversion = litebnn.convert_tflite(quicknet(), return_report=True)
    inspection = replace(inspect_model(converted), name="quicknet.tflite")
    chosen = next(row.index for row in inspection.ops if row.name.endswith(CHOSEN))
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        report = Path(folder) / "report.html"
        report.write_text(report_page(inspection, conversion), encoding="utf-8")
        addresses = {
            "report": report.as_uri(),
            "layer": f"{report.as_uri()}#row-{chosen}",
            "site": (BUILD / "docs" / "index.html").as_uri(),
        }
        for name, (shown, window, theme) in PICTURES.items():
            take(browser, addresses[shown], name, window, theme)


def take(browser: Any, address: str, name: str, window: dict[str, Any], theme: str) -> None:
    """Takes a picture of a page's first screen."""
    context = browser.new_context(**window, color_scheme=theme)
    page = context.new_page()
    page.goto(address)
    page.evaluate("Promise.all(document.getAnimations().map((animation) => animation.finished))")
    page.wait_for_timeout(500)
    save(page.screenshot(), FOLDER / f"{name}.png")
    context.close()


def save(picture: bytes, path: Path) -> None:
    """Writes a picture with few colours, because a page has few colours and the file then is small."""
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
