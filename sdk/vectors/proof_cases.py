"""The proofs: what holds, and each way in which one does not."""

# ruff: noqa: INP001 — a script and its parts, no package.

import hashlib
import hmac
import json
from typing import Any, Final

from signing import (
    NOW,
    OTHER_PROJECT,
    OTHER_SECRET,
    PROJECT,
    SECRET,
    SECRET_KEY,
    TOKEN,
    changed,
    encoded,
    inserted,
    signed_proof,
)

CLAIMS: Final[dict[str, Any]] = {
    "messenger_id": "1001",
    "messenger_name": "Ada Lovelace",
    "messenger_username": "ada",
    "project_id": PROJECT,
    "session_token": TOKEN,
    "iss": "taproof",
    "iat": NOW,
    "exp": NOW + 300,
}
TEXTS: Final = tuple(name for name, value in CLAIMS.items() if isinstance(value, str))
TIMES: Final = ("iat", "exp")
MALFORMED: Final = "ProofMalformed"
INVALID: Final = "ProofSignatureInvalid"


def claims(**changes: Any) -> bytes:
    """Return the payload of a good proof with changes; `...` leaves a claim out."""
    return changed(CLAIMS, changes)


def written(name: str, number: str) -> bytes:
    """Return the payload with a number exactly as it is written here."""
    return inserted(claims(**{name: ...}), f'"{name}":{number}'.encode())


def good(name: str, proof: str, **inputs: Any) -> dict[str, Any]:
    """Return a case that holds; what the identity holds otherwise than the good one stands in `identity`."""
    identity = {name: CLAIMS[name] for name in TEXTS if name != "iss"} | {"messenger_phone": None}
    identity |= {"issuer": "taproof", "issued_at": NOW, "expires_at": NOW + 300} | inputs.pop("identity", {})
    return case(name, proof, {"identity": identity}, **inputs)


def bad(name: str, proof: Any, error: str, **inputs: Any) -> dict[str, Any]:
    """Return a case that does not hold."""
    return case(name, proof, {"error": error}, **inputs)


def case(name: str, proof: Any, expected: dict[str, Any], **inputs: Any) -> dict[str, Any]:
    """Return a case in the form that README.md describes."""
    given = {"secret": SECRET, "project_id": PROJECT, "now": NOW, **inputs}
    given = {key: value for key, value in given.items() if value is not None}
    return {"name": name, "proof": proof, **given, "expected": expected}


def proofs() -> list[dict[str, Any]]:
    """Return all cases, in the order of the file."""
    return [
        *good_ones(),
        *by_time(),
        *by_signature(),
        *by_header(),
        *by_form(),
        *by_claims(),
        *by_text(),
        *by_setting(),
    ]


