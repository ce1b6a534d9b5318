"""Check that the tests find deliberate defects: one edit of src/ at a time, and the tests until one of them fails.

Usage: python -m scripts.mutation_check [--only NUMBER …] [PYTEST ARGUMENT …]. Each defect is made in a copy of the last
commit. The tests of its package run first, then all others that the arguments select. The exit code is 1 if a defect
survives.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

_ROOT: Final = Path(__file__).resolve().parent.parent


class Defect(NamedTuple):
    """An edit of a file below src/taproof that breaks a rule."""

    rule: str
    file: str
    before: str
    after: str


DEFECTS: Final = (
    Defect(
        "session guard",
        "storage/queries/sessions.py",
        "AND token_hash = $5 AND status = 'pending' AND opener_id IS NULL AND expires_at > $6",
        "AND token_hash = $5 AND status = 'pending' AND expires_at > $6",
    ),
    Defect(
        "session guard",
        "storage/queries/sessions.py",
        "return_required = 0 AND opener_id = $2",
        "return_required = 0 AND $2 <> ''",
    ),
    Defect(
        "single use",
        "storage/queries/sessions.py",
        "WHERE day = $2 AND token_hash = $3 AND status = 'confirmed'\n",
        "WHERE day = $2 AND token_hash = $3 AND status IN ('confirmed', 'used')\n",
    ),
    Defect(
        "deadline",
        "storage/queries/sessions.py",
        "opener_id = $4 AND expires_at > $5\n  AND EXISTS",
        "opener_id = $4 AND expires_at > $5 - 3600000\n  AND EXISTS",
    ),
    Defect(
        "session guard pg",
        "storage/postgres/statements.py",
        "{_locked(\"s.status || '' = 'confirmed'\")}",
        "{_locked(\"s.status || '' IN ('confirmed', 'used')\")}",
    ),
    Defect(
        "session guard pg",
        "storage/postgres/statements.py",
        "h.status = 'pending' AND h.owner_id IS NULL AND h.expires_at > h.deadline",
        "h.status = 'pending' AND h.expires_at > h.deadline",
    ),
    Defect(
        "report",
        "storage/queries/sessions.py",
        "AND s.secrets_version = p.secrets_version AND s.reported_at IS NULL",
        "AND s.secrets_version = p.secrets_version",
    ),
    Defect(
        "verifier",
        "storage/queries/sessions.py",
        "AND s.code_challenge IS NOT NULL AND s.used_at > $3",
        "AND s.used_at > $3",
    ),
    Defect(
        "verifier",
        "core/code_challenge.py",
        "return hmac.compare_digest(hashlib.sha256(code_verifier.encode()).digest(), digest)",
        "return bool(code_verifier) or hmac.compare_digest(hashlib.sha256(code_verifier.encode()).digest(), digest)",
    ),
    Defect(
        "signature",
        "sdk/proof.py",
        "return read_object(_JWS.decode(proof, secret, _ALGORITHMS))",
        'return read_object(_JWS.decode(proof, secret, _ALGORITHMS, options={"verify_signature": False}))',
    ),
    Defect(
        "deadline",
        "sdk/proof.py",
        'if not instant < claims["exp"] + leeway:',
        'if not instant <= claims["exp"] + leeway + 60:',
    ),
    Defect(
        "single use",
        "sdk/proof.py",
        "if guard is not None and not guard.take(",
        "if guard is not None and guard.take(",
    ),
    Defect(
        "signature",
        "sdk/webhook.py",
        "if not signed_at >= instant - tolerance:",
        "if not signed_at >= instant - tolerance * 10:",
    ),
    Defect(
        "signature",
        "messengers/telegram/webhook.py",
        "fits = [hmac.compare_digest(given, each.encode()) for each in self._secret_tokens()]",
        "fits = [hmac.compare_digest(given[:8], each.encode()[:8]) for each in self._secret_tokens()]",
    ),
    Defect(
        "signature",
        "messengers/telegram/signed_buttons.py",
        "return json.dumps([bot_id, user_id, edited, _normal(text), shown, list(unusual)], sort_keys=True).encode()",
        "return json.dumps([bot_id, edited, _normal(text), shown, list(unusual)], sort_keys=True).encode()",
    ),
    Defect(
        "associated data",
        "core/encryption.py",
        '    return f"{kind}:{row_id}"',
        '    return f"{kind}:"',
    ),
    Defect(
        "deadline",
        "core/proof.py",
        "PROOF_LIFETIME: Final = 300",
        "PROOF_LIFETIME: Final = 600",
    ),
    Defect(
        "escaping",
        "console/rendering.py",
        "            autoescape=True,",
        "            autoescape=False,",
    ),
    Defect(
        "escaping",
        "messengers/telegram/shown.py",
        "html.escape(isolated_name(text), quote=False)",
        "isolated_name(text)",
    ),
    Defect(
        "SSRF",
        "core/address_rules.py",
        "problems = (self._problem(inner) for inner in _carried(name, address))",
        "problems = (self._problem(inner) for inner in [])",
    ),
    Defect(
        "SSRF",
        "webhooks/http_client.py",
        "        if self._rules.problem(address) is not None:",
        '        if self._rules.problem(address) == "loopback":',
    ),
    Defect(
        "permissions",
        "core/rights.py",
        "        if excess := [scope for scope in wanted if scope not in self.scopes]:",
        "        if excess := [scope for scope in wanted if scope not in SCOPES]:",
    ),
    Defect(
        "permissions",
        "core/rights.py",
        "elif self.expires_at is not None and expires_at > self.expires_at:",
        "elif self.expires_at is not None and expires_at > self.expires_at + 86400000:",
    ),
    Defect(
        "permissions",
        "service/developers.py",
        '            actor.grant.require("tokens")',
        '            actor.grant.require("read")',
    ),
    Defect(
        "permissions",
        "storage/queries/rights.py",
        "WHERE t.id = $7 AND t.developer_id = $2 AND (t.expires_at IS NULL OR t.expires_at > $3))",
        "WHERE t.id = $7 OR t.developer_id = $2)",
    ),
    Defect(
        "permissions",
        "storage/queries/credentials.py",
        "ELSE EXISTS (SELECT 1 FROM access_tokens t WHERE t.id = $6 AND t.developer_id = $3",
        "ELSE EXISTS (SELECT 1 FROM access_tokens t WHERE t.developer_id = $3",
    ),
    Defect(
        "permissions",
        "storage/queries/deliveries.py",
        'JOIN project_members m ON m.project_id = e.project_id WHERE m.developer_id = $1 AND e.id = $2"""\nFIND',
        'JOIN project_members m ON m.project_id = e.project_id WHERE $1 <> \'\' AND e.id = $2"""\nFIND',
    ),
    Defect(
        "permissions",
        "storage/queries/members.py",
        'if roles[member_id] == "owner" and list(roles.values()).count("owner") == 1:',
        'if roles[member_id] == "owner" and list(roles.values()).count("owner") == 0:',
    ),
    Defect(
        "permissions",
        "storage/queries/rights.py",
        "    for (role,) in found:\n        require_action(role, action)\n",
        "",
    ),
    Defect(
        "CSRF",
        "console/guard.py",
        '            if scope["method"] not in _SAFE_METHODS and not is_same_origin(request):',
        '            if scope["method"] == "PUT" and not is_same_origin(request):',
    ),
    Defect(
        "headers",
        "console/guard.py",
        '    (b"x-frame-options", b"DENY"),\n',
        '    (b"x-frame-options", b"SAMEORIGIN"),\n',
    ),
    Defect(
        "cookies",
        "http/cookies.py",
        '"httponly": True',
        '"httponly": False',
    ),
    Defect(
        "bot ownership",
        "storage/queries/bots.py",
        'FIND_BOT_ELSEWHERE: Final = "SELECT id, bot_broken_at FROM projects WHERE bot_id = $1 AND id <> $2"',
        'FIND_BOT_ELSEWHERE: Final = "SELECT id, bot_broken_at FROM projects WHERE bot_id = $1 AND id = $2"',
    ),
    Defect(
        "bot ownership",
        "service/sessions/decide.py",
        "return session if (session.prompt or PromptDetails()).bot_id == bot_id else None",
        "return session",
    ),
    Defect(
        "single use",
        "storage/queries/bots.py",
        "  WHERE bot_updates.done = 0 AND bot_updates.claimed_at <= $4",
        "  WHERE bot_updates.claimed_at <= $4",
    ),
    Defect(
        "single use",
        "storage/queries/deliveries.py",
        "  due_at = $1, leased_until = $1\nWHERE id = $2 AND state = 'due'",
        "  leased_until = due_at\nWHERE id = $2 AND state = 'due'",
    ),
    Defect(
        "leader",
        "storage/queries/leases.py",
        "WHERE leases.holder = excluded.holder OR leases.held_until <= $4",
        "WHERE leases.holder = excluded.holder OR leases.held_until >= $4",
    ),
    Defect(
        "retention",
        "storage/queries/deliveries.py",
        'PURGE_EVENTS: Final = Purge("webhook_events", "id", "state <> \'due\' AND finished_at < $1")',
        'PURGE_EVENTS: Final = Purge("webhook_events", "id", "created_at < $1")',
    ),
    Defect(
        "rate limit",
        "core/rate_limit.py",
        "        if backlog <= self.tolerance:",
        "        if backlog <= self.tolerance + self.window:",
    ),
    Defect(
        "secrets",
        "config/logging.py",
        "    for pattern, replacement in _SECRETS:\n        text",
        "    for pattern, replacement in _SECRETS[:-1]:\n        text",
    ),
    Defect(
        "secrets",
        "runtime/key_file.py",
        "os.O_EXCL | os.O_CLOEXEC, 0o600)",
        "os.O_EXCL | os.O_CLOEXEC, 0o644)",
    ),
    Defect(
        "retry",
        "core/retry_schedule.py",
        "    if stage >= len(delays):",
        "    if stage > len(delays) - 2:",
    ),
)


