"""The webhook secret and its rotation over HTTP (contract.md, Webhooks)."""

from typing import Any

import pytest
from tests.api.conftest import START, Api, assert_error
from tests.api.test_deliveries import own_project

from taproof.core.clock import DAY, HOUR, iso8601

JSON = {"Content-Type": "application/json"}


async def test_a_rotation_from_beginning_to_promotion(api: Api) -> None:
    """rotate, read and promote answer with the same three fields; the secret key does not change."""
    token, path, project = await own_project(api)
    old = project["webhook_secret"]
    begun = await api.post(f"{path}/webhook-secret/rotate", token, {"overlap_hours": 48})
    new = begun["next_webhook_secret"]
    assert new not in {None, old}
    assert begun == {"webhook_secret": old, "next_webhook_secret": new, "promoted_at": iso8601(START + 48 * HOUR)}
    assert await api.get(f"{path}/webhook-secret", token) == begun
    sentence = assert_error(await api.call("POST", f"{path}/webhook-secret/rotate", token), 400, "rotation_under_way")
    assert begun["promoted_at"] in sentence
    ended = await api.post(f"{path}/webhook-secret/promote", token, None)
    assert ended == {"webhook_secret": new, "next_webhook_secret": None, "promoted_at": None}
    assert await api.get(f"{path}/webhook-secret", token) == ended
    assert_error(await api.call("POST", f"{path}/webhook-secret/promote", token), 400, "no_rotation")
    assert (await api.get(path, token))["secret_key_preview"] == project["secret_key_preview"]
    for shown in (await api.get(path, token), await api.get("/projects", token)):
        assert old not in str(shown)
        assert new not in str(shown)


@pytest.mark.parametrize(
    ("content", "headers"),
    [
        (None, {}),
        (b"", {}),
        (b"", JSON),
        (b"", {"Content-Type": "text/plain"}),
        (b"{}", JSON),
        (b'{"overlap_hours": 24}', JSON),
    ],
)
async def test_rotate_takes_24_hours_unless_told_otherwise(
    api: Api, content: bytes | None, headers: dict[str, str]
) -> None:
    """The body is optional, whatever Content-Type the client sends."""
    token, path, _ = await own_project(api)
    response = await api.call("POST", f"{path}/webhook-secret/rotate", token, content=content, headers=headers)
    assert response.status_code == 200, response.text
    assert response.json()["promoted_at"] == iso8601(START + DAY)


async def test_rotate_takes_an_empty_body_in_chunks(api: Api) -> None:
    """An empty body in chunks, without Content-Length, is accepted."""

    async def nothing() -> Any:
        for _ in range(3):
            yield b""

    token, path, _ = await own_project(api)
    response = await api.call("POST", f"{path}/webhook-secret/rotate", token, content=nothing())
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    ("content", "headers", "sentence"),
    [
        (b'{"overlap_hours": 0}', JSON, "overlap_hours must be a whole number from 1 to 168."),
        (b'{"overlap_hours": 169}', JSON, "overlap_hours must be a whole number from 1 to 168."),
        (b'{"overlap_hours": -1}', JSON, "overlap_hours must be"),
        (b'{"overlap_hours": ' + b"9" * 4_000 + b"}", JSON, "overlap_hours must be"),
        (b'{"overlap_hours": 1.5}', JSON, "overlap_hours must be a whole number."),
        (b'{"overlap_hours": "24"}', JSON, "overlap_hours must be a whole number."),
        (b'{"overlap_hours": true}', JSON, "overlap_hours must be a whole number."),
        (b'{"overlap_hours": null}', JSON, "overlap_hours must be a whole number."),
        (b'{"hours": 1}', JSON, "hours is not a field of this request."),
        (b"[]", JSON, "must be a JSON object"),
        (b"null", JSON, "must be a JSON object"),
        (b" ", JSON, "not valid JSON"),
        (b'{"overlap_hours": 24}', {}, "Content-Type: application/json"),
        (b'{"overlap_hours": 24}', {"Content-Type": "text/plain"}, "Content-Type: application/json"),
    ],
)
async def test_a_bad_rotation_is_400_and_begins_nothing(
    api: Api, content: bytes, headers: dict[str, str], sentence: str
) -> None:
    """A body that is present must follow all rules of bodies."""
    token, path, _ = await own_project(api)
    response = await api.call("POST", f"{path}/webhook-secret/rotate", token, content=content, headers=headers)
    assert sentence in assert_error(response, 400, "invalid_request")
    assert (await api.get(f"{path}/webhook-secret", token))["next_webhook_secret"] is None
