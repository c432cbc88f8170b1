"""Which IP addresses belong to the public internet, by a table of our own.

``ipaddress.is_global`` is not enough: on Python 3.11 it calls multicast, 6to4, NAT64 and the
Azure host address global. IPv4 is public unless listed; IPv6 is private unless it lies in
2000::/3 and is not listed. Forms that carry an IPv4 address inside an IPv6 one (mapped,
compatible, NAT64, 6to4, Teredo) are refused whatever they carry.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

IPV4_REFUSED = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; Alibaba's metadata service lives in it
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure host agent
        "169.254.0.0/16",  # link-local; metadata services
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata service
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved and broadcast
    )
)
IPV6_PUBLIC = IPv6Network("2000::/3")
IPV6_REFUSED = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarking
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)


def is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in IPV4_REFUSED)
    if address.scope_id is not None or address not in IPV6_PUBLIC:
        return False
    return not any(address in network for network in IPV6_REFUSED)
