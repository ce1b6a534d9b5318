"use strict";
// The application's sign-in endpoint, independent of the framework: it checks a proof and returns the user. express.js
// and next.js read the request, store the session and send the answer. The rules are the same as in Python:
// src/taproof/integrations/endpoint.py.
Object.defineProperty(exports, "__esModule", { value: true });
exports.failed = exports.refusedAccount = exports.HOME = exports.BODY_LIMIT = void 0;
exports.makeEndpoint = makeEndpoint;
exports.refusal = refusal;
exports.ownPath = ownPath;
exports.signedInOf = signedInOf;
exports.readBody = readBody;
const node_crypto_1 = require("node:crypto");
const errors_js_1 = require("./errors.js");
const proof_js_1 = require("./proof.js");
const secrets_js_1 = require("./secrets.js");
const strict_json_js_1 = require("./strict_json.js");
/** In bytes: twice the length of the longest accepted proof. */
exports.BODY_LIMIT = 32_768;
/** Number of bytes after which reading stops. */
const DROPPED_LIMIT = 4_194_304;
exports.HOME = "/";
// Browsers read a backslash as a slash and drop tabs and line breaks, so "/\t/other.example" also leads to another site.
const OWN_PATH = /^\/[^\\\x00-\x20\x7f]{0,2047}$/;
// In "/.//other.example" the dot is dropped, and so is "%2e", which leaves two slashes at the beginning.
const LEADS_AWAY = /\/(?:\/|(?:\.|%2e){1,2}(?:\/|$))/i;
/** @type {Record<string, string>} */
const DEFAULT_PORTS = { http: ":80", https: ":443" };
/**
 * The signed-in user, as stored in the application's session. It never contains the proof or the session token.
 *
 * @typedef {object} SignedIn
 * @property {string} messengerId The id of the user's messenger account, in digits: use it as the key.
 * @property {string} messengerName The display name that the user chose. Anybody can choose any name: escape it, do not
 *   trust it.
 * @property {string} messengerUsername The handle, without "@"; "" if there is none. Another person can take it over.
 * @property {number} signedInAt The time of the sign-in, in seconds since the epoch.
 * @property {string} [messengerPhone] The user's phone number, such as "+4915123456789"; set only if the project collects
 *   it and the user shared it.
 */
/**
 * @typedef {object} EndpointOptions
 * @property {string} projectId The project whose proofs are accepted, `proj_…`.
 * @property {string | readonly string[]} webhookSecret `whsec_…`; several during a rotation.
 * @property {import("./guard.js").SingleUseGuard} guard Accepts each proof only once; all processes of the application must
 *   share it. It has no default, because `new MemoryGuard()` is right for a single process only.
 * @property {import("./client.js").Client} [client] Needed only if your server starts sign-ins itself: reads the result
 *   when the page that the messenger opened sends `{"return_code": "…"}` in place of a proof.
 * @property {string} [afterSignIn] The next page if the endpoint's URL has no `?next=/page`; "/" by default.
 * @property {() => number} [now] The clock, in seconds since the epoch, for tests.
 */
/**
 * The parts of a request that the endpoint needs. `scheme` and `host` belong to the application's public address.
 *
 * @typedef {object} Asked
 * @property {string | null | undefined} contentType
 * @property {string | null | undefined} fetchSite
 * @property {string | null | undefined} origin
 * @property {string} scheme
 * @property {string} host
 */
/**
 * The answer, to send as JSON with `Cache-Control: no-store`. If `signedIn` is set, start a new session for it first.
 *
 * @typedef {object} Answer
 * @property {number} status
 * @property {{ location: string } | { error: string }} content
 * @property {SignedIn} [signedIn]
 * @property {string} [proofDigest] Identifies the proof. Store it in the session together with `signedIn`.
 */
/**
 * @param {EndpointOptions} options
 * @throws {TypeError} An option is missing. This happens when the application starts, not at the first sign-in.
 */
