"""Every call of the developer API with both clients, against a real service."""

import dataclasses
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from tests.e2e.conftest import Phone, Service, launch, make_phone, receiver
from tests.e2e.receiver import Receiver
from tests.sdk.either_client import KINDS, EitherClient

from taproof import AsyncClient, AuthenticationFailed, Client, InvalidRequest, NotFound, verify_webhook

__all__ = ["receiver"]  # The fixture.


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = launch(tmp_path_factory.mktemp("developer"))
    yield service
    service.stop()


@pytest.fixture(scope="module")
def phone(service: Service) -> Iterator[Phone]:
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        yield make_phone(client)


@pytest.fixture(params=KINDS)
def client(request: pytest.FixtureRequest, service: Service) -> Iterator[EitherClient]:
    """A client of either kind for the sandbox's own developer."""
    client = EitherClient(request.param, service.base_url, access_token=service.access_token)
    yield client
    client.shut()


def sign_ins(client: EitherClient, service: Service, project_id: str, count: int) -> list[Any]:
    public = EitherClient(type(client.client).__name__, service.base_url, project_id=project_id)
    made = [public.create_session() for _ in range(count)]
    public.shut()
    return made


def test_every_operation_has_its_method(service: Service) -> None:
    """Both clients have each operation of the developer API, under its name in the API reference, and no other."""
    document = httpx.get(f"{service.base_url}/openapi.json", timeout=60).json()
    operations = {
        operation["operationId"]
        for path, methods in document["paths"].items()
        if path.startswith("/api/v1/dev/")
        for operation in methods.values()
    }
    own = {"create_session", "verify_session", "wait_for_user", "cancel_session", "sign_in_mini_app"}
    for kind, close in ((Client, "close"), (AsyncClient, "aclose")):
        assert {name for name in vars(kind) if not name.startswith("_")} == operations | own | {close}


def test_the_account(client: EitherClient) -> None:
    """read_account returns the token's account, and times are aware datetimes in UTC."""
    account = client.read_account()
    assert (account.email, account.plan) == ("sandbox@localhost", "business")
    assert account.created_at.utcoffset() == timedelta(0)
    before = account.usage
    assert (before.projects_limit, before.sign_ins_limit) == (None, None)
    client.create_project("Shop")
    assert client.read_account().usage == dataclasses.replace(before, projects=before.projects + 1)


def test_the_life_of_a_project(client: EitherClient) -> None:
    """Create, read, list, update in part, new secrets, delete."""
    created = client.create_project("Shop", webhook_url="https://example.com/hook", collect_phone=True)
    assert created.secret_key.startswith("sk_")
    assert created.webhook_secret.startswith("whsec_")
    assert (created.is_active, created.public_access, created.collect_phone) == (True, True, True)
    project = client.read_project(created.id)
    assert dataclasses.asdict(created).items() >= dataclasses.asdict(project).items()
    assert project in client.list_projects()
    changed = client.update_project(created.id, is_active=False, webhook_url="")
    assert (changed.name, changed.webhook_url, changed.is_active) == ("Shop", "", False)
    new = client.regenerate_secrets(created.id)
    assert new.secret_key != created.secret_key
    assert client.read_webhook_secret(created.id).webhook_secret == new.webhook_secret != created.webhook_secret
    assert client.delete_project(created.id) is None
    with pytest.raises(NotFound) as caught:
        client.read_project(created.id)
    assert caught.value.code == "project_not_found"


