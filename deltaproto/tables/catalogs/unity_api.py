"""Requests to Unity Catalog's REST API: token, retries, pages and errors.

Source: Unity Catalog's `api/all.yaml`, and "Unity Catalog tables" of the Databricks REST API: a
page may be empty although another one follows. Redirects could leak the token: none is followed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlencode, urlsplit

from deltaproto import __version__
from deltaproto.errors import ErrorCode, TableError
from deltaproto.redaction import Redactor
from deltaproto.tables.catalogs.backoff import (
    UNREACHABLE,
    TransientError,
    parse_retry_after,
    with_backoff,
)
from deltaproto.tables.catalogs.interface import CatalogCounts, CatalogUnavailable, Clock
from deltaproto.tables.catalogs.unity_token import HINT, Token, base_url, find_token
from deltaproto.tables.storage.errors import UNKNOWN_AUTHORITY_HINT

if TYPE_CHECKING:
    import urllib3

_API = "/api/2.1/unity-catalog"
_TRANSIENT = (429, 500, 502, 503, 504)


class UnityApi:
    """The API of one server.

    Args:
        authority: host, and port if necessary. Servers on this machine are reached without TLS.
        counts: receives the numbers of requests.
    """

    def __init__(self, authority: str, counts: CatalogCounts, clock: Clock) -> None:
        self._authority, self._url = authority, base_url(authority)
        self._counts, self._clock = counts, clock
        self._token = find_token(authority)

    @property
    def token_source(self) -> str | None:
        """The source of the token, for display; None without a token."""
        return self._token and self._token.source

    def pages(self, kind: str, where: Mapping[str, str]) -> Iterator[list[dict[str, Any]]]:
        """Yield the objects of a list, one page at a time. Raises like `request`."""
        token = ""
        while True:
            query = {**where, "max_results": "0", **({"page_token": token} if token else {})}
            found = self.request(f"{kind}?{urlencode(query)}")
            page = found.get(kind) or []
            if not isinstance(page, list) or not all(isinstance(each, dict) for each in page):
                raise self.malformed(f"{kind} is not a list of objects")
            yield page
            before, token = token, str(found.get("next_page_token") or "")
            if not token:
                return
            if token == before:
                raise self.malformed("the same page token twice")

    def request(
        self, path: str, body: Mapping[str, Any] | None = None, *, method: str | None = None
    ) -> dict[str, Any]:
        """Return the response to GET, POST with a body, or another method.

        Args:
            path: below the API's own.

        Raises:
            TableError: when the server refuses the request, or does not answer it.
        """

        def once(token: Token | None) -> dict[str, Any]:
            url = f"{self._url}{_API}/{path}"
            return self._parse(send(url, token and token.text, body, method), token)

        return with_backoff(self._with_new_token(once), self._counts, self._clock)

    def malformed(self, what: str) -> TableError:
        """Return the error of a response that is not of this API."""
        cause = f"{self._authority} does not respond like Unity Catalog: {what}"
        return TableError(ErrorCode.STORAGE, cause, "check that its API is at this host")

    def _with_new_token(
        self, once: Callable[[Token | None], dict[str, Any]]
    ) -> Callable[[], dict[str, Any]]:
        """Return `once`, repeated if the token was replaced in its file since it was read."""

        def twice() -> dict[str, Any]:
            # Another thread may replace the client's token while this one is in use.
            used = self._token
            try:
                return once(used)
            except CatalogUnavailable as error:
                if error.code is not ErrorCode.PERMISSION_DENIED:
                    raise
                found = self._token = find_token(self._authority)
                if found == used:
                    raise
            return once(found)

        return twice

    def _parse(self, answer: Answer, token: Token | None) -> dict[str, Any]:
        if answer.status is None:
            cause = f"{self._authority} does not answer: {answer.text}"
            hint = "check the host, its port and the network"
            if "CERTIFICATE_VERIFY_FAILED" in answer.text:
                hint = UNKNOWN_AUTHORITY_HINT
            unreachable = CatalogUnavailable(ErrorCode.STORAGE, cause, hint)
            raise TransientError(unreachable, tries=UNREACHABLE)
        if answer.status != 200:
            raise self._error(answer, token)
        try:
            found = json.loads(answer.text)
            if "\\ud" in answer.text or "\\uD" in answer.text:
                # Unpaired surrogates cannot be sent, stored or shown.
                json.dumps(found, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self.malformed("no JSON object")
        return found

    def _error(self, answer: Answer, token: Token | None) -> Exception:
        message = _message(answer.text, token)
        text = f"{self._authority} returned HTTP {answer.status}"
        text += f": {message}" if message else ""
        match answer.status:
            case 401:
                cause = (
                    f"refuses the token of {token.source}: it is wrong or expired"
                    if token
                    else "requires a token, and none was found"
                )
                return CatalogUnavailable(
                    ErrorCode.PERMISSION_DENIED, f"{self._authority} {cause}", HINT
                )
            case 403:
                hint = "request USE CATALOG, USE SCHEMA and BROWSE or SELECT"
                return TableError(ErrorCode.PERMISSION_DENIED, text, hint)
            case 404:
                return TableError(ErrorCode.NOT_FOUND, text, "check the name, and your permissions")
            case status if status in _TRANSIENT:
                pause = parse_retry_after(answer.retry_after, self._clock.now())
                failed = TableError(ErrorCode.STORAGE, text, "run the command again later")
                throttled = status == 429 or pause is not None
                return TransientError(failed, throttled=throttled, pause=pause)
            case _:
                hint = "check that Unity Catalog's API is at this host"
                return TableError(ErrorCode.STORAGE, text, hint)


def _message(text: str, token: Token | None) -> str:
    """Return the message in a response, without the token that was sent."""
    try:
        message = str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    line = " ".join(message.split())[:300]
    return Redactor({"token": token.text if token else ""})(line)


_SECONDS = 30
_CONNECTIONS = 32
_MOST_BYTES = 256 << 20


class Answer(NamedTuple):
    """A response, or the reason why there is none."""

    status: int | None
    """None: the server did not answer"""
    text: str
    retry_after: str | None = None


def send(
    url: str, token: str | None, body: Mapping[str, Any] | None = None, method: str | None = None
) -> Answer:
    """Send GET, or POST with a JSON body, or another method. Never raises.

    Uses the proxies of the environment. Connections stay open for later requests.
    """
    from urllib3.exceptions import HTTPError

    headers = {"Accept": "application/json", "User-Agent": f"deltaproto/{__version__}"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        answer = _connections(_proxy(url), os.getpid()).request(
            method or ("GET" if body is None else "POST"),
            url,
            headers=headers,
            json=body,
            redirect=False,
            retries=False,
            preload_content=False,
        )
    except (HTTPError, OSError) as error:
        return Answer(None, _reason(error))
    try:
        text = answer.read(_MOST_BYTES).decode("utf-8", "replace")
    except (HTTPError, OSError) as error:
        if answer.status == 200:
            return Answer(None, _reason(error))
        text = ""
    finally:
        # A connection whose response was read to its end is back in the pool by now.
        answer.close()
    return Answer(answer.status, text, answer.headers.get("Retry-After"))


@lru_cache(maxsize=8)
def _connections(proxy: str | None, process: int) -> urllib3.PoolManager:
    """Return the open connections of a process: a fork must not use those of its parent."""
    import ssl

    import urllib3

    # Loading the certificates takes longer than most requests.
    shared: dict[str, Any] = {
        "maxsize": _CONNECTIONS,
        "timeout": _SECONDS,
        "ssl_context": ssl.create_default_context(),
    }
    if proxy is None:
        return urllib3.PoolManager(**shared)
    credentials = urllib3.util.parse_url(proxy).auth
    headers = credentials and urllib3.make_headers(proxy_basic_auth=unquote(credentials))
    return urllib3.ProxyManager(proxy, proxy_headers=headers or None, **shared)


def _proxy(url: str) -> str | None:
    """Return the URL of the environment's proxy for a request."""
    from urllib.request import getproxies, proxy_bypass

    to = urlsplit(url)
    proxy = None if proxy_bypass(to.netloc) else getproxies().get(to.scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _reason(error: BaseException) -> str:
    """Return the system's words for the cause of an error, or else the kind of error."""
    each: BaseException | None = error
    while each is not None:
        if text := getattr(each, "strerror", None):
            return str(text)
        each = each.__cause__ or each.__context__
    return "timed out" if "Timeout" in type(error).__name__ else type(error).__name__
