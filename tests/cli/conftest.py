"""Each test runs in its own directory and environment."""

import asyncio
import functools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.testing
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.cli.listening import listen
from tests.cli.output_schema import validate
from tests.impostor import impostor
from typer.main import get_command
from typer.testing import CliRunner, Result

from taproof.cli.main import commands

__all__ = ["impostor", "listen"]  # The fixtures.
BOT_TOKEN = "123456789:AAabcdefghijklmnopqrstuvwxyz0123456"
COMMAND = [sys.executable, "-m", "taproof"]
Run = Callable[..., Result]
RunJson = Callable[..., Any]

# Typer builds all commands anew for each call, which takes longer than most commands.
vars(typer.testing)["_get_command"] = functools.cache(get_command)


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.upper().startswith("TAPROOF_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run() -> Run:
    """Run a command as a shell would. With --json, check a successful output against its schema."""

    def run(*arguments: str, **environment: str) -> Result:
        result = CliRunner().invoke(commands, list(arguments), env=environment or None, prog_name="taproof")
        if "--json" in arguments and result.exit_code == 0:
            validate(json.loads(result.stdout), *arguments[:2])
        return result

    return run


@pytest.fixture
def run_json(run: Run) -> RunJson:
    """Run a command that must succeed, with --json, and return its answer."""

    def run_json(*arguments: str) -> Any:
        result = run(*arguments, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return run_json


@pytest.fixture
def project(run_json: RunJson) -> Any:
    """The only project of the only developer in taproof.db; the key in taproof.db.key encrypts its secrets."""
    run_json("developers", "add", "ada@example.com")
    return run_json("projects", "create", "Shop 🛒")


class BotApi:
    """A Bot API server over real HTTP with only the methods that the doctor calls."""

    def __init__(self) -> None:
        self.url = ""
        self.webhook: dict[str, Any] = {"url": "", "pending_update_count": 0}
        self.settings: dict[str, Any] = {}
        self.date: str | None = None
        self.page: bytes | None = None
        self.delay = 0.0
        self.asked: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path.partition(BOT_TOKEN)[2])
        await asyncio.sleep(self.delay)
        headers = {} if self.date is None else {"Date": self.date}
        if self.page is not None:
            return web.Response(body=self.page, headers=headers)
        if request.match_info["token"] != BOT_TOKEN:
            refusal = {"ok": False, "error_code": 401, "description": "Unauthorized"}
            return web.json_response(refusal, status=401, headers=headers)
        results: dict[str, Any] = {
            "getMe": {"id": 123456789, "is_bot": True, "first_name": "Bot", "username": "shop_bot", **self.settings},
            "getWebhookInfo": self.webhook,
        }
        return web.json_response({"ok": True, "result": results[request.match_info["method"]]}, headers=headers)


@pytest.fixture
async def bot_api() -> Any:
    api = BotApi()
    application = web.Application()
    for folder in ("", "test/"):
        application.router.add_get(f"/bot{{token}}/{folder}{{method}}", api.answer)
    async with TestServer(application) as server:
        api.url = str(server.make_url("")).rstrip("/")
        yield api
