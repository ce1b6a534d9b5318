"use strict";
// Checks proofs on the application's own server (RFC 7519; RFC 8725), without calling the service.
Object.defineProperty(exports, "__esModule", { value: true });
exports.verifyProof = verifyProof;
const node_crypto_1 = require("node:crypto");
const errors_js_1 = require("./errors.js");
const secrets_js_1 = require("./secrets.js");
const strict_json_js_1 = require("./strict_json.js");
const ISSUER = "taproof";
const LONGEST_PROOF = 16_384;
const COMPACT_FORM = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/;
const LATEST = 2n ** 53n; // In seconds: far beyond any date, and the same as in the SDK for Python.
const FUTURE_TOLERANCE = 60; // Seconds that `iat` may be in the future: the clocks of two servers never agree exactly.
const NAMES = ["messenger_name", "messenger_username"];
const IDENTIFIERS = ["messenger_id", "project_id", "session_token"];
/**
 * The user who signed in: the claims of a valid proof. Frozen.
 *
 * @typedef {object} Identity
 * @property {string} messengerId The id of the user's messenger account, in digits. Only this never changes: use it as the
 *   key.
 * @property {string} messengerName The display name that the user chose. Anybody can choose any name: escape it, do not
 *   trust it.
 * @property {string} messengerUsername The handle, without "@"; "" if there is none. Another person can take it over.
 * @property {string | null} messengerPhone The user's phone number as the messenger knows it, such as "+4915123456789"
 *   (E.164); null unless the project collects it and the user shared it.
 * @property {string} projectId The project of the sign-in.
 * @property {string} sessionToken The session token. Not enumerable, to keep it out of logs, JSON and copies.
 * @property {string} issuer Always "taproof" (the claim `iss`).
 * @property {number} issuedAt The time of issue, in seconds since the epoch (the claim `iat`).
 * @property {number} expiresAt The time of expiry, in seconds since the epoch (the claim `exp`).
 */
/**
 * @typedef {object} ProofOptions
 * @property {string | null} [projectId] The only project whose proofs are accepted; without it, any proof signed with the
 *   secret.
 * @property {number} [leeway] Seconds that a proof is accepted after its expiry, in case a clock is wrong; 0 by default.
 * @property {number} [now] The time in seconds since the epoch, for tests; the machine's clock by default.
 */
/**
 * Check a proof and return the identity that it contains.
 *
 * With a `guard`, a proof is accepted only once; the guard is called last, for valid proofs. Without one, remember
 * `sessionToken` until `expiresAt` yourself. If the guard's `take` returns a promise, so does this function. `await` works
 * in both cases.
 *
 * @overload
 * @param {unknown} proof The value that the page sent. It is untrusted input.
 * @param {string | readonly string[]} secret The project's webhook secret, the whole `whsec_…` string. During a rotation,
 *   pass several.
 * @param {ProofOptions & { guard: import("./guard.js").SingleUseGuard<Promise<boolean>> }} options
 * @returns {Promise<Readonly<Identity>>}
 * @throws {ProofMalformed | ProofSignatureInvalid | ProofWrongProject | ProofExpired | ProofNotYetValid |
 *   ProofAlreadyUsed} Each is a ProofError: do not sign the user in.
 * @throws {TypeError} An error in the settings: `secret` is not a webhook secret, or a time is not a number.
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
function verifyProof(proof, secret, options = {}) {
    const secrets = (0, secrets_js_1.requireWebhookSecrets)(secret);
    const leeway = (0, secrets_js_1.requireNumber)(options.leeway, 0, "leeway");
    const now = (0, secrets_js_1.requireNumber)(options.now, Date.now() / 1000, "now");
    const { projectId, guard } = options;
    if ("projectId" in options && projectId === undefined) {
        // A setting is probably missing. Do not silently accept the proofs of every project.
        throw new TypeError("projectId is undefined. Pass your project's id, or null to accept any proof that is signed.");
    }
    if (typeof proof !== "string" || proof.length > LONGEST_PROOF || !COMPACT_FORM.test(proof)) {
        throw new errors_js_1.ProofMalformed("The proof is not a JWT. Send the value of `proof` from the verify response, unchanged.");
    }
    const identity = identityOf(signedClaims(proof, secrets));
    if (projectId !== undefined && projectId !== null && identity.projectId !== projectId) {
        throw new errors_js_1.ProofWrongProject("The proof was made for a different project than this application's.");
    }
    // Written so that NaN refuses the proof: every comparison with NaN is false.
    if (!(now < identity.expiresAt + leeway)) {
        throw new errors_js_1.ProofExpired("The proof has expired. Start a new sign-in, or compare this server's clock with the service's.");
    }
    if (!(identity.issuedAt <= now + FUTURE_TOLERANCE + leeway)) {
        throw new errors_js_1.ProofNotYetValid("The proof was issued in the future. Compare this server's clock with the service's.");
    }
    if (guard === undefined)
        return identity;
    // The guard remembers the proof while it can be accepted, including the leeway, up to the latest time it can store.
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
    // Only true counts: a guard that returns undefined or "OK" was not written for this.
    if (first === true)
        return identity;
    throw new errors_js_1.ProofAlreadyUsed("The proof was used before. Start a new sign-in; a proof can be used only once.");
}
/**
 * Return the payload if any of the secrets signed it. The claims are not checked yet.
 *
 * @param {string} proof
 * @param {string[]} secrets
 */
