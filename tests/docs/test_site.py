"""Tests the documentation site: it builds without a warning, its links work, its API is complete, and its search
answers."""

import html.parser
import http.server
import os
import re
import shutil
import subprocess
import threading
import urllib.parse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from docs import __main__ as site
from tests.needs import need
from tests.report.browser import PHONE, opened
from tests.support.documents import DOCUMENTS, read
from toolchains.targets import ROOT, ToolkitError


class Page(html.parser.HTMLParser):
    """The links of a page, and the anchors to which links can lead."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.links |= {value for name in ("href", "src") if (value := values.get(name))}
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """Builds the site, which must not give a warning, and returns its pages."""
    need("docs", "npm-registry")
    out = tmp_path_factory.mktemp("site") / "docs"
    site.fetch_scripts()
    site.build(ROOT, out, ["v9.9"], "")
    return {path: Page(path) for path in out.rglob("*.html")}


@pytest.mark.deep
def test_every_document_is_a_page(pages: dict[Path, Page]) -> None:
    assert {path.stem for path in DOCUMENTS} <= {path.stem for path in pages}


@pytest.mark.deep
def test_links_within_the_site_lead_somewhere(pages: dict[Path, Page]) -> None:
    external, broken = set(), []
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                external.add(link)
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if "v9.9" in target.parts:  # the version that the fixture adds
                continue
            anchors = pages[target].anchors if target in pages else set()
            if not target.is_file() or (parts.fragment and target in pages and parts.fragment not in anchors):
                broken.append(f"{path.name}: {link}")
    print("not fetched:", *sorted(external), sep="\n  ")
    assert broken == []
    assert "http" not in {urllib.parse.urlsplit(link).scheme for link in external}


@pytest.mark.deep
def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page]) -> None:
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"(?:https?:)?//[^\"]*", text) == [], path.name


@pytest.mark.deep
def test_the_versions_are_in_the_sidebar(pages: dict[Path, Page]) -> None:
    assert all("v9.9/index.html" in " ".join(page.links) for path, page in pages.items() if path.parent.name == "docs")


def text_of(path: Path) -> str:
    return re.sub(r"<[^>]+>", "", path.read_text(encoding="utf-8"))


@pytest.mark.deep
def test_the_apis_are_there(pages: dict[Path, Page]) -> None:
    """The site documents every public name and every function of the headers."""
    import litebnn

    names = {f"litebnn.{name}" for name in litebnn.__all__}
    exported = set(re.findall(r"^LITEBNN_EXPORT [^(]*?(\w+)\(", read("ops/include/litebnn/litebnn.h"), re.MULTILINE))
    assert len(exported) > 4
    python, c = (next(path for path in pages if path.name == f"{name}.html") for name in ("python-api", "c-api"))
    assert names <= pages[python].anchors
    assert {"litebnn.torch.BinaryConv2d", "litebnn.keras.layers.QuantConv2D"} <= pages[python].anchors
    assert {name for name in exported if f"c.{name}" not in pages[c].anchors} == set()
    assert "RegisterOps" in text_of(c)
    assert "RegisterAccelerator" in text_of(c)


@pytest.mark.deep
@pytest.mark.usefixtures("pages")
def test_a_broken_reference_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "docs" / "_static").mkdir(parents=True)
    (tmp_path / "docs" / "conf.py").write_text("extensions = ['myst_parser']\n")
    page = tmp_path / "index.md"
    page.write_text("# A page\n\n[a link](index.md)\n")
    site.build(tmp_path, tmp_path / "out", [], "")
    page.write_text("# A page\n\n[a link](nowhere.md)\n")
    with pytest.raises(ToolkitError, match="has mistakes"):
        site.build(tmp_path, tmp_path / "out", [], "")


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """A file server without log messages."""

    def log_message(self, format: str, *values: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(pages: dict[Path, Page]) -> Iterator[str]:
    """Starts a server of the site, and returns its address.

    The server also has an older release, a single page with the list of versions in its sidebar.
    """
    folder = next(path.parent for path in pages if path.name == "index.html")
    source = folder.parent / "release"
    (source / "docs" / "_static").mkdir(parents=True)
    settings = [
        "html_favicon = '_static/favicon.svg'",
        f"templates_path = [{str(ROOT / 'docs' / '_templates')!r}]",
        "html_theme = 'furo'",
    ]
    settings.append("html_sidebars = {'**': ['versions.html', 'sidebar/navigation.html']}")
    shutil.copy2(ROOT / "docs" / "_static" / "favicon.svg", source / "docs" / "_static")
    (source / "docs" / "conf.py").write_text("\n".join(settings))
    (source / "index.rst").write_text("An older litebnn\n================\n")
    site.build(source, folder / "v9.9", ["v9.9"], "../")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.deep
def test_search_finds_pages_and_leads_to_them(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.get_by_role("textbox", name="Search").fill("LceBMaxPool2d")
        page.keyboard.press("Enter")
        found = page.locator("#search-results li")
        page.get_by_text("Search finished").wait_for()
        assert found.count() > 1
        found.filter(has_text="The custom ops").get_by_role("link").first.click()
        assert "/docs/ops.html" in page.url
        assert "LceBMaxPool2d" in page.locator("article").inner_text()
        page.goto(f"{address}search.html?q=zyxwv")
        page.get_by_text("did not match any documents").wait_for()
        assert found.count() == 0


@pytest.mark.deep
def test_versions_lead_to_each_other(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.goto(f"{address}docs/boards/README.html")
        versions = page.get_by_role("navigation", name="versions")
        versions.get_by_role("link", name="v9.9").click()
        assert page.locator("h1").inner_text().startswith("An older litebnn")
        versions.get_by_role("link", name="newest").click()
        assert page.url == f"{address}index.html"


@pytest.mark.deep
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_have_contrast_and_diagrams(browser: Any, address: str, theme: str) -> None:
    """The test checks one page of each kind: with a chart and a diagram, with search results, with tables, and with
    an API.
    """
    from axe_playwright_python.sync_playwright import Axe

    with opened(browser, address, color_scheme=theme) as page:
        page.locator("pre.mermaid svg").wait_for()
        for name in ("index", "search", *(f"docs/{name}" for name in ("rules-for-models", "c-api"))):
            page.goto(f"{address}{name}.html?q=signs")
            found = Axe().run(page, options={"runOnly": ["color-contrast"]}).response
            assert [node["html"] for rule in found["violations"] for node in rule["nodes"]] == [], name
            assert [rule["id"] for rule in found["passes"]] == ["color-contrast"], name


@pytest.mark.deep
def test_a_page_fits_a_phone(browser: Any, address: str) -> None:
    with opened(browser, address, **PHONE) as page:
        for name in ("performance", "rules-for-models", "ops", "c-api"):
            page.goto(f"{address}docs/{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, name


@pytest.mark.needs("git")
def test_releases_are_built_from_their_own_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for name, value in identity.items():
        monkeypatch.setenv(name, value)

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True, env=os.environ)

    git("init")
    for version in ("v0.9", "v0.10"):
        (tmp_path / "README.md").write_text(f"litebnn {version}")
        git("add", "README.md")
        git("commit", "-m", version)
        git("tag", version)
    (tmp_path / "README.md").write_text("newer")
    built = {}

    def build(source: Path, out: Path, versions: list[str], way: str) -> None:
        built[out.name] = ((source / "README.md").read_text(), versions, way)

    monkeypatch.setattr(site, "ROOT", tmp_path)
    monkeypatch.setattr(site, "build", build)
    monkeypatch.setattr(site, "fetch_scripts", lambda: None)
    site.build_all(tags=True, generate=False)
    versions = ["v0.10", "v0.9"]
    assert built == {
        "docs": ("newer", versions, ""),
        "v0.10": ("litebnn v0.10", versions, "../"),
        "v0.9": ("litebnn v0.9", versions, "../"),
    }
