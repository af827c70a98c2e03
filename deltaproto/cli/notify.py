"""Posts a message to a webhook, such as Slack's, Mattermost's or Teams'."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from deltaproto.errors import UsageError

_SECONDS = 10
_MOST_LETTERS = 3000
"""Slack cuts longer texts off"""


def require_hook(url: str) -> str:
    """Return the address of a webhook.

    Raises:
        UsageError: if it is not one. The address is a secret, so it is not repeated.
    """
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isascii()
    except ValueError:
        valid = False
    if not valid or any(letter <= " " for letter in url):
        raise UsageError(
            "--notify takes the address of a webhook",
            "pass a URL that begins with https:// or http://",
        )
    return url


def post_message(url: str, text: str) -> str | None:
    """Post `{"text": …}` as JSON. Return why that failed, without the address, or None.

    Redirects are not followed, and nothing is retried.
    """
    # Slack's escapes: without them a name such as <!channel> would alert everyone.
    for letter, escape in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(letter, escape)
    if len(text) > _MOST_LETTERS:
        text = f"{text[:_MOST_LETTERS]}…"
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked
        url,
        json.dumps({"text": text}).encode(),
        {"Content-Type": "application/json", "User-Agent": "deltaproto"},
    )
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=_SECONDS):
            return None
    except urllib.error.HTTPError as error:
        error.close()
        return f"the webhook answered {error.code}"
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        kind = reason.strerror if isinstance(reason, OSError) else None
        return f"the webhook cannot be reached: {kind or type(reason).__name__}"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None
