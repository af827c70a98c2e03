"""Planted secrets, and a place where nothing may hold them."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus


class Watch:
    """A working folder, home and scratch space of a run, and the secrets that it knew.

    Args:
        root: an empty place; what the secrets are given in must lie elsewhere.
        secrets: that no output and no file below `root` may hold, in any form.
    """

    def __init__(self, root: Path, secrets: Iterable[str]) -> None:
        self.root = root
        self._forms: set[str] = set()
        self.add(secrets)
        for folder in ("home", "scratch"):
            (root / folder).mkdir(parents=True, exist_ok=True)

    def add(self, secrets: Iterable[str]) -> None:
        """Watch for these, too."""
        self._forms.update(form for secret in secrets for form in _forms(secret))

    def environment(self) -> dict[str, str]:
        """This process's, with a home of its own and without its clouds."""
        clouds = ("AWS_", "AZURE_", "GOOGLE_", "DELTAPROTO_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(clouds)}
        return {**kept, **self.places()}

    def places(self) -> dict[str, str]:
        """Where a run leaves files."""
        home, scratch = str(self.root / "home"), str(self.root / "scratch")
        kept = {"XDG_CACHE_HOME": f"{home}/cache", "TMPDIR": scratch}
        return {**kept, "AWS_EC2_METADATA_DISABLED": "true"}

    def look(self, *texts: str) -> None:
        """Fails where a secret stands in a text, or in a file below the root."""
        for text in texts:
            self._search("output", text.encode("utf-8", "surrogateescape"))
        for file in self.root.rglob("*"):
            if file.is_file():
                self._search(str(file), file.read_bytes())

    def _search(self, where: str, data: bytes) -> None:
        for form in self._forms:
            at = data.find(form.encode())
            assert at < 0, f"{where} holds a secret: {data[max(0, at - 200) : at + 20]!r}"


def _forms(secret: str) -> Iterator[str]:
    yield from {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}
    yield from {json.dumps(secret)[1:-1], repr(secret)[1:-1]}
    # Base64 of a text that has the secret in it looks different at each of three places.
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + secret.encode())
        if len(encoded) > 12:
            yield encoded[(4 if before else 0) : -4].decode()
