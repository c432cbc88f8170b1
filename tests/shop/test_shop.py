from __future__ import annotations

import gzip
import hashlib
import hmac
import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import IncompleteRead

import pytest

from obsrv.demo.receiver import Receiver
from tests.shop.bulk import ROOT, BulkShop
from tests.shop.bulk_pages import FORMS, MIX, TYPICAL, Truth
from tests.shop.server import MIB, Robots, ScriptedShop

pytest_plugins = ["tests.shop.fixtures"]

SECRET = "whsec_test"


def fetch(
    url: str, *, data: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, bytes, Message]:
    request = urllib.request.Request(url, data=data, headers=headers or {})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), error.headers


def test_every_product_in_the_sitemap_is_served(shop: ScriptedShop) -> None:
    _, sitemap, _ = fetch(f"{shop.url}/sitemap.xml")
    assert len(shop.product_urls) == 12
    for url in shop.product_urls:
        status, body, _ = fetch(url)
        assert url.encode() in sitemap
        assert status == 200
        assert b'property="product:price:amount"' in body


def test_a_changed_price_a_sell_out_and_a_removal_show_on_the_next_request(
    shop: ScriptedShop,
) -> None:
    url = shop.product_url("desk-lamp")
    assert b'"price": "39.90"' in fetch(url)[1]
    shop.set_price("desk-lamp", "29.90")
    shop.set_stock("desk-lamp", False)
    body = fetch(url)[1]
    assert b'"price": "29.90"' in body
    assert b"OutOfStock" in body
    shop.remove("desk-lamp")
    assert fetch(url)[0] == 404
    assert shop.requests["/products/desk-lamp"] == 3


def test_an_unchanged_page_answers_304_until_it_changes(shop: ScriptedShop) -> None:
    url = shop.product_url("stoneware-mug")
    _, _, headers = fetch(url)
    asked = {"If-None-Match": headers["ETag"]}
    assert fetch(url, headers=asked)[0] == 304
    assert fetch(url, headers={"If-Modified-Since": headers["Last-Modified"]})[0] == 304
    shop.set_price("stoneware-mug", "17.00")
    assert fetch(url, headers=asked)[0] == 200


def test_robots_answers_as_scripted(shop: ScriptedShop) -> None:
    shop.robots = Robots(status=503, body="later")
    assert fetch(f"{shop.url}/robots.txt")[:2] == (503, b"later")


