// Checking a proof on the application's own server (RFC 7519; RFC 8725). Nothing is asked of the service.

import { createHmac, timingSafeEqual } from "node:crypto";

import {
  ProofAlreadyUsed, ProofExpired, ProofMalformed, ProofNotYetValid, ProofSignatureInvalid, ProofWrongProject,
} from "./errors.js";
import { requireNumber, requireWebhookSecrets } from "./secrets.js";
import { isPhone, isText, own, readObject } from "./strict_json.js";

const ISSUER = "taproof";
const LONGEST_PROOF = 16_384;
const COMPACT_FORM = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/;
const LATEST = 2n ** 53n; // Seconds: far beyond any date, and as in the SDK for Python.
const FUTURE_TOLERANCE = 60; // Seconds that `iat` may lie ahead: the two servers' clocks never agree exactly.
const NAMES = ["messenger_name", "messenger_username"];
const IDENTIFIERS = ["messenger_id", "project_id", "session_token"];

/**
 * Who signed in: the claims of a proof that holds. Frozen.
 *
 * @typedef {object} Identity
 * @property {string} messengerId The user's account in the messenger, digits; the one thing that never changes, so the
 *   key to store a user under.
 * @property {string} messengerName The display name that the user chose. Anybody may choose any: escape it, trust it in
 *   nothing.
 * @property {string} messengerUsername The user's handle, without "@"; "" when there is none. It may pass to somebody else.
 * @property {string | null} messengerPhone The user's phone number as the messenger knows it, such as "+4915123456789"
 *   (E.164); null unless the project collects it and the user gave it.
 * @property {string} projectId The project that the sign-in was made for.
 * @property {string} sessionToken The one sign-in that this proof stands for. Not enumerable, to keep it out of logs,
 *   JSON and copies.
 * @property {string} issuer Always "taproof" (the claim `iss`).
 * @property {number} issuedAt When the proof was issued, in seconds since the epoch (the claim `iat`).
 * @property {number} expiresAt When it ends, in seconds since the epoch (the claim `exp`).
 */

/**
 * @typedef {object} ProofOptions
 * @property {string | null} [projectId] The only project whose proofs are accepted; without it, any that the secret has
 *   signed.
 * @property {number} [leeway] Seconds that a proof is accepted beyond its end, for a clock that runs ahead; 0 unless given.
 * @property {number} [now] The time in seconds since the epoch; the machine's clock unless given, as a test would.
 */

/**
 * Check a proof and return who it speaks of.
 *
 * With a `guard` a proof is accepted once; it is asked last, when all else has held. Without one, remember `sessionToken`
 * until `expiresAt` yourself. When the guard's `take` returns a promise, so does this; otherwise it returns at once.
 * `await` is right for both.
 *
 * @overload
 * @param {unknown} proof What the page sent: it may be anything.
 * @param {string | readonly string[]} secret The project's webhook secret, the whole `whsec_…` string. Several are tried
 *   in turn, for a rotation.
 * @param {ProofOptions & { guard: import("./guard.js").SingleUseGuard<Promise<boolean>> }} options
 * @returns {Promise<Readonly<Identity>>}
 * @throws {ProofMalformed | ProofSignatureInvalid | ProofWrongProject | ProofExpired | ProofNotYetValid |
 *   ProofAlreadyUsed} Each is a ProofError: do not sign the user in.
 * @throws {TypeError} A mistake in the application's settings: `secret` is not a webhook secret, a time is no number.
 */
/**
 * @overload
 * @param {unknown} proof
 * @param {string | readonly string[]} secret
 * @param {ProofOptions & { guard?: import("./guard.js").SingleUseGuard<boolean> }} [options]
 * @returns {Readonly<Identity>}
 */
/**
 * @overload
 * @param {unknown} proof
 * @param {string | readonly string[]} secret
 * @param {ProofOptions & { guard?: import("./guard.js").SingleUseGuard }} options
 * @returns {Readonly<Identity> | Promise<Readonly<Identity>>}
 */
/**
 * @param {unknown} proof
 * @param {string | readonly string[]} secret
 * @param {ProofOptions & { guard?: import("./guard.js").SingleUseGuard }} [options]
 * @returns {Readonly<Identity> | Promise<Readonly<Identity>>}
 */
export function verifyProof(proof, secret, options = {}) {
  const secrets = requireWebhookSecrets(secret);
  const leeway = requireNumber(options.leeway, 0, "leeway");
  const now = requireNumber(options.now, Date.now() / 1000, "now");
  const { projectId, guard } = options;
  if ("projectId" in options && projectId === undefined) {
    // Most likely a setting that is missing: it must not quietly open this application to every project.
    throw new TypeError("projectId is undefined. Give your project's id, or null to accept any that the secret signed.");
  }
  if (typeof proof !== "string" || proof.length > LONGEST_PROOF || !COMPACT_FORM.test(proof)) {
    throw new ProofMalformed("The proof is not a JWT. Send the value of `proof` from the verify answer, unchanged.");
  }
  const identity = identityOf(signedClaims(proof, secrets));
  if (projectId !== undefined && projectId !== null && identity.projectId !== projectId) {
    throw new ProofWrongProject("The proof was made for another project than this application's.");
  }
  // Written so that NaN refuses: every comparison with it is false.
  if (!(now < identity.expiresAt + leeway)) {
    throw new ProofExpired("The proof has expired. Start a new sign-in; a proof holds for five minutes.");
  }
  if (!(identity.issuedAt <= now + FUTURE_TOLERANCE + leeway)) {
    throw new ProofNotYetValid("The proof was issued in the future. Compare this server's clock with the service's.");
  }
  if (guard === undefined) return identity;
  // Remembered for as long as it would be accepted, so with the leeway; within what a guard can store.
  const rememberUntil = Math.ceil(Math.min(identity.expiresAt + leeway, Number(LATEST)));
  const first = guard.take(identity.sessionToken, rememberUntil);
  return isPromise(first) ? first.then((each) => onlyOnce(each, identity)) : onlyOnce(first, identity);
}

