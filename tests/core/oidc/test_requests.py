"""Authorization requests (RFC 6749, sections 3.1 and 4.1.1; OpenID Connect Core 1.0, section 3.1.2; RFC 7636)."""

from collections.abc import Mapping

import pytest

from taproof.core.oidc.errors import OAuthError
from taproof.core.oidc.requests import (
    PARAMETER_LIMIT,
    VALUE_LIMIT,
    AuthorizationRequest,
    ResponseMode,
    ReturnAddress,
    check_request,
    read_parameters,
    read_return_address,
)

Changes = Mapping[str, str | None]
REDIRECT_URI = "https://app.example/callback"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"  # RFC 7636, appendix B.
PKCE: Changes = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}
REQUEST: Changes = {"response_type": "code", "scope": "openid", "redirect_uri": REDIRECT_URI}


def check(changed: Changes | None = None, *, requires_challenge: bool = False) -> AuthorizationRequest:
    """Check a valid request in which some parameters are changed; None leaves one out."""
    parameters = {name: value for name, value in {**REQUEST, **(changed or {})}.items() if value is not None}
    address = read_return_address(parameters, REDIRECT_URI)
    return check_request(parameters, address, requires_challenge=requires_challenge)


REFUSED: tuple[tuple[Changes, str], ...] = (
    ({"response_type": None}, "invalid_request"),
    *(
        ({"response_type": each}, "unsupported_response_type")
        for each in ("token", "id_token", "code id_token", "none", "CODE", "code ")
    ),
    *(({"response_mode": each}, "invalid_request") for each in ("fragment", "web_message", "query.jwt", "FORM_POST")),
    *(({"scope": each}, "invalid_scope") for each in ("profile", "OpenID", "openid,profile")),
    *(({name: each}, "invalid_request") for name in ("state", "nonce") for each in ("a\r\nb", "\x00", "\x7f", "a\tb")),
    ({"prompt": "none"}, "login_required"),
    ({"prompt": "none login"}, "invalid_request"),
    ({"prompt": "create"}, "invalid_request"),
    ({"prompt": "consent create"}, "invalid_request"),
    *(({"max_age": each}, "invalid_request") for each in ("-1", "1.5", "soon", "0x1")),
    ({"request": "eyJhbGciOiJub25lIn0.e30."}, "request_not_supported"),
    ({"registration": "{}"}, "registration_not_supported"),
    ({"code_challenge": CHALLENGE}, "invalid_request"),  # The method would be `plain` (RFC 7636, section 4.3).
    ({"code_challenge": CHALLENGE, "code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge": CHALLENGE, "code_challenge_method": "s256"}, "invalid_request"),
    ({"code_challenge_method": "S256"}, "invalid_request"),
    *(({**PKCE, "code_challenge": each}, "invalid_request") for each in (CHALLENGE + "=", CHALLENGE[1:], "a" * 128)),
)
ACCEPTED: tuple[Changes, ...] = (
    {},
    PKCE,
    {"scope": "profile phone openid address offline_access"},
    {"prompt": "login"},
    {"prompt": "consent select_account"},
    {"max_age": "0"},
    {"max_age": "10000"},
    {"display": "popup"},
    {"acr_values": "1 2", "claims_locales": "se", "login_hint": "ada@app.example"},
    {"claims": '{"userinfo": {"name": {"essential": true}}}'},
    {"id_token_hint": "eyJhbGciOiJub25lIn0.e30."},
    {"extra": "foobar"},
    {"state": "Straße", "nonce": "🦊 مرحبا"},
    {"state": "~ !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}"},
)


def test_refused_requests(subtests: pytest.Subtests) -> None:
    """A parameter that is missing, malformed or not supported gives the error that its specification names."""
    for changed, error in REFUSED:
        with subtests.test(changed=changed), pytest.raises(OAuthError) as refused:
            check(changed)
        assert refused.value.error == error, changed
        # RFC 6749, section 5.2: the characters of a description.
        assert set(refused.value.description) <= set(map(chr, range(0x20, 0x7F))) - {'"', "\\"}, changed


def test_accepted_requests(subtests: pytest.Subtests) -> None:
    """Optional and unknown parameters cause no error (OpenID Connect Core, section 15.1; RFC 6749, section 3.1)."""
    for changed in ACCEPTED:
        with subtests.test(changed=changed):
            assert check(changed).redirect_uri == REDIRECT_URI


def test_a_client_without_a_secret_must_use_pkce() -> None:
    """Without a secret, a request needs a challenge, so PKCE cannot be left out (RFC 9700, section 2.1.1)."""
    with pytest.raises(OAuthError, match="must send code_challenge"):
        check(requires_challenge=True)
    assert check(PKCE, requires_challenge=True).code_challenge == CHALLENGE


def test_values_are_returned_unchanged() -> None:
    """A state and a nonce of 4 KB, and every other value, survive the check and the store."""
    state, nonce = "s" * VALUE_LIMIT, ' %"<>&+' * (VALUE_LIMIT // 7)
    request = check({**PKCE, "state": state, "nonce": nonce, "response_mode": "form_post", "ui_locales": "fr ru"})
    assert request.return_address == ReturnAddress(REDIRECT_URI, "form_post", state)
    assert (request.nonce, request.ui_locales) == (nonce, "fr ru")
    assert AuthorizationRequest.load(request.dump()) == request
    assert AuthorizationRequest.load(check().dump()) == check()


def test_scopes() -> None:
    """Their order and spaces do not matter, and unsupported ones are ignored (OpenID Connect Core, 3.1.2.1)."""
    for asked, scopes in (
        (None, ("openid",)),
        (" openid  profile\t", ("openid", "profile")),
        ("phone address openid", ("openid", "phone")),
        ("openid phone", ("openid", "phone")),
        ("email profile openid phone", ("openid", "profile", "email", "phone")),
    ):
        assert check({"scope": asked}).scopes == scopes


def test_the_address_of_an_error() -> None:
    """An error is answered in a supported mode, and with the state even if the state is the fault."""
    modes: tuple[tuple[str | None, ResponseMode], ...] = (
        ("form_post", "form_post"),
        ("fragment", "query"),
        (None, "query"),
    )
    for given, mode in modes:
        parameters = {"state": "\r\n"} | ({} if given is None else {"response_mode": given})
        wanted = ReturnAddress(REDIRECT_URI, mode, "\r\n", in_fragment=given == "fragment")
        assert read_return_address(parameters, REDIRECT_URI) == wanted


def test_parameters() -> None:
    """A parameter occurs once, and one without a value counts as omitted (RFC 6749, section 3.1)."""
    assert read_parameters([("state", ""), ("scope", "openid"), ("state", "s")]) == {"scope": "openid", "state": "s"}
    for name in ("state", "redirect_uri", "extra"):
        with pytest.raises(OAuthError, match="more than once"):
            read_parameters([(name, "a"), ("scope", "openid"), (name, "a")])
    repeated = [(name, f"https://{number}.example/") for name in ("resource", "audience") for number in range(2)]
    assert read_parameters([*repeated, ("state", "s")]) == {"state": "s"}  # RFC 8707, section 2; RFC 8693, section 2.1.
    assert read_parameters([("state", "s" * VALUE_LIMIT)]) == {"state": "s" * VALUE_LIMIT}
    with pytest.raises(OAuthError, match="characters"):
        read_parameters([("state", "s" * (VALUE_LIMIT + 1))])
    with pytest.raises(OAuthError, match="parameters"):
        read_parameters([(f"p{number}", "") for number in range(PARAMETER_LIMIT + 1)])
