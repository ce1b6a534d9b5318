"""Killing the service (SIGKILL) between consume, store and redeem gives no sign-in twice, and loses none.

The short form kills each store's service five times. `--hypothesis-profile=soak` kills it 50 times.
"""

import asyncio
import contextlib
import random
from collections import Counter
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conftest import Figure
from tests.e2e.conftest import TRUST, Developer, Phone, Service, launch, make_phone
from tests.e2e.openid import DEEPLINK, Client, answer_of, create_client
from tests.faults.conftest import new_database
from tests.faults.place import assert_sound, rows

from taproof.core.clock import SECOND, system_clock
from taproof.core.encryption import new_master_key
from taproof.core.entropy import system_entropy

SIGN_INS = 16
"""The number of sign-ins that are finished and redeemed at the same time."""
SEED = 20_261_123
LONGEST_DELAY = 0.01
"""Seconds between an answer and the kill: the time of a few commits."""
MARGIN = 10 * SECOND
"""The time (ms) for which a code must still live if its redemption is to be judged."""
STORED = """
SELECT a.id, s.status, a.code_expires_at, a.redeemed_at FROM oidc_authorizations a
JOIN sessions s ON s.day = a.session_day AND s.token_hash = a.session_hash"""


@dataclass
class SignIn:
    """A sign-in, as the browser and the application know it."""

    page: str
    code: str | None = None
    tokens: list[dict[str, Any]] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.page.rpartition("/")[2]


class Applications:
    """The browser and the application of all sign-ins. They stay the same while the service is replaced."""

    def __init__(self, shop: Client, phone: Phone, base_url: str) -> None:
        self.shop = shop
        self.phone = phone
        self.http = httpx.AsyncClient(base_url=base_url, timeout=60, verify=TRUST)
        self.answers = 0
        self._answered = asyncio.Condition()

    def move(self, service: Service) -> None:
        """Continue with the restarted service, which has another port and no users."""
        self.http.base_url = httpx.URL(service.base_url)
        self.phone.client.base_url = httpx.URL(service.base_url)
        self.phone = make_phone(self.phone.client)

    async def confirmed(self) -> SignIn:
        """Return a sign-in that its user has confirmed."""
        begun = await self.http.get("/oidc/authorize", params=self.shop.request())
        assert begun.status_code == 303, begun.text
        sign_in = SignIn(httpx.URL(begun.headers["location"]).path)
        shown = (await self.http.get(sign_in.page)).text
        found = DEEPLINK.search(shown)
        assert found, shown
        await asyncio.to_thread(self.phone.sign_in, {"deeplink": unescape(found[1])})
        return sign_in

    async def finish(self, sign_in: SignIn) -> None:
        """Load the page, which leads back with the code, and redeem it, as long as the service lives."""
        with contextlib.suppress(httpx.TransportError):
            assert await self.load(sign_in) == 303
            await self._note()
            assert (await self.redeem(sign_in)).status_code == 200
            await self._note()

    async def load(self, sign_in: SignIn) -> int:
        """Load the page, record the code to which it leads, and return the status."""
        response = await self.http.get(sign_in.page)
        if response.status_code == 303:
            code = answer_of(response)["code"]
            assert sign_in.code in {None, code}
            sign_in.code = code
        return response.status_code

    async def redeem(self, sign_in: SignIn) -> httpx.Response:
        """Redeem the code, and record the tokens."""
        form = {"grant_type": "authorization_code", "code": sign_in.code, "code_verifier": self.shop.verifier}
        form["redirect_uri"] = self.shop.created["redirect_uris"][0]
        response = await self.http.post("/oidc/token", data=form, auth=self.shop.auth)
        if response.status_code == 200:
            sign_in.tokens.append(response.json())
        return response

    async def userinfo(self, sign_in: SignIn) -> int:
        """Ask for the user with the tokens of a sign-in, and return the status."""
        headers = {"Authorization": f"Bearer {sign_in.tokens[0]['access_token']}"}
        return (await self.http.get("/oidc/userinfo", headers=headers)).status_code

    async def _note(self) -> None:
        async with self._answered:
            self.answers += 1
            self._answered.notify_all()

    async def until_answers(self, number: int) -> None:
        async with self._answered:
            await self._answered.wait_for(lambda: self.answers >= number)