def test_the_life_of_a_membership(client: EitherClient) -> None:
    """Invite, list and revoke, and the limits of a project's only owner; `repr` leaves the link out of logs."""
    project = client.create_project("Shop")
    [owner] = client.list_members(project.id)
    assert (owner.email, owner.role, owner.invited_by) == ("sandbox@localhost", "owner", "")
    created = client.create_member_invitation(project.id, "viewer")
    code = created.link.partition("#")[2]
    assert code.startswith("join_")
    assert code not in repr(created)
    [listed] = client.list_member_invitations(project.id)
    assert (listed.id, listed.role, listed.expires_at) == (created.id, "viewer", created.expires_at)
    refusals: list[tuple[Callable[[], Any], str]] = [
        (lambda: client.accept_member_invitation(code), "already_member"),
        (lambda: client.delete_member(project.id, owner.developer_id), "last_owner"),
        (lambda: client.update_member(project.id, owner.developer_id, "viewer"), "last_owner"),
    ]
    for refused, error in refusals:
        with pytest.raises(InvalidRequest) as caught:
            refused()
        assert caught.value.code == error
    assert client.update_member(project.id, owner.developer_id, "owner") == owner
    assert client.delete_member_invitation(project.id, created.id) is None
    assert client.list_member_invitations(project.id) == []
    assert {each.action for each in client.list_audit_entries(project.id)} == {
        "project.created",
        "member.invited",
        "member.invitation_revoked",
    }


def test_the_life_of_an_oidc_client(client: EitherClient) -> None:
    """Create, read, list, update in part, a new secret, delete; a secret is told when it is new."""
    project = client.create_project("Shop")
    uris = ["https://grafana.example/login/generic_oauth"]
    created = client.create_client(project.id, "Grafana", uris)
    assert created.client_secret.startswith("ocs_")
    assert created.client_secret not in repr(created)
    assert (created.auth_method, created.signing_alg, created.email) == ("any", "RS256", "none")
    read = client.read_client(project.id, created.client_id)
    assert dataclasses.asdict(created).items() >= dataclasses.asdict(read).items()
    assert client.list_clients(project.id) == [read]
    settings: dict[str, Any] = {"signing_alg": "ES256", "email": "synthetic", "id_token_lifetime": 300}
    settings |= {"grant_types": ["device_code"]}
    public = client.create_client(project.id, "App", ("com.example.app:/cb",), auth_method="none", **settings)
    assert (public.client_secret, public.client_secret_preview, public.id_token_lifetime) == (None, None, 300)
    assert (created.grant_types, public.grant_types) == (("authorization_code",), ("device_code",))
    changed = client.update_client(project.id, public.client_id, auth_method="post", redirect_uris=uris)
    assert (changed.name, changed.redirect_uris, changed.signing_alg) == ("App", tuple(uris), "ES256")
    assert list(client.list_grants(project.id, public.client_id)) == []
    with pytest.raises(NotFound) as unknown:
        client.end_grant(project.id, public.client_id, "auth_1")
    assert unknown.value.code == "grant_not_found"
    regenerated = client.regenerate_client_secret(project.id, public.client_id)
    assert regenerated != changed.client_secret
    assert client.update_client(project.id, public.client_id, name="New").client_secret is None
    assert client.delete_client(project.id, public.client_id) is None
    with pytest.raises(NotFound) as caught:
        client.read_client(project.id, public.client_id)
    assert caught.value.code == "client_not_found"
    with pytest.raises(TypeError, match="redirect_uris"):
        client.create_client(project.id, "App", "https://app.example/")
    with pytest.raises(InvalidRequest, match="redirect_uris"):
        client.create_client(project.id, "App", ["javascript:alert(1)"])
    with pytest.raises(ValueError, match="An id contains"):
        client.read_client(project.id, "../regenerate")


def test_how_the_sign_ins_of_a_project_go(client: EitherClient) -> None:
    """The settings added after release 0.1.0: their defaults, their values, and how they are reset."""
    project = client.create_project("Shop")
    assert (project.phone_required, project.show_context, project.match_code) == (True, True, "off")
    assert (project.allowed_origins, project.bot_username, project.bot_broken_at) == ((), None, None)
    assert (project.same_device, project.return_urls) == ("off", ())
    settings = {"phone_required": False, "show_context": False, "match_code": "on", "same_device": "offer"}
    origins = ("https://shop.example.com",)
    assert project.webhook_events == ("auth.confirmed", "auth.cancelled")
    urls = ("https://shop.example.com/app",)
    lists = {"allowed_origins": origins, "webhook_events": {"auth.reported"}, "return_urls": urls}
    created = client.create_project("Shop", **settings, **lists)
    changed = client.update_project(project.id, **settings, **lists)
    for each in (created, changed, client.read_project(created.id)):
        assert (each.phone_required, each.show_context, each.match_code) == (False, False, "on")
        assert (each.allowed_origins, each.webhook_events) == (origins, ("auth.reported",))
        assert (each.same_device, each.return_urls) == ("offer", urls)
    with pytest.raises(InvalidRequest, match="same_device"):
        client.update_project(created.id, allowed_origins=(), return_urls=())
    off = {"same_device": "off", "return_urls": ()}
    back = client.update_project(created.id, match_code="off", allowed_origins=(), bot_token="", **off)
    assert (back.match_code, back.allowed_origins, back.bot_username) == ("off", (), None)
    assert (back.same_device, back.return_urls) == ("off", ())
    with pytest.raises(InvalidRequest, match="bot_token"):
        client.update_project(created.id, bot_token="no token")


