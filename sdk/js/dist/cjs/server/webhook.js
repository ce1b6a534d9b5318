"use strict";
// Checks webhooks on the application's own server (Standard Webhooks 1.0), without calling the service.
Object.defineProperty(exports, "__esModule", { value: true });
exports.verifyWebhook = verifyWebhook;
const node_crypto_1 = require("node:crypto");
const errors_js_1 = require("./errors.js");
const secrets_js_1 = require("./secrets.js");
const strict_json_js_1 = require("./strict_json.js");
const LONGEST_BODY = 65_536; // In bytes: many times the size of any event.
const STANDARD_HEADERS = ["webhook-id", "webhook-timestamp", "webhook-signature"];
const SERVICE_SIGNATURE = "x-service-signature";
const INSTANT = /^([0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,6}))?Z$/;
const INSTANT_FIELDS = new Map([
    ["auth.confirmed", "confirmed_at"], ["auth.cancelled", "cancelled_at"], ["auth.expired", "expired_at"],
    ["auth.reported", "reported_at"], ["webhook.test", "created_at"],
]);
/**
 * The event of a valid webhook. Frozen.
 *
 * @typedef {object} WebhookEvent
 * @property {string} id `evt_…`, the same on every attempt: process each event only once.
 * @property {string} type "auth.confirmed", "auth.cancelled", "auth.expired", "auth.reported" or "webhook.test". Answer 200
 *   to any other type, which a newer service may send.
 * @property {string} projectId The project of the event.
 * @property {boolean} isTest True if the developer requested this event, and no user caused it: sign nobody in.
 * @property {string | null} sessionToken The session token of the sign-in, for "auth.confirmed" and "auth.cancelled" only.
 *   Not enumerable, to keep it out of logs.
 * @property {string | null} sessionTokenSha256 The SHA-256 of the session token in hex, for "auth.expired" and
 *   "auth.reported" only.
 * @property {string | null} messengerId The id of the user's messenger account, in digits: use it as the key. Like the next
 *   two fields, it is set for "auth.confirmed" only. "auth.reported" has it if the user had confirmed.
 * @property {string | null} messengerName The display name that the user chose. Escape it, do not trust it.
 * @property {string | null} messengerUsername The user's handle, without "@"; null if there is none.
 * @property {string | null} messengerPhone The user's phone number as the messenger knows it, such as "+4915123456789"
 *   (E.164); null unless the project collects it and the user shared it.
 * @property {boolean | null} wasUsed For "auth.reported" only: whether the proof had been issued.
 * @property {number | null} occurredAt The time of the event, in seconds since the epoch, to the millisecond; null for
 *   unknown events from a newer service.
 * @property {number | null} signedAt The time when this attempt was signed, in seconds since the epoch; null if the request
 *   has only `X-Service-Signature`, which does not cover a time.
 * @property {Record<string, unknown>} data The whole body, including fields that a newer service adds. Not enumerable.
 */
/**
 * Check a webhook and return its event.
 *
 * If the request has any of the Standard Webhooks headers, all three are checked. Otherwise `X-Service-Signature` is
 * checked. That signature does not cover a time: an attacker who has seen one request can send it again later. Therefore
 * store the ids of processed events in storage that all of your servers share, and process no event twice.
 *
 * @param {Uint8Array} body The bytes of the request's body, exactly as received, such as from `express.raw()`.
 * @param {Record<string, string | string[] | undefined> | Headers} headers From Node, or from a Web-standard
 *   Request.
 * @param {string | readonly string[]} secret The project's webhook secret; during a rotation, pass several.
 * @param {{ tolerance?: number, now?: number }} [options] `tolerance`: seconds that `webhook-timestamp` can be in the past
 *   or in the future, 300 by default. `now`: the time in seconds since the epoch, for tests.
 * @returns {Readonly<WebhookEvent>}
 * @throws {WebhookMalformed | WebhookSignatureInvalid | WebhookTooOld | WebhookFromFuture} Each is a WebhookError.
 * @throws {TypeError} An error of the application: `secret` is not a webhook secret, `body` not bytes, or `headers` not the
 *   request's headers.
 */
