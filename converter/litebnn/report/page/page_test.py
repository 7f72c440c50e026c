import base64
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.errors import printable
from litebnn.report.inspection import Board, BrokenRule, Inspection, inspect_model
from litebnn.report.page import Times, report_page
from litebnn.report.page.drawing import drawing
from tests.support.float_models import FloatModel, sign_weights

VENDOR = Path(__file__).parent / "vendor"
HOSTILE = (
    "</script><script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "<!--<script>",
    "a\x00b\x1b[31m\r\n\u202ec\u2028",
    "]]>&amp;&lt;",
)


class Page(HTMLParser):
    """A parser that collects the tags of a page, its text, and the text inside each script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data
        else:
            self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def network() -> bytes:
    """A network of a float layer, a binary layer that breaks rules for fast models, and a residual sum."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.input(1, 9, 9, 3), rng.standard_normal((40, 3, 3, 3)), same=True)
    y = model.conv(model.sign(x), sign_weights(rng, 40, 3, 3, 40), same=True)
    return model.finish(model.elementwise("ADD", x, y))


@cache
def inspection() -> Inspection:
    """The inspection of the network, with made-up times and a made-up cost of a broken rule."""
    found = inspect_model(litebnn.convert_tflite(network()))
    rule = BrokenRule("channels", 2, "conv", "40 input channels", "take 64", {"host": 1e-6, "rpi4": 2e-5})
    ops = [replace(row, seconds={"host": 1e-5 * (row.index + 1), "rpi4": 1e-3}) for row in found.ops]
    ops[2] = replace(ops[2], broken_rules=(rule,))
    boards = (
        Board("host", "this machine", "avx2", "measured", 0.125),
        Board("rpi4", "Raspberry Pi 4", "", "model", None),
    )
    return replace(found, name="small.tflite", ops=tuple(ops), boards=boards)


def test_a_time_that_lacks_ops_says_so() -> None:
    assert "of which nothing is known" not in Page(report_page(inspection())).text
    *others, last = inspection().ops
    lacking = replace(inspection(), ops=(*others, replace(last, seconds={"host": 1e-5})))
    text = " ".join(Page(report_page(lacking)).text.split())
    assert text.count("of which nothing is known") == 1
    assert "an inference on Raspberry Pi 4, without 1 op of which nothing is known" in text


def test_the_page_says_what_was_found() -> None:
    _, conversion = litebnn.convert_tflite(network(), return_report=True)
    page = Page(report_page(inspection(), conversion))
    words = " ".join(page.text.split())
    assert "small.tflite" in words
    assert re.search(r"was [\d.]+ kB: now [\d.]+ % of it", words)
    assert "1 of 2" in words
    assert "Time, estimated 100 µs an inference on this machine, avx2" in words
    assert "take 64 40 input channels: layer 2 costs" in words
    assert "costs an inference, estimated: 1.00 µs on host (1.0 %), 20.0 µs on rpi4 (0.5 %)" in words
    assert "a network was off by 12.5 % at most" in words
    assert "its input is not the output of a sign" in words
    rows = [attributes for attributes in page.named("tr") if "data-row" in attributes]
    assert [row["id"] for row in rows] == [f"row-{index}" for index in range(len(inspection().ops))]


def test_the_page_says_what_a_conversion_did() -> None:
    _, conversion = litebnn.convert_tflite(network(), return_report=True)
    layers = conversion.layers[0], replace(conversion.layers[1], reasons={"RELU cannot be fused": None})
    page = Page(report_page(inspection(), replace(conversion, layers=layers, noted=("a sign: taken for 1",))))
    words = " ".join(page.text.split())
    assert "Layers that are not binary its input is not the output of a sign: conv_2d_" in words
    assert "Binary layers that could do more RELU cannot be fused: conv_2d_" in words
    assert "To know a sign: taken for 1" in words


def test_times_of_one_place_are_shown_at_first() -> None:
    of_places = [attributes for _, attributes in Page(report_page(inspection())).tags if "data-place" in attributes]
    assert {attributes["data-place"] for attributes in of_places} == {"host", "rpi4"}
    assert all(("hidden" in attributes) == (attributes["data-place"] == "rpi4") for attributes in of_places)


def test_measured_times_come_first_and_say_so() -> None:
    measured = Times("this machine", "4 threads of it", "measured", "litebnn benchmark, 50 runs", {0: 1e-3, 2: 2e-3})
    page = Page(report_page(inspection(), measured=[measured]))
    words = " ".join(page.text.split())
    assert "Time, measured 3.00 ms an inference on 4 threads of it" in words
    assert (
        "Times on this machine are measured: litebnn benchmark, 50 runs. Nothing is known of LceQuantize, ADD: "
        in words
    )
    shown = {each["data-place"] for _, each in page.tags if "data-place" in each and "hidden" not in each}
    assert shown == {"this machine"}
    assert "LceQuantize: ?, binary" in words.replace(inspection().ops[1].name, "LceQuantize")