def test_a_user_is_erased(client: EitherClient, service: Service) -> None:
    """No session of an erased user remains, and another user's stays; a second call erases nothing."""
    project = client.create_project("Shop")
    of_ada, of_grace = sign_ins(client, service, project.id, 2)
    with httpx.Client(base_url=service.base_url, timeout=60) as http:
        ada, grace = make_phone(http), make_phone(http, "Grace")
        ada.sign_in({"deeplink": of_ada.deeplink})
        grace.sign_in({"deeplink": of_grace.deeplink})
    users = {each.messenger_id: each for each in client.list_users(project.id, page_size=1)}
    assert users.keys() == {ada.messenger_id, grace.messenger_id}
    of_one = users[ada.messenger_id]
    assert (of_one.sign_ins, of_one.reports, of_one.first_sign_in_at) == (1, 0, of_one.last_sign_in_at)
    exported = client.export_user(ada.messenger_id)
    assert [each["messenger_id"] for each in exported["sessions"]] == [ada.messenger_id]
    assert client.erase_user(ada.messenger_id) is True
    (left,) = client.list_sessions(project_id=project.id)
    assert left.messenger_id == grace.messenger_id
    assert (left.messenger_phone, left.reported_at) == (None, None)
    assert client.erase_user(ada.messenger_id) is False


def test_a_report_is_told(client: EitherClient, service: Service, phone: Phone) -> None:
    """After "This wasn't me", the session shows the time, and the analytics count the report."""
    project = client.create_project("Shop")
    (sign_in,) = sign_ins(client, service, project.id, 1)
    (not_me,) = phone.open(sign_in.deeplink)[-1]["buttons"][-1]
    phone.tap(not_me)
    (session,) = client.list_sessions(project_id=project.id)
    assert session.status == "cancelled"
    assert session.reported_at >= session.created_at
    analytics = client.read_analytics(days=7, project_id=project.id)
    assert (analytics.funnel.reported, analytics.daily[-1].reported) == (1, 1)


def test_the_rotation_of_a_webhook_secret(client: EitherClient) -> None:
    """Rotate creates the next secret beside the current one; promote replaces the current one with it."""
    created = client.create_project("Shop")
    rotating = client.rotate_webhook_secret(created.id, overlap_hours=2)
    assert rotating.webhook_secret == created.webhook_secret
    assert rotating.next_webhook_secret.startswith("whsec_")
    left = rotating.promoted_at - datetime.now(UTC)
    assert timedelta(hours=1) < left < timedelta(hours=3)
    assert client.read_webhook_secret(created.id) == rotating
    promoted = client.promote_webhook_secret(created.id)
    assert promoted.webhook_secret == rotating.next_webhook_secret
    assert (promoted.next_webhook_secret, promoted.promoted_at) == (None, None)
    with pytest.raises(InvalidRequest) as caught:
        client.promote_webhook_secret(created.id)
    assert caught.value.code == "no_rotation"


