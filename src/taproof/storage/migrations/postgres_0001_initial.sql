-- The schema of Taproof on PostgreSQL 14 and newer. Times are milliseconds since the epoch, days are UTC days since
-- 1970-01-01. A released migration never changes: `migrate.py` compares each with its checksum. Nodes of the previous
-- release must keep working during a rolling deploy: a function that changes gets a new name.
--
-- Text that is compared or sorted has the collation "C": by code point, as on SQLite, and the same on every server.

-- Values of the installation itself, such as the check of the master key.
CREATE TABLE metadata (
  name TEXT COLLATE "C" PRIMARY KEY,
  value BYTEA NOT NULL
);

-- The work that one process at a time may do, and until when its lease lasts.
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
  created_at BIGINT NOT NULL,
  is_owner INTEGER NOT NULL DEFAULT 0,
  messenger_id TEXT COLLATE "C",
  messenger_name TEXT NOT NULL DEFAULT '',
  inviter_id TEXT COLLATE "C", -- The inviter and the sign-in of the invitation that this developer accepted.
  sign_in TEXT COLLATE "C",
  bound_by TEXT COLLATE "C" -- The sign-in that linked the messenger account.
);
CREATE UNIQUE INDEX developers_by_messenger_id ON developers (messenger_id);
CREATE INDEX developers_by_inviter ON developers (inviter_id) WHERE inviter_id IS NOT NULL;
CREATE INDEX developers_by_sign_in ON developers (sign_in) WHERE sign_in IS NOT NULL;
CREATE INDEX developers_by_binding ON developers (bound_by) WHERE bound_by IS NOT NULL;

CREATE TABLE invitations (
  id TEXT COLLATE "C" PRIMARY KEY,
  code_hash BYTEA NOT NULL UNIQUE,
  email TEXT NOT NULL, -- Empty for the first developer, who enters their own.
  plan TEXT NOT NULL,
  is_owner INTEGER NOT NULL,
  developer_id TEXT COLLATE "C", -- The developer who gets another messenger account; null to create a developer.
  invited_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  inviter_id TEXT COLLATE "C", -- Null when the operator created it.
  sign_in TEXT COLLATE "C" -- The messenger sign-in that the inviter's rights come from.
);
CREATE INDEX invitations_by_developer ON invitations (developer_id) WHERE developer_id IS NOT NULL;
CREATE INDEX invitations_by_expiry ON invitations (expires_at);
CREATE INDEX invitations_by_inviter ON invitations (inviter_id) WHERE inviter_id IS NOT NULL;
CREATE INDEX invitations_by_sign_in ON invitations (sign_in) WHERE sign_in IS NOT NULL;

CREATE TABLE access_tokens (
  id TEXT COLLATE "C" PRIMARY KEY,
  developer_id TEXT COLLATE "C" NOT NULL,
  name TEXT NOT NULL,
  preview TEXT NOT NULL,
  token_hash BYTEA NOT NULL UNIQUE,
  created_at BIGINT NOT NULL,
  last_used_at BIGINT,
  expires_at BIGINT,
  scopes TEXT NOT NULL DEFAULT 'read,write,tokens',
  parent_id TEXT COLLATE "C", -- The access token that created it.
  sign_in TEXT COLLATE "C" -- The messenger sign-in that it comes from.
);
CREATE INDEX access_tokens_by_developer ON access_tokens (developer_id, created_at);
CREATE INDEX access_tokens_by_sign_in ON access_tokens (sign_in) WHERE sign_in IS NOT NULL;

CREATE TABLE console_sessions (
  id TEXT COLLATE "C" PRIMARY KEY,
  token_hash BYTEA NOT NULL UNIQUE,
  developer_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  access_token_id TEXT COLLATE "C", -- The session ends with this access token.
  address TEXT NOT NULL,
  user_agent TEXT NOT NULL,
  messenger_id TEXT COLLATE "C", -- The account that signed in; unlinking it ends the session. Null with a token.
  scopes TEXT NOT NULL DEFAULT 'read,write,tokens',
  expires_at BIGINT,
  sign_in TEXT COLLATE "C" -- The messenger sign-in that it comes from.
);
CREATE INDEX console_sessions_by_developer ON console_sessions (developer_id, created_at, id);
CREATE INDEX console_sessions_by_age ON console_sessions (last_seen_at);
CREATE INDEX console_sessions_by_sign_in ON console_sessions (sign_in) WHERE sign_in IS NOT NULL;

-- The key makes a page of one developer's log, newest first, one walk.
CREATE TABLE audit_entries (
  id TEXT COLLATE "C" NOT NULL,
  developer_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  action TEXT NOT NULL,
  actor TEXT NOT NULL,
  via TEXT NOT NULL,
  via_id TEXT NOT NULL,
  address TEXT NOT NULL,
  subject TEXT NOT NULL,
  details TEXT NOT NULL, -- A JSON object.
  project_id TEXT COLLATE "C" NOT NULL DEFAULT '', -- The project that the action changed; its members see the entry.
  PRIMARY KEY (developer_id, created_at, id)
);
CREATE INDEX audit_entries_by_age ON audit_entries (created_at);
CREATE INDEX audit_entries_by_project ON audit_entries (project_id, created_at, id) WHERE project_id <> '';

