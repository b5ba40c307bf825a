"""Who may do what: bearer tokens with roles, and checks of where a request comes from."""

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from lamaml.errors import InvalidArgument, LamamlError, unknown_name
from lamaml.serving.config import ROLES, Server, Token


class Refused(LamamlError):
    """A request without a token, with an unknown one, or with one of a lower role.

    Attributes:
      status: 401 or 403.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def new_token(role: str, name: str) -> tuple[str, Token]:
    """Return a new random token, and its entry in the configuration."""
    if role not in ROLES:
        raise unknown_name("role", role, ROLES)
    token = secrets.token_urlsafe(32)
    return token, Token(name=name, role=role, sha256=_digest(token))


def check_exposed(server: Server, tokens: Sequence[Token]) -> None:
    """Raise InvalidArgument if other machines could reach a service that has no tokens."""
    if not tokens and not _is_loopback(server.host):
        raise InvalidArgument(
            f"host = {server.host!r}: other machines can reach it, and there are no tokens; add "
            "[[tokens]] to the configuration (lamaml serve --new-token admin), or use 127.0.0.1"
        )


class Guard:
    """Checks requests before anything else is read.

    Without tokens everybody on this machine may do everything, but no web page may: requests must
    be addressed to this machine by name, and must not come from a page of another origin.

    Args:
      tokens: those of the configuration; none lets everybody in.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tuple(tokens)

    def check(self, headers: Mapping[str, str], role: str) -> None:
        """Raise Refused unless a request with these headers has a role, or a higher one."""
        host = headers.get("host", "")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            raise Refused(f"a page of {origin!r:.80} may not use this service", 403)
        if not self._tokens:
            if not _is_loopback(urlsplit(f"//{host}").hostname or ""):
                raise Refused(f"host {host!r:.80}: address the service as localhost", 403)
            return
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not given:
            raise Refused("send a token: Authorization: Bearer TOKEN", 401)
        held = self._role(given.strip())
        if held is None:
            raise Refused("unknown token", 401)
        if ROLES.index(held) < ROLES.index(role):
            raise Refused(f"a token of role {held!r} may not do this; it needs {role!r}", 403)

    def _role(self, given: str) -> str | None:
        """Return the role of a token; every stored digest is compared, in constant time."""
        digest, found = _digest(given), None
        for token in self._tokens:
            if hmac.compare_digest(token.sha256, digest):
                found = token.role
        return found


def _digest(token: str) -> str:
    # Tokens are random: unlike a password, their digest cannot be guessed from a dictionary.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
