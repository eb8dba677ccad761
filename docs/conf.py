"""Sphinx configuration."""

from psilearn import __version__

project = "psilearn"
author = "The psilearn developers"
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "sphinx.ext.mathjax"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"psilearn {version}"
autosummary_generate = True
numpydoc_show_class_members = False
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["ref.ref", "toc.not_included"]
