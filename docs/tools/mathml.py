"""Formulas as MathML, which browsers draw by themselves: no script, and nothing is asked of another site."""

from docutils import nodes
from latex2mathml.converter import convert


def inline(self, node):
    """A formula within a line."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(self, node):
    """A formula of its own."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    self.body.append(convert(node.astext(), display="block"))
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
