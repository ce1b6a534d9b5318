"""Errors of connections to PostgreSQL: which mean that it is out of reach, and the sentences about them."""

import contextlib
import re
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import asyncpg

from taproof.core.errors import StoreUnavailable

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
    # A new connection of the pool may fail with these even if the first ones succeeded.
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)
UNDONE: Final = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
"""Errors after which the server has rolled the statement back, so it may be repeated."""
CHECK_ADDRESS: Final = "Check TAPROOF_DATABASE_URL"
_FORM: Final = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with marks in the password written as %40 for @"
_QUOTED_NAME: Final = re.compile(r'"([a-z_]{1,63})"')
MAKE_OWNER: Final = "As the server's administrator run: ALTER DATABASE <database> OWNER TO <user>"
"""The advice for a user who may not create tables."""


@contextlib.contextmanager
def explain_errors(dsn: str) -> Iterator[None]:
    """Turn errors of an address or its server into StoreUnavailable with a sentence."""
    try:
        yield
    except Exception as error:
        sentence = sentence_about(error, dsn)
        if sentence is None:
            raise
        # The driver quotes text that it cannot parse, which may be a part of the password.
        raise StoreUnavailable(sentence) from (None if isinstance(error, (ValueError, asyncpg.DataError)) else error)


def sentence_about(error: Exception, dsn: str) -> str | None:
    """Return a sentence on the problem with an address or its server and how to fix it; None for an unexpected error.

    The sentence contains no part of the address, since that holds a password. It contains at most the name of a
    parameter.
    """
    for explain in (_tls_sentence, _parameter_sentence, _refusal_sentence):
        if sentence := explain(error, dsn):
            return sentence
    if isinstance(error, ValueError):
        return f"The address of the database cannot be read. {CHECK_ADDRESS}: it is {_FORM}."
    if isinstance(error, socket.gaierror):
        return f"The host of the database is not known (DNS). {CHECK_ADDRESS}: its host."
    if isinstance(error, ConnectionRefusedError):
        return f"Nobody listens at the host and port of the database. {CHECK_ADDRESS}, and that the server is up."
    if isinstance(error, AWAY):
        return (
            f"The database does not answer ({type(error).__name__}). {CHECK_ADDRESS}: its host and port, and that the "
            "server is up and takes connections from here."
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
            "The CA certificate that the database's is checked with cannot be read, or another file of its TLS. Set "
            "sslrootcert=FILE in TAPROOF_DATABASE_URL, a file in PEM form that this user can read."
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            "The database's certificate is not from a CA in sslrootcert, is not made for this host, or has expired. "
            f"{CHECK_ADDRESS}: its host, and sslrootcert=FILE."
        )
    if isinstance(error, ConnectionError) and "rejected SSL upgrade" in str(error):
        return (
            "The database server does not offer TLS, but sslmode in TAPROOF_DATABASE_URL asks for it. Set ssl = on "
            "at the server, or leave sslmode out where nobody else can read along."
        )
    return None


def _parameter_sentence(error: Exception, dsn: str) -> str | None:
    if not isinstance(
        error, (asyncpg.UndefinedObjectError, asyncpg.InvalidParameterValueError, asyncpg.CantChangeRuntimeParamError)
    ):
        return None
    name = _QUOTED_NAME.search(str(error))
    if name is None or not (f"?{name[1]}=" in dsn or f"&{name[1]}=" in dsn):
        return None
    if isinstance(error, asyncpg.UndefinedObjectError):
        return f"The server does not know a parameter in TAPROOF_DATABASE_URL: {name[1]}. Correct it or leave it out."
    return f"The server does not take this value of {name[1]} in TAPROOF_DATABASE_URL. Correct it or leave it out."


def _refusal_sentence(error: Exception, _dsn: str) -> str | None:
    match error:
        case asyncpg.InvalidAuthorizationSpecificationError():
            return f"The database refuses this user. {CHECK_ADDRESS}: its user and password."
        case asyncpg.InvalidCatalogNameError():
            return f"There is no such database on the server. {CHECK_ADDRESS}: its last part."
        case asyncpg.ReadOnlySQLTransactionError():
            return f"The database can only be read. {CHECK_ADDRESS}: it must name the primary."
        case asyncpg.InsufficientPrivilegeError() | asyncpg.InvalidSchemaNameError():
            return f"This user may not make tables in the database. {MAKE_OWNER}"
    return None
