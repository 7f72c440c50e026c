"""Tests the report's page in a real browser: it renders, reacts, prints, and is accessible."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pypdfium2
import pytest

import litebnn
from litebnn.report.inspection import Board, Inspection, inspect_model
from litebnn.report.page import report_page
from tests.report.browser import DESK, PHONE, background
from tests.report.browser import opened as in_window
from tests.report.quicknet import quicknet
from tests.support.float_models import FloatModel

BOARDS = (
    Board("host", "this machine", "avx2", "made up", 0.1),
    Board("rpi4", "Raspberry Pi 4", "neon64", "made up", None),
)
# A script that is true if the middle of an element is visible in the window and, with a frame, inside the frame.
IN_VIEW = """([selector, frame]) => {
  const { left, right, top, bottom } = document.querySelector(selector).getBoundingClientRect();
  const x = (left + right) / 2, y = (top + bottom) / 2;
  const inside = (box) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
  const window_box = { left: 0, right: innerWidth, top: 0, bottom: innerHeight };
  return inside(window_box) && (!frame || inside(document.querySelector(frame).getBoundingClientRect()));
}"""
# A script that waits for the animations of the page's graph, and returns the graph's position and size.
VIEW = """async () => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  await Promise.all(scene.getAnimations().map((animation) => animation.finished));
  return getComputedStyle(scene).transform;
}"""
# JavaScript that counts the nodes in the page's picture of the graph that overlap another node.
OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll("#scene .box")].map((box) => box.getBBox());
  const apart = (a, b) => a.x + a.width <= b.x || b.x + b.width <= a.x
    || a.y + a.height <= b.y || b.y + b.height <= a.y;
  return boxes.filter((a, i) => boxes.slice(i + 1).some((b) => !apart(a, b))).length;
}"""


def with_times(inspection: Inspection) -> Inspection:
    """Adds times for two boards to a model's inspection. If ops are sorted by cost, their orders on the two boards
    are opposite.
    """
    ops = [
        replace(row, seconds={"host": 1e-5 * (row.index + 1), "rpi4": 1e-2 / (row.index + 1)}) for row in inspection.ops
    ]
    return replace(inspection, ops=tuple(ops), boards=BOARDS)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a report for a network as deep as QuickNet, with fewer channels."""
    converted, conversion = litebnn.convert_tflite(quicknet(64, (32, 32, 48, 64), 10), return_report=True)
    inspection = replace(with_times(inspect_model(converted)), name="thin_quicknet.tflite")
    return saved(report_page(inspection, conversion), tmp_path_factory.mktemp("report"))


def saved(page: str, folder: Path) -> Path:
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


@contextmanager
def opened(browser: Any, path: Path, *, drawn: bool = True, **options: Any) -> Iterator[Any]:
    """Opens the report's page in a new window, and waits until its graph is drawn."""
    with in_window(browser, path.as_uri(), **options) as page:
        if drawn:
            page.locator("#scene[style*='transform:']").wait_for(state="attached")
        yield page


def in_view(page: Any, selector: str, frame: str = "") -> bool:
    """True if the middle of an element is visible in the window and inside another element."""
    return page.evaluate(IN_VIEW, [selector, frame])


def view(page: Any) -> str:
    """The position and size of the graph after its animations."""
    return page.evaluate(VIEW)


@pytest.mark.deep
def test_it_renders_all_there_is(browser: Any, report: Path) -> None:
    assert report.stat().st_size < 1_000_000
    with opened(browser, report) as page:
        rows = page.locator("#layers tbody tr").count()
        assert rows == page.locator("#scene a.node").count() == page.locator(".profile").first.locator("g").count() > 60
        ends = page.locator("#scene g.node").count()
        assert ends == 2
        assert page.locator("#scene .edge").count() == rows + 16 + 1  # a chain, and one edge for each residual
        assert page.locator("#not-drawn").is_hidden()
        heights = page.eval_on_selector_all(".profile .value", "bars => bars.map((bar) => bar.getBBox().height)")
        assert max(heights) == pytest.approx(100)


@pytest.mark.deep
def test_both_themes(browser: Any, report: Path) -> None:
    seen = {}
    for theme, other in (("light", "Dark"), ("dark", "Light")):
        with opened(browser, report, color_scheme=theme) as page:
            seen[theme] = background(page)
            button = page.get_by_role("button", name=f"{other} theme")
            button.click()
            seen[f"{theme} turned"] = background(page)
            page.get_by_role("button", name=f"{theme.title()} theme").click()
            assert background(page) == seen[theme]
    assert seen["light"] == seen["dark turned"] != seen["dark"] == seen["light turned"]


