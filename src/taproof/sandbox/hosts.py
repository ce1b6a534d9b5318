"""The host names of this sandbox. Its pages answer only at these names, and webhooks on other hosts must use HTTPS."""

from urllib.parse import urlsplit

from taproof.core.webhook_url import is_loopback


class OwnHosts:
    """The loopback names of this machine, and the host of the address that clients use."""

    def __init__(self, base_url: str) -> None:
        self._host = (urlsplit(base_url).hostname or "").lower()

    def include(self, host: str) -> bool:
        """Return whether `host`, without a port, is one of the sandbox's own."""
        host = host.lower().rstrip(".")
        return host == self._host or host.endswith(".localhost") or is_loopback(host)

    def include_authority(self, authority: str) -> bool:
        """Return the same for the value of a Host header, which may have a port."""
        try:
            parts = urlsplit(f"//{authority}")
            _ = parts.port
        except ValueError:
            return False
        return parts.netloc == authority and "@" not in authority and self.include(parts.hostname or "")