def kill(service: Service) -> None:
    service.process.kill()
    service.process.wait()


async def check(applications: Applications, sign_in: SignIn, stored: tuple[str, int | None, int | None]) -> str:
    """Continue a sign-in after the restart, and return the step at which it was interrupted.

    Args:
        applications: the browser and the application.
        sign_in: what they had seen before.
        stored: the status of the session, the expiry of the code and the time of the redemption, before the restart.
    """
    status, code_expires_at, redeemed_at = stored
    # Consuming the session and storing the code are one step, and each step is stored before it is answered.
    assert (status, code_expires_at is None) in {("confirmed", True), ("used", False)}
    assert sign_in.code is None or code_expires_at is not None
    assert not sign_in.tokens or redeemed_at is not None
    if redeemed_at is None:
        if code_expires_at is not None and code_expires_at < system_clock() + MARGIN:
            return "too slow"
        step = "confirmed" if code_expires_at is None else "stored" if sign_in.code is None else "answered"
        # Whether or not the browser had the code, it gets the one that works.
        assert await applications.load(sign_in) == 303
        redeemed = await applications.redeem(sign_in)
        assert redeemed.status_code == 200, redeemed.text
    else:
        step = "redeemed, with an answer" if sign_in.tokens else "redeemed, without an answer"
        assert await applications.load(sign_in) == 200
    if sign_in.tokens:
        assert await applications.userinfo(sign_in) == 200
    again = await applications.redeem(sign_in)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert len(sign_in.tokens) <= 1
    if sign_in.tokens:
        assert await applications.userinfo(sign_in) == 401
    return step


@pytest.mark.parametrize("driver", ["sqlite", "postgres"])
async def test_a_killed_service_gives_no_sign_in_twice_and_loses_none(
    driver: str, tmp_path: Path, figure: Figure, *, soak: bool
) -> None:
    """After each kill, an unredeemed code works once, even if it was never returned. A redeemed one gives nothing."""
    kills = 50 if soak else 5
    draw = random.Random(SEED)  # noqa: S311 — the same moments in every run, as far as a machine can repeat them.
    steps: Counter[str] = Counter()
    with new_database(driver, tmp_path) as url, httpx.Client(timeout=60, verify=TRUST) as http:

        def start() -> Service:
            options = ("--database", url, "--generate-limit-project", "off")
            return launch(tmp_path, *options, TAPROOF_MASTER_KEY=master_key)

        master_key = new_master_key(system_entropy)
        service = await asyncio.to_thread(start)
        try:
            http.base_url = httpx.URL(service.base_url)
            developer = Developer(http, service.access_token)
            shop = create_client(developer, developer.create_project("Shop").id)
            applications = Applications(shop, make_phone(http), service.base_url)
            for number in range(kills):
                sign_ins = [await applications.confirmed() for _ in range(SIGN_INS)]
                applications.answers = 0
                # Each sign-in has two answers. The kills are spread over all of them.
                finishing = asyncio.gather(*(applications.finish(each) for each in sign_ins))
                await applications.until_answers(2 * SIGN_INS * number // kills)
                await asyncio.sleep(draw.uniform(0, LONGEST_DELAY))
                kill(service)
                await finishing
                await assert_sound(url)
                stored = {row[0]: row[1:] for row in await rows(url, STORED)}
                service = await asyncio.to_thread(start)
                applications.move(service)
                steps.update([await check(applications, each, stored[each.id]) for each in sign_ins])
                applications.http.cookies.clear()
            await applications.http.aclose()
        finally:
            service.stop()
    figure("kills", kills)
    figure("sign-ins", kills * SIGN_INS)
    figure("interrupted", dict(steps))
    # The kills hit every step.
    assert steps["confirmed"]
    assert steps["stored"] + steps["answered"]
    assert steps["redeemed, with an answer"]
    assert steps["too slow"] < kills * SIGN_INS // 2
