"""The running service answers only what its OpenAPI document describes, as Schemathesis checks.

Its edge cases and random examples, valid and invalid, go to every operation with the right credentials. Valid cases
get real ids in place of generated ones, so that the successful answers are reached too.
"""

from copy import deepcopy
from typing import Any

import httpx
import pytest
import schemathesis
from schemathesis import GenerationMode
from scripts.docs_reference import openapi
from tests.e2e.conftest import Developer, NewPhone, OwnProject, Service

DOCUMENT = openapi()
CONFIG = schemathesis.Config.from_dict({
    "generation": {
        "max-examples": 40,
        "deterministic": True,
        "database": "none",
        "with-security-parameters": False,  # test_authorization.py sends wrong credentials.
        "allow-extra-parameters": False,  # An unknown query parameter is ignored, as is usual on the web.
    },
    # JSON Schema cannot express some rules: control characters in names, hosts in webhook URLs, the form of cursors.
    "checks": {
        "positive_data_acceptance": {"enabled": False},
        # Redirect URIs can be so long and so many that the body is too large.
        "negative_data_rejection": {"expected-statuses": [400, 401, 403, 404, 405, 413]},
    },
})  # fmt: skip
schema = schemathesis.openapi.from_dict(deepcopy(DOCUMENT), config=CONFIG)


@pytest.fixture(scope="module")
def target(developer: Developer) -> OwnProject:
    """Return the project of valid cases that name no other. Nothing listens at its webhook URL."""
    return developer.create_project("Target", webhook_url="http://127.0.0.1:9/")


@pytest.fixture(scope="module")
def delivery_id(target: OwnProject) -> str:
    """Return a delivery of the target project."""
    found: str = target.developer.ask("POST", f"/projects/{target.id}/webhook-test")["id"]
    return found


def make_real(case: schemathesis.Case[Any], target: OwnProject, delivery_id: str) -> None:
    """Replace the ids of a valid case by real ones; changes and deletions get a separate resource."""
    developer = target.developer
    operation = case.operation.definition.raw["operationId"]
    changes = operation in {"update_project", "delete_project", "regenerate_secrets", "rotate_webhook_secret"}
    if "project_id" in case.path_parameters:
        case.path_parameters["project_id"] = (developer.create_project() if changes else target).id
    if "client_id" in case.path_parameters:
        new = {"name": "Grafana", "redirect_uris": ["https://grafana.example/"]}
        case.path_parameters["client_id"] = developer.ask("POST", f"/projects/{target.id}/clients", json=new)[
            "client_id"
        ]
    if "delivery_id" in case.path_parameters:
        case.path_parameters["delivery_id"] = delivery_id
    if "token_id" in case.path_parameters:
        case.path_parameters["token_id"] = developer.ask("POST", "/tokens", json={"name": "short-lived"})["id"]
    if "project_id" in case.query:
        case.query["project_id"] = target.id
    if isinstance(case.body, dict):
        if "project_id" in case.body:
            case.body["project_id"] = target.id
        if "session_token" in case.body:
            case.body["session_token"] = target.generate()["session_token"]
        if "wait" in case.body:
            case.body["wait"] = 0.01  # Otherwise each case may take 30 seconds.


@schema.parametrize()
def test_every_answer_is_documented(
    case: schemathesis.Case[Any], target: OwnProject, delivery_id: str, service: Service
) -> None:
    """No 5xx, no undocumented status, header, content type or body; invalid data and credentials are refused."""
    if case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE:
        make_real(case, target, delivery_id)
    [needed] = case.operation.definition.raw["security"] or [{}]
    credentials = {"accessToken": target.developer.access_token, "secretKey": target.secret_key}
    headers = {}
    for name in needed:
        headers["Authorization"] = f"Bearer {credentials[name]}"
    answer = case.call_and_validate(base_url=service.base_url, headers=headers)
    if case.operation.definition.raw["operationId"] == "create_access_token" and answer.status_code < 300:
        # A developer may have a hundred, and the cases of another operation create some too.
        target.developer.ask("DELETE", f"/tokens/{answer.json()['id']}")
    if "/clients" in case.operation.path:
        # A project may have fifty.
        clients = f"/projects/{target.id}/clients"
        for client in target.developer.ask("GET", clients)["clients"]:
            target.developer.ask("DELETE", f"{clients}/{client['client_id']}")


@pytest.mark.parametrize("username", [None, "documented"])
def test_confirmed_answer_is_documented(target: OwnProject, new_phone: NewPhone, username: str | None) -> None:
    """The confirmed answer, which needs a person, is documented too (issue)."""
    session = target.generate()
    new_phone(username=username).sign_in(session)
    body = {"project_id": target.id, "session_token": session["session_token"]}
    response = target.developer.client.post("/api/v1/verify/public", json=body)
    assert response.json()["status"] == "confirmed"
    schema["/api/v1/verify/public"]["POST"].validate_response(response)


def test_document_is_the_served_one(client: httpx.Client) -> None:
    """The service serves the document that the cases are generated from (issue)."""
    assert client.get("/openapi.json").json() == DOCUMENT
