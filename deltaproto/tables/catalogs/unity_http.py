"""One HTTP request to a Unity Catalog server. Redirects could leak the token: none is followed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from http.client import HTTPException
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from deltaproto import __version__

_SECONDS = 30
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

    Uses the proxies of the environment.
    """
    headers = {"Accept": "application/json", "User-Agent": f"deltaproto/{__version__}"}
    data = None
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if body is not None:
        data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
    request = Request(url, data, headers, method=method)  # noqa: S310
    try:
        with _opener().open(request, timeout=_SECONDS) as answer:
            return Answer(answer.status, _text(answer))
    except HTTPError as refused:
        with refused:
            return Answer(refused.code, _text_if_any(refused), refused.headers.get("Retry-After"))
    except (URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        return Answer(None, getattr(reason, "strerror", None) or type(reason).__name__)


def _text(answer: IO[bytes]) -> str:
    return answer.read(_MOST_BYTES).decode("utf-8", "replace")


def _text_if_any(answer: IO[bytes]) -> str:
    try:
        return _text(answer)
    except (HTTPException, OSError):
        return ""


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@cache
def _opener() -> OpenerDirector:
    return build_opener(_NoRedirects)
