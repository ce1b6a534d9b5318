"""Connection errors of PostgreSQL: which of them mean that the server cannot be reached, and their sentences."""

import contextlib
import re
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import asyncpg

from taproof.core.errors import StoreUnavailable
from taproof.storage.postgres.address import AddressRefused

AWAY: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.InsufficientResourcesError,  # The disk is full, or there are too many connections.
    asyncpg.OperatorInterventionError,  # The server is shutting down or starting up, or the statement took too long.
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,  # A standby, or a primary that has become one.
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.LockNotAvailableError,
    asyncpg.TransactionRollbackError,
    # A new connection in the pool may fail with these errors even if the first connections succeeded.
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)
UNDONE: Final = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
"""Errors after which the server has rolled the statement back, so it may be repeated."""
CHECK_ADDRESS: Final = "Check TAPROOF_DATABASE_URL"
_FORM: Final = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with marks in the password written as %40 for @"
_QUOTED_NAME: Final = re.compile(r'"([a-z_]{1,63})"')
MAKE_OWNER: Final = "As the server's administrator run: ALTER DATABASE <database> OWNER TO <user>"
"""The advice if the database user may not create tables."""


@contextlib.contextmanager
def explain_errors(dsn: str) -> Iterator[None]:
    """Convert errors of a database URL or its server to StoreUnavailable with a sentence."""
    try:
        yield
    except Exception as error:
        sentence = sentence_about(error, dsn)
        if sentence is None:
            raise
        # The driver quotes text that it cannot parse, which may be part of the password.
        raise StoreUnavailable(sentence) from (None if isinstance(error, (ValueError, asyncpg.DataError)) else error)


def sentence_about(error: Exception, dsn: str) -> str | None:
    """Return a sentence that explains an error of a database URL or its server; None for an unexpected error.

    The URL contains a password, so the sentence contains no part of the URL except a parameter's name.
    """
    for explain in (_tls_sentence, _parameter_sentence, _refusal_sentence):
        if sentence := explain(error, dsn):
            return sentence
    if isinstance(error, AddressRefused):
        return f"TAPROOF_DATABASE_URL {error}."
    if isinstance(error, ValueError):
        return f"The address of the database cannot be read. {CHECK_ADDRESS}: the format is {_FORM}."
    if isinstance(error, socket.gaierror):
        return f"The database's host name cannot be resolved (DNS). {CHECK_ADDRESS}: its host."
    if isinstance(error, ConnectionRefusedError):
        return f"The database server refused the connection. {CHECK_ADDRESS}, and that the server is running."
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return (
            "None of the database servers is the primary. If a fail-over is in progress, wait for its end. Otherwise "
            f"{CHECK_ADDRESS[0].lower()}{CHECK_ADDRESS[1:]}: its hosts."
        )
    if isinstance(error, AWAY):
        return (
            f"The database does not respond ({type(error).__name__}). {CHECK_ADDRESS}: its host and port, and that the "
            "server is running and accepts connections from this machine."
        )
    return None


def _tls_sentence(error: Exception, dsn: str) -> str | None:
    names_file = re.search(r"[?&]ssl(rootcert|cert|key|crl)=", dsn)
    if (
        (isinstance(error, ValueError) and str(error).startswith("root certificate file"))
        or (isinstance(error, (FileNotFoundError, PermissionError, IsADirectoryError)) and names_file)
        or (isinstance(error, ssl.SSLError) and error.reason == "NO_CERTIFICATE_OR_CRL_FOUND")
    ):
        return (
            "The CA certificate for the database, or another TLS file, cannot be read. Set "
            "sslrootcert=FILE in TAPROOF_DATABASE_URL to a PEM file that this user can read."
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            "The database's certificate is not from a CA in sslrootcert, is not for this host, or has expired. "
            f"{CHECK_ADDRESS}: its host, and sslrootcert=FILE."
        )
    if isinstance(error, ConnectionError) and "rejected SSL upgrade" in str(error):
        return (
            "The database server does not offer TLS, but sslmode in TAPROOF_DATABASE_URL requires it. Set ssl = on "
            "on the server, or remove sslmode if nobody else can read the connection's traffic."
        )
    return None


def _parameter_sentence(error: Exception, dsn: str) -> str | None:
    if not isinstance(
        error, (asyncpg.UndefinedObjectError, asyncpg.InvalidParameterValueError, asyncpg.CantChangeRuntimeParamError)
    ):
        return None
    name = _QUOTED_NAME.search(str(error))
    if name is None or "options=" not in dsn:
        return None
    verb = "know" if isinstance(error, asyncpg.UndefinedObjectError) else "accept"
    return f"The server does not {verb} a setting in options of TAPROOF_DATABASE_URL: {name[1]}. Correct or remove it."


def _refusal_sentence(error: Exception, _dsn: str) -> str | None:
    match error:
        case asyncpg.InvalidAuthorizationSpecificationError():
            return f"The database refuses this user. {CHECK_ADDRESS}: its user and password."
        case asyncpg.ProtocolViolationError() if "startup parameter" in str(error):
            return (
                "The pooler in front of the database refuses a parameter of TAPROOF_DATABASE_URL, such as options. "
                "Remove it, or add it to the pooler's ignore_startup_parameters."
            )
        case asyncpg.ProtocolViolationError():
            return (
                f"The pooler in front of the database refuses the connection. {CHECK_ADDRESS}: its database and user."
            )
        case asyncpg.InvalidCatalogNameError():
            return f"There is no such database on the server. {CHECK_ADDRESS}: its last part."
        case asyncpg.ReadOnlySQLTransactionError():
            return f"The database is read-only. {CHECK_ADDRESS}: it must name the primary."
        case asyncpg.InsufficientPrivilegeError() | asyncpg.InvalidSchemaNameError():
            return f"This user may not create tables in the database. {MAKE_OWNER}"
    return None
