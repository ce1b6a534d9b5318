"""The webhook client accepts every response that the installed curl accepts as a success."""

import asyncio

import pytest
from tests.webhooks.receiver import opened, receiving, signed
from tests.webhooks.unusual_answers import CLOSED, INVALID, KEPT

_CURL = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-m", "3", "--noproxy", "*", "--data", "{}")


async def curl(url: str) -> bool:
    """Return whether curl ends without an error and with a 2xx status."""
    process = await asyncio.create_subprocess_exec(*_CURL, url, stdout=asyncio.subprocess.PIPE)
    status, _ = await process.communicate()
    return process.returncode == 0 and status.startswith(b"2")


async def test_what_curl_accepts_is_accepted(subtests: pytest.Subtests) -> None:
    """Every response that the installed curl accepts is accepted. Some releases of curl refuse some of them."""
    accepted = 0

    async def close(writer: asyncio.StreamWriter) -> None:
        writer.write(reply)
        writer.close()

    async with opened(timeout=60) as client:
        for answers, closes in ((KEPT, False), (CLOSED, True), (INVALID, True)):
            for name, reply in answers.items():
                async with receiving(close if closes else reply) as receiver:
                    url = f"http://127.0.0.1:{receiver.port}/"
                    if await curl(url):
                        accepted += 1
                        with subtests.test(name, closes=closes):
                            assert (await client.post(signed(url))).delivered
    assert accepted >= 40