def test_a_model_without_times_or_ops_has_a_page() -> None:
    model = FloatModel()
    empty = replace(inspect_model(model.finish(model.input(1, 4))), boards=())
    page = Page(report_page(empty))
    assert not [attributes for _, attributes in page.tags if "data-place" in attributes]
    assert json.loads(page.scripts[0]) == drawing(empty)
    assert "None." in page.text


def test_nothing_is_loaded_and_one_script_may_run() -> None:
    text = report_page(inspection())
    page = Page(text)
    [policy] = [meta["content"] for meta in page.named("meta") if meta.get("http-equiv")]
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}'" in policy
    sources = [value for _, attributes in page.tags for name, value in attributes.items() if name in ("src", "srcset")]
    assert sources == []
    targets = {value[0] if value else "" for _, each in page.tags for name, value in each.items() if name == "href"}
    assert targets == {"#", "d"}  # anchors in the page, and the empty icon
    assert "sourceMappingURL" not in text
    assert "url(" not in text.replace("url(#", "")
    assert "@import" not in text


def renamed(names: list[str]) -> Inspection:
    """The inspection of the network, with all its names replaced by these names."""
    found, name = inspection(), iter(names * 100)
    rules = [replace(rule, layer=next(name), found=next(name), fix=next(name)) for rule in found.broken_rules]
    ops = [replace(row, name=next(name), op=next(name), output=next(name), fused=(next(name),)) for row in found.ops]
    ops[2] = replace(ops[2], broken_rules=tuple(rules))
    tensors = [replace(tensor, name=next(name), type=next(name)) for tensor in found.tensors]
    return replace(found, name=next(name), ops=tuple(ops), tensors=tuple(tensors))


@cache
def ordinary_page() -> Page:
    return Page(report_page(inspection()))


def check_names_are_text(found: Inspection) -> None:
    page, ordinary = Page(report_page(found)), ordinary_page()
    assert [tag for tag, _ in page.tags if tag != "wbr"] == [tag for tag, _ in ordinary.tags if tag != "wbr"]
    assert json.loads(page.scripts[0]) == drawing(found)
    assert page.scripts[1] == ordinary.scripts[1]
    shown = "".join(page.text.split())
    for row in found.ops:
        assert "".join(printable(row.name).split()) in shown


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name: str) -> None:
    check_names_are_text(renamed([name]))


@settings(max_examples=25)
@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=20) | st.sampled_from(HOSTILE), min_size=1))
def test_any_names_are_text(names: list[str]) -> None:
    check_names_are_text(renamed(names))


def test_nodes_are_in_order_and_edges_lead_forward() -> None:
    drawn = drawing(inspection())
    labels = [node["label"] for node in drawn["nodes"]]
    assert labels == ["input", "CONV_2D", "LceQuantize", "LceBconv2d", "ADD", "output"]
    assert [node["row"] for node in drawn["nodes"]] == [None, 0, 1, 2, 3, None]
    assert [(edge["from"], edge["to"]) for edge in drawn["edges"]] == [(0, 1), (1, 2), (2, 3), (1, 4), (3, 4), (4, 5)]
    assert [edge["carries"] for edge in drawn["edges"]] == ["float", "float", "bits", "float", "float", "float"]


def test_libraries_are_those_that_were_published() -> None:
    table = re.findall(
        r"^\| `([\w.]+)` .* `([\w.]+)` \| `([0-9a-f]{64})` \|$", (VENDOR / "README.md").read_text(), re.M
    )
    assert {name for name, _, _ in table} == {path.name for path in VENDOR.glob("*.js")}
    for name, licence, digest in table:
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest
        assert "Permission is hereby granted" in (VENDOR / licence).read_text()


def test_without_jinja_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['jinja2'] = None; import litebnn.report.page"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].endswith("pip install 'litebnn[report]'")


LIGHT_DARK = re.compile(r"--(\w+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
# Matrices in linear RGB that simulate the three kinds of colour blindness (Machado, Oliveira and Fernandes, 2009).
VISION = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour: str) -> np.ndarray:
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    light, dark = sorted((float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ np.clip(rgb, 0.01, 1) / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_of_precision_stand_out_and_differ_for_everyone(theme: int) -> None:
    css = (VENDOR.parent / "page.css").read_text(encoding="utf-8")
    colours = {name: pair[theme] for name, *pair in LIGHT_DARK.findall(css)}
    precisions = [colours[name] for name in ("binary", "int8", "float")]
    assert min(contrast(colour, colours["surface"]) for colour in precisions) >= 3
    for name, seen in VISION.items():
        labs = [lab(np.asarray(seen) @ linear(colour)) for colour in precisions]
        distances = [np.linalg.norm(labs[i] - labs[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
        assert min(distances) > 20, f"{name}: {distances}"


def test_the_page_says_what_assume_nonzero_would_make_binary() -> None:
    model = FloatModel()
    weights = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)
    source = model.finish(model.conv(model.elementwise("SIGN", model.input(1, 6, 6, 32)), weights))
    with pytest.warns(UserWarning, match="no binary layer"):
        converted, report = litebnn.convert_tflite(source, return_report=True)
    page = Page(report_page(inspect_model(converted), report))
    assert "assume_nonzero would make 1 more of 1 layers binary" in page.text
