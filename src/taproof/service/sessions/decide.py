"""The messenger's side of a sign-in: a user opens the link in a bot and decides (contract.md, Messenger).

An update handler calls one of these methods for each tap, and may repeat every call. `bot_id` is the bot that the user
is talking to. A bot shows and decides only sessions whose links lead to it: the owner of a bot's token can read all
that its users send, including session tokens.
"""

import asyncio
import dataclasses
from collections.abc import Callable

from taproof.contract.session import SignInStatus
from taproof.core.clock import Clock
from taproof.core.deliveries import Event
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import Entropy
from taproof.core.identifiers import session_key
from taproof.core.identity import MessengerIdentity
from taproof.core.names import stored_text
from taproof.core.prompts import PhoneRequest
from taproof.core.return_code import new_return_code, return_code_hash, return_link
from taproof.core.service_bot import SERVICE_BOT
from taproof.core.session_state import CountedDecision
from taproof.core.sessions import Hint, NewPhone, PromptDetails, Refused, Session, SessionKey
from taproof.service.phones import e164_number
from taproof.service.reported_developers import ReportedDevelopers
from taproof.service.sessions.events import SessionEvents
from taproof.service.sessions.seen import UNKNOWN, SeenSession, seen_as, seen_by
from taproof.service.signals import Signals
from taproof.storage.protocol import Storage


