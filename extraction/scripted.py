"""Is a page built by scripts in the browser, so that its HTML alone shows nothing?"""

from __future__ import annotations

import re

from extraction.trees import tree_of

# A page that shows less than this has nothing to read.
LITTLE_TEXT = 400
FEW_LINKS = 3
ROOTS = "#root, #app, #__next, #__nuxt, #___gatsby, app-root, [data-reactroot], [ng-app], [v-cloak]"
NOSCRIPT = re.compile(
    r"(enable|activate|turn on|aktiv\w+|activer)\W.{0,40}javascript", re.IGNORECASE
)


def looks_script_built(body: bytes) -> bool:
    """Little text, hardly a link, and scripts with a place to fill or a plea to run them."""
    tree = tree_of(body[:2_000_000])
    if not tree.css("script"):
        return False
    asks = any(NOSCRIPT.search(node.text() or "") for node in tree.css("noscript"))
    has_root = tree.css_first(ROOTS) is not None
    links = len(tree.css("a[href]"))
    for node in tree.css("script, style, noscript, template"):
        node.decompose()
    text = " ".join((tree.body.text(separator=" ") if tree.body else "").split())
    return len(text) < LITTLE_TEXT and links <= FEW_LINKS and (asks or has_root)