def good_ones() -> list[dict[str, Any]]:
    """Proofs that hold, whatever they carry beside the eight claims."""
    proof = signed_proof(claims())
    odd = "א\u202e<b>🦊\u0000\u2028\"\\'👩‍💻"
    # As long as a proof may be: 4 characters for 3 bytes.
    longest = "a" * ((16_384 - len(signed_proof(claims(messenger_name="")))) * 3 // 4)
    return [
        good("the proof that the service makes", proof),
        good("any project that the secret has signed", proof, project_id=None),
        good("no username", signed_proof(claims(messenger_username="")), identity={"messenger_username": ""}),
        good("an empty name", signed_proof(claims(messenger_name="")), identity={"messenger_name": ""}),
        good("any name, as it is", signed_proof(claims(messenger_name=odd)), identity={"messenger_name": odd}),
        good(
            "a name in UTF-8 and not in escapes",
            signed_proof(json.dumps(CLAIMS | {"messenger_name": odd}, ensure_ascii=False).encode()),
            identity={"messenger_name": odd},
        ),
        good("the secret before a rotation, of two", proof, secret=[SECRET, OTHER_SECRET]),
        good(
            "the secret after a rotation, of two",
            signed_proof(claims(), secret=OTHER_SECRET),
            secret=[SECRET, OTHER_SECRET],
        ),
        good("the same secret twice", proof, secret=[SECRET, SECRET]),
        good("no typ in the header", signed_proof(claims(), b'{"alg":"HS256"}')),
        good("another typ in the header", signed_proof(claims(), b'{"alg":"HS256","typ":["at+jwt"]}')),
        good("a kid in the header", signed_proof(claims(), b'{"alg":"HS256","kid":"2026-11"}')),
        good("alg written with an escape", signed_proof(claims(), b'{"\\u0061lg":"HS25\\u0036"}')),
        good(
            "white space in header and payload", signed_proof(b" \t\r\n" + claims() + b"\n", b'{ "alg" : "HS256" }\n')
        ),
        good("a claim of a later version", signed_proof(claims(phone={"number": [1, 2.5, None, True]}))),
        good("aud, nbf, sub and jti of any kind", signed_proof(claims(aud="x", nbf=2**40, sub=7, jti=[]))),
        good(
            "times inside another claim", signed_proof(inserted(claims(), b'"x":{"iat":1,"exp":[2]},"y":[{"exp":3}]'))
        ),
        good("a claim named __proto__", signed_proof(inserted(claims(), b'"__proto__":{"messenger_id":"1"}'))),
        good(
            "claims named constructor and toString", signed_proof(claims(constructor=1, toString="x", hasOwnProperty=2))
        ),
        good("500 brackets", signed_proof(inserted(claims(), b'"x":' + b"[" * 499 + b"]" * 499))),
        good("a number of 4300 digits in another claim", signed_proof(inserted(claims(), b'"x":-' + b"9" * 4300))),
        good("a float beyond every float in another claim", signed_proof(inserted(claims(), b'"x":1e999'))),
        good("the longest", signed_proof(claims(messenger_name=longest)), identity={"messenger_name": longest}),
    ]


def by_time() -> list[dict[str, Any]]:
    """Times: the end, the beginning and the leeway, each on both sides of its border."""
    proof = signed_proof(claims())
    endless = signed_proof(claims(exp=2**53))
    return [
        good("until the last moment", proof, now=NOW + 299.999),
        bad("expired at its last second", proof, "ProofExpired", now=NOW + 300),
        bad("expired long ago", signed_proof(claims(exp=0)), "ProofExpired"),
        good("leeway after the end", proof, now=NOW + 309.5, leeway=10),
        bad("the leeway's end", proof, "ProofExpired", now=NOW + 310, leeway=10),
        bad("a negative leeway shortens", proof, "ProofExpired", now=NOW + 290, leeway=-10),
        good("a leeway without end", proof, now=NOW + 10**9, leeway="Infinity"),
        bad("a leeway that is no number", proof, "ProofExpired", leeway="NaN"),
        bad("a clock that is no number", proof, "ProofExpired", now="NaN"),
        good("a clock one minute behind", proof, now=NOW - 60),
        bad("a clock more than one minute behind", proof, "ProofNotYetValid", now=NOW - 60.5),
        good("a clock behind by a minute and the leeway", proof, now=NOW - 65, leeway=5),
        good("the last time there is", endless, identity={"expires_at": 2**53}),
        bad("issued at the last time there is", signed_proof(claims(iat=2**53, exp=2**53)), "ProofNotYetValid"),
        bad("expired before from the future", signed_proof(claims(iat=2**53, exp=0)), "ProofExpired"),
        good("issued at the epoch", signed_proof(claims(iat=0)), identity={"issued_at": 0}),
        good("issued at minus zero", signed_proof(written("iat", "-0")), identity={"issued_at": 0}),
    ]


def by_signature() -> list[dict[str, Any]]:
    """Signatures that fit nothing."""
    proof = signed_proof(claims())
    head, payload, signature = proof.split(".")
    other_head = encoded(b'{"alg":"HS256"}')
    sha512 = hmac.digest(SECRET.encode(), f"{head}.{payload}".encode(), hashlib.sha512)
    return [
        bad("tampered payload", f"{head}.{encoded(claims(messenger_id='1'))}.{signature}", INVALID),
        bad("tampered header", f"{other_head}.{payload}.{signature}", INVALID),
        bad("another signature", f"{head}.{payload}.{encoded(bytes(32))}", INVALID),
        bad("no signature", f"{head}.{payload}.", INVALID),
        bad("a signature that is cut short", f"{head}.{payload}.{signature[:40]}", INVALID),
        bad("a signature with more behind it", f"{head}.{payload}.{signature[:40]}AAAA", INVALID),
        bad("HMAC with SHA-512", f"{head}.{payload}.{encoded(sha512)}", INVALID),
        bad("wrong secret", signed_proof(claims(), secret=OTHER_SECRET), INVALID),
        bad("none of two secrets", proof, INVALID, secret=[OTHER_SECRET, OTHER_SECRET]),
        bad("signed with the secret key", signed_proof(claims(), secret=SECRET_KEY), INVALID),
        bad("signed with the secret without its prefix", signed_proof(claims(), secret=SECRET[6:]), INVALID),
        bad("signed with nothing", signed_proof(claims(), secret=""), INVALID),
        bad("the signature comes before the claims", signed_proof(claims(exp=0), secret=OTHER_SECRET), INVALID),
        bad("the signature comes before the payload's form", signed_proof(b"[]", secret=OTHER_SECRET), INVALID),
    ]


def by_header() -> list[dict[str, Any]]:
    """Headers: the algorithm is HS256 and nothing else, and nothing is asked for that is not done."""
    algorithms = [
        '"none"', '"None"', '""', '"HS384"', '"HS512"', '"RS256"', '"ES256"', '"hs256"', '"HS256 "', '" HS256"',
        '"HS256\\u0000"', '"HS256,HS256"', '["HS256"]', '{"HS256":1}', "null", "true", "0", "256",
    ]  # fmt: skip
    malformed = {
        "a header that is a list": b'["HS256"]',
        "a header that is a string": b'"HS256"',
        "a header that is null": b"null",
        "a header that is not JSON": b"alg=HS256",
        "a header that is empty JSON text": b" ",
        "a header that is not UTF-8": b'{"alg":"HS256","x":"\xff"}',
        "a header with a byte order mark": b'\xef\xbb\xbf{"alg":"HS256"}',
        "a header in UTF-16": '{"alg":"HS256"}'.encode("utf-16-le"),
        "a header with more behind it": b'{"alg":"HS256"}{}',
        "alg twice": b'{"alg":"none","alg":"HS256"}',
        "alg twice, once in escapes": b'{"alg":"none","\\u0061lg":"HS256"}',
        "alg twice, the other way round": b'{"alg":"HS256","alg":"none"}',
        "crit": b'{"alg":"HS256","crit":["x"],"x":1}',
        "crit that is empty": b'{"alg":"HS256","crit":[]}',
        "crit of another type": b'{"alg":"HS256","crit":null}',
        "crit with b64": b'{"alg":"HS256","crit":["b64"],"b64":true}',
        "b64 false": b'{"alg":"HS256","b64":false}',
        "b64 true": b'{"alg":"HS256","b64":true}',
        "kid of another type": b'{"alg":"HS256","kid":1}',
        "kid null": b'{"alg":"HS256","kid":null}',
        "a header nested deep": b'{"alg":"HS256","x":' + b"[" * 500 + b"]" * 500 + b"}",
        "NaN in the header": b'{"alg":"HS256","x":NaN}',
    }
    return [
        *[
            bad(f"alg {each}", signed_proof(claims(), f'{{"typ":"JWT","alg":{each}}}'.encode()), INVALID)
            for each in algorithms
        ],
        bad("no alg", signed_proof(claims(), b'{"typ":"JWT"}'), INVALID),
        bad("an empty header", signed_proof(claims(), b"{}"), INVALID),
        bad("alg inside __proto__", signed_proof(claims(), b'{"__proto__":{"alg":"HS256"}}'), INVALID),
        bad("alg none, unsigned", signed_proof(claims(), b'{"alg":"none"}').rpartition(".")[0] + ".", INVALID),
        *[bad(name, signed_proof(claims(), header), MALFORMED) for name, header in malformed.items()],
    ]


def by_form() -> list[dict[str, Any]]:
    """What is no JWT in its one compact spelling."""
    proof = signed_proof(claims())
    head, payload, signature = proof.split(".")
    # Where not all six bits of the last character count, one that differs in the last bit alone decodes to the same.
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = dict(zip(alphabet, (alphabet[index ^ 1] for index in range(64)), strict=True))
    short = next(text for text in (claims(x="a" * n) for n in range(3)) if len(text) % 3)
    loose = signed_proof(short).split(".")
    forms: dict[str, Any] = {
        "nothing": "",
        "one part": head,
        "two parts": f"{head}.{payload}",
        "four parts": f"{proof}.x",
        "empty parts": "..",
        "no header": f".{payload}.{signature}",
        "no payload": f"{head}..{signature}",
        "padding behind it": f"{proof}=",
        "padding in the payload": f"{loose[0]}.{loose[1]}{'=' * (-len(loose[1]) % 4)}.{loose[2]}",
        "a line break behind it": f"{proof}\n",
        "a blank before it": f" {proof}",
        "a blank inside": f"{head}.{payload[:9]} {payload[9:]}.{signature}",
        "a NUL behind it": f"{proof}\u0000",
        "base64 and not base64url": proof.replace("_", "/").replace("-", "+") + "+/",
        "full-width letters": f"\uff21{proof[1:]}",
        "half a surrogate pair": f"{proof}\ud800",
        "bits that nothing reads, in the signature": f"{head}.{payload}.{signature[:-1]}{other[signature[-1]]}",
        "bits that nothing reads, in the payload": f"{loose[0]}.{loose[1][:-1]}{other[loose[1][-1]]}.{loose[2]}",
        "a length that base64 cannot have, in the signature": f"{proof}AA",
        "a length that base64 cannot have, in the header": f"{'A' * 5}.{payload}.{signature}",
        "the word Bearer before it": f"Bearer {proof}",
        "a JSON string around it": f'"{proof}"',
        "too long": f"{head}.{payload}{'A' * (16_385 - len(proof))}.{signature}",
        "null": None,
        "a number": 7,
        "true": True,
        "a list": [proof],
        "an object": {"proof": proof},
    }
    return [bad(name, form, MALFORMED) for name, form in forms.items()]


def by_claims() -> list[dict[str, Any]]:
    """Claims that are missing, of another type or of another value."""
    number_forms = [
        "1e3", "1E9", "1.0", f"{NOW}.0", f"{NOW}e0", f"{NOW}.5", "-1", "1e999", str(2**53 + 1), str(2**63),
        str(2**64 + NOW), "1" + "0" * 400, "true", "false", f'"{NOW}"', '""', "{}",
    ]  # fmt: skip
    return [
        bad("wrong project", signed_proof(claims(project_id=OTHER_PROJECT)), "ProofWrongProject"),
        bad("an empty project id is no wildcard", signed_proof(claims()), "ProofWrongProject", project_id=""),
        bad("a project in capital letters", signed_proof(claims(project_id=PROJECT.upper())), "ProofWrongProject"),
        bad("a project with a blank behind it", signed_proof(claims(project_id=PROJECT + " ")), "ProofWrongProject"),
        bad(
            "the project comes before the end",
            signed_proof(claims(project_id=OTHER_PROJECT, exp=0)),
            "ProofWrongProject",
        ),
        bad("wrong iss", signed_proof(claims(iss="somebody")), MALFORMED),
        bad("iss in other letters", signed_proof(claims(iss="Taproof")), MALFORMED),
        bad("iss a list that holds it", signed_proof(claims(iss=["taproof"])), MALFORMED),
        bad("the form comes before the project", signed_proof(claims(project_id=OTHER_PROJECT, iss="x")), MALFORMED),
        *[bad(f"no {name}", signed_proof(claims(**{name: ...})), MALFORMED) for name in CLAIMS],
        *[bad(f"{name} null", signed_proof(claims(**{name: None})), MALFORMED) for name in CLAIMS],
        *[bad(f"{name} 7", signed_proof(claims(**{name: 7})), MALFORMED) for name in TEXTS],
        *[bad(f"{name} a list", signed_proof(claims(**{name: ["x"]})), MALFORMED) for name in TEXTS],
        *[bad(f"{name} an object", signed_proof(claims(**{name: {}})), MALFORMED) for name in TEXTS],
        *[bad(f"{name} half a surrogate pair", signed_proof(claims(**{name: "a\ud800"})), MALFORMED) for name in TEXTS],
        *[
            bad(f"{name} empty", signed_proof(claims(**{name: ""})), MALFORMED)
            for name in TEXTS
            if name not in {"messenger_name", "messenger_username"}
        ],
        *[
            bad(f"{name} {form if len(form) < 40 else 'of 401 digits'}", signed_proof(written(name, form)), MALFORMED)
            for name in TIMES
            for form in number_forms
        ],
        bad("all claims inside __proto__", signed_proof(b'{"__proto__":' + claims() + b"}"), MALFORMED),
        bad("all claims in an object of their own", signed_proof(b'{"claims":' + claims() + b"}"), MALFORMED),
        bad("times in an object of their own", signed_proof(claims(iat=..., x={"iat": NOW})), MALFORMED),
        bad("no claims", signed_proof(b"{}"), MALFORMED),
    ]


def by_text() -> list[dict[str, Any]]:
    """Payloads that are not JSON, or that two readers could take differently."""
    payload = claims()
    texts = {
        "not JSON": b"messenger_id=1001",
        "JSON cut off": payload[:-1],
        "more behind the JSON": payload + b"{}",
        "a comma too many": payload[:-1] + b",}",
        "a comment": b"/* */" + payload,
        "single quotes": payload.replace(b'"', b"'"),
        "a list": b"[" + payload + b"]",
        "a string": json.dumps(payload.decode()).encode(),
        "a number": b"7",
        "not UTF-8": payload.replace(b"Ada", b"\xff"),
        "Latin-1": payload.replace(b"Ada", "Zoë".encode("latin-1")),
        "overlong UTF-8": payload.replace(b"Ada", b"\xc0\x80"),
        "surrogates in UTF-8": payload.replace(b"Ada", b"\xed\xa0\x80"),
        "a byte order mark": b"\xef\xbb\xbf" + payload,
        "UTF-16": payload.decode().encode("utf-16"),
        "a no-break space before it": b"\xc2\xa0" + payload,
        "a NUL behind it": payload + b"\0",
        "a raw line break in a string": payload.replace(b"Ada", b"A\nda"),
        "an unknown escape": payload.replace(b"Ada", b"\\x41da"),
        "a claim twice": b'{"messenger_id":"1002",' + payload[1:],
        "a claim twice, once in escapes": b'{"messenger_i\\u0064":"1002",' + payload[1:],
        "a claim twice, of equal value": b'{"messenger_id":"1001",' + payload[1:],
        "a claim twice, inside another": inserted(payload, b'"x":[{"a":1,"a":2}]'),
        "__proto__ twice": inserted(payload, b'"__proto__":1,"__proto__":2'),
        "NaN in another claim": inserted(payload, b'"x":NaN'),
        "-Infinity in another claim": inserted(payload, b'"x":-Infinity'),
        "a number with a zero before it": inserted(payload, b'"x":01'),
        "a number with a plus": inserted(payload, b'"x":+1'),
        "a number that ends in a point": inserted(payload, b'"x":1.'),
        "a hexadecimal number": inserted(payload, b'"x":0x1'),
        "a number of 4301 digits": inserted(payload, b'"x":' + b"9" * 4301),
        "501 brackets": inserted(payload, b'"x":' + b"[" * 500 + b"]" * 500),
        "brackets without end": b"[" * 8000,
    }
    return [bad(f"payload: {name}", signed_proof(text), MALFORMED) for name, text in texts.items()]


def by_setting() -> list[dict[str, Any]]:
    """Mistakes of the application, told apart from a bad proof; and the guard, which is asked last."""
    proof = signed_proof(claims())
    secrets: list[Any] = [
        "", [], "whsec_", SECRET_KEY, [SECRET, SECRET_KEY], [SECRET, ""], f"{SECRET}\n", f" {SECRET}", SECRET[6:],
        "-----BEGIN PUBLIC KEY-----", [None], 7, {"secret": SECRET},
    ]  # fmt: skip
    return [
        *[bad(f"secret {json.dumps(each)}", proof, "WrongSetting", secret=each) for each in secrets],
        bad("the setting comes before the proof", "", "WrongSetting", secret=""),
        good("a guard that lets it pass", proof, guard=True),
        bad("a guard that has seen it", proof, "ProofAlreadyUsed", guard=False),
        bad("the guard is not asked before the end is over", proof, "ProofExpired", now=NOW + 300, guard=False),
        bad("the guard is not asked before the project", proof, "ProofWrongProject", project_id="proj_", guard=False),
        bad("the guard is not asked before the signature", f"{proof[:-8]}AAAAAAAA", INVALID, guard=False),
    ]
