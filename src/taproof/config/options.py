"""What each setting is called, means and must be: the table that settings, `--help` and error sentences are made from.

Nothing heavy is imported here, so that `taproof --help` is quick.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from taproof.core.address_rules import RANGES

PREFIX: Final = "TAPROOF_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One setting, as a person meets it.

    `help` completes a line of `--help`; `must` completes "--port (TAPROOF_PORT) …" when the value cannot be used.
    Without a `metavar` it is a switch; `default` says in words what holds when it is not given. An option of `many`
    may be repeated, and takes values with commas between them.
    """

    flag: str
    panel: str
    metavar: str = ""
    default: str = ""
    help: str
    must: str
    many: bool = False


_LISTEN: Final = "Where it listens"
_PROCESSES: Final = "Processes and nodes"
_MESSENGER: Final = "The messenger"
_WEBHOOKS: Final = "Webhooks"
_LIMITS: Final = "Abuse limits"
_STORE: Final = "The store"
_PLANS: Final = "Plans"
_LOGS: Final = "Logs"
_BY_PLAN: Final = (
    "must be plans, each once with a whole number, such as free=3,pro=20; plans are free, pro and business, and one"
    " that is left out has no limit"
)
_SWITCH: Final = "must be 1 or 0"
_RATE: Final = "must be a number from 1 to 1000000, a slash and second, minute or hour, such as 60/minute; or off"

