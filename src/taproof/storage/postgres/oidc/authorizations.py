"""Sign-ins through the OpenID provider on PostgreSQL."""

from typing import Final

from taproof.core.oidc.grants import NewGrant
from taproof.core.oidc.model import NewCode, NewTokens
from taproof.core.sessions import SessionKey
from taproof.storage.queries.oidc import authorizations as queries
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import Values

# The session is locked first: see `postgres/__init__.py`.
_FINISH: Final = f"""
WITH locked AS MATERIALIZED (
  SELECT s.day, s.token_hash, s.messenger_id FROM sessions s JOIN projects p ON p.id = s.project_id
  WHERE s.day = $11 AND s.token_hash = $9 AND s.status || '' = 'confirmed' FOR UPDATE OF s
), finished AS (
  UPDATE oidc_authorizations SET {queries.FINISHED} AND EXISTS (SELECT FROM locked l
    WHERE oidc_authorizations.expected_user IS NULL OR oidc_authorizations.expected_user = l.messenger_id)
  RETURNING id
), moved AS (
  UPDATE sessions s SET status = 'used', used_at = $10, secrets_version = p.secrets_version
  FROM locked l, finished f, projects p
  WHERE s.day = $11 AND s.token_hash = $9 AND p.id = s.project_id RETURNING s.project_id, s.day
), counted AS (
  INSERT INTO daily_counts AS c (project_id, day, used) SELECT m.project_id, m.day, 1 FROM moved m
  ON CONFLICT (project_id, day) DO UPDATE SET used = c.used + excluded.used
)
SELECT 1 FROM moved"""


class PostgresAuthorizations(queries.AuthorizationQueries):
    """See `storage.queries.oidc.authorizations.AuthorizationQueries`."""

    async def finish_authorization(
        self,
        authorization_id: str,
        session: SessionKey,
        now: int,
        given: NewCode | NewTokens,
        grant: NewGrant | None = None,
    ) -> bool:
        if grant is not None:
            return await super().finish_authorization(authorization_id, session, now, given, grant)
        values = (*queries.finish_values(authorization_id, session, now, given), session.day)
        return bool(await self._database.read(_FINISH, *values))

    async def _finish(self, transaction: Transaction, values: Values, session: SessionKey, now: int) -> bool:  # noqa: ARG002
        return bool(await transaction.fetch(_FINISH, *values))