function verifyWebhook(body, headers, secret, options = {}) {
    const secrets = (0, secrets_js_1.requireWebhookSecrets)(secret);
    const keys = secrets.map(standardKey);
    const tolerance = (0, secrets_js_1.requireNumber)(options.tolerance, 300, "tolerance");
    const now = (0, secrets_js_1.requireNumber)(options.now, Date.now() / 1000, "now");
    if (!(body instanceof Uint8Array)) {
        throw new TypeError("Pass the request's body as the received bytes, before anything parses or decodes it.");
    }
    const given = signatureHeaders(headers);
    if (body.length > LONGEST_BODY)
        throw new errors_js_1.WebhookMalformed("The body is too long for a Taproof event.");
    const serviceSignature = given.get(SERVICE_SIGNATURE);
    let signedAt = null;
    if (STANDARD_HEADERS.some((name) => given.has(name))) {
        signedAt = requireStandardSignature(body, given, keys);
        // Written so that NaN refuses the webhook: every comparison with NaN is false.
        if (!(signedAt >= now - tolerance)) {
            throw new errors_js_1.WebhookTooOld("The webhook was signed too long ago. If it is a new one, compare the servers' clocks.");
        }
        if (!(signedAt <= now + tolerance)) {
            throw new errors_js_1.WebhookFromFuture("The webhook was signed in the future. Compare the two servers' clocks.");
        }
    }
    else if (serviceSignature !== undefined) {
        if (!secrets.some((each) => same(serviceSignature, (0, node_crypto_1.createHmac)("sha256", each).update(body).digest("hex")))) {
            throw new errors_js_1.WebhookSignatureInvalid("X-Service-Signature matches no given secret. Pass the body exactly as received, and use the project's current"
                + " webhook secret.");
        }
    }
    else {
        throw new errors_js_1.WebhookMalformed("The request is not signed: it has neither webhook-signature nor X-Service-Signature.");
    }
    const event = eventOf(parsed(body), signedAt);
    if (signedAt !== null && given.get("webhook-id") !== event.id) {
        throw new errors_js_1.WebhookMalformed("The header webhook-id is not the id of the event in the body.");
    }
    return event;
}
/**
 * Return the key for Standard Webhooks: the part after the prefix, base64-decoded.
 *
 * @param {string} secret
 */
function standardKey(secret) {
    const encoded = secret.slice("whsec_".length);
    const key = Buffer.from(encoded, "base64");
    // A different encoding of the same key would match one kind of signature but not the other.
    if (key.toString("base64") !== encoded)
        throw new TypeError(secrets_js_1.WRONG_SECRET);
    return key;
}
/**
 * Return the signature headers, keyed by lower-case name.
 *
 * @param {Record<string, string | string[] | undefined> | Headers} headers
 */
function signatureHeaders(headers) {
    if (typeof headers !== "object" || headers === null || Array.isArray(headers)) {
        throw new TypeError("Pass the request's headers: request.headers in Node, Express and Next.js.");
    }
    const entries = headers instanceof Headers ? headers.entries() : Object.entries(headers);
    /** @type {Map<string, string>} */
    const found = new Map();
    for (const [name, value] of entries) {
        const lowered = name.toLowerCase();
        if ((!STANDARD_HEADERS.includes(lowered) && lowered !== SERVICE_SIGNATURE) || value === undefined)
            continue;
        if (typeof value !== "string")
            throw new TypeError(`Pass the value of the header ${lowered} as one string.`);
        // With two values, a proxy could use one and this check the other.
        if (found.has(lowered))
            throw new errors_js_1.WebhookMalformed(`The header ${lowered} is repeated.`);
        found.set(lowered, value);
    }
    return found;
}
/**
 * Return the signed time; throw unless one of the signatures was made with one of the keys.
 *
 * @param {Uint8Array} body
 * @param {Map<string, string>} given
 * @param {Buffer[]} keys
 */