function makeEndpoint(options) {
    const { projectId, webhookSecret, guard, client, afterSignIn = exports.HOME, now = () => Date.now() / 1000 } = options;
    const secrets = (0, secrets_js_1.requireWebhookSecrets)(webhookSecret);
    if (typeof projectId !== "string" || !projectId.startsWith("proj_")) {
        throw new TypeError("Pass projectId: the project's id (proj_…), as shown in Taproof's console.");
    }
    if (typeof guard?.take !== "function") {
        throw new TypeError("Pass guard: new MemoryGuard() for one process, or a guard that all of your processes share.");
    }
    return {
        /**
         * Check the proof in the body of a request that `refusal` has accepted.
         *
         * @param {unknown} body The bytes, or the result of a body parser.
         * @param {string | null | undefined} next
         * @param {unknown} [held] The `proofDigest` in the user's session, if one was started with a proof. If the answer was
         *   lost and the page sends the same proof again, it gets the same answer.
         * @param {import("./client.js").StartedSignIn | null} [started] The sign-in that the server started in this session.
         * @returns {Promise<Answer>}
         */
        async signIn(body, next, held, started) {
            if (body instanceof Uint8Array && body.length > exports.BODY_LIMIT)
                return (0, exports.failed)(413, "The request body is too large.");
            const fields = fieldsOf(body);
            let proof = fields?.proof;
            if (client && typeof fields?.return_code === "string") {
                if (!started?.sessionToken)
                    return (0, exports.failed)(403, "This sign-in began in another browser. Open this page there.");
                try {
                    const result = await client.verifySession(started, { returnCode: fields.return_code });
                    if (result.status !== "confirmed")
                        return (0, exports.failed)(401, "This sign-in is not confirmed. Start again.");
                    proof = result.proof;
                }
                catch (error) {
                    if (!(error instanceof errors_js_1.TaproofApiError))
                        throw error;
                    // Its sentence is for the operator of this application, not for the user.
                    console.error("Taproof:", error.message);
                    const isAway = error.status === null || error.status >= 500 || error.status === 429;
                    return isAway
                        ? (0, exports.failed)(503, "The sign-in service cannot be reached. Try again.")
                        : (0, exports.failed)(401, "This sign-in could not be finished. Start again.");
                }
            }
            if (typeof proof !== "string") {
                return (0, exports.failed)(400, 'The body must be JSON: {"proof": "…"}, with the proof as a string.');
            }
            const instant = now();
            const content = { location: ownPath(next, ownPath(afterSignIn)) };
            let proofDigest = "";
            /** Called last, for a proof that is otherwise valid. @type {import("./guard.js").SingleUseGuard} */
            const guarding = {
                take(sessionToken, expiresAt) {
                    proofDigest = (0, node_crypto_1.createHash)("sha256").update(sessionToken).digest("base64url");
                    return guard.take(sessionToken, expiresAt);
                },
            };
            try {
                const identity = await (0, proof_js_1.verifyProof)(proof, secrets, { projectId, guard: guarding, now: instant });
                const signedIn = /** @type {SignedIn} */ (signedInOf({ ...identity, signedInAt: Math.floor(instant) }));
                return { status: 200, content, signedIn, proofDigest };
            }
            catch (error) {
                if (error instanceof errors_js_1.ProofAlreadyUsed && held === proofDigest)
                    return { status: 200, content };
                if (error instanceof errors_js_1.ProofError)
                    return (0, exports.failed)(401, error.message);
                throw error;
            }
        },
    };
}
/**
 * Return an error for a request that was not sent by a page of this application, otherwise null.
 *
 * Without this, another site could sign its visitors in to the attacker's account (login CSRF), or sign them out. A form
 * cannot send this content type, and a script on another site needs a preflight, which this endpoint does not answer.
 * Scripts cannot set Sec-Fetch-Site or Origin, because browsers set them. If Sec-Fetch-Site is present, only it is
 * checked, because it does not depend on the configured address. Browsers omit it on plain HTTP; old ones never send it.
 *
 * @param {Asked} asked
 * @returns {Answer | null}
 */
