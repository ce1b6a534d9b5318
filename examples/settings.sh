# Sourced by each example's `run`: check Taproof's three settings, or explain how to get them.
missing=()
for name in TAPROOF_BASE_URL TAPROOF_PROJECT_ID TAPROOF_WEBHOOK_SECRET; do
  [ -n "${!name:-}" ] || missing+=("$name")
done
if [ ${#missing[@]} != 0 ]; then
  cat >&2 <<'HELP'
Three settings say which Taproof service signs your users in. Some are not set. To try the example:

1. In another terminal, at the top of the repository: make run
   It prints a project id (proj_…) and an access token (tap_…).
2. In this terminal, with your project id and access token filled in:

export TAPROOF_BASE_URL=http://127.0.0.1:8080
export TAPROOF_PROJECT_ID=proj_…
export TAPROOF_WEBHOOK_SECRET=$(curl -sS "$TAPROOF_BASE_URL/api/v1/dev/projects/$TAPROOF_PROJECT_ID/webhook-secret" \
  -H "Authorization: Bearer tap_…" | sed 's/.*"webhook_secret": *"\([^"]*\)".*/\1/')

3. ./run again.

HELP
  echo "Missing: ${missing[*]}" >&2
  exit 2
fi
