from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.addresses import is_public


@pytest.mark.parametrize(
    "text",
    ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"],
)
def test_an_address_of_the_internet_is_public(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize(
    "text",
    [
        "192.0.0.192",
        "168.63.129.16",
        "192.88.99.1",
        "224.0.0.1",
        "239.255.255.250",
        "100.64.0.1",
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "3fff::1",
        "5f00::1",
        "fec0::1",
        "ff02::1",
        "2606:4700::1111%eth0",
    ],
)
def test_what_python_calls_global_by_mistake_is_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@given(st.ip_addresses(v=4))
def test_no_ipv4_address_becomes_public_inside_an_ipv6_one(inner: IPv4Address) -> None:
    value = int(inner)
    prefixes = [0, 0xFFFF << 32, 0xFFFF << 48, 0x64FF9B << 96, 0x2001 << 112]
    assert not any(is_public(IPv6Address(prefix | value)) for prefix in prefixes)
    assert not is_public(IPv6Address((0x2002 << 112) | (value << 80)))


@given(st.ip_addresses())
def test_a_private_address_by_python_is_never_public_here(
    address: IPv4Address | IPv6Address,
) -> None:
    if address.is_private or address.is_multicast or address.is_reserved:
        assert not is_public(address)