function refusal({ contentType, fetchSite, origin, scheme, host }) {
    if ((contentType ?? "").split(";")[0].trim().toLowerCase() !== "application/json") {
        return (0, exports.failed)(403, "Send JSON, with Content-Type: application/json.");
    }
    const isOwn = fetchSite ? fetchSite === "same-origin" : origin === originOf(scheme, host);
    if (isOwn)
        return null;
    return (0, exports.failed)(403, "This request was not sent by a page of this application."
        + " Behind a proxy, configure the framework to trust its X-Forwarded-Proto and X-Forwarded-Host.");
}
/** Return the answer for a valid proof from an account that the application refuses. @returns {Answer} */
const refusedAccount = () => (0, exports.failed)(403, "This account cannot sign in here. Ask the operator of this application.");
exports.refusedAccount = refusedAccount;
/** @param {number} status @param {string} error @returns {Answer} */
const failed = (status, error) => ({ status, content: { error } });
exports.failed = failed;
/**
 * Return the path if it leads to a page of this site: a sign-in must not redirect to another site.
 *
 * @param {string | null | undefined} path
 * @param {string} [otherwise]
 */
function ownPath(path, otherwise = exports.HOME) {
    const isOwn = typeof path === "string" && OWN_PATH.test(path) && !LEADS_AWAY.test(path.split(/[?#]/, 1)[0]);
    return isOwn ? path : otherwise;
}
/**
 * Return the user from a session's value; null if there is none, or if another release wrote it.
 *
 * @param {any} value
 * @returns {SignedIn | null}
 */
function signedInOf(value) {
    const { messengerId, messengerName, messengerUsername, messengerPhone, signedInAt } = value ?? {};
    const isWhole = [messengerId, messengerName, messengerUsername].every((each) => typeof each === "string");
    if (!isWhole || messengerId === "" || !Number.isInteger(signedInAt))
        return null;
    const signedIn = { messengerId, messengerName, messengerUsername, signedInAt };
    return typeof messengerPhone === "string" ? { ...signedIn, messengerPhone } : signedIn;
}
/**
 * Read a request's body up to a limit. The rest is read and dropped, up to 4 MiB: closing the connection early could
 * prevent the client from receiving the answer.
 *
 * @param {AsyncIterable<Uint8Array>} stream
 * @returns {Promise<Buffer>} At most one byte more than the limit.
 */
async function readBody(stream) {
    const chunks = [];
    let [length, seen] = [0, 0];
    for await (const chunk of stream) {
        const kept = chunk.subarray(0, exports.BODY_LIMIT + 1 - length);
        if (kept.length > 0)
            chunks.push(kept);
        length += kept.length;
        seen += chunk.length;
        if (seen > DROPPED_LIMIT)
            break;
    }
    return Buffer.concat(chunks);
}
/**
 * @param {unknown} body
 * @returns {Record<string, unknown> | null}
 */
function fieldsOf(body) {
    if (body instanceof Uint8Array || typeof body === "string") {
        try {
            return (0, strict_json_js_1.readObject)(Buffer.from(body)).fields;
        }
        catch {
            return null;
        }
    }
    return typeof body === "object" ? /** @type {Record<string, unknown> | null} */ (body) : null;
}
/**
 * Return an origin as browsers write it: lower case, without the scheme's default port (RFC 6454, 6.2).
 *
 * @param {string} scheme
 * @param {string} host
 */
function originOf(scheme, host) {
    const [lowScheme, lowHost] = [scheme.toLowerCase(), host.toLowerCase()];
    const port = DEFAULT_PORTS[lowScheme];
    return `${lowScheme}://${port && lowHost.endsWith(port) ? lowHost.slice(0, -port.length) : lowHost}`;
}
