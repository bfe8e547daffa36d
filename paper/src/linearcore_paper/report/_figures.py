"""Converts the figure of an experiment to HTML: an inline SVG with alternative text, or a PNG."""

import base64
import re
from html import escape
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

#: For a larger SVG, such as a surface with thousands of facets, the PNG is used, so that phones can open the page.
LARGEST_SVG = 2_000_000

_DROPPED = {"metadata", "script", "foreignObject"}
_URL = re.compile(r"url\(#([^)]+)\)")
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")


def figure_markup(folder: Path, name: str, alt: str) -> str | None:
    """Returns the HTML of the figure of experiment `name` in `folder`; None if there is no figure.

    Raises:
        ValueError: if the SVG is not valid XML; the message names it.
    """
    svg, png = folder / f"{name}.svg", folder / f"{name}.png"
    if svg.exists() and (svg.stat().st_size <= LARGEST_SVG or not png.exists()):
        return inline_svg(svg, f"figure-{name}", alt)
    if png.exists():
        data = base64.b64encode(png.read_bytes()).decode("ascii")
        return f'<img alt="{escape(alt)}" src="data:image/png;base64,{data}">'
    return None


def inline_svg(path: Path, prefix: str, alt: str) -> str:
    """Converts an SVG file for inlining: removes prolog, metadata and scripts, and makes ids unique.

    Matplotlib uses the same ids in every file and styles `*`. In one page, ids would collide and the style would apply to
    the whole page, so ids get a prefix and style rules are limited to the figure.
    """
    try:
        root = ElementTree.fromstring(path.read_bytes())
    except ElementTree.ParseError as error:
        raise ValueError(f"cannot read {path}: it is not an SVG ({error}); run the experiment again") from error
    _clean(root, prefix)
    if "viewBox" not in root.attrib:
        width, height = (re.sub(r"[^0-9.].*", "", root.get(side, "")) or "100" for side in ("width", "height"))
        root.set("viewBox", f"0 0 {width} {height}")
    for side in ("width", "height"):
        root.attrib.pop(side, None)
    root.set("id", prefix)
    root.set("role", "img")
    root.set("aria-label", alt)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: Element, prefix: str) -> None:
    """Removes namespaces, event handlers, external references and unwanted elements, and prefixes ids, recursively."""
    element.tag = _local(element.tag)
    attributes = {_local(key): value for key, value in element.attrib.items()}
    element.attrib.clear()
    for key, value in attributes.items():
        if key.lower().startswith("on"):
            continue
        if key == "id":
            value = f"{prefix}-{value}"
        elif key == "href":
            if not value.startswith(("#", "data:")):
                continue
            value = f"#{prefix}-{value[1:]}" if value.startswith("#") else value
        element.set(key, _URL.sub(rf"url(#{prefix}-\1)", value))
    if element.tag == "style":
        element.text = _RULE.sub(lambda rule: _scoped(rule, prefix), element.text or "")
    for child in list(element):
        # The tag of a comment or processing instruction is a function.
        if not isinstance(child.tag, str) or _local(child.tag) in _DROPPED:
            element.remove(child)
        else:
            _clean(child, prefix)


def _scoped(rule: re.Match[str], prefix: str) -> str:
    selectors = ", ".join(f"#{prefix} {selector.strip()}" for selector in rule[1].split(","))
    declarations = _URL.sub(rf"url(#{prefix}-\1)", rule[2])
    return f"{selectors} {{{declarations}}}"


def _local(name: str) -> str:
    return name.rpartition("}")[2]