OPTIONS: Final[dict[str, Option]] = {
    "sandbox": Option(
        flag="--sandbox",
        panel="Trying it out",
        help="Bring a pretend messenger and a demo application: sign-in works with no account, bot or network.",
        must=_SWITCH,
    ),
    "sandbox_allow_remote": Option(
        flag="--sandbox-allow-remote",
        panel="Trying it out",
        help="Let other machines reach the sandbox. Whoever reaches it can sign in as anybody.",
        must=_SWITCH,
    ),
    "host": Option(
        flag="--host",
        panel=_LISTEN,
        metavar="ADDRESS",
        default="127.0.0.1",
        help="Address to listen on; 0.0.0.0 is every one of this machine.",
        must="must be an IP address of this machine or localhost",
    ),
    "port": Option(
        flag="--port",
        panel=_LISTEN,
        metavar="NUMBER",
        default="8080",
        help="Port to listen on.",
        must="must be a whole number from 1 to 65535",
    ),
    "base_url": Option(
        flag="--base-url",
        panel=_LISTEN,
        metavar="URL",
        default="http(s)://HOST:PORT on loopback",
        help="The address that clients use.",
        must="must be the https:// address that clients use, with no path, such as https://signin.example.com"
        " (http:// only for this machine itself)",
    ),
    "tls_cert": Option(
        flag="--tls-cert",
        panel=_LISTEN,
        metavar="FILE",
        help="Certificate chain (PEM) to serve HTTPS with; needs --tls-key.",
        must="must name a file that can be read: the certificate chain in PEM form",
    ),
    "tls_key": Option(
        flag="--tls-key",
        panel=_LISTEN,
        metavar="FILE",
        help="Private key (PEM) of the certificate.",
        must="must name a file that can be read: the private key in PEM form",
    ),
    "trusted_proxy": Option(
        flag="--trusted-proxy",
        panel=_LISTEN,
        metavar="CIDR",
        help="Network of a proxy whose X-Forwarded-* headers are believed. Repeat it, or separate with commas.",
        must="must be networks such as 10.0.0.0/8, separated by commas, with no bits set behind the slash",
        many=True,
    ),
    "bot_token": Option(
        flag="--bot-token",
        panel=_MESSENGER,
        metavar="TOKEN",
        help="The bot's token from @BotFather. Better in the environment: command lines can be seen by others.",
        must="must be the whole token from @BotFather: digits, a colon, letters",
    ),
    "bot_updates": Option(
        flag="--bot-updates",
        panel=_MESSENGER,
        metavar="polling|webhook",
        default="polling",
        help="How the bot hears from the messenger; webhook needs a public https address.",
        must="must be polling or webhook",
    ),
    "bot_api_url": Option(
        flag="--bot-api-url",
        panel=_MESSENGER,
        metavar="URL",
        default="https://api.telegram.org",
        help="Bot API server.",
        must="must be the http:// or https:// address of a Bot API server",
    ),
    "messenger_link_base": Option(
        flag="--messenger-link-base",
        panel=_MESSENGER,
        metavar="URL",
        default="https://t.me/ and the bot's user name",
        help="Address that sign-in links begin with.",
        must="must be an https:// address without ? or #, such as https://t.me/my_bot",
    ),
    "geoip_file": Option(
        flag="--geoip-file",
        panel=_MESSENGER,
        metavar="FILE",
        help="City or Country database (.mmdb) of MaxMind or DB-IP: prompts then tell roughly where a request is from.",
        must="must name a file that can be read: an .mmdb database of cities or countries",
    ),
    "webhook_allow": Option(
        flag="--webhook-allow",
        panel=_WEBHOOKS,
        metavar="NAME|CIDR",
        help="Internal addresses that webhooks may be posted to: names such as private, or networks."
        " Repeat it, or separate with commas.",
        must=f"must be networks such as 10.0.0.0/8, with no bits set behind the slash, or names of ranges"
        f" ({', '.join(RANGES)}), separated by commas",
        many=True,
    ),
    "webhook_ports": Option(
        flag="--webhook-ports",
        panel=_WEBHOOKS,
        metavar="NUMBER",
        default="443,8443",
        help="Ports that webhooks may be posted to. Repeat it, or separate with commas.",
        must="must be whole numbers from 1 to 65535, separated by commas",
        many=True,
    ),
    "generate_limit_address": Option(
        flag="--generate-limit-address",
        panel=_LIMITS,
        metavar="NUMBER/UNIT|off",
        default="60/minute",
        help="How many sign-ins one client address may start from browsers and apps; as many may come at once.",
        must=_RATE,
    ),
    "generate_limit_project": Option(
        flag="--generate-limit-project",
        panel=_LIMITS,
        metavar="NUMBER/UNIT|off",
        default="6000/minute",
        help="How many sign-ins of one project may be started, from browsers and apps, and as many again by its own"
        " servers; as many may come at once.",
        must=_RATE,
    ),
    "developer_limit": Option(
        flag="--developer-limit",
        panel=_LIMITS,
        metavar="NUMBER/UNIT|off",
        default="600/minute",
        help="How often one developer may call the developer API and the console; as many may come at once.",
        must=_RATE,
    ),
    "developer_write_limit": Option(
        flag="--developer-write-limit",
        panel=_LIMITS,
        metavar="NUMBER/UNIT|off",
        default="1000/hour",
        help="How often one developer may change something there; as many may come at once.",
        must=_RATE,
    ),
    "database_url": Option(
        flag="--database",
        panel=_STORE,
        metavar="URL",
        default="sqlite:///taproof.db, in sandbox mode sqlite:///taproof-sandbox.db",
        help="Where everything is kept: sqlite:///FILE, or postgresql://USER:PASSWORD@HOST/DATABASE for many nodes."
        " A password is better in the environment.",
        must="must be sqlite:/// and a file name, such as sqlite:///taproof.db or"
        " sqlite:////var/lib/taproof/taproof.db, or postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %-escapes for"
        " other characters than letters, digits and -._~ in user and password",
    ),
    "pgbouncer": Option(
        flag="--pgbouncer",
        panel=_STORE,
        help="The PostgreSQL database is reached through PgBouncer in transaction mode.",
        must=_SWITCH,
    ),
    "master_key": Option(
        flag="--master-key",
        panel=_STORE,
        metavar="KEY",
        default="with SQLite made once, kept beside the database",
        help="Base64 of 32 bytes that stored secrets are encrypted with; with PostgreSQL the same on every node."
        " Several, with commas between, while one takes the place of another: the first encrypts, all decrypt.",
        must="must be the base64 of exactly 32 bytes, or several of these with commas between; make one with:"
        " openssl rand -base64 32",
    ),
    "session_retention_days": Option(
        flag="--session-retention-days",
        panel=_STORE,
        metavar="DAYS",
        default="90",
        help="How long sessions are kept. Counters and analytics outlive them.",
        must="must be a whole number of days from 1 to 3650",
    ),
    "audit_days": Option(
        flag="--audit-days",
        panel=_STORE,
        metavar="DAYS",
        default="365",
        help="How long entries of the audit log are kept.",
        must="must be a whole number of days from 1 to 3650",
    ),
    "plan_projects": Option(
        flag="--plan-projects",
        panel=_PLANS,
        metavar="PLAN=NUMBER",
        default="no limit on any plan",
        help="How many projects a developer may have, by plan, such as free=3,pro=20. Repeat it, or separate with"
        " commas.",
        must=_BY_PLAN,
        many=True,
    ),
    "plan_sign_ins": Option(
        flag="--plan-sign-ins",
        panel=_PLANS,
        metavar="PLAN=NUMBER",
        default="no limit on any plan",
        help="How many sign-ins a developer's users may confirm in a calendar month (UTC), by plan. A user counts once"
        " a day. Repeat it, or separate with commas.",
        must=_BY_PLAN,
        many=True,
    ),
    "role": Option(
        flag="--role",
        panel=_PROCESSES,
        metavar="all|api|worker|bot",
        default="all",
        help="What this node does: api answers HTTP, worker sends webhooks and does the housekeeping, bot hears from"
        " the messenger.",
        must="must be all, api, worker or bot",
    ),
    "workers": Option(
        flag="--workers",
        panel=_PROCESSES,
        metavar="NUMBER",
        default="1",
        help="How many processes share the port, each doing what the role says.",
        must="must be a whole number from 1 to 64",
    ),
    "log_level": Option(
        flag="--log-level",
        panel=_LOGS,
        metavar="debug|info|warning|error",
        default="info",
        help="How much is logged.",
        must="must be debug, info, warning or error",
    ),
    "log_format": Option(
        flag="--log-format",
        panel=_LOGS,
        metavar="console|json",
        default="console on a terminal, else json",
        help="How log lines are written, to stderr.",
        must="must be console or json",
    ),
}
"""By the name of the field of `Settings`, in the order of `--help`."""


