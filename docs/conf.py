"""Settings of the documentation's build."""

import os
import re

import matplotlib

import skrbm

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products: threads would only wait
matplotlib.use("agg")

project = "skrbm"
author = "The skrbm developers"
project_copyright = "2026, the skrbm developers"
release = version = skrbm.__version__

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.extlinks",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "**/GALLERY_HEADER.rst"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "substitution"]
myst_substitutions = {"version": version}
myst_heading_anchors = 3
extlinks = {"doi": ("https://doi.org/%s", "doi:%s")}

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say it
toc_object_entries_show_parents = "hide"  # the column is narrow
numpydoc_show_class_members = False  # the templates list them
copybutton_prompt_text = ">>> |\\.\\.\\. |\\$ "
copybutton_prompt_is_regexp = True

plot_basedir = "plots"
plot_formats = [("png", 110)]
plot_html_show_formats = plot_html_show_source_link = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skrbm",),
    "subsection_order": [
        f"../examples/gallery/{name}"
        for name in ("features", "tables", "samples", "outliers", "couplings", "training")
    ],
    "within_subsection_order": "FileNameSortKey",
    "thumbnail_size": (400, 280),
    "min_reported_time": 1e9,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "write_computation_times": False,  # a page whose table comes from elsewhere
}

html_theme = "pydata_sphinx_theme"
html_title = "skrbm"
html_static_path = ["_static"]
html_css_files = ["skrbm.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"changelog": [], "references": [], "migrating": []}


def skip_foreign(app, what, name, member, skip, options):
    """Leave out what scikit-learn's base classes add: its pages describe that."""
    module = getattr(member, "__module__", None) or getattr(
        getattr(member, "fget", None), "__module__", ""
    )
    return skip or (what == "class" and not str(module).startswith("skrbm"))


def link_gallery(app, name, source):
    """Lead from links to scripts, which can be followed in the repository too, to their pages."""
    source[0] = re.sub(r"\(\.\./\.\./examples/(gallery/[\w/]+)\.py\)", r"(../\1.rst)", source[0])


def setup(app):
    """Connect what the settings above cannot say."""
    app.connect("source-read", link_gallery)
    app.connect("autodoc-skip-member", skip_foreign)