@pytest.mark.parametrize(
    ("path", "error"), [("/reset", ConnectionResetError), ("/truncated", IncompleteRead)]
)
def test_a_broken_connection_is_felt_and_the_shop_lives_on(
    shop: ScriptedShop, path: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        fetch(shop.url + path)
    assert fetch(shop.url)[0] == 200
    assert [hit.status for hit in shop.log] == [0, 200]


@pytest.mark.parametrize(
    ("path", "status", "sign"),
    [
        ("/slow?seconds=0.1", 200, b"Slow at last"),
        ("/429?retry_after=30", 429, b"Too many"),
        ("/503?retry_after=30&form=date", 503, b"maintenance"),
        ("/status/418", 418, b"Scripted"),
        ("/flaky?times=1", 503, b"Try again"),
        ("/bot-wall", 200, b"verify you are a human"),
        ("/soft-404", 200, b"Page not found"),
        ("/redirect-chain?hops=2", 200, b"Arrived"),
        ("/redirect-to?url=/about", 200, b"exists only on this machine"),
        ("/wrong-charset?bytes=cp1252&header=utf-8", 200, b"K\xe4sehobel"),
        ("/js-only", 200, b'<div id="root"></div>'),
        ("/too-big?mib=2&declared=1", 200, b"<p>xxx"),
        ("/products/unknown", 404, b"Page not found"),
    ],
)
def test_nasty_routes_answer_as_named(
    shop: ScriptedShop, path: str, status: int, sign: bytes
) -> None:
    answered, body, _ = fetch(shop.url + path)
    assert answered == status
    assert sign in body


def test_the_bomb_is_small_on_the_wire_and_large_unpacked(shop: ScriptedShop) -> None:
    _, body, headers = fetch(f"{shop.url}/bomb?mib=8")
    assert headers["Content-Encoding"] == "gzip"
    assert len(body) < 20_000
    assert len(gzip.decompress(body)) > 8 * MIB


def test_retry_after_comes_as_seconds_or_as_a_date(shop: ScriptedShop) -> None:
    assert fetch(f"{shop.url}/429?retry_after=30")[2]["Retry-After"] == "30"
    date = fetch(f"{shop.url}/429?retry_after=30&form=date")[2]["Retry-After"]
    ahead = (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds()
    assert 25 < ahead <= 30


def test_the_log_tells_gaps_and_concurrency(shop: ScriptedShop) -> None:
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(fetch, [f"{shop.url}/slow?seconds=0.5"] * 3))
    time.sleep(0.2)
    fetch(shop.url)
    assert shop.max_concurrent == 3
    assert shop.gaps()[-1] >= 0.6
    assert [hit.status for hit in shop.log] == [200] * 4


def test_the_receiver_answers_as_scripted_and_verifies(receiver: Receiver) -> None:
    receiver.secrets.append(SECRET)
    receiver.answer_with(503)
    body = json.dumps({"type": "product.price_changed"}).encode()
    moment = str(int(time.time()))
    digest = hmac.new(SECRET.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {"X-Obsrv-Signature": f"t={moment},v1={digest}"}
    assert fetch(receiver.url, data=body, headers=headers)[0] == 503
    assert fetch(receiver.url, data=body + b" ", headers=headers)[0] == 200
    good, forged = receiver.wait_for(type="product.price_changed", count=2, timeout=5)
    assert (good.verified, good.answered) == (True, 503)
    assert (forged.verified, forged.answered) == (False, 200)


def test_a_stopped_receiver_comes_back_at_the_same_address(receiver: Receiver) -> None:
    url = receiver.url
    receiver.stop()
    with pytest.raises(urllib.error.URLError):
        fetch(url, data=b"{}")
    receiver.start()
    assert fetch(url, data=b"{}")[0] == 200


def read_plainly(page: str, form: str) -> tuple[str, str, bool]:
    """Price, currency and stock read by eye-simple patterns, one for each form."""
    price, currency, stock = PATTERNS.get(form, JSON_PATTERNS)
    found = [re.search(pattern, page) for pattern in (price, currency, stock)]
    assert all(found), form
    texts = [match.group(1) for match in found if match]
    return texts[0], texts[1], texts[2] in {"InStock", "instock", "In stock"}


JSON_PATTERNS = (
    r'"price": "([\d.]+)"',
    r'"priceCurrency": "(\w+)"',
    r"schema.org/(InStock|Out\w+)",
)
PATTERNS = {
    "aggregate": (r'"lowPrice": "([\d.]+)"', *JSON_PATTERNS[1:]),
    "opengraph": (
        r'price:amount" content="([\d.]+)"',
        r'price:currency" content="(\w+)"',
        r'availability" content="(\w+)"',
    ),
    "microdata": (
        r'itemprop="price" content="([\d.]+)"',
        r'itemprop="priceCurrency" content="(\w+)"',
        r"schema.org/(InStock|OutOfStock)",
    ),
    "visible": (
        r'product-price">\w+ ([\d.]+)<',
        r'product-price">(\w+) ',
        r'product-stock">([\w ]+)<',
    ),
}


def told_by(page: str, truth: Truth) -> bool:
    expected = (str(truth.price), truth.currency, truth.in_stock)
    return read_plainly(page, truth.form) == expected and truth.name in page


@pytest.mark.parametrize("form", FORMS)
def test_a_bulk_page_tells_the_truth(bulk_shop: BulkShop, form: str) -> None:
    for index in range(MIX.index(form), 100, len(MIX)):
        status, body, _ = fetch(bulk_shop.url(index), headers={"Accept-Encoding": "gzip"})
        assert status == 200
        page = gzip.decompress(body)
        assert 30_000 <= len(page) <= 140_000
        assert told_by(page.decode(), bulk_shop.truth(index))


def test_repricing_changes_exactly_the_share_and_keeps_the_old_truth() -> None:
    with BulkShop(products=40) as shop:
        _, _, headers = fetch(shop.url(0))
        changed = shop.reprice(0.1)
        assert len(changed) == 4
        for index in range(40):
            differs = shop.truth(index, 0).price != shop.truth(index, 1).price
            assert differs == (index in changed)
            assert told_by(fetch(shop.url(index))[1].decode(), shop.truth(index, 1))
        asked = {"If-None-Match": headers["ETag"]}
        assert fetch(shop.url(0), headers=asked)[0] == (200 if 0 in changed else 304)


def test_pages_of_a_volatile_shop_differ_each_time_and_have_the_forms_and_size_asked_for() -> None:
    with BulkShop(products=4, forms=("graph",), volatile=True, fill=TYPICAL) as shop:
        pages = [fetch(shop.url(1), headers={"Accept-Encoding": "gzip"}) for _ in range(2)]
        assert pages[0][1] != pages[1][1]
        assert len(pages[0][1]) == len(pages[1][1]) > 60_000
        assert "Content-Encoding" not in pages[0][2]
        assert "ETag" not in pages[0][2]
        assert told_by(pages[0][1].decode(), shop.truth(1))
        assert b'"@graph"' in pages[0][1]


def test_bulk_hosts_share_the_port_and_list_their_own_products() -> None:
    with BulkShop(products=10, hosts=5, addresses=True) as shop:
        assert [fetch(url)[0] for url in shop.urls] == [200] * 10
        _, sitemap, _ = fetch(f"{shop.hosts[3]}/sitemap.xml")
        assert re.findall(r"/p/(\d+)<", sitemap.decode()) == ["3", "8"]


def knock(port: int, *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        socket.create_connection(("127.0.0.1", port)).close()
        time.sleep(0.1)


def test_the_bulk_server_ends_with_a_killed_parent() -> None:
    script = (
        "from tests.shop.bulk import BulkShop; import os, signal\n"
        "print(BulkShop(products=1).start().port, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    parent = subprocess.run([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE)
    with pytest.raises(ConnectionRefusedError):
        knock(int(parent.stdout), seconds=10)
