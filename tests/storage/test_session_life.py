"""The life of sessions, drawn by Hypothesis, on each real store with two nodes; the pure table is the oracle.

`python -m pytest tests/storage/test_session_life.py --hypothesis-profile=soak` searches for longer.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Coroutine
from dataclasses import astuple
from typing import Any, ClassVar, TypeVar

import jwt
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from tests.databases import DRIVERS, expired_event
from tests.storage.session_model import ModelProject, ModelSession, recount
from tests.whole_sign_in import WholeSignIn

from taproof.contract.delivery import EventType
from taproof.contract.project import SameDevice
from taproof.contract.session import SignInStatus
from taproof.core.accounts import Actor, Developer
from taproof.core.address_rules import AddressRules
from taproof.core.clock import DAY, MINUTE
from taproof.core.deliveries import Event
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import (
    CodeChallengeRequired,
    ProjectNotFound,
    ProjectPaused,
    PublicAccessDisabled,
    SameDeviceRequired,
    TaproofError,
)
from taproof.core.identifiers import new_id
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import ProjectChanges
from taproof.core.return_code import new_return_code, return_code_hash
from taproof.core.session_state import SESSION_LIFETIME
from taproof.core.sessions import ReturningUser
from taproof.sdk.code_challenge import code_challenge
from taproof.service.projects import Projects
from taproof.service.sessions.results import CreatedSession, VerifyResult
from taproof.service.sessions.seen import SeenSession
from taproof.storage.protocol import Storage

T = TypeVar("T")
START = 1_795_214_643_127
ENCRYPTOR = Encryptor(new_master_key(system_entropy))
NODES = st.integers(0, 1)
USERS = st.sampled_from(["1001", "1002"])
FLAGS = st.booleans()
DECISIONS = ["confirm", "renew", "return", "cancel", "withdraw", "report", "sweep"]
POLICIES = st.sampled_from(["off", "offer", "require", "require"])
PAGE = "https://shop.example/sign-in"
CODES = st.sampled_from(["right", "right", "wrong", "none"])
VERIFIER = "the-verifier-of-every-session-that-is-bound-to-one"


class SessionLife(RuleBasedStateMachine):
    """Two nodes on one database, a clock that only goes forward, three projects, two users."""

    driver: ClassVar[str]
    sessions: "Bundle[ModelSession]" = Bundle("sessions")

    def __init__(self) -> None:
        super().__init__()
        self.resources = contextlib.ExitStack()

    @initialize(target=sessions)
    def start(self) -> ModelSession:
        self.now = START
        self.runner = self.resources.enter_context(asyncio.Runner())
        # Thousands of steps, and no power cut among them: what durability costs is not worth waiting for here.
        open_store = self.resources.enter_context(DRIVERS[self.driver](quick=True))
        self.stores: list[Storage] = []
        for _ in range(2):
            self.stores.append(self.run(open_store()))
            self.resources.callback(lambda store: self.run(store.close()), self.stores[-1])
        clock = lambda: self.now  # noqa: E731 — the machine's own hand-set clock.
        self.nodes = [
            WholeSignIn(store, ENCRYPTOR, lambda: "https://t.me/b", clock, system_entropy) for store in self.stores
        ]
        self.management = Projects(
            self.stores[0],
            ENCRYPTOR,
            clock,
            system_entropy,
            address_rules=AddressRules(),
            webhook_ports=frozenset({443}),
            allow_loopback_http=False,
        )
        self.actor = Actor(Developer("dev_1", "ada@example.com", "free", START), "command_line")
        self.run(self.stores[0].developers.create_developer(self.actor.developer))
        self.projects = [
            self.make_project("", "require"),
            self.make_project("https://example.com/", "off"),
            self.make_project("https://example.com/", "require"),
        ]
        self.all_sessions: list[ModelSession] = []
        self.proofs: Counter[str] = Counter()
        self.blocks: set[tuple[str, str]] = set()
        owner = self.projects[1]
        return self.add_session(owner, self.run(self.nodes[0].create_session(owner.project.id, public=True)))

    def teardown(self) -> None:
        self.resources.close()

    def run(self, step: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(step)

    def make_project(self, webhook_url: str, same_device: SameDevice) -> ModelProject:
        changes = ProjectChanges(
            name="Shop", webhook_url=webhook_url, same_device=same_device, allowed_origins=("https://shop.example",)
        )
        project, secrets = self.run(self.management.create_project(self.actor, changes))
        return ModelProject(project, secrets.webhook_secret, webhook_url=webhook_url, same_device=same_device)

    def refusal(self, owner: ModelProject, *, public: bool) -> type[TaproofError] | None:
        """Return the reason for refusing a call of this project, for any operation."""
        if not owner.exists:
            return ProjectNotFound
        return PublicAccessDisabled if public and not owner.public_access else None

    # ---- the client's side

    @rule(target=sessions, node=NODES, project=st.integers(0, 2), public=FLAGS, bound=FLAGS)
    def create_session(self, node: int, project: int, public: bool, bound: bool) -> Any:  # noqa: FBT001 — drawn by Hypothesis.
        owner = self.projects[project]
        challenge = code_challenge(VERIFIER) if bound else None
        create = self.nodes[node].create_session(
            owner.project.id, public=public, code_challenge=challenge, return_url=PAGE
        )
        refusal = self.refusal(owner, public=public)
        if refusal is None and owner.same_device == "require" and not bound:
            refusal = SameDeviceRequired
        refusal = refusal or (None if owner.is_active else ProjectPaused)
        if refusal is not None:
            with pytest.raises(refusal):
                self.run(create)
            return multiple()
        return self.add_session(owner, self.run(create), bound=bound)

    def add_session(self, owner: ModelProject, created: CreatedSession, *, bound: bool = False) -> ModelSession:
        assert created.expires_at == self.now + SESSION_LIFETIME
        required = owner.same_device == "require"
        assert created.return_required is required
        assert created.return_offered is (owner.same_device == "offer")
        session = ModelSession(created.session_token, owner, created.expires_at, bound=bound, required=required)
        owner.created += 1
        self.all_sessions.append(session)
        return session

    @rule(node=NODES, session=sessions, public=FLAGS, which=CODES)
    def verify_session(self, node: int, session: ModelSession, public: bool, which: str) -> None:  # noqa: FBT001 — drawn by Hypothesis.
        project_id = session.owner.project.id
        code = {"right": session.code, "wrong": new_return_code(system_entropy), "none": None}[which]
        verify = self.nodes[node].verify_session(
            project_id, session.token, public=public, code_verifier=VERIFIER, return_code=code
        )
        refusal = self.refusal(session.owner, public=public)
        if refusal is not None:
            with pytest.raises(refusal):
                self.run(verify)
            return
        answer = self.run(verify)
        session.returned_by(code, self.now)
        if session.status == "confirmed" and session.hides_from(code):
            is_late = self.now >= session.expires_at
            assert answer == (VerifyResult("expired") if is_late else VerifyResult("pending", hint="return"))
        elif session.read_by(self.now):
            self.check_proof(session, answer)
            self.proofs[session.token] += 1
        elif session.may_be_reread(self.now) and not session.hides_from(code):
            self.check_proof(session, answer)
        else:
            status = session.seen(self.now)
            assert answer == VerifyResult(status, hint=session.hint if status == "pending" else None)

    def check_proof(self, session: ModelSession, answer: VerifyResult) -> None:
        assert answer.status == "confirmed"
        assert answer.identity is not None
        assert answer.proof is not None
        assert answer.confirmed_at is not None
        assert answer.identity.messenger_id == session.opener
        secret = session.owner.webhook_secret
        claims = jwt.decode(answer.proof, secret, ["HS256"], options={"verify_exp": False, "verify_iat": False})
        assert claims["messenger_id"] == session.opener
        assert claims["session_token"] == session.token
        assert session.used_at is not None
        assert claims["iat"] == session.used_at // 1000
        assert not session.reported

    # ---- the messenger's side

    @rule(node=NODES, session=sessions, user=USERS)
    def open_session(self, node: int, session: ModelSession, user: str) -> None:
        blocked = self.is_blocked(session, user)
        if session.owner.exists and not blocked and session.opener is None and session.after("open", self.now):
            session.opener = user
        seen = self.run(self.nodes[node].open_session(session.token, user))
        if blocked:
            assert (seen.outcome, seen.changed) == ("blocked", False)
        else:
            self.check_seen(session, user, seen, changed=False)

    @rule(node=NODES, session=sessions, user=USERS)
    def confirm_session(self, node: int, session: ModelSession, user: str) -> None:
        confirm = self.nodes[node].confirm_session(session.token, MessengerIdentity(user, "Name", ""))
        if self.is_blocked(session, user) and session.opener == user and session.seen(self.now) == "pending":
            assert self.run(confirm).outcome == "blocked"
            return
        changed = session.confirmed_by(user, self.now)
        self.check_decision(session, user, self.run(confirm), changed=changed)

    @rule(node=NODES, session=sessions, user=USERS)
    def cancel_session(self, node: int, session: ModelSession, user: str) -> None:
        changed = session.owner.exists and session.opener == user and session.after("cancel", self.now)
        seen = self.run(self.nodes[node].cancel_session(session.token, user))
        self.check_decision(session, user, seen, changed=changed)

    @rule(node=NODES, session=sessions, public=FLAGS)
    def withdraw_session(self, node: int, session: ModelSession, public: bool) -> None:  # noqa: FBT001 — drawn by Hypothesis.
        """Let the application cancel; the public endpoint only accepts a session that is bound to its client."""
        withdraw = self.nodes[node].withdraw_session(
            session.owner.project.id, session.token, public=public, code_verifier=VERIFIER
        )
        refusal = self.refusal(session.owner, public=public)
        if refusal is None and public and not session.bound:
            refusal = CodeChallengeRequired
        if refusal is not None:
            with pytest.raises(refusal):
                self.run(withdraw)
            return
        changed = session.withdrawn_at(self.now)
        is_late = session.status == "confirmed" and session.required and self.now >= session.expires_at
        assert self.run(withdraw) == ("expired" if is_late else session.seen(self.now), changed)

    @rule(node=NODES, session=sessions, user=USERS)
    def report_session(self, node: int, session: ModelSession, user: str) -> None:
        """Let the user report a session on its prompt or on its outcome."""
        self.check_report(session, user, self.nodes[node].report_session(session.token, user))

    @rule(node=NODES, session=sessions, user=USERS)
    def report_sign_in(self, node: int, session: ModelSession, user: str) -> None:
        """Let the user report a confirmed sign-in, and check that no other can be reported."""
        report = self.nodes[node].report_sign_in(session.key, user)
        if session.status in {"confirmed", "used"}:
            self.check_report(session, user, report)
        else:
            assert self.run(report).outcome == "unknown"

    def check_report(self, session: ModelSession, user: str, report: Coroutine[Any, Any, SeenSession]) -> None:
        was_used = session.used_at is not None
        changed = session.reported_by(user, self.now)
        seen = self.run(report)
        if not session.owner.exists or session.opener != user:
            self.check_seen(session, user, seen, changed=False)
            return
        self.blocks.add((user, session.owner.project.id))
        # A sign-in that the application cancelled is not reported, but its project is blocked.
        outcome = "blocked" if session.withdrawn else "reported"
        assert (seen.outcome, seen.changed, seen.was_used) == (outcome, changed, was_used)

    @rule(node=NODES, project=st.integers(0, 2), user=USERS)
    def unblock_project(self, node: int, project: int, user: str) -> None:
        block = (user, self.projects[project].project.id)
        ended = self.run(self.stores[node].users.unblock_project(*block))
        assert ended is (block in self.blocks) or not self.projects[project].exists
        self.blocks.discard(block)

    def is_blocked(self, session: ModelSession, user: str) -> bool:
        return session.owner.exists and (user, session.owner.project.id) in self.blocks

    def check_decision(self, session: ModelSession, user: str, seen: SeenSession, *, changed: bool) -> None:
        if changed and session.status != "returning":
            session.event_due = session.owner.webhook_url != ""
            assert seen.decided_at == self.now
        self.check_seen(session, user, seen, changed=changed)

    def check_seen(self, session: ModelSession, user: str, seen: SeenSession, *, changed: bool) -> None:
        status = session.seen(self.now)
        if not session.owner.exists:
            expected = "unknown"
        elif session.opener not in {None, user}:
            expected = "foreign"
        elif session.status == "returning" and status == "pending":
            expected = "returning"
            # Each answer replaces the code.
            assert seen.return_link is not None
            page, _, session.code = seen.return_link.partition("#taproof_return=")
            assert page == PAGE
        elif status == "pending":
            expected = "unknown" if session.opener is None else "opened"
        elif session.withdrawn:
            expected = "withdrawn"
        else:
            expected = "confirmed" if status == "used" else status
        assert (seen.outcome, seen.changed) == (expected, changed)

    # ---- two at the same instant: a node that has already looked asks the store for what is no longer so

    @rule(node=NODES, session=sessions, user=USERS)
    def open_in_store(self, node: int, session: ModelSession, user: str) -> None:
        free = session.owner.exists and session.opener is None
        expected = free and session.after("open", self.now)
        session.opener = user if expected else session.opener
        # A deleted project's session may still be opened in the store: nobody can see or decide it.
        if session.owner.exists:
            opened = self.run(self.stores[node].sessions.open_session(session.key, user, self.now))
            assert bool(opened) is expected

    @rule(node=NODES, session=sessions, user=USERS)
    def confirm_in_store(self, node: int, session: ModelSession, user: str) -> None:
        expected = session.confirmed_by(user, self.now)
        session.event_due |= expected and not session.required and session.owner.webhook_url != ""
        store, identity = self.stores[node].sessions, MessengerIdentity(user, "Name", "")
        confirm = store.confirm_session(session.key, identity, self.now, self.event(session, "auth.confirmed"))
        assert bool(self.run(confirm)) is (expected and not session.required)
        code = new_return_code(system_entropy)
        await_return = self.run(store.await_return(session.key, identity, self.now, return_code_hash(code)))
        assert bool(await_return) is (expected and session.required)
        session.code = code if await_return else session.code

    @rule(node=NODES, session=sessions, user=USERS)
    def renew_in_store(self, node: int, session: ModelSession, user: str) -> None:
        code = new_return_code(system_entropy)
        expected = session.owner.exists and session.opener == user and session.after("renew_return", self.now)
        renew = self.stores[node].sessions.renew_return(session.key, user, self.now, return_code_hash(code))
        assert bool(self.run(renew)) is expected
        session.code = code if expected else session.code

    @rule(node=NODES, session=sessions)
    def return_in_store(self, node: int, session: ModelSession) -> None:
        expected = session.returned_by(session.code, self.now)
        store, code_hash = self.stores[node].sessions, return_code_hash(session.code)
        user = ReturningUser(session.key.token_hash.hex(), MessengerIdentity(session.opener or "", "Name", ""))
        event = self.event(session, "auth.confirmed")
        assert self.run(store.return_session(session.key, code_hash, user, self.now, event)) is expected

    @rule(node=NODES, session=sessions, user=USERS)
    def cancel_in_store(self, node: int, session: ModelSession, user: str) -> None:
        expected = session.owner.exists and session.opener == user and session.after("cancel", self.now)
        session.event_due |= expected and session.owner.webhook_url != ""
        event = self.event(session, "auth.cancelled")
        cancelled = self.run(self.stores[node].sessions.cancel_session(session.key, user, self.now, event))
        assert bool(cancelled) is expected

    @rule(node=NODES, session=sessions)
    def withdraw_in_store(self, node: int, session: ModelSession) -> None:
        expected = session.withdrawn_at(self.now)
        assert bool(self.run(self.stores[node].sessions.withdraw_session(session.key, self.now))) is expected

    @rule(node=NODES, session=sessions)
    def consume_in_store(self, node: int, session: ModelSession) -> None:
        expected = session.owner.exists and session.read_by(self.now)
        consumed = self.run(self.stores[node].sessions.consume_session(session.key, self.now))
        assert (consumed is not None) is expected
        self.proofs[session.token] += expected

    @rule(node=NODES, session=sessions, user=USERS)
    def report_in_store(self, node: int, session: ModelSession, user: str) -> None:
        expected = session.seen(0) if session.reported_by(user, self.now) else None
        events: dict[SignInStatus, list[Event]] = {
            "pending": [self.event(session, "auth.cancelled"), self.event(session, "auth.reported")],
            "confirmed": [self.event(session, "auth.reported")],
            "used": [self.event(session, "auth.reported")],
        }
        report = self.stores[node].sessions.report_session(session.key, user, self.now, events)
        assert self.run(report) == expected

    def event(self, session: ModelSession, kind: EventType) -> Event:
        return Event(new_id("evt", system_entropy), kind, session.owner.project.id, b"encrypted", self.now)

    # ---- what goes on beside them

    @rule(node=NODES, limit=st.integers(1, 5))
    def sweep(self, node: int, limit: int) -> None:
        assert self.run(self.stores[node].sessions.expire_sessions(self.now, limit, expired_event)) <= limit

    @rule(milliseconds=st.sampled_from([1, 999, MINUTE, 5 * MINUTE, 10 * MINUTE - 1, 10 * MINUTE, DAY]))
    def let_time_pass(self, milliseconds: int) -> None:
        self.now += milliseconds

    @rule(session=sessions, offset=st.integers(-1, 1))
    def go_to_the_edge(self, session: ModelSession, offset: int) -> None:
        self.now = max(self.now, session.expires_at + offset)

    @rule(node=NODES, session=sessions, offset=st.integers(-1, 1), step=st.sampled_from(DECISIONS))
    def step_at_the_edge(self, node: int, session: ModelSession, offset: int, step: str) -> None:
        """Decide or sweep within a millisecond of the expiry, which Hypothesis would hardly ever draw."""
        if session.opener is None:
            self.open_in_store(node, session, "1001")
        self.go_to_the_edge(session, offset)
        if step == "sweep":
            self.sweep(node, 5)
        elif step == "withdraw":
            self.withdraw_in_store(node, session)
        elif session.opener is not None:
            decide = {
                "confirm": self.confirm_in_store,
                "renew": self.renew_in_store,
                "return": lambda node, session, _: self.return_in_store(node, session),
                "cancel": self.cancel_in_store,
                "report": self.report_in_store,
            }
            decide[step](node, session, session.opener)

    @rule(
        project=st.integers(0, 2),
        is_active=FLAGS,
        public_access=FLAGS,
        url=st.sampled_from(["", "https://a.example/"]),
        policy=POLICIES,
    )
    def change_project(
        self,
        project: int,
        is_active: bool,  # noqa: FBT001 — drawn by Hypothesis.
        public_access: bool,  # noqa: FBT001 — drawn by Hypothesis.
        url: str,
        policy: SameDevice,
    ) -> None:
        owner = self.projects[project]
        changes = ProjectChanges(None, url, is_active, public_access, same_device=policy)
        try:
            self.run(self.management.update_project(self.actor, owner.project.id, changes))
        except ProjectNotFound:
            assert not owner.exists
            return
        owner.is_active, owner.public_access, owner.webhook_url, owner.same_device = (
            is_active,
            public_access,
            url,
            policy,
        )
        for session in self.all_sessions:
            session.event_due &= url != "" or session.owner is not owner

    @rule(project=st.integers(0, 2))
    def regenerate_secrets(self, project: int) -> None:
        owner = self.projects[project]
        if owner.exists:
            secrets = self.run(self.management.regenerate_secrets(self.actor, owner.project.id))
            owner.webhook_secret = secrets.webhook_secret
            owner.generation += 1

    @rule(project=st.integers(0, 2), really=st.integers(0, 4))
    def delete_project(self, project: int, really: int) -> None:
        owner = self.projects[project]
        if owner.exists and really == 0:
            self.run(self.management.delete_project(self.actor, owner.project.id))
            owner.exists = False

    @rule(node=NODES, limit=st.integers(1, 20))
    def purge(self, node: int, limit: int) -> None:
        self.run(self.stores[node].projects.purge_deleted_projects(limit))

    # ---- what must hold after every step

    @invariant()
    def all_is_as_the_table_says(self) -> None:
        assert max(self.proofs.values(), default=0) <= 1
        self.run(self.check())

    async def check(self) -> None:
        """Compare list, counters and events with the oracle and with a recount, each read by one of the nodes."""
        living = {owner.project.id: owner for owner in self.projects if owner.exists}
        mine = [session for session in self.all_sessions if session.owner.exists]
        one, two = self.stores
        listed, stored, counted, projects, due = await asyncio.gather(
            one.sessions.list_sessions(list(living), None, None, 1_000, self.now),
            # As of the beginning of time no session is overdue: these are the states that are written down.
            two.sessions.list_sessions(list(living), None, None, 1_000, 0),
            one.counts.read_daily_counts(list(living), 0),
            one.projects.list_projects(self.actor.developer.id),
            # Given back at once: nothing is sent here, so nobody is told.
            two.deliveries.claim_deliveries(self.now, self.now + 1, 1_000),
        )
        await two.deliveries.release_deliveries(due, self.now)
        seen = {
            each.key: (each.status, each.opener_id, each.used_at, each.reported_at is not None, each.withdrawn)
            for each in listed
        }
        assert seen == {
            each.key: (each.seen(self.now), each.opener, each.used_at, each.reported, each.withdrawn) for each in mine
        }
        assert all(each.identity is None for each in listed if each.status == "pending")
        assert sorted(recount(stored)) == sorted((*astuple(row)[:9], row.reported) for row in counted)
        for project in projects:
            decided = [session.status for session in mine if session.owner.project.id == project.id]
            assert project.sessions_count == living[project.id].created
            assert project.confirmed_count == decided.count("confirmed") + decided.count("used")
        events = Counter(delivery.event.project_id for delivery in due)
        assert events == Counter(each.owner.project.id for each in mine if each.event_due)


class LifeOnSqlite(SessionLife):
    driver = "sqlite"


class LifeOnPostgres(SessionLife):
    driver = "postgres"


TestLifeOnSqlite = LifeOnSqlite.TestCase
TestLifeOnPostgres = LifeOnPostgres.TestCase
# Each step is a dozen round trips to a server: the same search takes it ten times as long as SQLite.
TestLifeOnPostgres.settings = settings(max_examples=settings().max_examples // 10)