@pytest.mark.deep
def test_headings_sort(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:

        def order() -> list[int]:
            return page.eval_on_selector_all("#layers tbody tr", "rows => rows.map((row) => Number(row.dataset.row))")

        def sizes(column: int) -> list[float]:
            return page.eval_on_selector_all(
                f"#layers tbody td:nth-child({column})", "cells => cells.map((cell) => Number(cell.dataset.sort))"
            )

        page.get_by_role("button", name="MACs").click()
        column = 1 + page.evaluate("document.querySelector('[aria-sort]').cellIndex")
        assert page.locator("[aria-sort]").get_attribute("aria-sort") == "descending"
        assert sizes(column) == sorted(sizes(column), reverse=True)
        page.get_by_role("button", name="MACs").click()
        assert sizes(column) == sorted(sizes(column))
        page.get_by_role("button", name="Op", exact=True).press("Enter")
        names = page.eval_on_selector_all("#layers tbody td:nth-child(3)", "cells => cells.map((c) => c.innerText)")
        assert names == sorted(names, key=str.lower)
        page.get_by_role("button", name="#").click()
        assert order() == sorted(order())


@pytest.mark.deep
def test_a_choice_of_place(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        assert page.locator(".figures").inner_text().count("this machine") == 1
        page.get_by_label("Times on").select_option("rpi4")
        assert "Raspberry Pi 4" in page.locator(".figures").inner_text()
        assert "this machine" not in page.locator(".figures").inner_text()
        page.get_by_role("button", name="Time").click()
        first = page.locator("#layers tbody tr").first
        assert first.get_attribute("data-row") == "0"
        assert "10.0 ms" in first.inner_text()


@pytest.mark.deep
@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_graph_rows_and_bars_lead_to_each_other(browser: Any, report: Path, window: dict[str, Any]) -> None:
    with opened(browser, report, **window) as page:
        selected = "[...document.querySelectorAll('.selected')].map((e) => e.dataset.row)"
        page.locator("#graph").scroll_into_view_if_needed()
        page.locator("#scene [data-row='3']").click()
        page.locator("#row-3.selected").wait_for()
        assert in_view(page, "#row-3 th")
        assert set(page.evaluate(selected)) == {"3"}

        page.locator("#row-50 a").first.click()
        page.locator("#scene .selected[data-row='50']").wait_for()
        view(page)
        assert in_view(page, "#scene [data-row='50']", "#graph svg")
        assert set(page.evaluate(selected)) == {"50"}

        page.locator("#row-51 td").first.click()
        page.locator("#row-51.selected").wait_for()

        page.locator(".profile").last.locator("[data-row='7']").click()
        page.locator("#row-7.selected").wait_for()
        assert in_view(page, "#row-7 th")


@pytest.mark.deep
def test_the_graph_pans_and_zooms(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        page.locator("#graph").scroll_into_view_if_needed()
        frame = page.locator("#graph svg").bounding_box()
        x, y = frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2
        seen = [view(page)]

        def changed() -> None:
            for _ in range(100):
                if view(page) != seen[-1]:
                    break
                page.wait_for_timeout(20)
            assert view(page) != seen[-1]
            seen.append(view(page))

        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 5, y - 60, steps=4)
        page.mouse.up()
        changed()
        assert page.locator(".selected").count() == 0, "a layer that the graph was dragged by is not chosen"
        page.get_by_role("button", name="Zoom in").click()
        changed()
        page.get_by_role("button", name="Zoom out").click()
        changed()
        page.mouse.move(x, y)
        page.mouse.wheel(0, 120)
        changed()
        page.keyboard.down("Control")
        page.mouse.wheel(0, -120)
        page.keyboard.up("Control")
        changed()
        page.get_by_role("button", name="Fit").click()
        changed()
        for end in page.locator("#scene g.node").all():
            box = end.bounding_box()
            assert frame["y"] - 1 <= box["y"] <= box["y"] + box["height"] <= frame["y"] + frame["height"] + 1


@pytest.mark.deep
def test_the_keyboard_reaches_a_layer(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        page.get_by_role("button", name="Fit").focus()
        for _ in range(5):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.locator("#row-4.selected").wait_for()


@pytest.mark.deep
def test_it_fits_a_phone(browser: Any, report: Path) -> None:
    with opened(browser, report, **PHONE) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        assert page.evaluate("document.querySelector('.scroll').scrollWidth") > 360, "a table scrolls by itself"


@pytest.mark.deep
def test_it_prints_whole_and_without_controls(browser: Any, report: Path, tmp_path: Path) -> None:
    with opened(browser, report, color_scheme="dark") as page:
        names = page.eval_on_selector_all("#layers tbody th", "heads => heads.map((head) => head.innerText)")
        before = view(page)
        page.pdf(path=tmp_path / "report.pdf")
        assert view(page) == before
        page.emulate_media(media="print")
        assert background(page) == "rgb(255, 255, 255)"
        assert page.locator("button:visible").count() == page.locator("thead button:visible").count()
    pages = pypdfium2.PdfDocument(tmp_path / "report.pdf")
    text = "".join("".join(page.get_textpage().get_text_range().split()) for page in pages)
    assert len(names) > 60
    assert [name for name in names if "".join(name.split()) not in text] == []
    assert "Darktheme" not in text
    assert text.count("LceBconv2d") == 32, "each binary layer stands in the table and in the graph"


@pytest.mark.deep
@pytest.mark.parametrize(("theme", "window"), [("light", DESK), ("dark", PHONE), ("dark", DESK)])
def test_an_accessibility_checker_finds_nothing(browser: Any, report: Path, theme: str, window: dict[str, Any]) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with opened(browser, report, color_scheme=theme, **window) as page:
        page.locator("#row-4 a").first.click()
        view(page)
        found = Axe().run(page)
    assert "color-contrast" in {rule["id"] for rule in found.response["passes"]}
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.deep
def test_hostile_names_are_only_shown(browser: Any, tmp_path: Path) -> None:
    names = [
        "</script><script>alert(1)</script>",
        '"><img src=http://localhost/x onerror=alert(1)>',
        "w" * 300,
        "\x1b[2J\u202e",
    ]
    found = with_times(inspect_model(litebnn.convert_tflite(quicknet(32, (32,), 10))))
    ops = [replace(row, name=name, op=name, output=name) for row, name in zip(found.ops, names * 20, strict=False)]
    tensors = [replace(row, name=name, type=name) for row, name in zip(found.tensors, names * 20, strict=False)]
    path = saved(report_page(replace(found, name=names[0], ops=tuple(ops), tensors=tuple(tensors))), tmp_path)
    with opened(browser, path, **PHONE) as page:
        assert page.locator("h1").inner_text() == names[0]
        assert page.locator("#row-0 th").inner_text() == names[0]
        assert names[1] in page.locator("#scene [data-row='1'] title").text_content()
        assert page.evaluate("document.documentElement.scrollWidth") == 360


def residuals(count: int) -> Any:
    """A network of residual sums, which the page lays out in parts."""
    model = FloatModel()
    x = model.input(1, 4, 4, 8)
    for _ in range(count):
        x = model.elementwise("ADD", model.elementwise("RELU", model.elementwise("ABS", x)), x)
    return model, x


@pytest.mark.deep
def test_the_parts_of_a_large_graph_join(browser: Any, tmp_path: Path) -> None:
    model, x = residuals(100)
    path = saved(report_page(inspect_model(model.finish(x))), tmp_path)
    with opened(browser, path) as page:
        assert page.locator("#scene a.node").count() == 300
        assert page.locator("#scene .edge").count() == 401
        overlaps = page.evaluate(OVERLAPS)
        assert overlaps == 0


@pytest.mark.deep
def test_a_graph_that_is_too_large_or_empty_leaves_the_rest(browser: Any, tmp_path: Path) -> None:
    model, x = residuals(210)
    x = model.elementwise("ADD", x, model.graph.inputs[0])
    large = inspect_model(model.finish(x))
    empty = replace(large, ops=(), tensors=(), inputs=(), outputs=())
    for inspection in (empty, large):
        with opened(browser, saved(report_page(inspection), tmp_path), drawn=False) as page:
            assert page.get_by_text("too large to draw").is_visible()
            assert page.locator("#layers tbody tr").count() == len(inspection.ops)
            page.get_by_role("button", name="Op", exact=True).click()
            if inspection.ops:
                page.locator("#row-600 a").first.click()
                page.locator("#row-600.selected").wait_for()