-- What was erased of each developer's audit log, one row for each developer.
CREATE TABLE audit_purges (
  developer_id TEXT COLLATE "C" PRIMARY KEY,
  before BIGINT NOT NULL, -- Entries older than this are erased, or are about to be.
  entries BIGINT NOT NULL, -- How many were erased, in total.
  purged_at BIGINT NOT NULL
);
-- The audit log is append-only. An entry is erased only after its erasure was recorded in audit_purges.
CREATE FUNCTION refuse_to_change_audit_log() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'The audit log is append-only.';
END $$;
CREATE TRIGGER audit_entries_are_append_only BEFORE UPDATE OR TRUNCATE ON audit_entries
FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_audit_log();
CREATE FUNCTION refuse_to_erase_audit_entry() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM audit_purges p WHERE p.developer_id = OLD.developer_id AND p.before > OLD.created_at) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'The audit log is append-only.';
END $$;
CREATE TRIGGER audit_entries_are_not_erased BEFORE DELETE ON audit_entries
FOR EACH ROW EXECUTE FUNCTION refuse_to_erase_audit_entry();

CREATE TABLE projects (
  id TEXT COLLATE "C" PRIMARY KEY,
  developer_id TEXT COLLATE "C" NOT NULL, -- The owner whose plan and limits count.
  creator_id TEXT COLLATE "C" NOT NULL, -- The developer who created it; `daily_users` counts its users for them.
  name TEXT NOT NULL,
  secret_key_hash BYTEA NOT NULL UNIQUE,
  secret_key_preview TEXT NOT NULL,
  encrypted_webhook_secret BYTEA NOT NULL,
  webhook_url TEXT NOT NULL,
  is_active INTEGER NOT NULL,
  public_access INTEGER NOT NULL,
  collect_phone INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  encrypted_next_webhook_secret BYTEA, -- During a rotation: the secret that replaces the current one, and when.
  next_webhook_secret_at BIGINT,
  secrets_version INTEGER NOT NULL DEFAULT 0, -- Counts the changes of the webhook secret that signs proofs.
  phone_required INTEGER NOT NULL DEFAULT 1,
  show_context INTEGER NOT NULL DEFAULT 1,
  match_code INTEGER NOT NULL DEFAULT 0,
  allowed_origins TEXT NOT NULL DEFAULT '', -- Separated by spaces; '' allows any.
  webhook_events TEXT NOT NULL DEFAULT 'auth.confirmed auth.cancelled', -- Separated by spaces.
  same_device TEXT NOT NULL DEFAULT 'off', -- off, offer or require.
  return_urls TEXT NOT NULL DEFAULT '', -- Separated by spaces.
  texts TEXT NOT NULL DEFAULT '{}', -- A JSON object: texts by language, then by key.
  logo_url TEXT NOT NULL DEFAULT '',
  bot_id BIGINT, -- The project bot; null without one.
  bot_username TEXT,
  encrypted_bot_token BYTEA,
  bot_broken_at BIGINT
);
CREATE INDEX projects_by_developer ON projects (developer_id, creator_id, id);
CREATE INDEX projects_by_creator ON projects (creator_id, developer_id, id);
CREATE UNIQUE INDEX projects_by_bot ON projects (bot_id) WHERE bot_id IS NOT NULL;

-- The members of each project. Each project has an owner; `projects.developer_id` is one of them.
CREATE TABLE project_members (
  project_id TEXT COLLATE "C" NOT NULL,
  developer_id TEXT COLLATE "C" NOT NULL,
  role TEXT COLLATE "C" NOT NULL, -- owner, developer or viewer.
  created_at BIGINT NOT NULL,
  invited_by TEXT NOT NULL, -- The inviter's e-mail address; '' for the creator.
  PRIMARY KEY (project_id, developer_id)
);
CREATE INDEX project_members_by_developer ON project_members (developer_id, project_id, role);

-- The messenger sign-ins from which a membership derives: that of its invitation, and those of the inviter's membership.
CREATE TABLE member_origins (
  project_id TEXT COLLATE "C" NOT NULL,
  developer_id TEXT COLLATE "C" NOT NULL,
  inviter_id TEXT COLLATE "C" NOT NULL, -- The developer of the sign-in.
  sign_in TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (project_id, developer_id, inviter_id, sign_in)
);
CREATE INDEX member_origins_by_inviter ON member_origins (inviter_id, sign_in);
CREATE INDEX member_origins_by_sign_in ON member_origins (sign_in);
CREATE INDEX member_origins_by_developer ON member_origins (developer_id);