def test_sessions_come_over_more_pages(client: EitherClient, service: Service, phone: Phone) -> None:
    """The iterator reads page after page: every session once, newest first, with the filters on each page."""
    project = client.create_project("Shop")
    started = sign_ins(client, service, project.id, 7)
    phone.open(started[0].deeplink)
    phone.tap("Confirm")
    found = client.list_sessions(project_id=project.id, page_size=2)
    assert len({session.id for session in found}) == 7
    assert [session.created_at for session in found] == sorted((each.created_at for each in found), reverse=True)
    assert found == client.list_sessions(project_id=project.id)
    (confirmed,) = client.list_sessions(project_id=project.id, status="confirmed", messenger_id=phone.messenger_id)
    assert (confirmed.messenger_name, confirmed.messenger_username) == ("Ada", "")
    assert confirmed.confirmed_at is not None
    assert client.read_session(confirmed.id) == confirmed
    middle = found[3].created_at
    later = client.list_sessions(project_id=project.id, since=middle, page_size=1)
    earlier = client.list_sessions(project_id=project.id, until=middle, page_size=1)
    assert later + earlier == found
    analytics = client.read_analytics(days=7, project_id=project.id)
    assert (analytics.total_sessions, analytics.confirmed_sessions, analytics.conversion_rate) == (7, 1, 14.3)
    assert len(analytics.daily) == 7
    assert analytics.daily[-1].date - analytics.daily[0].date == timedelta(days=6)
    assert analytics.funnel.confirmed == 1
    assert project.id in {each.id for each in analytics.projects}
    assert client.read_project(project.id).sessions_count == 7


def test_deliveries(client: EitherClient, receiver: Receiver) -> None:
    """Send a test, list over pages, read one, send it again; the receiver's checks hold."""
    project = client.create_project("Shop", webhook_url=f"{receiver.url}/hook")
    sent = [client.send_webhook_test(project.id) for _ in range(3)]
    assert {each.status for each in sent} == {"delivered"}
    assert [each.status for each in sent[0].attempts] == [200]
    found = client.list_deliveries(project.id, page_size=2)
    assert [each.id for each in found] == [each.id for each in reversed(sent)]
    assert client.list_deliveries(project.id, event="auth.confirmed") == []
    assert client.list_deliveries(project.id, status="delivered", page_size=1) == found
    assert client.read_delivery(sent[0].id) == found[-1]
    resent = client.resend_delivery(sent[0].id)
    assert (resent.id, resent.event, resent.session_id) == (sent[0].id, "webhook.test", None)
    last = receiver.wait_for(4)[3]
    assert verify_webhook(last.body, last.headers, project.webhook_secret).id == sent[0].id


def test_access_tokens(client: EitherClient, service: Service) -> None:
    """A token with an expiry is created, used, found in the list and deleted; afterwards it no longer works."""
    end = datetime.now(UTC).replace(microsecond=0) + timedelta(days=2)
    created = client.create_access_token("deploy", expires_at=end)
    assert created.expires_at == end
    other = EitherClient(type(client.client).__name__, service.base_url, access_token=created.access_token)
    assert other.read_account() == client.read_account()
    (listed,) = [each for each in client.list_access_tokens() if each.id == created.id]
    assert (listed.name, listed.preview) == ("deploy", created.preview)
    assert client.delete_access_token(created.id) is None
    with pytest.raises(AuthenticationFailed) as caught:
        other.read_account()
    assert (caught.value.status, caught.value.code) == (401, "invalid_access_token")
    other.shut()


def test_the_audit_log(client: EitherClient) -> None:
    """The latest action is the newest entry, and all pages together have every entry."""
    project = client.create_project("Shop", webhook_url="https://example.com/hook")
    client.update_project(project.id, name="Store")
    entries = client.list_audit_entries(page_size=3)
    assert len({entry.id for entry in entries}) == len(entries) > 3
    newest = entries[0]
    assert (newest.action, newest.subject, newest.via) == ("project.updated", project.id, "access_token")
    assert newest.details["name"] == "Store"


def test_a_mistake_is_told_in_the_services_words(client: EitherClient) -> None:
    """A refusal is raised with the service's sentence, which names the field."""
    with pytest.raises(InvalidRequest, match="name") as caught:
        client.create_project("")
    assert (caught.value.status, caught.value.code) == (400, "invalid_request")
    with pytest.raises(InvalidRequest, match="limit"):
        client.list_sessions(page_size=201)
