"""The `webhooks` of the OpenAPI document describe exactly what is sent (contract.md, Webhooks)."""

import json
import re
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from tests.api.conftest import Api
from tests.api.test_deliveries import own_project

from taproof.contract.delivery import ATTEMPTS_SHOWN, EventType, ShownError
from taproof.contract.project import ProjectEvent
from taproof.core.clock import MINUTE
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import ProjectChanges
from taproof.service.housekeeping import Housekeeping
from taproof.service.webhooks import SEND_TIMEOUT, SignedRequest


async def sent(
    api: Api, event: EventType, username: str = "ada", phone: str = "", *, is_test: bool = False
) -> SignedRequest:
    """Each event type has one entry, with its own operation id and the answers that a receiver may give."""
    token, path, project = await own_project(api)
    await api.post(f"{path}/webhook-secret/rotate", token, {})
    if event == "webhook.test" or is_test:
        await api.post(f"{path}/webhook-test", token, {"event": event} if is_test else None)
        return api.receiver.sent[-1]
    assert (await api.call("PATCH", path, token, json={"webhook_events": [event]})).status_code == 200
    session = (await api.signin.create_session(project["id"], public=True)).session_token
    await api.signin.open_session(session, "42")
    if phone:
        await collect_phones(api, project["id"])
    if event == "auth.confirmed":
        await api.signin.confirm_session(session, MessengerIdentity("42", "Ada", username))
        await api.signin.give_phone(MessengerIdentity("42", "Ada", username), "42", phone, answers=lambda _: True)
    elif event == "auth.cancelled":
        await api.signin.cancel_session(session, "42")
    elif event == "auth.reported":
        await api.signin.report_session(session, "42")
    else:
        api.clock.now += 10 * MINUTE
        await Housekeeping(api.storage, api.encryptor, api.clock, system_entropy, 90).sweep()
    [delivery] = await api.webhooks.claim_deliveries(10)
    return api.webhooks.sign_delivery(delivery)


async def collect_phones(api: Api, project_id: str) -> None:
    project = await api.storage.projects.read_project(project_id)
    assert project is not None
    await api.storage.plans.update_plan(project.developer_id, "business")
    collect = ProjectChanges(collect_phone=True)
    assert await api.storage.projects.update_project(project.developer_id, project_id, collect, api.clock.now)


def body_schema(document: Any, event: str) -> Any:
    content = document["webhooks"][event]["post"]["requestBody"]["content"]["application/json"]
    return document["components"]["schemas"][content["schema"]["$ref"].rsplit("/", 1)[1]]


def test_every_type_of_event_is_there(api: Api) -> None:
    """A body has exactly the documented fields, each of one type; all are required except the phone number."""
    document = api.documented.document
    assert list(document["webhooks"]) == list(get_args(EventType))
    operations = [webhook["post"] for webhook in document["webhooks"].values()]
    paths = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
    identifiers = [each["operationId"] for each in operations] + paths
    assert len(set(identifiers)) == len(identifiers)
    for operation in operations:
        assert operation["security"] == []
        assert list(operation["responses"]) == ["2XX", "3XX", "410", "429", "default"]
        assert f"{SEND_TIMEOUT} seconds" in operation["responses"]["2XX"]["description"]


@pytest.mark.parametrize(
    ("event", "username", "phone"),
    [
        ("auth.confirmed", "ada", ""),
        ("auth.confirmed", "", ""),
        ("auth.confirmed", "ada", "+4915123456789"),
        ("auth.cancelled", "", ""),
        ("auth.expired", "", ""),
        ("auth.reported", "", ""),
        ("webhook.test", "", ""),
    ],
)
async def test_the_bodies_are_those_that_are_sent(api: Api, event: EventType, username: str, phone: str) -> None:
    """A body has exactly the documented fields, each of one type; all are required except the phone number."""
    document = api.documented.document
    body = json.loads((await sent(api, event, username, phone)).body)
    assert body.get("messenger_phone", "") == phone
    schema = body_schema(document, event)
    optional = {"test"} if phone else {"test", "messenger_phone"}
    assert [name for name in schema["properties"] if name not in optional] == list(body)
    assert [name for name in schema["properties"] if name not in {"test", "messenger_phone"}] == schema["required"]
    Draft202012Validator({**schema, "components": document["components"]}).validate(body)
    any_event = {"$ref": "#/components/schemas/WebhookEvent", "components": document["components"]}
    Draft202012Validator(any_event).validate(body)
    others = [body_schema(document, other) for other in get_args(EventType) if other != event]
    assert not any(Draft202012Validator(other).is_valid(body) for other in others)


@pytest.mark.parametrize("event", get_args(ProjectEvent))
async def test_a_test_event_has_the_fields_of_a_real_one(api: Api, event: EventType) -> None:
    """A test event has the fields of a real one, and ends with the mark of a test."""
    document = api.documented.document
    body = json.loads((await sent(api, event, is_test=True)).body)
    schema = body_schema(document, event)
    assert list(body) == [*schema["required"], "test"]
    Draft202012Validator({**schema, "components": document["components"]}).validate(body)


@pytest.mark.parametrize("event", get_args(EventType))
async def test_the_headers_are_those_that_are_sent(api: Api, event: EventType) -> None:
    """Each header and its example have the documented form.

    Headers that OpenAPI 3.1, 4.8.12, excludes are not listed.
    """
    headers = dict((await sent(api, event)).headers)
    assert headers.pop("Content-Type") == "application/json"
    assert (headers.pop("Accept"), headers.pop("Accept-Encoding")) == ("*/*", "identity")
    parameters = api.documented.document["webhooks"][event]["post"]["parameters"]
    assert {each["name"] for each in parameters} == set(headers)
    for each in parameters:
        assert (each["in"], each["required"]) == ("header", True)
        for value in (headers[each["name"]], each["example"]):
            assert re.search(each["schema"]["pattern"], value), each["name"]


def test_an_error_code_is_one_of_a_list(api: Api) -> None:
    """Programs generated from the document know every error code, and that there may be none."""
    field = api.documented.document["components"]["schemas"]["AttemptAnswer"]["properties"]["error_code"]
    codes, nothing = field["anyOf"]
    assert codes == {"type": "string", "enum": list(get_args(ShownError))}
    assert nothing == {"type": "null"}


def test_the_number_of_attempts_is_the_codes(api: Api) -> None:
    """Every place that mentions the number of shown attempts has the number in the code."""
    document = api.documented.document
    said = re.findall(r"latest (\d+)", json.dumps(document), re.IGNORECASE)
    assert len(said) >= 3
    assert set(said) == {str(ATTEMPTS_SHOWN)}
