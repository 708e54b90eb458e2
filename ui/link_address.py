"""Where students find this server: its address as this browser calls it, or the one in the local network."""

import ipaddress
import socket
from urllib.parse import quote, urlencode, urlsplit

import streamlit as st

from ui import address

LONGEST = 4000  # characters of a link; proxies and chat programs cut longer ones
LONGEST_SENDER = 100  # characters of an address that somebody came from
FORWARDED = ("X-Forwarded-For", "Forwarded", "X-Real-Ip", "Via")  # what proxies add


def base() -> str:
    """The address of the app as this browser calls it, without a page; "http://localhost:8501" if unknown."""
    url = (st.context.url or "http://localhost:8501").rstrip("/")
    return url.removesuffix(f"/{address.page()}")


def is_local(url: str) -> bool:
    """Whether only this machine can open an address.

    >>> is_local("http://localhost:8501/tokens"), is_local("http://127.0.0.1"), is_local("http://10.0.0.5:8501")
    (True, True, False)
    """
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def serves_only_here() -> bool:
    """Whether the server answers only this machine. One that answers all can be called localhost, too."""
    return is_local(f"http://{st.get_option('server.address') or '0.0.0.0'}")


def sender() -> str:
    """From where this session's browser came; "" for this machine itself.

    Behind a proxy on this machine it is what the proxy says: uvicorn takes that from no other machine.
    """
    told = next((st.context.headers.get(name) for name in FORWARDED if st.context.headers.get(name)), "")
    return str(st.context.ip_address or told or "")[:LONGEST_SENDER]


def from_here() -> bool:
    """Whether whoever looks sits at this machine: no other machine and no proxy is between."""
    return not sender() and is_local(f"http://{st.context.headers.get('Host') or '0.0.0.0'}")


def lan() -> str | None:
    """This machine's address in the local network; None if there is none. Nothing is sent to find it.

    A datagram socket that is "connected" to another address sends no packet: the system only looks up by
    which of its own addresses it would go out. 192.0.2.1 is kept for documentation and never anybody's
    (RFC 5737).
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            found = str(probe.getsockname()[0])
        except OSError:
            return None
    return None if ipaddress.ip_address(found).is_loopback or found == "0.0.0.0" else found


def in_network(url: str) -> str:
    """The same address for others: the host of a local one is replaced by this machine's, if it has one."""
    parts = urlsplit(url)
    host = lan() if is_local(url) else None
    if host is None:
        return url
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path}"


def checked(url: str) -> str | None:
    """An address that somebody typed, without what comes after its path; None unless it is one of the web.

    >>> checked(" loupe.example/app/ "), checked("http://10.0.0.5:8501"), checked("javascript:alert(1)")
    ('http://loupe.example/app', 'http://10.0.0.5:8501', None)
    """
    typed = url.strip()
    if "://" not in typed and not typed.lower().startswith(("javascript:", "data:")):
        typed = f"http://{typed}"
    try:
        parts = urlsplit(typed)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    host = parts.hostname or ""
    fine = parts.scheme in ("http", "https") and host and all(c.isalnum() or c in ".-_:" for c in host)
    if not fine:
        return None
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{port}{quote(parts.path.rstrip('/'), safe='/%')}"


def link(url: str, page: str, query: dict[str, str]) -> str:
    """The whole link.

    >>> link("http://10.0.0.5:8501", "tokens", {"text": "a cat", "set": '{"x":1}'})
    'http://10.0.0.5:8501/tokens?text=a%20cat&set=%7B%22x%22:1%7D'
    """
    way = "" if page == "home" else f"/{page}"
    asked = urlencode(query, quote_via=quote, safe=":,")
    return f"{url}{way or '/'}{'?' if asked else ''}{asked}"
