-- The schema of Taproof on SQLite. Times are milliseconds since the epoch, days are UTC days since 1970-01-01.
-- A released migration never changes: `migrate.py` compares each with its checksum.

-- Values of the installation itself, such as the check of the master key.
CREATE TABLE metadata (
  name TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The work that one process at a time may do, and until when its lease lasts.
CREATE TABLE leases (
  name TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  held_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The latest decisions and changed hints, in the order of their commits. Other processes read on from where they stopped.
CREATE TABLE decisions (
  id INTEGER PRIMARY KEY,
  day INTEGER NOT NULL,
  token_hash BLOB NOT NULL,
  hint TEXT -- The new hint of a session that is still pending; null for a decision.
) STRICT;

CREATE TABLE developers (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL,
  email_key TEXT NOT NULL UNIQUE, -- The address in lower case: two spellings are one developer.
  plan TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  is_owner INTEGER NOT NULL DEFAULT 0,
  messenger_id TEXT,
  messenger_name TEXT NOT NULL DEFAULT '',
  inviter_id TEXT, -- The inviter and the sign-in of the invitation that this developer accepted.
  sign_in TEXT,
  bound_by TEXT -- The sign-in that linked the messenger account.
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX developers_by_messenger_id ON developers (messenger_id);
CREATE INDEX developers_by_inviter ON developers (inviter_id) WHERE inviter_id IS NOT NULL;
CREATE INDEX developers_by_sign_in ON developers (sign_in) WHERE sign_in IS NOT NULL;
CREATE INDEX developers_by_binding ON developers (bound_by) WHERE bound_by IS NOT NULL;

CREATE TABLE invitations (
  id TEXT PRIMARY KEY,
  code_hash BLOB NOT NULL UNIQUE,
  email TEXT NOT NULL, -- Empty for the first developer, who enters their own.
  plan TEXT NOT NULL,
  is_owner INTEGER NOT NULL,
  developer_id TEXT, -- The developer who gets another messenger account; null to create a developer.
  invited_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  inviter_id TEXT, -- Null when the operator created it.
  sign_in TEXT -- The messenger sign-in that the inviter's rights come from.
) STRICT, WITHOUT ROWID;
CREATE INDEX invitations_by_developer ON invitations (developer_id) WHERE developer_id IS NOT NULL;
CREATE INDEX invitations_by_expiry ON invitations (expires_at);
CREATE INDEX invitations_by_inviter ON invitations (inviter_id) WHERE inviter_id IS NOT NULL;
CREATE INDEX invitations_by_sign_in ON invitations (sign_in) WHERE sign_in IS NOT NULL;

CREATE TABLE access_tokens (
  id TEXT PRIMARY KEY,
  developer_id TEXT NOT NULL,
  name TEXT NOT NULL,
  preview TEXT NOT NULL,
  token_hash BLOB NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  expires_at INTEGER,
  scopes TEXT NOT NULL DEFAULT 'read,write,tokens',
  parent_id TEXT, -- The access token that created it.
  sign_in TEXT -- The messenger sign-in that it comes from.
) STRICT, WITHOUT ROWID;
CREATE INDEX access_tokens_by_developer ON access_tokens (developer_id, created_at);
CREATE INDEX access_tokens_by_sign_in ON access_tokens (sign_in) WHERE sign_in IS NOT NULL;

CREATE TABLE console_sessions (
  id TEXT PRIMARY KEY,
  token_hash BLOB NOT NULL UNIQUE,
  developer_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  access_token_id TEXT, -- The session ends with this access token.
  address TEXT NOT NULL,
  user_agent TEXT NOT NULL,
  messenger_id TEXT, -- The account that signed in; unlinking it ends the session. Null with a token.
  scopes TEXT NOT NULL DEFAULT 'read,write,tokens',
  expires_at INTEGER,
  sign_in TEXT -- The messenger sign-in that it comes from.
) STRICT, WITHOUT ROWID;
CREATE INDEX console_sessions_by_developer ON console_sessions (developer_id, created_at, id);
CREATE INDEX console_sessions_by_age ON console_sessions (last_seen_at);
CREATE INDEX console_sessions_by_sign_in ON console_sessions (sign_in) WHERE sign_in IS NOT NULL;

-- The key makes a page of one developer's log, newest first, one walk.
CREATE TABLE audit_entries (
  id TEXT NOT NULL,
  developer_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  action TEXT NOT NULL,
  actor TEXT NOT NULL,
  via TEXT NOT NULL,
  via_id TEXT NOT NULL,
  address TEXT NOT NULL,
  subject TEXT NOT NULL,
  details TEXT NOT NULL, -- A JSON object.
  project_id TEXT NOT NULL DEFAULT '', -- The project that the action changed; its members see the entry.
  PRIMARY KEY (developer_id, created_at, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_entries_by_age ON audit_entries (created_at);
CREATE INDEX audit_entries_by_project ON audit_entries (project_id, created_at, id) WHERE project_id <> '';

-- What was erased of each developer's audit log, one row for each developer.
CREATE TABLE audit_purges (
  developer_id TEXT PRIMARY KEY,
  before INTEGER NOT NULL, -- Entries older than this are erased, or are about to be.
  entries INTEGER NOT NULL, -- How many were erased, in total.
  purged_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- The audit log is append-only. An entry is erased only after its erasure was recorded in audit_purges.
CREATE TRIGGER audit_entries_are_not_changed BEFORE UPDATE ON audit_entries
BEGIN
  SELECT RAISE(ABORT, 'The audit log is append-only.');
END;
CREATE TRIGGER audit_entries_are_not_erased BEFORE DELETE ON audit_entries
WHEN NOT EXISTS (SELECT 1 FROM audit_purges p WHERE p.developer_id = OLD.developer_id AND p.before > OLD.created_at)
BEGIN
  SELECT RAISE(ABORT, 'The audit log is append-only.');
END;
-- INSERT OR REPLACE erases a row without firing the trigger above.
CREATE TRIGGER audit_entries_are_not_replaced BEFORE INSERT ON audit_entries
WHEN EXISTS (
  SELECT 1 FROM audit_entries WHERE developer_id = NEW.developer_id AND created_at = NEW.created_at AND id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, 'The audit log is append-only.');
END;

CREATE TABLE projects (
  id TEXT PRIMARY KEY,
  developer_id TEXT NOT NULL, -- The owner whose plan and limits count.
  creator_id TEXT NOT NULL, -- The developer who created it; `daily_users` counts its users for them.
  name TEXT NOT NULL,
  secret_key_hash BLOB NOT NULL UNIQUE,
  secret_key_preview TEXT NOT NULL,
  encrypted_webhook_secret BLOB NOT NULL,
  webhook_url TEXT NOT NULL,
  is_active INTEGER NOT NULL,
  public_access INTEGER NOT NULL,
  collect_phone INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  encrypted_next_webhook_secret BLOB, -- During a rotation: the secret that replaces the current one, and when.
  next_webhook_secret_at INTEGER,
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
  bot_id INTEGER, -- The project bot; null without one.
  bot_username TEXT,
  encrypted_bot_token BLOB,
  bot_broken_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX projects_by_developer ON projects (developer_id, creator_id, id);
CREATE INDEX projects_by_creator ON projects (creator_id, developer_id, id);
CREATE UNIQUE INDEX projects_by_bot ON projects (bot_id) WHERE bot_id IS NOT NULL;

-- The members of each project. Each project has an owner; `projects.developer_id` is one of them.
CREATE TABLE project_members (
  project_id TEXT NOT NULL,
  developer_id TEXT NOT NULL,
  role TEXT NOT NULL, -- owner, developer or viewer.
  created_at INTEGER NOT NULL,
  invited_by TEXT NOT NULL, -- The inviter's e-mail address; '' for the creator.
  PRIMARY KEY (project_id, developer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX project_members_by_developer ON project_members (developer_id, project_id, role);

-- The messenger sign-ins from which a membership derives: that of its invitation, and those of the inviter's membership.
CREATE TABLE member_origins (
  project_id TEXT NOT NULL,
  developer_id TEXT NOT NULL,
  inviter_id TEXT NOT NULL, -- The developer of the sign-in.
  sign_in TEXT NOT NULL,
  PRIMARY KEY (project_id, developer_id, inviter_id, sign_in)
) STRICT, WITHOUT ROWID;
CREATE INDEX member_origins_by_inviter ON member_origins (inviter_id, sign_in);
CREATE INDEX member_origins_by_sign_in ON member_origins (sign_in);
CREATE INDEX member_origins_by_developer ON member_origins (developer_id);

CREATE TABLE member_invitations (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL,
  code_hash BLOB NOT NULL UNIQUE,
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  invited_by TEXT NOT NULL,
  inviter_id TEXT NOT NULL,
  access_token_id TEXT, -- The access token that the inviter's rights come from.
  sign_in TEXT -- The messenger sign-in that the inviter's rights come from.
) STRICT, WITHOUT ROWID;
CREATE INDEX member_invitations_by_project ON member_invitations (project_id, created_at, id);
CREATE INDEX member_invitations_by_inviter ON member_invitations (inviter_id);
CREATE INDEX member_invitations_by_sign_in ON member_invitations (sign_in) WHERE sign_in IS NOT NULL;
CREATE INDEX member_invitations_by_expiry ON member_invitations (expires_at);

-- The applications that sign in with OpenID Connect. Their project's row is deleted in the same transaction.
CREATE TABLE oidc_clients (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL,
  name TEXT NOT NULL,
  redirect_uris TEXT NOT NULL, -- A JSON array.
  auth_method TEXT NOT NULL, -- any, basic, post or none.
  signing_alg TEXT NOT NULL,
  email TEXT NOT NULL, -- none or synthetic.
  id_token_lifetime INTEGER NOT NULL, -- Seconds.
  grant_types TEXT NOT NULL, -- Separated by spaces.
  devices_since INTEGER, -- When the client got the grant device_code; null without it.
  post_logout_redirect_uris TEXT NOT NULL DEFAULT '[]', -- A JSON array.
  backchannel_logout_uri TEXT NOT NULL DEFAULT '',
  version INTEGER NOT NULL DEFAULT 0, -- Counts the changes that end all its users' grants.
  secret_hash BLOB, -- Null for a client without a secret.
  secret_preview TEXT,
  created_at INTEGER NOT NULL,
  refused_method TEXT, -- How the client last authenticated against its auth_method, and when.
  refused_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX oidc_clients_by_project ON oidc_clients (project_id, created_at, id);

-- Who is in which group of a client. Their client's row is deleted in the same transaction.
CREATE TABLE oidc_group_members (
  client_id TEXT NOT NULL,
  messenger_id TEXT NOT NULL, -- Empty in the row of the group itself.
  group_name TEXT NOT NULL,
  is_allowed INTEGER NOT NULL, -- 1 in all rows of a group whose members may sign in; without such a group, all may.
  PRIMARY KEY (client_id, messenger_id, group_name)
) STRICT, WITHOUT ROWID;
CREATE INDEX oidc_group_members_by_messenger ON oidc_group_members (messenger_id, client_id, group_name);

-- The row of a deleted project moves here, so that no statement finds the project while housekeeping erases its data.
CREATE TABLE deleted_projects (
  id TEXT PRIMARY KEY,
  developer_id TEXT NOT NULL,
  creator_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  day INTEGER NOT NULL, -- The UTC day that the token carries.
  token_hash BLOB NOT NULL,
  id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  opened_at INTEGER,
  opener_id TEXT,
  confirmed_at INTEGER,
  cancelled_at INTEGER,
  used_at INTEGER,
  messenger_id TEXT,
  messenger_name TEXT,
  messenger_username TEXT,
  code_challenge BLOB, -- The SHA-256 of the verifier (RFC 7636); null when the session is not bound to its client.
  secrets_version INTEGER, -- The project's value when the session was used: while equal, the proof can be repeated.
  bot_id INTEGER NOT NULL DEFAULT 0, -- The bot of the session's link; 0 is the service's own.
  context TEXT, -- JSON: where the request came from. Erased when the session leaves pending.
  match_code TEXT,
  match_choices TEXT, -- Three codes separated by spaces, in the order shown.
  encrypted_phone BLOB,
  reported_at INTEGER, -- When the user tapped "This wasn't me".
  hint TEXT, -- What a pending session waits for; null until its link is opened.
  withdrawn INTEGER NOT NULL DEFAULT 0, -- 1 if the application cancelled the session, not the user.
  return_url TEXT, -- The page of the *Back to* button; null without one. Erased when the session leaves pending.
  return_required INTEGER NOT NULL DEFAULT 0, -- 1: Confirm waits for the return code, in the status pending.
  return_hash BLOB, -- The SHA-256 of the return code, from Confirm on.
  PRIMARY KEY (day, token_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_project ON sessions (project_id, status, created_at, id);
CREATE INDEX sessions_pending ON sessions (expires_at) WHERE status = 'pending';
-- The account comes first, because nearly all entries differ there: each step of a search is one short comparison.
CREATE INDEX sessions_by_messenger ON sessions (messenger_id, project_id, status, created_at, id)
  WHERE messenger_id IS NOT NULL;
CREATE INDEX sessions_reported ON sessions (messenger_id, project_id) WHERE reported_at IS NOT NULL;
-- A user's sessions in a project, confirmed or not, in an order that no change of a session alters: an export reads on
-- from the key at which its last step ended. Only opening a session adds to this index on SQLite.
CREATE INDEX sessions_by_opener ON sessions (opener_id, project_id, day, token_hash) WHERE opener_id IS NOT NULL;

-- Users who tapped Confirm and are asked for their contact. The message with the contact does not name its session.
CREATE TABLE phone_requests (
  day INTEGER NOT NULL,
  token_hash BLOB NOT NULL,
  session_id TEXT NOT NULL,
  messenger_id TEXT NOT NULL,
  bot_id INTEGER NOT NULL,
  encrypted_token BLOB NOT NULL,
  asked_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (day, token_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX phone_requests_by_messenger ON phone_requests (messenger_id, bot_id, asked_at);
CREATE INDEX phone_requests_by_age ON phone_requests (expires_at);

-- The message that shows a session to its owner. There is no row until the bot has sent the message, or failed to.
CREATE TABLE prompts (
  day INTEGER NOT NULL,
  token_hash BLOB NOT NULL,
  bot_id INTEGER NOT NULL,
  messenger_id TEXT NOT NULL,
  message_id INTEGER, -- Null if the user had blocked the bot.
  language TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  hint TEXT, -- The session's hint before the user blocked the bot.
  ended_at INTEGER, -- When the application cancelled the session. The message must be edited.
  leased_until INTEGER NOT NULL, -- Until then, one process edits it.
  renewals INTEGER NOT NULL DEFAULT 0, -- How often a fresh message has replaced one whose taps prove nothing.
  renewed_at INTEGER, -- When that last happened.
  renewed_for TEXT, -- The tap that caused it. The fresh message is sent once `message_id` is not null.
  PRIMARY KEY (day, token_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX prompts_by_messenger ON prompts (messenger_id, bot_id);
CREATE INDEX prompts_by_age ON prompts (expires_at);
CREATE INDEX prompts_ended ON prompts (leased_until) WHERE ended_at IS NOT NULL;

-- Sign-ins through the OpenID provider, and the codes and access tokens that they give.
CREATE TABLE oidc_authorizations (
  id TEXT PRIMARY KEY,
  client_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  request TEXT NOT NULL, -- The checked request, as JSON.
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  browser_hash BLOB, -- Of the cookie that binds it to a browser.
  session_day INTEGER,
  session_hash BLOB,
  encrypted_session BLOB, -- The session's token and code verifier.
  user_code TEXT UNIQUE,
  expected_user TEXT, -- The account that must confirm; erased when the sign-in is finished.
  ended_at INTEGER, -- The user went back without signing in.
  code_expires_at INTEGER, -- Set when the session is consumed.
  redeemed_at INTEGER,
  access_expires_at INTEGER,
  revoked_at INTEGER,
  client_version INTEGER, -- The client's version when it got the access token.
  device_code_hash BLOB UNIQUE,
  polled_at INTEGER,
  code_hash BLOB UNIQUE,
  access_token_hash BLOB UNIQUE,
  kept_until INTEGER NOT NULL -- The row is erased afterwards.
) STRICT, WITHOUT ROWID;
CREATE INDEX oidc_authorizations_by_age ON oidc_authorizations (kept_until);

-- What a client holds of a user after the sign-in: a refresh token, or the right to be told that the user is signed out.
CREATE TABLE oidc_grants (
  id TEXT PRIMARY KEY, -- That of the sign-in; also the claim `sid`.
  client_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  messenger_id TEXT NOT NULL,
  messenger_name TEXT NOT NULL,
  messenger_username TEXT NOT NULL,
  encrypted_phone BLOB,
  scopes TEXT NOT NULL, -- Separated by spaces.
  auth_time INTEGER NOT NULL,
  session_day INTEGER NOT NULL,
  session_hash BLOB NOT NULL,
  client_version INTEGER NOT NULL, -- The client's version when it got the grant. With another one, the grant is over.
  family_hash BLOB UNIQUE, -- Of the part that all refresh tokens of the grant share; null without one.
  refresh_hash BLOB, -- Of the other part of the current refresh token.
  access_token_hash BLOB UNIQUE, -- Of the access token that the last refresh gave.
  access_expires_at INTEGER,
  access_scopes TEXT,
  created_at INTEGER NOT NULL,
  refreshed_at INTEGER,
  idle_expires_at INTEGER NOT NULL, -- The row is erased then. At most `expires_at`, unless it has ended.
  expires_at INTEGER NOT NULL,
  ended_at INTEGER,
  ended_reason TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX oidc_grants_by_messenger ON oidc_grants (messenger_id, project_id);
CREATE INDEX oidc_grants_by_session ON oidc_grants (session_day, session_hash);
CREATE INDEX oidc_grants_by_client ON oidc_grants (project_id, client_id, created_at, id);
CREATE INDEX oidc_grants_by_age ON oidc_grants (idle_expires_at);

-- Clients that must be told that a user is signed out (OpenID Connect Back-Channel Logout 1.0). A row is erased once its
-- client was told.
CREATE TABLE oidc_logouts (
  sid TEXT PRIMARY KEY, -- The id of the grant.
  client_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  messenger_id TEXT, -- Null if the user was erased.
  created_at INTEGER NOT NULL,
  due_at INTEGER, -- The next attempt, or the end of the lease of the one in progress. Null after the last one.
  attempts INTEGER NOT NULL,
  failed_at INTEGER, -- When the last attempt failed, and why.
  failure TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX oidc_logouts_due ON oidc_logouts (due_at, client_id) WHERE due_at IS NOT NULL;
CREATE INDEX oidc_logouts_by_client ON oidc_logouts (project_id, client_id, failed_at);
CREATE INDEX oidc_logouts_by_age ON oidc_logouts (created_at);

-- Authorization requests that clients pushed (RFC 9126).
CREATE TABLE oidc_pushed_requests (
  uri_hash BLOB PRIMARY KEY,
  client_id TEXT NOT NULL,
  parameters TEXT NOT NULL, -- A JSON object.
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX oidc_pushed_requests_by_age ON oidc_pushed_requests (expires_at);

-- The keys that sign ID tokens. Of each algorithm, the newest key whose time has come signs.
CREATE TABLE oidc_signing_keys (
  alg TEXT NOT NULL,
  generation INTEGER NOT NULL,
  kid TEXT NOT NULL UNIQUE,
  encrypted_private_key BLOB NOT NULL,
  public_jwk TEXT NOT NULL, -- A JSON object.
  created_at INTEGER NOT NULL,
  signs_from INTEGER NOT NULL,
  PRIMARY KEY (alg, generation)
) STRICT, WITHOUT ROWID;

-- The projects that a messenger account has blocked.
CREATE TABLE blocks (
  messenger_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (messenger_id, project_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX blocks_by_project ON blocks (project_id);

-- Counts of the sessions created on a day. `latest_users` are the users whose last confirmed day this is.
CREATE TABLE daily_counts (
  project_id TEXT NOT NULL,
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
) STRICT, WITHOUT ROWID;

-- The same two counts over all projects that a developer created: one user may use several.
CREATE TABLE daily_users (
  developer_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  unique_users INTEGER NOT NULL DEFAULT 0,
  latest_users INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (developer_id, day)
) STRICT, WITHOUT ROWID;

-- The users who confirmed on each day, once each. They keep the counts of distinct users exact. A user's newest row in
-- a project also describes the user; these columns are null in all older rows.
CREATE TABLE user_days (
  developer_id TEXT NOT NULL,
  messenger_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  project_id TEXT NOT NULL,
  messenger_name TEXT,
  messenger_username TEXT,
  first_at INTEGER, -- The first and the last Confirm, and their number.
  last_at INTEGER,
  sign_ins INTEGER,
  PRIMARY KEY (developer_id, messenger_id, day, project_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX user_days_by_project ON user_days (project_id);
CREATE INDEX user_days_by_age ON user_days (day);
CREATE INDEX user_days_by_last ON user_days (project_id, last_at, messenger_id) WHERE last_at IS NOT NULL;

-- The confirmed users of deleted projects. They still count towards their developer's month.
CREATE TABLE removed_usage (
  developer_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  confirmed INTEGER NOT NULL,
  PRIMARY KEY (developer_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX removed_usage_by_age ON removed_usage (day);

CREATE TABLE webhook_events (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL,
  type TEXT NOT NULL,
  encrypted_body BLOB NOT NULL, -- The exact bytes to send. They hold the session token.
  created_at INTEGER NOT NULL,
  state TEXT NOT NULL, -- due, delivered, failed, or ended because its webhook was removed.
  due_at INTEGER NOT NULL,
  leased_until INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  finished_at INTEGER,
  schedule_start INTEGER NOT NULL DEFAULT 0, -- `attempts` when the schedule of retries last began.
  interrupted INTEGER NOT NULL DEFAULT 0, -- Attempts whose outcome was not recorded.
  session_id TEXT -- Null for a test.
) STRICT, WITHOUT ROWID;
-- Due events are found by time. Project and lease are in the index, so that skipping an event does not read its row.
CREATE INDEX webhook_events_due ON webhook_events (due_at, project_id, leased_until) WHERE state = 'due';
CREATE INDEX webhook_events_by_project ON webhook_events (project_id, state, type, created_at, id);
CREATE INDEX webhook_events_finished ON webhook_events (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE webhook_attempts (
  event_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  duration INTEGER NOT NULL, -- Milliseconds.
  status INTEGER,
  error TEXT,
  encrypted_answer BLOB, -- Encrypted, because a receiver may return the session token that it was sent.
  PRIMARY KEY (event_id, number)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER webhook_attempts_are_erased AFTER DELETE ON webhook_events
BEGIN
  DELETE FROM webhook_attempts WHERE event_id = OLD.id;
END;

-- The state of a project's endpoint. There is a row only while something is wrong with it.
CREATE TABLE webhook_endpoints (
  project_id TEXT PRIMARY KEY,
  failing_since INTEGER,
  off_at INTEGER,
  off_reason TEXT,
  off_url TEXT
) STRICT, WITHOUT ROWID;

-- Projects whose webhook was removed while more deliveries were due than end at once, and when. A new webhook is not set
-- until the others have ended.
CREATE TABLE ended_webhooks (
  project_id TEXT PRIMARY KEY,
  ended_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE bot_updates (
  bot_id INTEGER NOT NULL,
  update_id INTEGER NOT NULL,
  claimed_at INTEGER NOT NULL,
  done INTEGER NOT NULL,
  PRIMARY KEY (bot_id, update_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX bot_updates_by_age ON bot_updates (claimed_at);
