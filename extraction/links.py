"""The links of a page, as absolute URLs of the same site."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from extraction.trees import tree_of

# What is never a product page.
FILES = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg", ".css", ".js", ".pdf", ".zip", ".xml")


def page_links(body: bytes, url: str, *, limit: int = 2000) -> list[str]:
    """Each link once, in page order, without fragments."""
    host = urlsplit(url).netloc
    found: dict[str, None] = {}
    for node in tree_of(body).css("a[href]"):
        link = _absolute(node.attributes.get("href") or "", url)
        if link and urlsplit(link).netloc == host:
            found.setdefault(link)
        if len(found) >= limit:
            break
    return list(found)


def _absolute(href: str, url: str) -> str:
    try:
        link = urljoin(url, href.strip()).split("#", 1)[0]
        parts = urlsplit(link)
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or len(link) > 2048:
        return ""
    return "" if parts.path.lower().endswith(FILES) else link