def variable(name: str) -> str:
    """Return the environment variable of a setting, such as `TAPROOF_PORT`."""
    return PREFIX + name.upper()


def called(name: str) -> str:
    """Return how a sentence names a setting: `--port (TAPROOF_PORT)`."""
    return f"{OPTIONS[name].flag} ({variable(name)})"


_OF_APPLICATIONS: Final = {"TAPROOF_PROJECT_ID", "TAPROOF_WEBHOOK_SECRET", "TAPROOF_SECRET_KEY"}
"""What applications that use the SDK read, and may be set where the service is started."""


def unknown_variables(environment: Iterable[str]) -> list[str]:
    """Return a sentence for every TAPROOF_ variable that no setting reads: most likely a typing error."""
    known = {variable(name): name for name in OPTIONS}
    sentences = []
    for given in sorted(environment):
        if given.upper().startswith(PREFIX) and given.upper() not in known:
            near = get_close_matches(given.upper(), known, n=1)
            if given.upper() in _OF_APPLICATIONS:
                advice = "It is one of an application that signs users in: keep it in that one's terminal."
            else:
                advice = f"Did you mean {near[0]}?" if near else "Remove it, or see: taproof serve --help"
            sentences.append(f"{given} is not a setting of Taproof and has no effect. {advice}")
    return sentences


NO_MESSENGER: Final = (
    f"There is no messenger to sign in with. Give {called('bot_token')}, the token of a bot from @BotFather, or try "
    f"everything out with {called('sandbox')}."
)
"""Why `serve` refuses to start without either."""

NO_LINK_BASE: Final = (
    f"This node cannot tell where sign-in links lead. Give {called('messenger_link_base')}, such as "
    f"https://t.me/my_bot, or {called('bot_token')}."
)
"""The same for a node that answers HTTP only, and so needs no bot."""

NO_MASTER_KEY: Final = (
    f"Set {variable('master_key')}: with PostgreSQL every node and every command needs the same key, which is kept in "
    "no file. Only for a new database make one, with: openssl rand -base64 32"
)
"""Why nothing that needs stored secrets starts on PostgreSQL without the key."""


def no_messenger(role: str, bot_updates: str) -> str:
    """Return why a node refuses to start, or cannot work, without a bot token."""
    return NO_LINK_BASE if role == "api" and bot_updates == "polling" else NO_MESSENGER