/**
 * @param {boolean | Promise<boolean>} value
 * @returns {value is Promise<boolean>}
 */
function isPromise(value) {
  return typeof value === "object" && typeof value?.then === "function";
}

/**
 * @param {boolean} first
 * @param {Readonly<Identity>} identity
 */
function onlyOnce(first, identity) {
  // Nothing but true: a guard that answers undefined or "OK" has not been written for this.
  if (first === true) return identity;
  throw new ProofAlreadyUsed("The proof was used already. Start a new sign-in.");
}

/**
 * Return the payload if any of the secrets signed it. Who issued it, for whom and when is not looked at yet.
 *
 * @param {string} proof
 * @param {string[]} secrets
 */
function signedClaims(proof, secrets) {
  const [header, payload, signature] = proof.split(".").map(decoded);
  const { fields } = readPart(header);
  const asksForMore = Object.hasOwn(fields, "crit") || Object.hasOwn(fields, "b64");
  if (asksForMore || (Object.hasOwn(fields, "kid") && !isText(fields.kid))) throw malformed();
  // Compared here and never taken from the proof: its header is the attacker's to write (RFC 8725, 3.1).
  if (own(fields, "alg") !== "HS256") throw new ProofSignatureInvalid("The proof is not signed with HS256.");
  const signed = proof.slice(0, proof.lastIndexOf("."));
  const holds = secrets.some((each) => {
    const expected = createHmac("sha256", each).update(signed).digest();
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  });
  if (!holds) {
    throw new ProofSignatureInvalid(
      "The proof's signature fits no secret given. Use the project's current webhook secret.",
    );
  }
  return readPart(payload);
}

/** @param {string} part */
function decoded(part) {
  const bytes = Buffer.from(part, "base64url");
  // A second spelling: a length that base64 cannot have, or a last character with bits that nothing reads.
  if (bytes.toString("base64url") !== part) throw malformed();
  return bytes;
}

/** @param {Buffer} bytes */
function readPart(bytes) {
  try {
    return readObject(bytes);
  } catch {
    throw malformed(); // Without the cause, which may quote the proof.
  }
}

function malformed() {
  return new ProofMalformed("The proof is not a JWT that Taproof makes.");
}

/**
 * Return the identity, or throw ProofMalformed unless all eight claims are there, each of its exact type. The phone number
 * may be missing, and is checked no less where it is there.
 *
 * @param {{ fields: Record<string, unknown>, numbers: Map<string, string> }} claims
 * @returns {Readonly<Identity>}
 */
function identityOf({ fields, numbers }) {
  /** @param {string} name */
  const text = (name) => {
    const value = own(fields, name);
    if (!isText(value)) throw new ProofMalformed(`The proof's claim ${name} must be there, as a string.`);
    if (value === "" && !NAMES.includes(name)) throw new ProofMalformed(`The proof's claim ${name} must not be empty.`);
    return value;
  };
  /** @param {string} name */
  const seconds = (name) => {
    const written = numbers.get(name);
    if (written === undefined || !/^-?[0-9]+$/.test(written) || BigInt(written) < 0n || BigInt(written) > LATEST) {
      throw new ProofMalformed(`The proof's claim ${name} must be there, as whole seconds since the epoch.`);
    }
    return Number(BigInt(written)); // Not Number alone: it would make -0 of "-0".
  };
  const [messengerName, messengerUsername] = NAMES.map(text);
  const [messengerId, projectId, sessionToken] = IDENTIFIERS.map(text);
  const phone = own(fields, "messenger_phone"); // JSON has no undefined: then it is not there.
  const messengerPhone = isPhone(phone) ? phone : null;
  if (messengerPhone === null && phone !== undefined) {
    throw new ProofMalformed("The proof's claim messenger_phone must be a phone number like +4915123456789.");
  }
  const [issuedAt, expiresAt] = ["iat", "exp"].map(seconds);
  if (own(fields, "iss") !== ISSUER) {
    throw new ProofMalformed("The proof was not issued by Taproof: its claim iss is another.");
  }
  const user = { messengerId, messengerName, messengerUsername, messengerPhone };
  const identity = { ...user, projectId, issuer: ISSUER, issuedAt, expiresAt };
  return Object.freeze(Object.defineProperty({ ...identity, sessionToken }, "sessionToken", { enumerable: false }));
}