def main() -> int:
    """Make each defect and run the tests; print the test that found it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, nargs="+", help="the numbers of the defects, from 1")
    given, arguments = parser.parse_known_args()
    survivors = 0
    for number, defect in enumerate(DEFECTS, 1):
        if given.only is None or number in given.only:
            found = _find(defect, arguments)
            survivors += found is None
            print(f"{number:2} {defect.rule:20} {defect.file:40} {found or 'SURVIVES'}", flush=True)
    return 1 if survivors else 0


def _find(defect: Defect, arguments: list[str]) -> str | None:
    """Return the first test that fails with the defect, None if all pass."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as directory:
        copy = Path(directory) / "taproof"
        subprocess.run(["git", "clone", "--quiet", "--shared", str(_ROOT), str(copy)], check=True)
        for installed in ("tests/npm/node_modules", "sdk/js/node_modules"):
            (copy / installed).symlink_to(_ROOT / installed)
        (copy / ".venv").symlink_to(_ROOT / ".venv")
        path = copy / "src/taproof" / defect.file
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(defect.before, defect.after), encoding="utf-8")
        package = copy / "tests" / Path(defect.file).parts[0]
        return (_failure(copy, [str(package)]) if package.is_dir() else None) or _failure(copy, arguments)


def _failure(copy: Path, arguments: list[str]) -> str | None:
    # The source, not the installed wheel.
    command = ["env", f"PYTHONPATH={copy / 'src'}", sys.executable, "-m", "pytest", "-x", "-n", "auto"]
    # That test fails with any of the defects.
    command += ["--dist", "loadfile", "--ignore", "tests/test_mutation_check.py", *arguments]
    run = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED tests", "ERROR tests"))]
    if run.returncode and not failed:
        sys.exit(f"The tests could not run:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return failed[0].split(" - ")[0] if failed else None


if __name__ == "__main__":
    sys.exit(main())