function requireStandardSignature(body, given, keys) {
    const [id, timestamp, signatures] = STANDARD_HEADERS.map((name) => {
        const value = given.get(name);
        if (value)
            return value;
        throw new errors_js_1.WebhookMalformed(`The header ${name} is missing. All three of ${STANDARD_HEADERS.join(", ")} are needed.`);
    });
    if (!/^[0-9]{1,12}$/.test(timestamp)) {
        throw new errors_js_1.WebhookMalformed("The header webhook-timestamp must be whole seconds since the epoch.");
    }
    for (const key of keys) {
        const expected = `v1,${(0, node_crypto_1.createHmac)("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
        for (const signature of signatures.split(" "))
            if (same(signature, expected))
                return Number(timestamp);
    }
    throw new errors_js_1.WebhookSignatureInvalid("No signature in webhook-signature matches a given secret. Pass the body exactly as received, and use the project's"
        + " current webhook secret.");
}
/**
 * Compare in constant time, so that an attacker learns nothing about `expected`.
 *
 * @param {string} given
 * @param {string} expected
 */
function same(given, expected) {
    const [left, right] = [Buffer.from(given), Buffer.from(expected)];
    return left.length === right.length && (0, node_crypto_1.timingSafeEqual)(left, right);
}
/** @param {Uint8Array} body */
function parsed(body) {
    try {
        return (0, strict_json_js_1.readObject)(body).fields;
    }
    catch {
        throw new errors_js_1.WebhookMalformed("The body is not an event as a JSON object."); // The cause could quote the body.
    }
}
/**
 * Return the event; throw WebhookMalformed unless each field has its exact type.
 *
 * @param {Record<string, unknown>} data
 * @param {number | null} signedAt
 * @returns {Readonly<WebhookEvent>}
 */
function eventOf(data, signedAt) {
    const type = text(data, "event");
    const instantField = INSTANT_FIELDS.get(type);
    const confirmed = type === "auth.confirmed";
    const reported = type === "auth.reported";
    const mayKnowUser = confirmed || (reported && (0, strict_json_js_1.own)(data, "messenger_id") !== null);
    const event = {
        id: text(data, "id"),
        type,
        projectId: text(data, "project_id"),
        isTest: type === "webhook.test" || (0, strict_json_js_1.own)(data, "test") === true,
        sessionToken: confirmed || type === "auth.cancelled" ? text(data, "session_token") : null,
        sessionTokenSha256: reported || type === "auth.expired" ? text(data, "session_token_sha256") : null,
        messengerId: mayKnowUser ? text(data, "messenger_id") : null,
        messengerName: confirmed ? text(data, "messenger_name", true) : null,
        messengerUsername: confirmed && (0, strict_json_js_1.own)(data, "messenger_username") !== null
            ? text(data, "messenger_username", true) || null
            : null,
        messengerPhone: confirmed ? phone(data) : null,
        wasUsed: reported ? flag(data, "was_used") : null,
        occurredAt: instantField === undefined ? null : instant(data, instantField),
        signedAt,
        data,
    };
    return Object.freeze(Object.defineProperties(event, { sessionToken: { enumerable: false }, data: { enumerable: false } }));
}
/**
 * @param {Record<string, unknown>} data
 * @param {string} name
 * @param {boolean} [mayBeEmpty]
 */
function text(data, name, mayBeEmpty = false) {
    const value = (0, strict_json_js_1.own)(data, name);
    if ((0, strict_json_js_1.isText)(value) && (value || mayBeEmpty))
        return value;
    throw new errors_js_1.WebhookMalformed(`The body's field ${name} is required and must be a string.`);
}
/**
 * @param {Record<string, unknown>} data
 * @param {string} name
 */
function flag(data, name) {
    const value = (0, strict_json_js_1.own)(data, name);
    if (typeof value === "boolean")
        return value;
    throw new errors_js_1.WebhookMalformed(`The body's field ${name} is required and must be true or false.`);
}
/** @param {Record<string, unknown>} data */
function phone(data) {
    const value = (0, strict_json_js_1.own)(data, "messenger_phone"); // JSON has no undefined, so undefined means that the field is missing.
    if (value === undefined)
        return null;
    if ((0, strict_json_js_1.isPhone)(value))
        return value;
    throw new errors_js_1.WebhookMalformed("The body's field messenger_phone must be a phone number like +4915123456789.");
}
/**
 * @param {Record<string, unknown>} data
 * @param {string} name
 */
function instant(data, name) {
    const [, toTheSecond, , fraction = ""] = INSTANT.exec(text(data, name)) ?? [];
    const milliseconds = Date.parse(`${toTheSecond}Z`);
    // Date reads 30 February as 2 March, and accepts the year 0.
    if (!Number.isNaN(milliseconds) && !toTheSecond.startsWith("0000")
        && new Date(milliseconds).toISOString().startsWith(toTheSecond)) {
        return milliseconds / 1000 + Number(`0.${fraction}`);
    }
    throw new errors_js_1.WebhookMalformed(`The body's field ${name} must be a time like 2026-11-20T22:44:03.127Z.`);
}
