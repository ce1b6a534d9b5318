"""The condition for a session of a Mini App, which both databases share."""

from taproof.core.identity import MessengerIdentity
from taproof.core.sessions import NewSession
from taproof.storage.rows import Values


def admitted(project: int) -> str:
    """Return the end of a statement that inserts a session once, and only if its project and user admit it.

    Args:
        project: the number of the value for the project's id; the bot's id and whether the call is public follow it.
            `$7` is the user.
    """
    return f"""FROM projects p
WHERE p.id = ${project} AND p.bot_id = ${project + 1} AND p.bot_broken_at IS NULL AND p.is_active = 1
  AND (p.public_access = 1 OR ${project + 2} = 0)
  AND NOT EXISTS (SELECT 1 FROM blocks b WHERE b.messenger_id = $7 AND b.project_id = p.id)
ON CONFLICT (token_hash, day) DO NOTHING"""


def opened_values(session: NewSession, identity: MessengerIdentity, now: int) -> Values:
    """Return the values `$1` to `$7` of such a statement."""
    return (*session.key, session.id, session.created_at, session.expires_at, now, identity.messenger_id)


def admitted_values(session: NewSession, *, public: bool) -> Values:
    """Return the values of `admitted`."""
    return (session.project_id, session.bot_id, public)
