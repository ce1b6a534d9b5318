export declare const WRONG_SECRET = "The secret must be the project's webhook secret: the whole whsec_\u2026 string and nothing else.";
/**
 * Return the webhook secrets in `secret`, which can be one or several.
 *
 * @param {string | readonly string[]} secret
 * @returns {string[]}
 * @throws {TypeError} One of them is not a webhook secret, or there is none. The message does not contain it.
 */
export declare function requireWebhookSecrets(secret: string | readonly string[]): string[];
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
export declare function requireNumber(value: unknown, otherwise: number, name: string): number;
