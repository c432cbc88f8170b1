"""Addresses that no door may ever dial, whoever hands them in."""

from __future__ import annotations

_LITERALS = """
http://127.0.0.1/ http://127.1/ http://127.0.1/ http://127.255.255.254/ http://2130706433/
http://0x7f000001/ http://0x7f.0.0.1/ http://0177.0.0.1/ http://017700000001/ http://127.0.0.1./
http://0/ http://0.0.0.0:8000/ http://0.0.0.0/ http://127.0.0.1:80/ http://127.0x1/ http://0x/
http://[::1]/ http://[::]/ http://[0:0:0:0:0:0:0:1]/ http://[::ffff:127.0.0.1]/
http://[::ffff:7f00:1]/ http://[::127.0.0.1]/ http://[::ffff:0:127.0.0.1]/
http://[::ffff:8.8.8.8]/ http://[64:ff9b::7f00:1]/ http://[64:ff9b::a9fe:a9fe]/
http://[64:ff9b:1::1]/ http://[2002:7f00:1::]/ http://[2002:a9fe:a9fe::]/
http://[2001:0:7f00:1::]/ http://[fe80::1]/ http://[fe80::1%25eth0]/ http://[fe80::1%eth0]/
http://[2606:4700::1%eth0]/ http://[fc00::1]/ http://[fd00:ec2::254]/ http://[fec0::1]/
http://[ff02::1]/ http://[100::1]/ http://[2001:db8::1]/ http://[3fff::1]/ http://[5f00::1]/
http://10.0.0.1/ http://10.255.255.255/ http://172.16.0.1/ http://172.31.255.255/
http://192.168.1.1/ http://100.64.0.1/ http://100.74.16.82:52002/
http://169.254.169.254/latest/meta-data/ http://169.254.170.2/v2/credentials http://2852039166/
http://0xa9fea9fe/ http://0251.0376.0251.0376/ http://169.254.43518/ http://100.100.100.200/
http://192.0.0.192/opc/v2/ http://168.63.129.16/ http://198.18.0.1/ http://192.0.2.1/
http://192.88.99.1/ http://224.0.0.1/ http://239.255.255.250:1900/ http://240.0.0.1/
http://255.255.255.255/ http://256.1.1.1/ http://1.2.3.4.5/ http://example.1/
http://93.184.216.34:22/ http://[2606:4700::1111]:6379/
"""

_NAMES = """
http://localhost/ http://LOCALHOST./ http://a.localhost/ http://localhost.localdomain/
http://ip6-localhost/ http://metadata.google.internal/ http://METADATA.google.internal./
http://metadata/ http://kubernetes.default.svc/ http://host.docker.internal/
http://postgres:5432/ http://redis:6379/ http://router.lan/ http://printer.local/
http://1.0.0.127.in-addr.arpa/ http://files.corp/ http://x.onion/
"""

_CONFUSIONS = r"""
http://user:x@127.0.0.1/ http://example.com@127.0.0.1/ http://127.0.0.1@example.com/
http://example.com:80@127.0.0.1/ http://127.0.0.1\@example.com/ http://example.com\@127.0.0.1/
http://example.com%2f@127.0.0.1/ http://[::1]:80@example.com/ http:///127.0.0.1/
http://[127.0.0.1]/ http://[::1/ http://example.com:abc/ http://example.com:0/
http://example.com:22/ http://example.com:25/ http://example.com:6379/ http://example.com:99999/
http://example.com:-80/ http://example.com:80:80/ http://%31%32%37.0.0.1/
http://127%2e0%2e0%2e1/ http://127.0.0.1%00.example.com/ http://127。0。0。1/
http://①②⑦.⓪.⓪.①/ http://１２７.０.０.１/ http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/ http://@/ http://:80/ http://./
http://example..com/ http://.example.com/ http://-example.com/ http://example.com\.evil.test/
"""

_SCHEMES = """
file:///etc/passwd FILE:///etc/passwd gopher://127.0.0.1:6379/_INFO dict://127.0.0.1:11211/
ftp://127.0.0.1/ jar:http://x!/ data:text/html,x javascript:alert(1)
view-source:http://127.0.0.1/ ws://127.0.0.1/ ldap://127.0.0.1/ //127.0.0.1/ http:127.0.0.1
http:/127.0.0.1/ http:\\\\127.0.0.1\\ http:// https:// example.com
"""

UNPRINTABLE = [
    "",
    " ",
    "http://loc\u00adalhost/",
    "http://exa\u200bmple.com/",
    "http://example.com\u2028/",
    "http://exam\u3000ple.com/",
    "http://127.0.0.1\t/",
    "http://exa mple.com/",
    "http://example.com\r\nX: y/",
    "http://example.com/\r\nX: y",
    "http://example.com\x00/",
    "http://example.com/\x00",
    "http://example.com/\x85",
    "http://example.com/\ud800",
    "\thttp://127.0.0.1/",
    "\nhttp://example.com/",
    f"http://{'a' * 2100}.com/",
    f"http://{'a' * 64}.com/",
    f"http://{'a.' * 130}com/",
    f"http://example.com/{'a' * 2048}",
]

REFUSED = [*f"{_LITERALS} {_NAMES} {_CONFUSIONS} {_SCHEMES}".split(), *UNPRINTABLE]

# They look like loopback and truly lead to example.com.
REACH_EXAMPLE_COM = ["http://example.com#@127.0.0.1/", "http://example.com?@127.0.0.1/"]

PUBLIC_V4 = "93.184.216.34"
PUBLIC_V6 = "2606:4700::1111"
BAD_ANSWERS = [
    ["127.0.0.1"],
    [PUBLIC_V4, "10.0.0.1"],
    ["10.0.0.1", PUBLIC_V4],
    [PUBLIC_V4, PUBLIC_V6, "::1"],
    ["::ffff:10.0.0.1"],
    ["64:ff9b::a00:1"],
    ["2002:7f00:1::"],
    ["fe80::1%eth0"],
    ["169.254.169.254"],
    ["0.0.0.0"],
]
