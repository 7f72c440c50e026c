"""Sphinx's settings for the site, which `python -m docs` builds from the markdown files of the repository."""

import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "converter"))

import litebnn

ROOT = Path(__file__).resolve().parents[1]

# The navigation; the build warns if a page is missing here.
SECTIONS = {
    "Start": (
        "quick-start",
        "raspberry-pi",
        "microcontrollers",
        "tflm",
        "zoo",
        "keras",
        "torch",
        "training",
        "from-larq-compute-engine",
    ),
    "Design": ("rules-for-models", "idioms", "compare"),
    "Convert and judge": (
        "converter",
        "what-becomes-binary",
        "int8",
        "quantized",
        "verify",
        "check",
        "report",
        "command-line",
        "inspect",
        "benchmark",
        "evaluate",
    ),
    "Run": (
        "interpreter",
        "library",
        "compiled-model",
        "delegate",
        "board",
        "programs",
        "boards/README",
        "cross-compile",
        "wheels",
        "debian",
        "android",
        "emulate",
        "targets",
        "platforms",
        "sdk",
        "troubleshooting",
    ),
    "Reference": ("ops", "python-api", "c-api", "performance", "layer-times", "limits"),
    "Inside": (
        "kernels",
        "isas",
        "lookups",
        "int8-kernels",
        "micro-kernels",
        "partitions",
        "threads",
        "decisions",
        "decisions-fusing",
    ),
    "Project": (
        "architecture",
        "../CONTRIBUTING",
        "extend-converter",
        "extend-library",
        "testing",
        "promises",
        "release",
        "../SECURITY",
        "../CHANGELOG",
    ),
}

project = "litebnn"
copyright = "the litebnn authors, Apache-2.0"
version = release = litebnn.__version__
root_doc = "README"
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "docs/*/*.md"]
exclude_patterns = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "docs"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "hawkmoth", "sphinx_copybutton"]

myst_heading_anchors = 4
default_role = "code"  # the role of single backticks in docstrings
highlight_language = "none"

# The pages of litebnn.keras and litebnn.torch are built without the frameworks. litebnn.keras checks the Keras version.
autodoc_mock_imports = ["keras", "torch"]
with mock(["keras"]):
    import keras
keras.__version__ = "3.0"
keras.saving = SimpleNamespace(register_keras_serializable=lambda **_: lambda decorated: decorated)
sys.modules["keras"] = keras
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
python_use_unqualified_type_names = True

hawkmoth_root = str(ROOT / "ops" / "include")
hawkmoth_clang = ["-I", hawkmoth_root]
hawkmoth_compiler = os.environ.get("CXX", "c++")

html_theme = "furo"
html_title = f"litebnn {release}"
html_static_path = ["_static"]  # docs/__main__.py adds the folder of mermaid.min.js
html_js_files = [("mermaid.min.js", {"defer": "defer"}), ("diagrams.js", {"defer": "defer"})]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}


def add_navigation(app: Sphinx, name: str, source: list[str]) -> None:
    """Appends the navigation to README's text; code hosts would show it as code there."""
    if name == root_doc:
        for caption, pages in SECTIONS.items():
            names = "\n".join(os.path.normpath(f"docs/{page}") for page in pages)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{names}\n```\n"


def keep_bars(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Allows |x| for a magnitude in docstrings, which reStructuredText takes for a substitution."""
    lines[:] = [re.sub(r"\|(\w+)\|", r"\|\1\|", line) for line in lines]


def name_the_start_page(app: Sphinx, error: Exception | None) -> None:
    """Copies README, which links all other pages, to index.html."""
    if error is None:
        shutil.copy2(Path(app.outdir, "README.html"), Path(app.outdir, "index.html"))


def setup(app: Sphinx) -> None:
    app.add_lexer("mermaid", TextLexer)
    app.connect("source-read", add_navigation)
    app.connect("autodoc-process-docstring", keep_bars)
    app.connect("build-finished", name_the_start_page)
