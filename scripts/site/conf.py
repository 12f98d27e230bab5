"""Settings of Sphinx, for scripts/docs."""

import os

from vmdpotential import __version__

project = "vmdpotential"
author = "The vmdpotential developers"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.intersphinx", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# types of other packages are linked to their documentation if INTERSPHINX=1, which needs a network (not tested yet)
intersphinx_mapping = {} if os.environ.get("INTERSPHINX") != "1" else {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "matplotlib": ("https://matplotlib.org/stable", None),
    "MDAnalysis": ("https://docs.mdanalysis.org/stable", None),
}
intersphinx_timeout = 5

# titles are anchors, as on GitHub
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
# commands of PyMOL are not Python; words in a type, such as (low, high), are not names
suppress_warnings = ["misc.highlighting_failure", "myst.header", "ref.python"]
highlight_language = "none"
pygments_style, pygments_dark_style = "friendly", "monokai"

napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings state types, with shapes and units
add_module_names = False
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "vmdpotential"
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