class Decisions:
    """Shows sessions to users and takes their decisions.

    `signals` tell the waiting calls, the webhook sender and the metrics of each decision, after it is stored.
    """

    def __init__(
        self, storage: Storage, encryptor: Encryptor, clock: Clock, entropy: Entropy, *, signals: Signals
    ) -> None:
        self._signals = signals
        self._storage = storage
        self._encryptor = encryptor
        self._clock = clock
        self._entropy = entropy
        self._events = SessionEvents(encryptor, entropy)
        self._reported_developers = ReportedDevelopers(storage, clock, entropy)

    async def open_session(self, session_token: str, opener_id: str, bot_id: int = SERVICE_BOT) -> SeenSession:
        """Show the session of a deeplink that a user opened. The first account to open it owns the decision."""
        session, _ = await self._find(session_token, bot_id, opener_id)
        if session is None:
            return UNKNOWN
        if _has_blocked(session):
            return seen_as("blocked", session)
        now = self._clock()
        hint = _hint_of_prompt(session)
        if session.opener_id is None:
            opened = await self._storage.sessions.open_session(session.key, opener_id, now, hint)
            if opened:
                self._signals.hint_changed(session.key, hint)
                return seen_by(dataclasses.replace(session, opened_at=now, opener_id=opener_id), opener_id, now)
            session = await self._as_found(session, opened)
        seen = await self._seen_again(session, opener_id, now)
        if session is None or seen.outcome != "opened":
            return seen
        request = await self._phone_request(session)
        if request is not None:
            # Make this the latest request: a contact confirms only the session that requested it last.
            await self._ask_for_phone(dataclasses.replace(request, asked_at=now))
            return dataclasses.replace(seen, outcome="phone", phone_asked=True)
        await self._set_hint(session.key, hint)
        return seen

    async def look_at_session(self, session_token: str, user_id: str, bot_id: int = SERVICE_BOT) -> SeenSession:
        """Return the part of a session that a user may know, and change nothing.

        A session without an owner is "unknown".
        """
        session, now = await self._find(session_token, bot_id, user_id)
        if session is not None and session.opener_id == user_id and _has_blocked(session):
            return seen_as("blocked", session)
        return seen_by(session, user_id, now)

    async def confirm_session(
        self, session_token: str, identity: MessengerIdentity, bot_id: int = SERVICE_BOT, *, choice: int | None = None
    ) -> SeenSession:
        """Confirm a session: the user tapped Confirm, or the match code at `choice`. The owner's first tap counts.

        A wrong match code cancels the session; so does a missing one if the prompt shows match codes. If the project
        collects phone numbers, the session stays pending until `give_phone` or `continue_without_phone`.
        """
        identity = storable_identity(identity)
        user_id = identity.messenger_id
        session, now = await self._find(session_token, bot_id, user_id)
        seen = seen_by(session, user_id, now)
        if session is None or seen.outcome != "opened":
            return await self._seen_again(session, user_id, now)
        if _has_blocked(session):
            return seen_as("blocked", session)
        details = session.prompt or PromptDetails()
        if details.match_code is not None and _chosen(details, choice) != details.match_code:
            seen = await self._cancel(session, seen, session_token, user_id, now, as_cancelled="mismatched")
            seen = await self._note_phone(session, seen)
            return dataclasses.replace(seen, outcome="mismatched") if seen.changed else seen
        if details.collect_phone:
            bound = associated_data_of("phone_request", session.id)
            await self._ask_for_phone(
                PhoneRequest(
                    key=session.key,
                    session_id=session.id,
                    messenger_id=user_id,
                    bot_id=bot_id,
                    encrypted_token=self._encryptor.encrypt(session_token, bound, self._entropy),
                    asked_at=now,
                    expires_at=session.expires_at,
                )
            )
            return dataclasses.replace(seen, outcome="phone", phone_asked=True)
        return await self._confirm(session, seen, session_token, identity, now)

    async def cancel_session(self, session_token: str, opener_id: str, bot_id: int = SERVICE_BOT) -> SeenSession:
        """Cancel a session: the user tapped Cancel. Only the first decision of the owner counts."""
        session, now = await self._find(session_token, bot_id, opener_id)
        if session is None:
            return UNKNOWN
        seen = seen_by(session, opener_id, now)
        if seen.outcome in {"opened", "returning"}:
            seen = await self._cancel(session, seen, session_token, opener_id, now)
        return await self._note_phone(session, seen)

    async def continue_without_phone(
        self, session_token: str, identity: MessengerIdentity, bot_id: int = SERVICE_BOT
    ) -> SeenSession:
        """Confirm a session without a phone number, if the project makes the number optional."""
        identity = storable_identity(identity)
        session, now = await self._find(session_token, bot_id, identity.messenger_id)
        if session is None:
            return UNKNOWN
        seen = await self._note_phone(session, await self._seen_again(session, identity.messenger_id, now))
        # Without a request, the user has not confirmed the session.
        if seen.outcome != "opened":
            return seen
        if not seen.phone_asked:
            await self._set_hint(session.key, _hint_of_prompt(session))
            return seen
        if _has_blocked(session):
            return seen_as("blocked", session)
        details = session.prompt or PromptDetails()
        if details.collect_phone and details.phone_required:
            return dataclasses.replace(seen, outcome="phone")
        seen = await self._confirm(session, seen, session_token, identity, now)
        return dataclasses.replace(seen, phone_asked=True)

    async def give_phone(
        self,
        identity: MessengerIdentity,
        contact_owner: str | None,
        phone_number: str,
        bot_id: int = SERVICE_BOT,
        *,
        answers: Callable[[SeenSession], bool],
    ) -> SeenSession:
        """Confirm the session that last asked the user for a contact, if the contact is the user's own.

        An update may be delivered twice, so no other session is confirmed, even if that session is already decided.
        Another waiting session requests the contact again when its link is opened again. The outcome "phone" means that
        the session still waits: the contact is another user's or has no phone number. "unknown": no contact was
        requested.

        Args:
            identity: the user who sent the contact.
            contact_owner: the contact's account, as the messenger reports it; None if it reports none.
            phone_number: the number as the messenger sends it, with or without the plus sign.
            bot_id: the bot that received the contact.
            answers: returns whether the contact answers the message that requested it for this session.
        """
        identity = storable_identity(identity)
        user_id = identity.messenger_id
        now = self._clock()
        request = await self._storage.users.find_phone_request(user_id, bot_id)
        session = None if request is None else await self._read(request.key, user_id, bot_id)
        if request is None or session is None:
            return UNKNOWN
        session_token = self._encryptor.decrypt(
            request.encrypted_token, associated_data_of("phone_request", session.id)
        )
        seen = await self._seen_again(session, user_id, now)
        if seen.outcome != "opened":
            return dataclasses.replace(seen, session_token=session_token)
        if _has_blocked(session):
            return seen_as("blocked", session)
        details = session.prompt or PromptDetails()
        is_own = contact_owner == user_id and answers(seen)
        phone = await asyncio.to_thread(e164_number, phone_number) if is_own else None
        if not is_own or (phone is None and details.collect_phone):
            return dataclasses.replace(seen, outcome="phone", phone_asked=True)
        if details.collect_phone:  # The developer's new plan may not allow it.
            identity = dataclasses.replace(identity, messenger_phone=phone)
        seen = await self._confirm(session, seen, session_token, identity, now)
        return dataclasses.replace(seen, phone_asked=True, session_token=session_token)

    async def report_session(self, session_token: str, user_id: str, bot_id: int = SERVICE_BOT) -> SeenSession:
        """Report a prompt, "This wasn't me": cancel and count the session, and block its project for the user."""
        key = session_key(session_token)
        return UNKNOWN if key is None else await self._report(key, session_token, user_id, bot_id)

    async def report_sign_in(self, key: SessionKey, user_id: str) -> SeenSession:
        """Report a confirmed sign-in: count it, and block its project for the user."""
        return await self._report(key, None, user_id, SERVICE_BOT)

    async def _report(self, key: SessionKey, session_token: str | None, user_id: str, bot_id: int) -> SeenSession:
        # The service's own bot may report any session.
        session = await self._read(key, user_id, None if bot_id == SERVICE_BOT else bot_id)
        now = self._clock()
        if session is None or (session_token is None and session.confirmed_at is None):
            return UNKNOWN
        if session.opener_id != user_id:
            return seen_by(session, user_id, now)
        # Block first: if this process ends in between, the repeated report completes the rest.
        await self._storage.users.block_project(user_id, session.project_id, now)
        events = await self._reports(session, session_token, user_id, now)
        status = await self._storage.sessions.report_session(key, user_id, now, events)
        if status == "cancelled":
            self._signals.decided(key)
        if status is not None:
            self._signals.count_decision("reported")
            self._signals.event_recorded()
        # Also for a repeated report: the process may have ended here during the first one.
        now_is = await self._read(key)
        if now_is is not None and now_is.withdrawn:
            return seen_as("blocked", now_is)  # Its application cancelled it, so it can no longer be reported.
        signed_out = None if now_is is None else await self._reported_developers.end_access(now_is, user_id)
        seen = dataclasses.replace(
            seen_as("reported", session),
            decided_at=now,
            changed=status is not None,
            was_used=now_is is not None and signed_out is None and await self._was_shown(now_is),
            signed_out=bool(signed_out),
        )
        return await self._note_phone(session, seen)

    async def _reports(
        self, session: Session, session_token: str | None, user_id: str, now: int
    ) -> dict[SignInStatus, list[Event]]:
        """Return the events of a report, by the status in which the report may find the session."""
        shown_to = user_id if await self._was_shown(session) else None
        events: dict[SignInStatus, list[Event]] = {
            "confirmed": [self._events.reported(session, now, messenger_id=shown_to, was_used=False)],
            "used": [self._events.reported(session, now, messenger_id=user_id, was_used=True)],
        }
        if session.status == "pending":
            cancelled = self._events.cancelled(session, session_token or "", now)
            events["pending"] = [cancelled, self._events.reported(session, now, messenger_id=None, was_used=False)]
        return events

    async def _was_shown(self, session: Session) -> bool:
        """Return whether the application may know who confirmed, from verify or from a webhook without a response."""
        if session.used_at is not None or session.confirmed_at is None:
            return session.used_at is not None
        about = (session.project_id, session.confirmed_at, session.id)
        deliveries = await self._storage.deliveries.find_deliveries(*about)
        return any(each.attempts or each.interrupted for each in deliveries if each.type == "auth.confirmed")

    async def _read(self, key: SessionKey, viewer: str = "", bot_id: int | None = None) -> Session | None:
        """Return a session, if this bot may show it. An overdue one is expired first, unless it was decided in time."""
        session = await self._storage.sessions.read_session(key, viewer)
        now = self._clock()
        if session is not None and session.status == "pending" and now >= session.expires_at:
            await self._storage.sessions.expire_session(key, now, self._events.expired)
            session = await self._storage.sessions.read_session(key, viewer)
        is_hidden = session is not None and bot_id not in {None, (session.prompt or PromptDetails()).bot_id}
        return None if is_hidden else session

    async def _find(self, session_token: str, bot_id: int, viewer: str) -> tuple[Session | None, int]:
        """Return the session with this token, if this bot may show it, and the time after reading it."""
        key = session_key(session_token)
        return None if key is None else await self._read(key, viewer, bot_id), self._clock()

    async def _phone_request(self, session: Session | None) -> PhoneRequest | None:
        if session is None or session.prompt is None or not session.prompt.collect_phone:
            return None
        return await self._storage.users.read_phone_request(session.key)

    async def _ask_for_phone(self, request: PhoneRequest) -> None:
        """Record the request, then the hint. If this process ends in between, the repeated update sets the hint."""
        await self._storage.users.ask_for_phone(request)
        await self._set_hint(request.key, "phone_asked")

    async def _set_hint(self, key: SessionKey, hint: Hint) -> None:
        """Set the hint of a pending session, if it has another one."""
        if await self._storage.sessions.set_hint(key, hint):
            self._signals.hint_changed(key, hint)

    async def _note_phone(self, session: Session, seen: SeenSession) -> SeenSession:
        """Set `phone_asked` if the user was asked for their contact and may know the session.

        A session that waited for its return code had the contact, and `claim_ended_prompts` handles a withdrawn one.
        """
        is_over = session.prompt is not None and session.prompt.is_returning
        if not seen.session_id or is_over or seen.outcome == "withdrawn":
            return seen
        if await self._phone_request(session) is None:
            return seen
        return dataclasses.replace(seen, phone_asked=True)

    async def _cancel(
        self,
        session: Session,
        seen: SeenSession,
        session_token: str,
        user_id: str,
        now: int,
        *,
        as_cancelled: CountedDecision = "cancelled",
    ) -> SeenSession:
        """Cancel a pending session, whose current view is `seen`; only the first decision counts."""
        event = self._events.cancelled(session, session_token, now)
        cancelled = await self._storage.sessions.cancel_session(session.key, user_id, now, event)
        if not cancelled:
            return seen_by(await self._as_found(session, cancelled), user_id, now)
        self._announce(session.key, as_cancelled)
        return dataclasses.replace(seen, outcome="cancelled", decided_at=now, changed=True)

    async def _confirm(
        self, session: Session, seen: SeenSession, session_token: str, identity: MessengerIdentity, now: int
    ) -> SeenSession:
        """Confirm a session, whose current view is `seen`, or let it wait for its return code."""
        key, number = session.key, identity.messenger_phone
        encrypted = None
        if number is not None:
            encrypted = self._encryptor.encrypt(number, associated_data_of("phone", session.id), self._entropy)
        code = new_return_code(self._entropy)
        details = session.prompt or PromptDetails()
        if details.return_required:
            confirmed = await self._storage.sessions.await_return(key, identity, now, return_code_hash(code), encrypted)
        else:
            about = (session.project_id, session_token)
            event = self._events.confirmed(*about, dataclasses.replace(identity, messenger_phone=None), now)
            phone = None
            if encrypted is not None:
                with_number = self._events.confirmed(*about, identity, now, event.id)
                phone = NewPhone(encrypted, with_number.encrypted_body)
            confirmed = await self._storage.sessions.confirm_session(key, identity, now, event, phone)
        if not confirmed:
            # The session may have expired since `now`.
            found = await self._as_found(session, confirmed)
            return await self._seen_again(found, identity.messenger_id, self._clock())
        link = None if details.return_url is None else return_link(details.return_url, code)
        seen = dataclasses.replace(seen, changed=True, return_link=link)
        if details.return_required:
            self._signals.hint_changed(key, "return")
            return dataclasses.replace(seen, outcome="returning")
        self._announce(key, "confirmed")
        return dataclasses.replace(seen, outcome="confirmed", decided_at=now)

    async def _as_found(self, session: Session, refused: Refused) -> Session | None:
        """Return a session in the state in which a refused statement found it. An overdue one is expired first."""
        found = refused.found
        if found is None:
            return None
        if found.status == "pending" and found.expires_at <= self._clock():
            return await self._read(session.key)
        is_returning = found.status == "pending" and found.confirmed_at is not None
        return dataclasses.replace(
            session,
            status=found.status,
            opener_id=found.opener_id,
            expires_at=found.expires_at,
            confirmed_at=None if is_returning else found.confirmed_at,
            cancelled_at=found.cancelled_at,
            withdrawn=bool(found.withdrawn),
            prompt=(session.prompt or PromptDetails())._replace(is_returning=is_returning),
        )

    def _announce(self, key: SessionKey, decision: CountedDecision) -> None:
        self._signals.decided(key)
        self._signals.event_recorded()
        self._signals.count_decision(decision)

    async def _seen_again(self, session: Session | None, user_id: str, now: int) -> SeenSession:
        """Show a session that this call does not decide. If it waits for its return code, replace the code.

        The earlier code is in a message that the user may no longer have.
        """
        seen = seen_by(session, user_id, now)
        if session is None or seen.outcome != "returning" or session.prompt is None:
            return seen
        if await self._storage.users.is_blocked(user_id, session.project_id):
            return seen_as("blocked", session)
        code = new_return_code(self._entropy)
        renewed = await self._storage.sessions.renew_return(session.key, user_id, now, return_code_hash(code))
        if not renewed:
            return seen_by(await self._as_found(session, renewed), user_id, now)
        link = None if session.prompt.return_url is None else return_link(session.prompt.return_url, code)
        return dataclasses.replace(seen, return_link=link)


def storable_identity(identity: MessengerIdentity) -> MessengerIdentity:
    """Return an identity as it can be stored. The phone number comes from a contact only."""
    name, username = stored_text(identity.messenger_name), stored_text(identity.messenger_username)
    return MessengerIdentity(identity.messenger_id, name, username)


def _has_blocked(session: Session) -> bool:
    """Return whether the user for whom the session was read has blocked its project."""
    return session.prompt is not None and session.prompt.is_blocked


def _hint_of_prompt(session: Session) -> Hint:
    """Return the hint of a session while its prompt is shown."""
    return "opened" if session.prompt is None or session.prompt.match_code is None else "choosing"


def _chosen(details: PromptDetails, choice: int | None) -> str | None:
    """Return the match code at the index `choice`; None if there is none."""
    codes = (details.match_choices or "").split()
    return codes[choice] if choice is not None and 0 <= choice < len(codes) else None
