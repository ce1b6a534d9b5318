"""The developer API, its documents, the console and the OpenID provider, which API sign-ins do not need.

Their libraries take longer to load than everything else. So they are loaded and built in a thread once the server
listens, and their first requests wait.
"""
# ruff: noqa: PLC0415 — see above.

import asyncio
import threading
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from starlette.types import ASGIApp, Receive, Scope, Send

from taproof.config.settings import Settings
from taproof.core.brand import Brand
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.runtime.services import Services

if TYPE_CHECKING:
    from taproof.api.developer import DeveloperApi
    from taproof.console.app import Console
    from taproof.console.sandbox_sign_in import SandboxDeveloper
    from taproof.oidc.app import OpenidProvider


T = TypeVar("T")


class MadeOnce(Generic[T]):
    """Calls `make` once, however many threads need its result at the same time. `functools.cache` would call it again.

    If the call fails, the next one tries again.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: list[T] = []

    def __call__(self) -> T:
        """Return what `make` returned, after waiting for a call in another thread."""
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]


class LaterApp:
    """An application that is built in a thread: by `build`, or for its first request. `make` is called once."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = make
        self._building: asyncio.Task[ASGIApp] | None = None
        self.app: ASGIApp | None = None

    async def build(self) -> ASGIApp:
        """Return the application, which is built first if necessary."""
        if self._building is None:
            self._building = asyncio.create_task(asyncio.to_thread(self._make))
        # The other callers wait for the same task, so the end of one must not cancel it.
        self.app = await asyncio.shield(self._building)
        return self.app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        app = self.app or await self.build()
        await app(scope, receive, send)


class Pages:
    """The applications of one process. `build` and their first requests build them."""

    def __init__(
        self, settings: Settings, services: Services, sandbox_developer: "SandboxDeveloper | None" = None
    ) -> None:
        self._settings = settings
        self._services = services
        self._sandbox_developer = sandbox_developer
        self._brand = Brand(settings.console_name, settings.console_logo)
        self._made_developer_api = MadeOnce(lambda: developer_api(services).build_app())
        self._made_console = MadeOnce(self._make_console)
        self._made_openid = MadeOnce(self._make_openid)
        self.developer_api: Final = LaterApp(self._made_developer_api)
        """Serves everything below /api/v1/dev/."""
        self.documents: Final = LaterApp(self._make_documents)
        """Serves /openapi.json, /docs and its stylesheet."""
        self.console: Final = LaterApp(lambda: self._made_console().app)
        """Serves /console and everything below it."""
        self.openid_calls: Final = LaterApp(lambda: self._made_openid().calls)
        """Serves the paths of the OpenID provider that applications call."""
        self.openid_pages: Final = LaterApp(lambda: self._made_openid().pages)
        """Serves the pages of the OpenID provider."""

    async def build(self) -> None:
        """Build everything but the documents."""
        for each in (self.openid_pages, self.openid_calls, self.developer_api, self.console):
            await each.build()

    async def run_until(self, stopping: asyncio.Event) -> None:
        """Serve the console's live list until the process stops."""
        await self._made_console().live.run_until(stopping)

    def _make_documents(self) -> ASGIApp:
        from taproof.api.openapi.serving import build_documents

        return build_documents(self._made_developer_api())

    def _make_console(self) -> "Console":
        from taproof.console.app import Console

        services = self._services
        console = Console(
            services,
            services.encryptor,
            system_clock,
            system_entropy,
            base_url=self._settings.base_url,
            brand=self._brand,
            version=version("taproof"),
            limits=services.limits,
            sandbox=self._settings.sandbox,
            sandbox_developer=self._sandbox_developer,
        )
        console.load_templates()
        return console

    def _make_openid(self) -> "OpenidProvider":
        from taproof.oidc.app import OpenidProvider

        services = self._services
        provider = OpenidProvider(
            services.openid,
            system_clock,
            issuer=self._settings.base_url,
            brand=self._brand,
            limits=services.limits,
            metrics=services.metrics,
        )
        provider.load_templates()
        return provider


def load_modules() -> None:
    """Import what the applications need, so that processes that are forked from this one share its memory."""
    import taproof.api.developer
    import taproof.api.openapi.serving
    import taproof.console.app
    import taproof.oidc.app  # noqa: F401


def developer_api(services: Services) -> "DeveloperApi":
    """Return the developer API on these services."""
    from taproof.api.developer import DeveloperApi

    return DeveloperApi(services, services.metrics, services.limits)