CREATE TABLE member_invitations (
  id TEXT COLLATE "C" PRIMARY KEY,
  project_id TEXT COLLATE "C" NOT NULL,
  code_hash BYTEA NOT NULL UNIQUE,
  role TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  invited_by TEXT NOT NULL,
  inviter_id TEXT COLLATE "C" NOT NULL,
  access_token_id TEXT COLLATE "C", -- The access token that the inviter's rights come from.
  sign_in TEXT COLLATE "C" -- The messenger sign-in that the inviter's rights come from.
);
CREATE INDEX member_invitations_by_project ON member_invitations (project_id, created_at, id);
CREATE INDEX member_invitations_by_inviter ON member_invitations (inviter_id);
CREATE INDEX member_invitations_by_sign_in ON member_invitations (sign_in) WHERE sign_in IS NOT NULL;
CREATE INDEX member_invitations_by_expiry ON member_invitations (expires_at);

-- The applications that sign in with OpenID Connect. Their project's row is deleted in the same transaction.
CREATE TABLE oidc_clients (
  id TEXT COLLATE "C" PRIMARY KEY,
  project_id TEXT COLLATE "C" NOT NULL,
  name TEXT NOT NULL,
  redirect_uris TEXT NOT NULL, -- A JSON array.
  auth_method TEXT NOT NULL, -- any, basic, post or none.
  signing_alg TEXT NOT NULL,
  email TEXT NOT NULL, -- none or synthetic.
  id_token_lifetime INTEGER NOT NULL, -- Seconds.
  grant_types TEXT NOT NULL, -- Separated by spaces.
  devices_since BIGINT, -- When the client got the grant device_code; null without it.
  post_logout_redirect_uris TEXT NOT NULL DEFAULT '[]', -- A JSON array.
  backchannel_logout_uri TEXT NOT NULL DEFAULT '',
  version INTEGER NOT NULL DEFAULT 0, -- Counts the changes that end all its users' grants.
  secret_hash BYTEA, -- Null for a client without a secret.
  secret_preview TEXT,
  created_at BIGINT NOT NULL,
  refused_method TEXT, -- How the client last authenticated against its auth_method, and when.
  refused_at BIGINT
);
CREATE INDEX oidc_clients_by_project ON oidc_clients (project_id, created_at, id);

-- Who is in which group of a client. Their client's row is deleted in the same transaction.
CREATE TABLE oidc_group_members (
  client_id TEXT COLLATE "C" NOT NULL,
  messenger_id TEXT COLLATE "C" NOT NULL, -- Empty in the row of the group itself.
  group_name TEXT COLLATE "C" NOT NULL,
  is_allowed INTEGER NOT NULL, -- 1 in all rows of a group whose members may sign in; without such a group, all may.
  PRIMARY KEY (client_id, messenger_id, group_name)
);
CREATE INDEX oidc_group_members_by_messenger ON oidc_group_members (messenger_id, client_id, group_name);

-- The row of a deleted project moves here, so that no statement finds the project while housekeeping erases its data.
-- It stays for a minute after everything is erased: a statement that began before the deletion may still commit.
CREATE TABLE deleted_projects (
  id TEXT COLLATE "C" PRIMARY KEY,
  developer_id TEXT COLLATE "C" NOT NULL,
  creator_id TEXT COLLATE "C" NOT NULL,
  deleted_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  is_erased INTEGER NOT NULL DEFAULT 0
);

-- One partition for each day, `sessions_<day>`: a statement that names the day plans and locks that partition only, and
-- retention drops whole days.
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
  code_challenge BYTEA, -- The SHA-256 of the verifier (RFC 7636); null when the session is not bound to its client.
  secrets_version INTEGER, -- The project's value when the session was used: while equal, the proof can be repeated.
  bot_id BIGINT NOT NULL DEFAULT 0, -- The bot of the session's link; 0 is the service's own.
  context TEXT, -- JSON: where the request came from. Erased when the session leaves pending.
  match_code TEXT,
  match_choices TEXT, -- Three codes separated by spaces, in the order shown.
  encrypted_phone BYTEA,
  reported_at BIGINT, -- When the user tapped "This wasn't me".
  hint TEXT COLLATE "C", -- What a pending session waits for; null until its link is opened.
  withdrawn INTEGER NOT NULL DEFAULT 0, -- 1 if the application cancelled the session, not the user.
  return_url TEXT, -- The page of the *Back to* button; null without one. Erased when the session leaves pending.
  return_required INTEGER NOT NULL DEFAULT 0, -- 1: Confirm waits for the return code, in the status pending.
  return_hash BYTEA, -- The SHA-256 of the return code, from Confirm on.
  -- The hash comes first: without statistics the planner expects two hundred days in a partition, not one.
  PRIMARY KEY (token_hash, day)
) PARTITION BY LIST (day);
CREATE INDEX sessions_by_project ON sessions (project_id, status, created_at, id);
CREATE INDEX sessions_pending ON sessions (expires_at) WHERE status = 'pending';
-- The account comes first, because nearly all entries differ there: each step of a search is one short comparison.
CREATE INDEX sessions_by_messenger ON sessions (messenger_id, project_id, status, created_at, id)
  WHERE messenger_id IS NOT NULL;
