from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from common import urls
from common.errors import Refused, UrlBlocked, UrlInvalid
from common.urls import (
    TRACKING_PARAMETERS,
    host_and_port,
    host_of,
    normalize_url,
    origin_of,
    parse_url,
    url_hash,
)
from tests.common.ssrf_corpus import REACH_EXAMPLE_COM, REFUSED

hosts = st.sampled_from(["shop.example", "SHOP.Example", "bücher.example", "a_b.shop.example:8080"])
segments = st.text(st.characters(exclude_characters="?#\\", exclude_categories=["Cs", "Cc"]))
words = st.from_regex(r"[A-Za-z0-9._~-]{1,6}", fullmatch=True)
messy_urls = st.builds(
    lambda host, path, query: f"https://{host}/{path}?{query}",
    hosts,
    st.one_of(segments, st.text("ab/.%2eEfF;=+ é", max_size=20)),
    st.one_of(segments, st.text("ab&=%26+;2fé'[]|", max_size=20)),
)
plain_urls = st.builds(
    lambda path, pairs: f"https://shop.example/{'/'.join(path)}?{'&'.join(pairs)}",
    st.lists(words, max_size=4),
    st.lists(st.builds("{}={}".format, words, words), max_size=5),
)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("HTTPS://Shop.Example", "https://shop.example/"),
        (" https://shop.example/a b ", "https://shop.example/a%20b"),
        ("http://shop.example:80/a#top", "http://shop.example/a"),
        ("http://shop.example.:8080/", "http://shop.example:8080/"),
        ("https://bücher.example/ä?q=ö", "https://xn--bcher-kva.example/%C3%A4?q=%C3%B6"),
        ("https://shop.example/a/../b/./c/%2e%2e/d", "https://shop.example/b/d"),
        ("https://shop.example?a=1", "https://shop.example/?a=1"),
        ("https://a_b.shop.example/%E4?x=%zz", "https://a_b.shop.example/%E4?x=%zz"),
        ("http://[2606:4700:0::1111]/", "http://[2606:4700::1111]/"),
        ("http://93.184.216.34/", "http://93.184.216.34/"),
    ],
)
def test_a_web_address_is_parsed_to_its_clean_form(text: str, parsed: str) -> None:
    assert parse_url(text) == parsed
    assert parse_url(parsed) == parsed


@pytest.mark.parametrize("text", [url for url in REFUSED if not re.search(r":\d{2,4}/", url)])
def test_a_hostile_address_is_refused_by_the_parser(text: str) -> None:
    with pytest.raises((UrlBlocked, UrlInvalid)):
        parse_url(text)


@pytest.mark.parametrize("text", REACH_EXAMPLE_COM)
def test_an_at_sign_behind_the_host_does_not_move_it(text: str) -> None:
    assert host_of(parse_url(text)) == "example.com"


def test_local_hosts_pass_only_for_a_caller_with_an_allow_list() -> None:
    for url in ("http://127.0.0.1:41234/", "http://shop1.localhost:41234/", "http://[::1]/"):
        assert parse_url(url, allow_local=True) == url
        with pytest.raises(UrlBlocked):
            parse_url(url)
    with pytest.raises(UrlBlocked):
        parse_url("http://metadata.google.internal/", allow_local=True)


@given(st.text())
@example("http://[::1]]/")
@example("http://١٢٧.0.0.1/")
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for candidate in (text, f"http://{text}/", f"http://shop.example/{text}"):
        try:
            parsed = parse_url(candidate)
        except Refused:
            continue
        assert parsed.isascii()
        assert parse_url(parsed) == parsed
        assert re.fullmatch(r"[a-z0-9._:\[\]-]+", host_of(parsed))
        normalize_url(parsed)


def _parse_or_skip(url: str) -> str:
    try:
        return parse_url(url)
    except Refused:
        assume(condition=False)
        raise


@given(messy_urls)
def test_identity_is_idempotent(url: str) -> None:
    identity = normalize_url(_parse_or_skip(url))
    assert normalize_url(identity) == identity


@given(messy_urls)
def test_identity_keeps_the_host(url: str) -> None:
    parsed = _parse_or_skip(url)
    assert origin_of(normalize_url(parsed)) == origin_of(parsed)


@given(plain_urls)
def test_the_short_way_to_an_identity_agrees_with_the_long_one(url: str) -> None:
    parsed = _parse_or_skip(url)
    assert normalize_url(parsed) == urls._normalize_any(parsed)


@pytest.mark.parametrize(
    "same",
    [
        "https://shop.example/a/?b=2&a=1",
        "https://SHOP.example:443/a?a=1&b=2#reviews",
        "https://shop.example/x/../a?utm_source=mail&a=1&b=2&GCLID=7",
        "https://shop.example/%61?a=1&b=%32",
        "https://shop.example//a?a=1&&b=2",
    ],
)
def test_spellings_of_one_page_share_an_identity(same: str) -> None:
    assert normalize_url(parse_url(same)) == "https://shop.example/a?a=1&b=2"


@pytest.mark.parametrize("name", ["variant", "sku", "color", "size", "ref", "id"])
def test_parameters_that_choose_a_product_are_kept(name: str) -> None:
    assert name not in TRACKING_PARAMETERS
    one, other = (normalize_url(f"https://shop.example/p?{name}={value}") for value in "12")
    assert one != other
    assert url_hash(one) != url_hash(other)


def test_different_pages_keep_different_identities() -> None:
    pages = [
        "https://shop.example/",
        "https://shop.example/a",
        "https://shop.example/A",
        "https://shop.example/a;v=1",
        "https://shop.example/a;v=2",
        "https://shop.example/a%2Fb",
        "https://shop.example/a/b",
        "https://shop.example/a?color=red&color=blue",
        "https://shop.example/a?color=red",
        "https://shop.example/a?q=1%262",
        "https://shop.example/a?q=1&2",
        "http://shop.example/a",
        "https://shop.example:8443/a",
    ]
    assert len({normalize_url(page) for page in pages}) == len(pages)


def test_a_hash_is_sha256_in_hex() -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", url_hash("https://shop.example/"))


def test_a_host_carries_only_an_unusual_port() -> None:
    assert host_of("https://shop.example/a:b") == "shop.example"
    assert host_of("https://shop.example:8443/a") == "shop.example:8443"
    assert origin_of("http://[2606:4700::1]:8080/x") == "http://[2606:4700::1]:8080"
    assert host_and_port("http://[2606:4700::1]:8080/x") == ("2606:4700::1", 8080)
    assert host_and_port("https://shop.example/") == ("shop.example", 443)
