"""URLs: one parser for what may be fetched, one identity for what counts as the same page.

``parse_url`` gives the URL that is fetched and shown; ``normalize_url`` gives the key under
which two spellings of a page meet and is never fetched.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote, unquote_plus

import idna
from url_normalize import url_normalize
from w3lib.url import canonicalize_url

from common.addresses import Address, is_public
from common.errors import UrlBlocked, UrlInvalid

MAX_URL_CHARS = 2048
# One sentence for every refused address: a tenant must not learn why from the answer.
BLOCKED_DETAIL = "This address cannot be used. Use a public web address."
DEFAULT_PORTS = {"http": 80, "https": 443}

REFUSED_SUFFIXES = (
    ".arpa",
    ".corp",
    ".home",
    ".internal",
    ".intranet",
    ".lan",
    ".local",
    ".localdomain",
    ".localhost",
    ".onion",
    ".private",
    ".svc",
)

# Parameters that say where a visitor came from, never what the page shows. Not here, because
# shops give them a meaning: ref, source, id, variant, sku, color, size, tag.
_TRACKING = """
utm_source utm_medium utm_campaign utm_term utm_content utm_id utm_name utm_reader
utm_source_platform utm_creative_format utm_marketing_tactic utm_cid utm_social
gclid gclsrc gbraid wbraid dclid gad_source gad_campaignid srsltid _ga _gl _gac
fbclid fb_action_ids fb_action_types fb_source igshid igsh
msclkid yclid ysclid _openstat ttclid twclid li_fat_id epik rdt_cid scclid sccid
mc_cid mc_eid _hsenc _hsmi hsctatracking __hssc __hstc __hsfp
mkt_tok vero_id vero_conv oly_anon_id oly_enc_id _kx _ke trk_contact trk_msg trk_module
irclickid irgwc cjevent awc wickedid s_cid ml_subscriber ml_subscriber_hash
pk_campaign pk_kwd pk_source pk_medium mtm_campaign mtm_source mtm_medium mtm_keyword
"""
TRACKING_PARAMETERS = frozenset(_TRACKING.split())

_URL = re.compile(r"(https?)://([^/?#]+)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]+)(?::([0-9]{0,5}))?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NAME = re.compile(r"(?:(?!-)[a-z0-9_-]{1,63}(?<!-)\.)*(?!-)[a-z0-9_-]{1,63}(?<!-)")
_ENDS_IN_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)", re.DOTALL)
_CLEAN = re.compile(r"[A-Za-z0-9\-._~/%:@!$&()*+,;=?]*")
_PATH_SAFE = "/%:@!$&'()*+,;=~[]|"
_QUERY_SAFE = "/%:@!$&()*+,;=~[]|?{}\\^`"


def parse_url(text: str, *, allow_local: bool = False) -> str:
    """Return the absolute web address that ``text`` means, without its fragment.

    ``allow_local`` lets ``*.localhost`` and private IP addresses pass: the caller has an
    allow-list and checks them against it.
    """
    text = text.strip(" ")
    if len(text) > MAX_URL_CHARS:
        raise UrlInvalid(f"The address is longer than {MAX_URL_CHARS} characters.")
    if _CONTROL.search(text):
        raise UrlInvalid("The address contains control characters.")
    match = _URL.fullmatch(text)
    if match is None:
        raise UrlInvalid("Use an absolute address that starts with http:// or https://.")
    scheme, authority, path, query = match.groups()
    if "\\" in authority or "\\" in path:
        raise UrlInvalid("The address contains a backslash.")
    scheme = scheme.lower()
    url = f"{scheme}://{_parse_authority(scheme, authority, allow_local)}{_clean_path(path)}"
    if query:
        url += "?" + (query if _CLEAN.fullmatch(query) else quote(query, safe=_QUERY_SAFE))
    if len(url) > MAX_URL_CHARS:
        raise UrlInvalid(f"The address is longer than {MAX_URL_CHARS} characters when encoded.")
    return url


@lru_cache(maxsize=8192)
def _parse_authority(scheme: str, authority: str, allow_local: bool) -> str:  # noqa: FBT001
    if "@" in authority:
        raise UrlInvalid("The address must not contain a user name or password.")
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        raise UrlInvalid("The host or port of the address is malformed.")
    host = _parse_host(match[1], allow_local=allow_local)
    port = int(match[2] or DEFAULT_PORTS[scheme])
    if not 0 < port < 65536:
        raise UrlInvalid("The port of the address is malformed.")
    return host if port == DEFAULT_PORTS[scheme] else f"{host}:{port}"


def _parse_host(host: str, *, allow_local: bool) -> str:
    if host.startswith("["):
        try:
            address = IPv6Address(host[1:-1])
        except AddressValueError:
            raise UrlInvalid("The IPv6 address is malformed.") from None
        return f"[{_parse_literal(address, allow_local=allow_local)}]"
    name = _to_ascii(host).removesuffix(".")
    if _ENDS_IN_NUMBER.fullmatch(name):
        try:
            return _parse_literal(IPv4Address(name), allow_local=allow_local)
        except AddressValueError:
            # Browsers read 127.1 and 0x7f000001 as IPv4 addresses; nobody sells there.
            raise UrlBlocked(BLOCKED_DETAIL) from None
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise UrlInvalid("The host name is malformed.")
    if allow_local and is_localhost(name):
        return name
    if "." not in name or name.endswith(REFUSED_SUFFIXES):
        raise UrlBlocked(BLOCKED_DETAIL)
    return name


def _parse_literal(address: Address, *, allow_local: bool) -> str:
    if not allow_local and not is_public(address):
        raise UrlBlocked(BLOCKED_DETAIL)
    return str(address)


def _to_ascii(host: str) -> str:
    if host.isascii():
        return host.lower()
    # UTS-46 drops invisible characters silently; a name that has them is meant to deceive.
    if any(unicodedata.category(char) in {"Cf", "Zs", "Zl", "Zp"} for char in host):
        raise UrlInvalid("The host name contains invisible characters.")
    try:
        return idna.encode(host, uts46=True).decode("ascii").lower()
    except UnicodeError:
        raise UrlInvalid("The host name is malformed.") from None


def _clean_path(path: str) -> str:
    if not _CLEAN.fullmatch(path):
        path = quote(path, safe=_PATH_SAFE)
    if "/." in path or "%2e" in path.lower():
        path = _remove_dot_segments(path)
    return path or "/"


def _remove_dot_segments(path: str) -> str:
    kept: list[str] = []
    for segment in path.split("/")[1:]:
        plain = segment.lower().replace("%2e", ".")
        if plain == "..":
            del kept[-1:]
        elif plain != ".":
            kept.append(segment)
    if plain in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)


def is_localhost(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def host_of(url: str) -> str:
    """Host of a parsed URL, with its port where that is not the scheme's own."""
    return url.split("/", 3)[2].partition("?")[0]