CREATE INDEX sessions_reported ON sessions (messenger_id, project_id) WHERE reported_at IS NOT NULL;
-- A user's sessions in a project, confirmed or not, in an order that no change of a session alters: an export reads on
-- from the key at which its last step ended.
CREATE INDEX sessions_by_opener ON sessions (opener_id, project_id, day, token_hash) WHERE opener_id IS NOT NULL;

-- Users who tapped Confirm and are asked for their contact. The message with the contact does not name its session.
CREATE TABLE phone_requests (
  day INTEGER NOT NULL,
  token_hash BYTEA NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  messenger_id TEXT COLLATE "C" NOT NULL,
  bot_id BIGINT NOT NULL,
  encrypted_token BYTEA NOT NULL,
  asked_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (day, token_hash)
);
CREATE INDEX phone_requests_by_messenger ON phone_requests (messenger_id, bot_id, asked_at);
CREATE INDEX phone_requests_by_age ON phone_requests (expires_at);

-- The message that shows a session to its owner. There is no row until the bot has sent the message, or failed to.
CREATE TABLE prompts (
  day INTEGER NOT NULL,
  token_hash BYTEA NOT NULL,
  bot_id BIGINT NOT NULL,
  messenger_id TEXT COLLATE "C" NOT NULL,
  message_id BIGINT, -- Null if the user had blocked the bot.
  language TEXT NOT NULL,
  expires_at BIGINT NOT NULL,
  hint TEXT COLLATE "C", -- The session's hint before the user blocked the bot.
  ended_at BIGINT, -- When the application cancelled the session. The message must be edited.
  leased_until BIGINT NOT NULL, -- Until then, one process edits it.
  renewals INTEGER NOT NULL DEFAULT 0, -- How often a fresh message has replaced one whose taps prove nothing.
  renewed_at BIGINT, -- When that last happened.
  renewed_for TEXT COLLATE "C", -- The tap that caused it. The fresh message is sent once `message_id` is not null.
  PRIMARY KEY (day, token_hash)
);
CREATE INDEX prompts_by_messenger ON prompts (messenger_id, bot_id);
CREATE INDEX prompts_by_age ON prompts (expires_at);
CREATE INDEX prompts_ended ON prompts (leased_until) WHERE ended_at IS NOT NULL;

-- Sign-ins through the OpenID provider, and the codes and access tokens that they give.
CREATE TABLE oidc_authorizations (
  id TEXT COLLATE "C" PRIMARY KEY,
  client_id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  request TEXT NOT NULL, -- The checked request, as JSON.
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  browser_hash BYTEA, -- Of the cookie that binds it to a browser.
  session_day INTEGER,
  session_hash BYTEA,
  encrypted_session BYTEA, -- The session's token and code verifier.
  user_code TEXT COLLATE "C" UNIQUE,
  expected_user TEXT, -- The account that must confirm; erased when the sign-in is finished.
  ended_at BIGINT, -- The user went back without signing in.
  code_expires_at BIGINT, -- Set when the session is consumed.
  redeemed_at BIGINT,
  access_expires_at BIGINT,
  revoked_at BIGINT,
  client_version INTEGER, -- The client's version when it got the access token.
  device_code_hash BYTEA UNIQUE,
  polled_at BIGINT,
  code_hash BYTEA UNIQUE,
  access_token_hash BYTEA UNIQUE,
  kept_until BIGINT NOT NULL -- The row is erased afterwards.
);
CREATE INDEX oidc_authorizations_by_age ON oidc_authorizations (kept_until);

-- What a client holds of a user after the sign-in: a refresh token, or the right to be told that the user is signed out.
CREATE TABLE oidc_grants (
  id TEXT COLLATE "C" PRIMARY KEY, -- That of the sign-in; also the claim `sid`.
  client_id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  messenger_id TEXT COLLATE "C" NOT NULL,
  messenger_name TEXT NOT NULL,
  messenger_username TEXT NOT NULL,
  encrypted_phone BYTEA,
  scopes TEXT NOT NULL, -- Separated by spaces.
  auth_time BIGINT NOT NULL,
  session_day INTEGER NOT NULL,
  session_hash BYTEA NOT NULL,
  client_version INTEGER NOT NULL, -- The client's version when it got the grant. With another one, the grant is over.
  family_hash BYTEA UNIQUE, -- Of the part that all refresh tokens of the grant share; null without one.
  refresh_hash BYTEA, -- Of the other part of the current refresh token.
  access_token_hash BYTEA UNIQUE, -- Of the access token that the last refresh gave.
  access_expires_at BIGINT,
  access_scopes TEXT,
  created_at BIGINT NOT NULL,
  refreshed_at BIGINT,
  idle_expires_at BIGINT NOT NULL, -- The row is erased then. At most `expires_at`, unless it has ended.
  expires_at BIGINT NOT NULL,
  ended_at BIGINT,
  ended_reason TEXT COLLATE "C"
);
CREATE INDEX oidc_grants_by_messenger ON oidc_grants (messenger_id, project_id);
CREATE INDEX oidc_grants_by_session ON oidc_grants (session_day, session_hash);
CREATE INDEX oidc_grants_by_client ON oidc_grants (project_id, client_id, created_at, id);
CREATE INDEX oidc_grants_by_age ON oidc_grants (idle_expires_at);

