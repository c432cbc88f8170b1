from __future__ import annotations

import contextlib
import datetime as dt
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction.sitemaps import MAX_URLS, NotASitemap, read_sitemap

SPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*entries: str) -> bytes:
    return f"<urlset {SPACE}>{''.join(entries)}</urlset>".encode()


def entry(url: str, lastmod: str = "") -> str:
    return f"<url><loc>{url}</loc><lastmod>{lastmod}</lastmod></url>"


def test_pages_come_in_their_order_with_their_last_change() -> None:
    found = read_sitemap(
        urlset(
            entry(" https://a.example/1?x=1&amp;y=2 ", "2026-03-01"), entry("https://a.example/2")
        )
    )
    assert [one.url for one in found.pages] == [
        "https://a.example/1?x=1&y=2",
        "https://a.example/2",
    ]
    assert found.pages[0].lastmod == dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
    assert found.pages[1].lastmod is None


def test_an_index_names_further_sitemaps() -> None:
    body = f"<sitemapindex {SPACE}><sitemap><loc>https://a.example/s.xml</loc></sitemap></sitemapindex>"
    assert [one.url for one in read_sitemap(body.encode()).children] == ["https://a.example/s.xml"]


def test_images_of_a_page_are_not_pages() -> None:
    image = (
        '<image:image xmlns:image="x"><image:loc>https://a.example/i.jpg</image:loc></image:image>'
    )
    found = read_sitemap(urlset(f"<url><loc>https://a.example/1</loc>{image}</url>"))
    assert [one.url for one in found.pages] == ["https://a.example/1"]


def test_packed_files_and_plain_lists_are_read() -> None:
    assert len(read_sitemap(gzip.compress(urlset(entry("https://a.example/1"))))) == 1
    assert len(read_sitemap(b"https://a.example/1\r\nhttps://a.example/2\nnonsense\n")) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>not found</body></html>",
        b"{}",
        b'<!DOCTYPE x [<!ENTITY a "b">]><urlset><url><loc>&a;</loc></url></urlset>',
        b'<!DOCTYPE x SYSTEM "http://127.0.0.1/x.dtd"><urlset/>',
        b"<urlset><url><loc>broken",
        gzip.compress(b"<urlset>", mtime=0)[:-6],
        gzip.compress(b" " * 60_000_000, mtime=0),
    ],
)
def test_what_is_no_sitemap_is_refused(body: bytes) -> None:
    with pytest.raises(NotASitemap):
        read_sitemap(body)


def test_a_file_with_too_many_pages_is_cut() -> None:
    lines = "\n".join(f"https://a.example/{number}" for number in range(MAX_URLS + 10))
    found = read_sitemap(lines.encode())
    assert len(found) == MAX_URLS
    assert found.is_cut


def test_what_comes_before_a_break_counts() -> None:
    found = read_sitemap(urlset(entry("https://a.example/1"))[:-9] + b"<url><")
    assert len(found) == 1
    assert found.is_cut


@given(st.binary(max_size=300))
def test_whatever_the_bytes_nothing_else_is_raised(body: bytes) -> None:
    for start in (b"", b"<urlset>", b"\x1f\x8b"):
        with contextlib.suppress(NotASitemap):
            read_sitemap(start + body)