def origin_of(url: str) -> str:
    return f"{url.partition(':')[0]}://{host_of(url)}"


def host_and_port(url: str) -> tuple[str, int]:
    """Host without brackets and the port that a parsed URL connects to."""
    scheme = url.partition(":")[0]
    host, port = _AUTHORITY.fullmatch(host_of(url)).groups()  # type: ignore[union-attr]
    return host.strip("[]"), int(port or DEFAULT_PORTS[scheme])


# What most shop URLs look like: nothing to decode, encode or collapse.
_PLAIN = re.compile(
    r"(https?://[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::(?!(?:80|443)\b)[1-9][0-9]{0,4})?)"
    r"((?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*)/?"
    r"(?:\?([A-Za-z0-9._~-]+=[A-Za-z0-9._~-]*(?:&[A-Za-z0-9._~-]+=[A-Za-z0-9._~-]*)*))?"
)


def normalize_url(url: str) -> str:
    """Return the identity of a parsed URL; the same page gives the same text."""
    match = _PLAIN.fullmatch(url)
    if match is None:
        return _normalize_any(url)
    origin, path, query = match.groups()
    if not query:
        return f"{origin}{path or '/'}"
    pairs = [part.partition("=") for part in query.split("&")]
    kept = sorted(pair for pair in pairs if pair[0].lower() not in TRACKING_PARAMETERS)
    return f"{origin}{path or '/'}{'?' if kept else ''}{'&'.join(map(''.join, kept))}"


@lru_cache(maxsize=8192)
def _normalize_any(url: str) -> str:
    # Each library undoes a little of the other's escaping; a few rounds settle it.
    for _ in range(5):
        before, url = url, _normalize_once(url)
        if url == before:
            break
    return url


def _normalize_once(url: str) -> str:
    try:
        url = url_normalize(url.partition("#")[0]) or url
    except ValueError:
        url = url.partition("#")[0]
    base, _, query = url.partition("?")
    kept = "&".join(part for part in query.split("&") if part and not _is_tracking(part))
    url = canonicalize_url(f"{base}?{kept}" if kept else base)
    base, mark, query = url.partition("?")
    origin_end = base.find("/", base.find("//") + 2)
    return f"{base[:origin_end]}{base[origin_end:].rstrip('/') or '/'}{mark}{query}"


def _is_tracking(part: str) -> bool:
    return unquote_plus(part.partition("=")[0]).lower() in TRACKING_PARAMETERS


def url_hash(normalized: str) -> str:
    return hashlib.sha256(normalized.encode()).hexdigest()
