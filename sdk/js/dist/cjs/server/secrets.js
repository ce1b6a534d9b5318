"use strict";
// Checks the webhook secrets and numbers that an application passes.
Object.defineProperty(exports, "__esModule", { value: true });
exports.WRONG_SECRET = void 0;
exports.requireWebhookSecrets = requireWebhookSecrets;
exports.requireNumber = requireNumber;
exports.WRONG_SECRET = "The secret must be the project's webhook secret: the whole whsec_… string and nothing else.";
/**
 * Return the webhook secrets in `secret`, which can be one or several.
 *
 * @param {string | readonly string[]} secret
 * @returns {string[]}
 * @throws {TypeError} One of them is not a webhook secret, or there is none. The message does not contain it.
 */
function requireWebhookSecrets(secret) {
    const secrets = typeof secret === "string" ? [secret] : Array.isArray(secret) ? [...secret] : [];
    if (secrets.length === 0)
        throw new TypeError("Pass at least one webhook secret (whsec_…).");
    for (const each of secrets) {
        if (typeof each === "string" && each.startsWith("sk_")) {
            throw new TypeError("This is the secret key (sk_…). It signs nothing: pass the webhook secret (whsec_…).");
        }
        if (typeof each !== "string" || !/^whsec_[A-Za-z0-9+/_=-]+$/.test(each))
            throw new TypeError(exports.WRONG_SECRET);
    }
    return secrets;
}
/**
 * Return the value if it is a number, or the default if it is missing.
 *
 * A string would be concatenated with a time, not added to it: "5" could make a proof valid for centuries.
 *
 * @param {unknown} value
 * @param {number} otherwise
 * @param {string} name
 * @throws {TypeError}
 */
function requireNumber(value, otherwise, name) {
    if (value === undefined)
        return otherwise;
    if (typeof value !== "number")
        throw new TypeError(`Pass ${name} as a number of seconds.`);
    return value;
}
