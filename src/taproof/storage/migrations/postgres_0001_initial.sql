-- The schema of Taproof on PostgreSQL 14 and newer. Times are milliseconds since the epoch, days are UTC days since
-- 1970-01-01. A released migration never changes: `migrate.py` holds each to its checksum. What a node of an older
-- release calls must go on working: a function that changes gets a new name.
--
-- Text that is compared or sorted has the collation "C": by code point, as SQLite does, and the same on every server.

CREATE TABLE marks (
  name TEXT COLLATE "C" PRIMARY KEY,
  value BYTEA NOT NULL
);

-- Who does what only one process may do at a time, and until when.
CREATE TABLE leases (
  name TEXT COLLATE "C" PRIMARY KEY,
  holder TEXT COLLATE "C" NOT NULL,
  held_until BIGINT NOT NULL
);

CREATE TABLE developers (
  id TEXT COLLATE "C" PRIMARY KEY,
  email TEXT NOT NULL,
  email_key TEXT COLLATE "C" NOT NULL UNIQUE, -- The address in lower case: two spellings are one developer.
  plan TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE access_tokens (
  id TEXT COLLATE "C" PRIMARY KEY,
  developer_id TEXT COLLATE "C" NOT NULL,
  name TEXT NOT NULL,
  preview TEXT NOT NULL,
  token_hash BYTEA NOT NULL UNIQUE,
  created_at BIGINT NOT NULL,
  last_used_at BIGINT,
  expires_at BIGINT
);
CREATE INDEX access_tokens_by_developer ON access_tokens (developer_id, created_at);

CREATE TABLE projects (
  id TEXT COLLATE "C" PRIMARY KEY,
  developer_id TEXT COLLATE "C" NOT NULL,
  name TEXT NOT NULL,
  secret_key_hash BYTEA NOT NULL UNIQUE,
  secret_key_preview TEXT NOT NULL,
  encrypted_webhook_secret BYTEA NOT NULL,
  webhook_url TEXT NOT NULL,
  is_active INTEGER NOT NULL,
  public_access INTEGER NOT NULL,
  collect_phone INTEGER NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX projects_by_developer ON projects (developer_id, created_at, id);

-- A deleted project's row moves here, so that nothing finds it any more while housekeeping erases what it left.
-- It stays for a minute after all was erased: a statement that began before the deletion may still commit.
CREATE TABLE deleted_projects (
  id TEXT COLLATE "C" PRIMARY KEY,
  developer_id TEXT COLLATE "C" NOT NULL,
  deleted_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  is_erased INTEGER NOT NULL DEFAULT 0
);

-- One partition a day, `sessions_<day>`: a statement that names the day plans and locks that one only, and retention
-- drops whole days.
CREATE TABLE sessions (
  day INTEGER NOT NULL, -- The UTC day that the token carries.
  token_hash BYTEA NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  opened_at BIGINT,
  opener_id TEXT COLLATE "C",
  confirmed_at BIGINT,
  cancelled_at BIGINT,
  used_at BIGINT,
  messenger_id TEXT COLLATE "C",
  messenger_name TEXT,
  messenger_username TEXT,
  -- The hash first: a partition has one day, but as long as it has no statistics the planner expects two hundred, and
  -- would think it cheap to look for a session by its day.
  PRIMARY KEY (token_hash, day)
) PARTITION BY LIST (day);
CREATE INDEX sessions_by_project ON sessions (project_id, status, created_at, id);
CREATE INDEX sessions_pending ON sessions (expires_at) WHERE status = 'pending';

-- What became of the sessions created on a day. `latest_users` are those whose last confirmed day this is.
-- INTEGER, so that a sum of them is a BIGINT; 2,147,483,647 sign-ins of one project on one day are 24,855 a second.
CREATE TABLE daily_counts (
  project_id TEXT COLLATE "C" NOT NULL,
  day INTEGER NOT NULL,
  requested INTEGER NOT NULL DEFAULT 0,
  opened INTEGER NOT NULL DEFAULT 0,
  confirmed INTEGER NOT NULL DEFAULT 0,
  used INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  expired INTEGER NOT NULL DEFAULT 0,
  unique_users INTEGER NOT NULL DEFAULT 0,
  latest_users INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (project_id, day)
) WITH (fillfactor = 50); -- A few rows that are updated all the time: room beside each keeps the updates off the index.

-- The same two figures over all projects of a developer, where one person may use several.
CREATE TABLE daily_users (
  developer_id TEXT COLLATE "C" NOT NULL,
  day INTEGER NOT NULL,
  unique_users INTEGER NOT NULL DEFAULT 0,
  latest_users INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (developer_id, day)
) WITH (fillfactor = 50);

-- Who confirmed on which day, once each: what keeps the counts of distinct users exact.
CREATE TABLE user_days (
  developer_id TEXT COLLATE "C" NOT NULL,
  messenger_id TEXT COLLATE "C" NOT NULL,
  day INTEGER NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (developer_id, messenger_id, day, project_id)
);
CREATE INDEX user_days_by_project ON user_days (project_id);
CREATE INDEX user_days_by_age ON user_days (day);

CREATE TABLE webhook_events (
  id TEXT COLLATE "C" PRIMARY KEY,
  project_id TEXT COLLATE "C" NOT NULL,
  type TEXT NOT NULL,
  encrypted_body BYTEA NOT NULL, -- The exact bytes to send, encrypted: they hold the session token.
  created_at BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL, -- due, delivered, failed, or ended because its webhook was removed.
  due_at BIGINT NOT NULL,
  leased_until BIGINT NOT NULL,
  attempts INTEGER NOT NULL,
  finished_at BIGINT
);
CREATE INDEX webhook_events_due ON webhook_events (due_at) WHERE state = 'due';
CREATE INDEX webhook_events_by_project ON webhook_events (project_id, state);
CREATE INDEX webhook_events_finished ON webhook_events (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE bot_updates (
  bot_id BIGINT NOT NULL,
  update_id BIGINT NOT NULL,
  claimed_at BIGINT NOT NULL,
  done INTEGER NOT NULL,
  PRIMARY KEY (bot_id, update_id)
);
CREATE INDEX bot_updates_by_age ON bot_updates (claimed_at);

-- Whoever changes what is known of a person's days holds this person's lock first, until the end of the transaction:
-- two nodes cannot both find somebody new. Locks are taken in one order, so that none waits in a circle.
CREATE FUNCTION lock_people(of_developers TEXT[], of_people TEXT[]) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(person.lock_key) FROM (
    SELECT DISTINCT hashtextextended(each.developer_id || ' ' || each.messenger_id, 0) AS lock_key
    FROM unnest(of_developers, of_people) AS each (developer_id, messenger_id) ORDER BY 1
  ) AS person;
END $$;

-- Move sessions from pending to confirmed, with their counts, people and events; return those that were moved.
-- `planned_days` names each day once, so that a statement is planned for the partitions of these only; all other arrays
-- have one element per session. For LATERAL and `status || ''` see postgres_sql.py. Each statement sees what was
-- committed while the one before it waited. Rows are locked in one order everywhere: sessions, people, daily_counts,
-- daily_users, projects.
CREATE FUNCTION confirm_sessions(
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
      RETURNING s.day, s.token_hash, s.project_id, p.developer_id, s.messenger_id
    )
    SELECT array_agg(m.day), array_agg(m.token_hash), array_agg(m.project_id), array_agg(m.developer_id),
      array_agg(m.messenger_id) FROM moved m
  $q$ INTO moved_days, moved_hashes, moved_projects, moved_developers, moved_people
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
  INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts, project_id)
  SELECT e.id, e.type, e.encrypted_body, e.created_at, 'due', e.created_at, 0, 0, p.id
  FROM unnest(hashes, event_ids, event_types, event_bodies, event_times, event_projects)
    AS e (token_hash, id, type, encrypted_body, created_at, project_id)
  JOIN projects p ON p.id = e.project_id AND p.webhook_url <> ''
  WHERE e.token_hash = ANY (moved_hashes);

  RETURN QUERY SELECT * FROM unnest(moved_days, moved_hashes);
END $$;

-- Take at most `count_limit` person-days of a deleted project out of its developer's counts; return how many.
CREATE FUNCTION erase_people(of_developer TEXT, of_project TEXT, count_limit BIGINT) RETURNS INTEGER
LANGUAGE plpgsql AS $$
DECLARE
  people TEXT[];
  days INTEGER[];
  erased INTEGER := 0;
  last_day INTEGER;
BEGIN
  SELECT array_agg(f.messenger_id), array_agg(f.day) INTO people, days FROM (
    SELECT u.messenger_id, u.day FROM user_days u WHERE u.project_id = of_project LIMIT count_limit) AS f;
  IF people IS NULL THEN
    RETURN 0;
  END IF;
  PERFORM lock_people(array_fill(of_developer, ARRAY[cardinality(people)]), people);
  PERFORM c.day FROM daily_users c WHERE c.developer_id = of_developer ORDER BY c.day FOR UPDATE;
  FOR n IN 1 .. cardinality(people) LOOP
    DELETE FROM user_days u WHERE u.developer_id = of_developer AND u.messenger_id = people[n] AND u.day = days[n]
      AND u.project_id = of_project;
    IF NOT FOUND THEN -- Another node has erased it.
      CONTINUE;
    END IF;
    erased := erased + 1;
    IF EXISTS (
      SELECT FROM user_days u
      WHERE u.developer_id = of_developer AND u.messenger_id = people[n] AND u.day = days[n]
    ) THEN
      CONTINUE;
    END IF;
    SELECT MAX(u.day) INTO last_day FROM user_days u
    WHERE u.developer_id = of_developer AND u.messenger_id = people[n];
    UPDATE daily_users c SET unique_users = c.unique_users - 1,
      latest_users = c.latest_users - CASE WHEN last_day > days[n] THEN 0 ELSE 1 END
    WHERE c.developer_id = of_developer AND c.day = days[n];
    UPDATE daily_users c SET latest_users = c.latest_users + 1
    WHERE c.developer_id = of_developer AND c.day = last_day AND last_day < days[n];
  END LOOP;
  RETURN erased;
END $$;