function signedClaims(proof, secrets) {
    const [header, payload, signature] = proof.split(".").map(decoded);
    const { fields } = readPart(header);
    const asksForMore = Object.hasOwn(fields, "crit") || Object.hasOwn(fields, "b64");
    if (asksForMore || (Object.hasOwn(fields, "kid") && !(0, strict_json_js_1.isText)(fields.kid)))
        throw malformed();
    // Fixed here and never read from the proof: an attacker can write its header (RFC 8725, 3.1).
    if ((0, strict_json_js_1.own)(fields, "alg") !== "HS256")
        throw new errors_js_1.ProofSignatureInvalid("The proof is not signed with HS256.");
    const signed = proof.slice(0, proof.lastIndexOf("."));
    const holds = secrets.some((each) => {
        const expected = (0, node_crypto_1.createHmac)("sha256", each).update(signed).digest();
        return signature.length === expected.length && (0, node_crypto_1.timingSafeEqual)(signature, expected);
    });
    if (!holds) {
        throw new errors_js_1.ProofSignatureInvalid("The proof's signature matches none of the given secrets. Use the project's current webhook secret.");
    }
    return readPart(payload);
}
/** @param {string} part */
function decoded(part) {
    const bytes = Buffer.from(part, "base64url");
    // Each part must have its only valid encoding: no impossible length, and no unused bits set in the last character.
    if (bytes.toString("base64url") !== part)
        throw malformed();
    return bytes;
}
/** @param {Buffer} bytes */
function readPart(bytes) {
    try {
        return (0, strict_json_js_1.readObject)(bytes);
    }
    catch {
        throw malformed(); // Without the cause, which could quote the proof.
    }
}
function malformed() {
    return new errors_js_1.ProofMalformed("The proof is not a JWT made by Taproof.");
}
/**
 * Return the identity, or throw ProofMalformed unless all eight claims have their exact types. The phone number may be
 * missing; if it is present, it is checked too.
 *
 * @param {{ fields: Record<string, unknown>, numbers: Map<string, string> }} claims
 * @returns {Readonly<Identity>}
 */
function identityOf({ fields, numbers }) {
    /** @param {string} name */
    const text = (name) => {
        const value = (0, strict_json_js_1.own)(fields, name);
        if (!(0, strict_json_js_1.isText)(value))
            throw new errors_js_1.ProofMalformed(`The proof's claim ${name} is required and must be a string.`);
        if (value === "" && !NAMES.includes(name))
            throw new errors_js_1.ProofMalformed(`The proof's claim ${name} must not be empty.`);
        return value;
    };
    /** @param {string} name */
    const seconds = (name) => {
        const written = numbers.get(name);
        if (written === undefined || !/^-?[0-9]+$/.test(written) || BigInt(written) < 0n || BigInt(written) > LATEST) {
            throw new errors_js_1.ProofMalformed(`The proof's claim ${name} is required and must be whole seconds since the epoch.`);
        }
        return Number(BigInt(written)); // Number itself would convert "-0" to -0.
    };
    const [messengerName, messengerUsername] = NAMES.map(text);
    const [messengerId, projectId, sessionToken] = IDENTIFIERS.map(text);
    const phone = (0, strict_json_js_1.own)(fields, "messenger_phone"); // JSON has no undefined, so undefined means that the claim is missing.
    const messengerPhone = (0, strict_json_js_1.isPhone)(phone) ? phone : null;
    if (messengerPhone === null && phone !== undefined) {
        throw new errors_js_1.ProofMalformed("The proof's claim messenger_phone must be a phone number like +4915123456789.");
    }
    const [issuedAt, expiresAt] = ["iat", "exp"].map(seconds);
    if ((0, strict_json_js_1.own)(fields, "iss") !== ISSUER) {
        throw new errors_js_1.ProofMalformed("The proof was not issued by Taproof: its claim iss is different.");
    }
    const user = { messengerId, messengerName, messengerUsername, messengerPhone };
    const identity = { ...user, projectId, issuer: ISSUER, issuedAt, expiresAt };
    return Object.freeze(Object.defineProperty({ ...identity, sessionToken }, "sessionToken", { enumerable: false }));
}
