-- What a session's page shows: which webhook event told of it; and the sessions that one messenger account confirmed.
-- Nodes of the older release go on working: they name no new column, and they call the function as it was.

-- Sessions before events, as every writer takes them. By account first: nearly all entries differ there, so an entry is
-- found with one short comparison at each step. The status lets a page of one account and one status be walked like any
-- other, however often that account signs in.
--
-- Whoever writes to a day waits from when its index is begun until all of this is committed: so the oldest day is first,
-- and today's, which nearly everybody writes to, among the last. No day comes or goes meanwhile. The last statement
-- finds all of these indexes and builds none.
LOCK TABLE ONLY sessions IN SHARE UPDATE EXCLUSIVE MODE;
DO $$
DECLARE
  of_day REGCLASS;
BEGIN
  FOR of_day IN
    SELECT i.inhrelid FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'sessions'::REGCLASS AND NOT i.inhdetachpending ORDER BY substring(c.relname FROM 10)::INTEGER
  LOOP
    EXECUTE format('CREATE INDEX ON %s (messenger_id, project_id, status, created_at, id)
      WHERE messenger_id IS NOT NULL', of_day);
  END LOOP;
END $$;
CREATE INDEX sessions_by_messenger ON sessions (messenger_id, project_id, status, created_at, id)
  WHERE messenger_id IS NOT NULL;

-- Null for a test, and for what a node of the older release records when a session is cancelled.
ALTER TABLE webhook_events ADD COLUMN session_id TEXT COLLATE "C";

-- As postgres_0001 has it, and the event gets the id of its session. The signature stays, so that it is replaced for the
-- nodes of the older release too. What follows is that file's comment:
-- move sessions from pending to confirmed, with their counts, people and events; return those that were moved.
-- `planned_days` names each day once, so that a statement is planned for the partitions of these only; all other arrays
-- have one element per session. For LATERAL and `status || ''` see postgres_sql.py. Each statement sees what was
-- committed while the one before it waited. Rows are locked in one order everywhere: sessions, people, daily_counts,
-- daily_users, projects.
CREATE OR REPLACE FUNCTION confirm_sessions(
  planned_days INTEGER[], of_days INTEGER[], hashes BYTEA[], confirmed_times BIGINT[], people TEXT[], names TEXT[],
  usernames TEXT[], deadlines BIGINT[], event_ids TEXT[], event_types TEXT[], event_bodies BYTEA[],
  event_times BIGINT[], event_projects TEXT[]
) RETURNS TABLE (moved_day INTEGER, moved_hash BYTEA) LANGUAGE plpgsql
-- What stands in quotes is planned anew each time and so names its days; all else is planned once, which takes half the
-- time of the whole, and by the primary keys, however small the tables were when it was planned.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
  of_day INTEGER;
  locked_hashes BYTEA[];
  moved_days INTEGER[];
  moved_hashes BYTEA[];
  moved_ids TEXT[];
  moved_projects TEXT[];
  moved_developers TEXT[];
  moved_people TEXT[];
BEGIN
  EXECUTE $q$
    SELECT array_agg(a.token_hash) FROM (
      SELECT * FROM unnest($2, $3, $4, $5) AS each (day, token_hash, messenger_id, deadline) ORDER BY day, token_hash
    ) AS a CROSS JOIN LATERAL (
      SELECT FROM sessions s
      WHERE s.day = ANY ($1) AND s.day = a.day AND s.token_hash = a.token_hash
        AND s.status || '' = 'pending' AND s.opener_id = a.messenger_id AND s.expires_at > a.deadline
      LIMIT 1 FOR UPDATE
    ) AS s
  $q$ INTO locked_hashes USING planned_days, of_days, hashes, people, deadlines;
  IF locked_hashes IS NULL THEN
    RETURN;
  END IF;

  EXECUTE $q$
    WITH moved AS (
      UPDATE sessions s SET status = 'confirmed', confirmed_at = a.confirmed_at, messenger_id = a.messenger_id,
        messenger_name = a.messenger_name, messenger_username = a.messenger_username
      FROM unnest($2, $3, $4, $5, $6, $7)
        AS a (day, token_hash, confirmed_at, messenger_id, messenger_name, messenger_username), projects p
      WHERE s.day = ANY ($1) AND a.token_hash = ANY ($8)
        AND a.day = s.day AND a.token_hash = s.token_hash AND p.id = s.project_id
      RETURNING s.day, s.token_hash, s.id, s.project_id, p.developer_id, s.messenger_id
    )
    SELECT array_agg(m.day), array_agg(m.token_hash), array_agg(m.id), array_agg(m.project_id),
      array_agg(m.developer_id), array_agg(m.messenger_id) FROM moved m
  $q$ INTO moved_days, moved_hashes, moved_ids, moved_projects, moved_developers, moved_people
  USING planned_days, of_days, hashes, confirmed_times, people, names, usernames, locked_hashes;
  IF moved_days IS NULL THEN
    RETURN;
  END IF;

  PERFORM lock_people(moved_developers, moved_people);

  FOR of_day IN SELECT DISTINCT d.day FROM unnest(moved_days) AS d (day) ORDER BY d.day LOOP
    WITH fresh AS (
      SELECT m.project_id, (
        SELECT MAX(u.day) FROM user_days u WHERE u.developer_id = m.developer_id
          AND u.messenger_id = m.messenger_id AND u.project_id = m.project_id) AS last_day
      FROM (SELECT DISTINCT x.developer_id, x.messenger_id, x.project_id
        FROM unnest(moved_days, moved_developers, moved_people, moved_projects)
          AS x (day, developer_id, messenger_id, project_id) WHERE x.day = of_day) AS m
      WHERE NOT EXISTS (
        SELECT FROM user_days u WHERE u.developer_id = m.developer_id AND u.messenger_id = m.messenger_id
          AND u.day = of_day AND u.project_id = m.project_id)
    ), changes AS (
      SELECT x.project_id, of_day AS day, 1 AS confirmed, 0 AS unique_users, 0 AS latest_users
      FROM unnest(moved_days, moved_projects) AS x (day, project_id) WHERE x.day = of_day
      UNION ALL
      SELECT f.project_id, of_day, 0, 1, CASE WHEN f.last_day > of_day THEN 0 ELSE 1 END FROM fresh f
      UNION ALL
      SELECT f.project_id, f.last_day, 0, 0, -1 FROM fresh f WHERE f.last_day < of_day
    )
    INSERT INTO daily_counts AS c (project_id, day, confirmed, unique_users, latest_users)
    SELECT x.project_id, x.day, SUM(x.confirmed), SUM(x.unique_users), SUM(x.latest_users)
    FROM changes x GROUP BY x.project_id, x.day ORDER BY x.project_id COLLATE "C", x.day
    ON CONFLICT (project_id, day) DO UPDATE SET confirmed = c.confirmed + excluded.confirmed,
      unique_users = c.unique_users + excluded.unique_users, latest_users = c.latest_users + excluded.latest_users;

    WITH fresh AS (
      SELECT m.developer_id, (
        SELECT MAX(u.day) FROM user_days u
        WHERE u.developer_id = m.developer_id AND u.messenger_id = m.messenger_id) AS last_day
      FROM (SELECT DISTINCT x.developer_id, x.messenger_id
        FROM unnest(moved_days, moved_developers, moved_people) AS x (day, developer_id, messenger_id)
        WHERE x.day = of_day) AS m
      WHERE NOT EXISTS (
        SELECT FROM user_days u
        WHERE u.developer_id = m.developer_id AND u.messenger_id = m.messenger_id AND u.day = of_day)
    ), changes AS (
      SELECT f.developer_id, of_day AS day, 1 AS unique_users,
        CASE WHEN f.last_day > of_day THEN 0 ELSE 1 END AS latest_users
      FROM fresh f
      UNION ALL
      SELECT f.developer_id, f.last_day, 0, -1 FROM fresh f WHERE f.last_day < of_day
    )
    INSERT INTO daily_users AS c (developer_id, day, unique_users, latest_users)
    SELECT x.developer_id, x.day, SUM(x.unique_users), SUM(x.latest_users)
    FROM changes x GROUP BY x.developer_id, x.day ORDER BY x.developer_id COLLATE "C", x.day
    ON CONFLICT (developer_id, day) DO UPDATE SET
      unique_users = c.unique_users + excluded.unique_users, latest_users = c.latest_users + excluded.latest_users;

    INSERT INTO user_days (developer_id, messenger_id, day, project_id)
    SELECT DISTINCT x.developer_id, x.messenger_id, of_day, x.project_id
    FROM unnest(moved_days, moved_developers, moved_people, moved_projects)
      AS x (day, developer_id, messenger_id, project_id) WHERE x.day = of_day
    ON CONFLICT DO NOTHING;
  END LOOP;

  -- The lock keeps the webhook from being removed in between: its due events are ended after this commit or not made.
  PERFORM p.id FROM projects p WHERE p.id = ANY (moved_projects) AND p.webhook_url <> '' ORDER BY p.id FOR SHARE;
  INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts, project_id,
    session_id)
  SELECT e.id, e.type, e.encrypted_body, e.created_at, 'due', e.created_at, 0, 0, p.id, m.session_id
  FROM unnest(hashes, event_ids, event_types, event_bodies, event_times, event_projects)
    AS e (token_hash, id, type, encrypted_body, created_at, project_id)
  JOIN unnest(moved_hashes, moved_ids) AS m (token_hash, session_id) ON m.token_hash = e.token_hash
  JOIN projects p ON p.id = e.project_id AND p.webhook_url <> '';

  RETURN QUERY SELECT * FROM unnest(moved_days, moved_hashes);
END $$;
