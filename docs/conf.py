"""Sphinx configuration."""

import inspect
import os
import re
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import matplotlib as mpl
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx_gallery.sorting import ExplicitOrder, FileNameSortKey

from psilearn import __version__

warnings.filterwarnings("ignore", category=UserWarning, message="FigureCanvasAgg is non-interactive")

project = "psilearn"
author = "The psilearn developers"
release = version = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "templates", "gallery/**/*.ipynb", "gallery/**/*.py"]
exclude_patterns += ["sg_execution_times.rst", "**/sg_execution_times.rst"]
templates_path = ["templates"]
html_theme = "pydata_sphinx_theme"
html_title = f"psilearn {version}"
html_theme_options = {
    "show_nav_level": 1,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
}
#: Pages without pages below them need no list of those beside them.
html_sidebars = {name: [] for name in ("errata", "comparisons", "reproduction/index", "faq", "migration", "changes")}
html_static_path = ["static"]
html_css_files = ["site.css"]
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
# Links to the API in docstrings name things by their last word; what cannot be found stays plain text.
suppress_warnings = ["ref.ref", "myst.header", "config.cache"]
html_math_renderer = "mathml"


def whole_pictures(gallery_conf, name):
    """Let no label be cut off."""
    mpl.rcParams["savefig.bbox"] = "tight"


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "subsection_order": ExplicitOrder(
        ["../examples/robust", "../examples/proofs", "../examples/abstaining", "../examples/rules", "../examples/work"]
    ),
    "within_subsection_order": FileNameSortKey,
    "download_all_examples": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "min_reported_time": 10,
    "reset_modules": ("matplotlib", whole_pictures),
}


#: Bars and names with a trailing underscore that are markup to docutils, but absolute values and attributes to us.
_NOT_MARKUP = re.compile(r"(``.*?``|`[^`]*`)|(\||\b\w+_\b)")


def plain_text(app, what, name, obj, options, lines):
    """Keep docutils from reading formulas as markup: |w| is an absolute value, objective_ an attribute."""
    indent = None  # of the line that announced a literal block
    for at, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        if indent is not None and line.strip() and depth <= indent:
            indent = None
        if indent is None and not line.lstrip().startswith((">>>", "...", "..")):
            lines[at] = _NOT_MARKUP.sub(lambda m: m[1] or m[2][:-1] + "\\" + m[2][-1], line)
        if indent is None and line.rstrip().endswith("::"):
            indent = depth


def documented_elsewhere(app, what, name, obj, skip, options):
    """Skip fields and fitted attributes, which the docstring of the class describes, and scikit-learn's routing."""
    is_routing = (name.startswith("set_") and name.endswith("_request")) or name == "get_metadata_routing"
    is_described = name.endswith("_") if isinstance(obj, property) else not inspect.isroutine(obj)
    return True if what == "class" and (is_routing or is_described) else None


def inline_math(writer, node):
    """Write a formula as MathML, which browsers show without a script from elsewhere."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def block_math(writer, node):
    """Write a displayed formula."""
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    """Formulas without a script; docstrings after numpydoc, which writes at priority 500."""
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("autodoc-process-docstring", plain_text, priority=600)
    app.connect("autodoc-skip-member", documented_elsewhere)