-- Clients that must be told that a user is signed out (OpenID Connect Back-Channel Logout 1.0). A row is erased once its
-- client was told.
CREATE TABLE oidc_logouts (
  sid TEXT COLLATE "C" PRIMARY KEY, -- The id of the grant.
  client_id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  messenger_id TEXT COLLATE "C", -- Null if the user was erased.
  created_at BIGINT NOT NULL,
  due_at BIGINT, -- The next attempt, or the end of the lease of the one in progress. Null after the last one.
  attempts INTEGER NOT NULL,
  failed_at BIGINT, -- When the last attempt failed, and why.
  failure TEXT COLLATE "C"
);
CREATE INDEX oidc_logouts_due ON oidc_logouts (due_at, client_id) WHERE due_at IS NOT NULL;
CREATE INDEX oidc_logouts_by_client ON oidc_logouts (project_id, client_id, failed_at);
CREATE INDEX oidc_logouts_by_age ON oidc_logouts (created_at);

-- Authorization requests that clients pushed (RFC 9126).
CREATE TABLE oidc_pushed_requests (
  uri_hash BYTEA PRIMARY KEY,
  client_id TEXT COLLATE "C" NOT NULL,
  parameters TEXT NOT NULL, -- A JSON object.
  expires_at BIGINT NOT NULL
);
CREATE INDEX oidc_pushed_requests_by_age ON oidc_pushed_requests (expires_at);

-- The keys that sign ID tokens. Of each algorithm, the newest key whose time has come signs.
CREATE TABLE oidc_signing_keys (
  alg TEXT COLLATE "C" NOT NULL,
  generation INTEGER NOT NULL,
  kid TEXT COLLATE "C" NOT NULL UNIQUE,
  encrypted_private_key BYTEA NOT NULL,
  public_jwk TEXT NOT NULL, -- A JSON object.
  created_at BIGINT NOT NULL,
  signs_from BIGINT NOT NULL,
  PRIMARY KEY (alg, generation)
);

-- The projects that a messenger account has blocked.
CREATE TABLE blocks (
  messenger_id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (messenger_id, project_id)
);
CREATE INDEX blocks_by_project ON blocks (project_id);

-- Counts of the sessions created on a day. `latest_users` are the users whose last confirmed day this is.
-- INTEGER makes a sum a BIGINT; 2,147,483,647 sign-ins of one project on one day are 24,855 a second.
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
  reported INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (project_id, day)
) WITH (fillfactor = 50); -- A few rows are updated all the time: free space beside each keeps the updates off the index.

-- The same two counts over all projects that a developer created: one user may use several.
CREATE TABLE daily_users (
  developer_id TEXT COLLATE "C" NOT NULL,
  day INTEGER NOT NULL,
  unique_users INTEGER NOT NULL DEFAULT 0,
  latest_users INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (developer_id, day)
) WITH (fillfactor = 50);

-- The users who confirmed on each day, once each. They keep the counts of distinct users exact. A user's newest row in
-- a project also describes the user; these columns are null in all older rows.
CREATE TABLE user_days (
  developer_id TEXT COLLATE "C" NOT NULL,
  messenger_id TEXT COLLATE "C" NOT NULL,
  day INTEGER NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  messenger_name TEXT,
  messenger_username TEXT,
  first_at BIGINT, -- The first and the last Confirm, and their number.
  last_at BIGINT,
  sign_ins INTEGER,
  PRIMARY KEY (developer_id, messenger_id, day, project_id)
);
CREATE INDEX user_days_by_project ON user_days (project_id);
CREATE INDEX user_days_by_age ON user_days (day);
CREATE INDEX user_days_by_last ON user_days (project_id, last_at, messenger_id) WHERE last_at IS NOT NULL;

-- The confirmed users of deleted projects. They still count towards their developer's month.
CREATE TABLE removed_usage (
  developer_id TEXT COLLATE "C" NOT NULL,
  day INTEGER NOT NULL,
  confirmed INTEGER NOT NULL,
  PRIMARY KEY (developer_id, day)
);
CREATE INDEX removed_usage_by_age ON removed_usage (day);

CREATE TABLE webhook_events (
  id TEXT COLLATE "C" PRIMARY KEY,
  project_id TEXT COLLATE "C" NOT NULL,
  type TEXT NOT NULL,
  encrypted_body BYTEA NOT NULL, -- The exact bytes to send. They hold the session token.
  created_at BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL, -- due, delivered, failed, or ended because its webhook was removed.
  due_at BIGINT NOT NULL,
  leased_until BIGINT NOT NULL,
  attempts INTEGER NOT NULL,
  finished_at BIGINT,
  schedule_start INTEGER NOT NULL DEFAULT 0, -- `attempts` when the schedule of retries last began.
  interrupted INTEGER NOT NULL DEFAULT 0, -- Attempts whose outcome was not recorded.
  session_id TEXT COLLATE "C" -- Null for a test.
);
CREATE INDEX webhook_events_due ON webhook_events (due_at) WHERE state = 'due';
CREATE INDEX webhook_events_by_project ON webhook_events (project_id, state, type COLLATE "C", created_at, id);
CREATE INDEX webhook_events_finished ON webhook_events (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE webhook_attempts (
  event_id TEXT COLLATE "C" NOT NULL,
  number INTEGER NOT NULL,
  started_at BIGINT NOT NULL,
  duration BIGINT NOT NULL, -- Milliseconds.
  status INTEGER,
  error TEXT,
  encrypted_answer BYTEA, -- Encrypted, because a receiver may return the session token that it was sent.
  PRIMARY KEY (event_id, number)
);
-- A statement that deletes both would miss an attempt that was recorded while it waited for the event.
CREATE FUNCTION erase_webhook_attempts() RETURNS TRIGGER LANGUAGE plpgsql
SET enable_seqscan = off -- Use the primary key, however small the table is when this is planned.
AS $$
BEGIN
  DELETE FROM webhook_attempts a USING erased e WHERE a.event_id = e.id;
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_attempts_are_erased AFTER DELETE ON webhook_events
REFERENCING OLD TABLE AS erased FOR EACH STATEMENT EXECUTE FUNCTION erase_webhook_attempts();

-- The state of a project's endpoint. There is a row only while something is wrong with it.
CREATE TABLE webhook_endpoints (
  project_id TEXT COLLATE "C" PRIMARY KEY,
  failing_since BIGINT,
  off_at BIGINT,
  off_reason TEXT,
  off_url TEXT
);

-- Projects whose webhook was removed while more deliveries were due than end at once, and when. A new webhook is not set
-- until the others have ended.
CREATE TABLE ended_webhooks (
  project_id TEXT COLLATE "C" PRIMARY KEY,
  ended_at BIGINT NOT NULL
);

CREATE TABLE bot_updates (
  bot_id BIGINT NOT NULL,
  update_id BIGINT NOT NULL,
  claimed_at BIGINT NOT NULL,
  done INTEGER NOT NULL,
  PRIMARY KEY (bot_id, update_id)
);
CREATE INDEX bot_updates_by_age ON bot_updates (claimed_at);

-- Changing the days of a user requires this user's lock until the end of the transaction, so that two nodes cannot both
-- count the user as new. Locks are taken in one order, so that they cannot deadlock.
CREATE FUNCTION lock_people(of_developers TEXT[], of_people TEXT[]) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(person.lock_key) FROM (
    SELECT DISTINCT hashtextextended(each.developer_id || ' ' || each.messenger_id, 0) AS lock_key
    FROM unnest(of_developers, of_people) AS each (developer_id, messenger_id) ORDER BY 1
  ) AS person;
END $$;

-- Move sessions from pending to confirmed, with their counts, users and events. Return each session, whether it was
-- moved and, if not, the state that was the reason. The lock keeps that state until the end of the transaction.
-- With a return hash, a session must wait for this return code; without one, it must not require a code.
-- `planned_days` names each day once, so that a statement is planned for the partitions of these days only. All other
-- arrays have one element for each session. `storage/postgres/` explains LATERAL and `status || ''`. Each statement sees
-- what was committed while the one before it waited. Rows are locked in one order everywhere: sessions, users,
-- daily_counts, daily_users, projects.
CREATE FUNCTION confirm_sessions(
  planned_days INTEGER[], of_days INTEGER[], hashes BYTEA[], confirmed_times BIGINT[], people TEXT[], names TEXT[],
  usernames TEXT[], deadlines BIGINT[], event_ids TEXT[], event_types TEXT[], event_bodies BYTEA[],
  event_times BIGINT[], event_projects TEXT[], phones BYTEA[], phone_bodies BYTEA[], return_hashes BYTEA[]
) RETURNS TABLE (found_day INTEGER, found_hash BYTEA, is_moved BOOLEAN, found_status TEXT, found_opener TEXT,
  found_expiry BIGINT, found_confirmed BIGINT, found_cancelled BIGINT, found_withdrawn INTEGER) LANGUAGE plpgsql
-- The quoted statements are planned at each call, for the partitions of their days. All others are planned once, which
-- halves the total time, and use the primary keys, however small the tables are when they are planned.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
  of_day INTEGER;
  locked_hashes BYTEA[];
  kept INTEGER[];
  kept_hashes BYTEA[];
  kept_projects TEXT[];
  kept_statuses TEXT[];
  kept_openers TEXT[];
  kept_expiries BIGINT[];
  kept_confirmed BIGINT[];
  kept_cancelled BIGINT[];
  kept_withdrawn INTEGER[];
  moved_days INTEGER[];
  moved_hashes BYTEA[];
  moved_ids TEXT[];
  moved_projects TEXT[];
  moved_developers TEXT[];
  moved_people TEXT[];
  moved_names TEXT[];
  moved_usernames TEXT[];
  moved_times BIGINT[];
  moved_phones BOOLEAN[];
BEGIN
  EXECUTE $q$
    WITH held AS MATERIALIZED (
      SELECT a.*, s.*, (s.status = 'pending' AND COALESCE(s.opener_id, '') = a.messenger_id AND s.expires_at > a.deadline
        AND CASE WHEN a.return_hash IS NULL THEN s.return_required = 0 ELSE s.code_hash = a.return_hash END) IS TRUE
        AS is_due
      FROM (
        SELECT * FROM unnest($2, $3, $4, $5, $6) AS each (day, token_hash, messenger_id, deadline, return_hash)
        ORDER BY day, token_hash
      ) AS a CROSS JOIN LATERAL (
        SELECT s.status, s.opener_id, s.expires_at, s.confirmed_at, s.cancelled_at, s.withdrawn, s.project_id,
          s.return_required, s.return_hash AS code_hash
        FROM sessions s WHERE s.day = ANY ($1) AND s.day = a.day AND s.token_hash = a.token_hash
        LIMIT 1 FOR UPDATE
      ) AS s
    )
    SELECT array_agg(h.token_hash) FILTER (WHERE h.is_due), array_agg(h.day) FILTER (WHERE NOT h.is_due),
      array_agg(h.token_hash) FILTER (WHERE NOT h.is_due), array_agg(h.project_id) FILTER (WHERE NOT h.is_due),
      array_agg(h.status) FILTER (WHERE NOT h.is_due), array_agg(h.opener_id) FILTER (WHERE NOT h.is_due),
      array_agg(h.expires_at) FILTER (WHERE NOT h.is_due), array_agg(h.confirmed_at) FILTER (WHERE NOT h.is_due),
      array_agg(h.cancelled_at) FILTER (WHERE NOT h.is_due), array_agg(h.withdrawn) FILTER (WHERE NOT h.is_due)
    FROM held h
  $q$ INTO locked_hashes, kept, kept_hashes, kept_projects, kept_statuses, kept_openers, kept_expiries,
    kept_confirmed, kept_cancelled, kept_withdrawn
  USING planned_days, of_days, hashes, people, deadlines, return_hashes;
  IF kept IS NOT NULL THEN
    RETURN QUERY SELECT k.day, k.token_hash, FALSE, k.status, k.opener, k.expiry, k.confirmed, k.cancelled, k.withdrawn
    FROM unnest(kept, kept_hashes, kept_projects, kept_statuses, kept_openers, kept_expiries, kept_confirmed,
      kept_cancelled, kept_withdrawn)
      AS k (day, token_hash, project, status, opener, expiry, confirmed, cancelled, withdrawn)
    JOIN projects p ON p.id = k.project;
  END IF;
  IF locked_hashes IS NULL THEN
    RETURN;
  END IF;

  EXECUTE $q$
    WITH moved AS (
      -- Before a return, the identity and the phone number were stored already; they may be encrypted again meanwhile.
      UPDATE sessions s SET status = 'confirmed', confirmed_at = a.confirmed_at, context = NULL, return_url = NULL,
        messenger_id = CASE WHEN a.return_hash IS NULL THEN a.messenger_id ELSE s.messenger_id END,
        messenger_name = CASE WHEN a.return_hash IS NULL THEN a.messenger_name ELSE s.messenger_name END,
        messenger_username = CASE WHEN a.return_hash IS NULL THEN a.messenger_username ELSE s.messenger_username END,
        -- A phone number is stored only if project and plan still allow it.
        encrypted_phone = CASE WHEN a.return_hash IS NOT NULL THEN s.encrypted_phone
          WHEN a.encrypted_phone IS NOT NULL AND p.collect_phone = 1
            AND EXISTS (SELECT FROM developers d WHERE d.id = p.developer_id AND d.plan <> 'free')
          THEN a.encrypted_phone END
      FROM unnest($2, $3, $4, $5, $6, $7, $9, $10) AS a (
        day, token_hash, confirmed_at, messenger_id, messenger_name, messenger_username, encrypted_phone, return_hash),
        projects p
      WHERE s.day = ANY ($1) AND a.token_hash = ANY ($8)
        AND a.day = s.day AND a.token_hash = s.token_hash AND p.id = s.project_id
      RETURNING s.day, s.token_hash, s.id, s.project_id, p.creator_id AS developer_id, s.messenger_id, s.messenger_name,
        s.messenger_username, s.confirmed_at, s.encrypted_phone IS NOT NULL AND a.return_hash IS NULL AS has_phone
    )
    SELECT array_agg(m.day), array_agg(m.token_hash), array_agg(m.id), array_agg(m.project_id),
      array_agg(m.developer_id), array_agg(m.messenger_id), array_agg(m.messenger_name),
      array_agg(m.messenger_username), array_agg(m.confirmed_at), array_agg(m.has_phone) FROM moved m
  $q$ INTO moved_days, moved_hashes, moved_ids, moved_projects, moved_developers, moved_people, moved_names,
    moved_usernames, moved_times, moved_phones
  USING planned_days, of_days, hashes, confirmed_times, people, names, usernames, locked_hashes, phones,
    return_hashes;
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

    WITH signed_in AS (
      SELECT x.developer_id, x.messenger_id, x.project_id, COUNT(*) AS sign_ins, MIN(x.at) AS first_at,
        MAX(x.at) AS last_at, (array_agg(x.name ORDER BY x.at DESC))[1] AS name,
        (array_agg(x.username ORDER BY x.at DESC))[1] AS username
      FROM unnest(moved_days, moved_developers, moved_people, moved_projects, moved_names, moved_usernames, moved_times)
        AS x (day, developer_id, messenger_id, project_id, name, username, at) WHERE x.day = of_day
      GROUP BY x.developer_id, x.messenger_id, x.project_id
    ), known AS MATERIALIZED (
      SELECT n.*, l.day AS newest, l.first_at AS known_first, l.sign_ins AS known_sign_ins
      FROM signed_in n LEFT JOIN LATERAL (
        SELECT u.day, u.first_at, u.sign_ins FROM user_days u WHERE u.developer_id = n.developer_id
          AND u.messenger_id = n.messenger_id AND u.project_id = n.project_id AND u.last_at IS NOT NULL
        ORDER BY u.developer_id DESC, u.messenger_id DESC, u.day DESC LIMIT 1) AS l ON TRUE
    ), moved_on AS ( -- A user's newest row describes the user; an older one no longer does.
      UPDATE user_days u SET
        messenger_name = CASE WHEN k.newest >= of_day THEN k.name END,
        messenger_username = CASE WHEN k.newest >= of_day THEN k.username END,
        first_at = CASE WHEN k.newest >= of_day THEN u.first_at END,
        last_at = CASE WHEN k.newest >= of_day THEN k.last_at END,
        sign_ins = CASE WHEN k.newest >= of_day THEN u.sign_ins + k.sign_ins END
      FROM known k WHERE u.developer_id = k.developer_id AND u.messenger_id = k.messenger_id AND u.day = k.newest
        AND u.project_id = k.project_id
    )
    INSERT INTO user_days (developer_id, messenger_id, day, project_id, messenger_name, messenger_username, first_at,
      last_at, sign_ins)
    SELECT k.developer_id, k.messenger_id, of_day, k.project_id,
      CASE WHEN k.is_newest THEN k.name END, CASE WHEN k.is_newest THEN k.username END,
      CASE WHEN k.is_newest THEN COALESCE(k.known_first, k.first_at) END, CASE WHEN k.is_newest THEN k.last_at END,
      CASE WHEN k.is_newest THEN COALESCE(k.known_sign_ins, 0) + k.sign_ins END
    FROM (SELECT n.*, n.newest IS NULL OR n.newest < of_day AS is_newest FROM known n) AS k
    ON CONFLICT DO NOTHING;
  END LOOP;

  -- The lock keeps the webhook from being removed in between: its due events end after this commit, or none are made.
  PERFORM p.id FROM projects p WHERE p.id = ANY (moved_projects) AND p.webhook_url <> '' ORDER BY p.id FOR SHARE;
  INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts, project_id,
    session_id)
  SELECT e.id, e.type, CASE WHEN m.has_phone THEN e.phone_body ELSE e.encrypted_body END, e.created_at, 'due',
    e.created_at, 0, 0, p.id, m.session_id
  FROM unnest(hashes, event_ids, event_types, event_bodies, phone_bodies, event_times, event_projects)
    AS e (token_hash, id, type, encrypted_body, phone_body, created_at, project_id)
  JOIN unnest(moved_hashes, moved_ids, moved_phones) AS m (token_hash, session_id, has_phone)
    ON m.token_hash = e.token_hash
  JOIN projects p ON p.id = e.project_id AND p.webhook_url <> '' AND p.webhook_events LIKE '%' || e.type || '%';

  RETURN QUERY SELECT d.day, d.token_hash, TRUE, NULL, NULL, NULL::BIGINT, NULL::BIGINT, NULL::BIGINT, NULL::INTEGER
  FROM unnest(moved_days, moved_hashes) AS d (day, token_hash);
END $$;

-- Take at most `count_limit` user days of a deleted project out of its creator's counts; return how many. A plan counts
-- each user once a day: `removed_usage` receives what the erased users have used of it, in the same statement.
CREATE FUNCTION erase_people(of_developer TEXT, of_project TEXT, of_plan TEXT, count_limit BIGINT) RETURNS INTEGER
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
    IF NOT FOUND THEN -- Another node erased it.
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
    INSERT INTO removed_usage AS r (developer_id, day, confirmed) VALUES (of_plan, days[n], 1)
    ON CONFLICT (developer_id, day) DO UPDATE SET confirmed = r.confirmed + 1;
    UPDATE daily_users c SET latest_users = c.latest_users + 1
    WHERE c.developer_id = of_developer AND c.day = last_day AND last_day < days[n];
  END LOOP;
  RETURN erased;
END $$;
