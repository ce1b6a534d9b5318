export type WebhookEvent = {
    /**
     * `evt_…`, the same on every attempt: process each event only once.
     */
    id: string;
    /**
     * "auth.confirmed", "auth.cancelled", "auth.expired", "auth.reported" or "webhook.test". Answer 200
     * to any other type, which a newer service may send.
     */
    type: string;
    /**
     * The project of the event.
     */
    projectId: string;
    /**
     * True if the developer requested this event, and no user caused it: sign nobody in.
     */
    isTest: boolean;
    /**
     * The session token of the sign-in, for "auth.confirmed" and "auth.cancelled" only.
     * Not enumerable, to keep it out of logs.
     */
    sessionToken: string | null;
    /**
     * The SHA-256 of the session token in hex, for "auth.expired" and
     * "auth.reported" only.
     */
    sessionTokenSha256: string | null;
    /**
     * The id of the user's messenger account, in digits: use it as the key. Like the next
     * two fields, it is set for "auth.confirmed" only. "auth.reported" has it if the user had confirmed.
     */
    messengerId: string | null;
    /**
     * The display name that the user chose. Escape it, do not trust it.
     */
    messengerName: string | null;
    /**
     * The user's handle, without "@"; null if there is none.
     */
    messengerUsername: string | null;
    /**
     * The user's phone number as the messenger knows it, such as "+4915123456789"
     * (E.164); null unless the project collects it and the user shared it.
     */
    messengerPhone: string | null;
    /**
     * For "auth.reported" only: whether the proof had been issued.
     */
    wasUsed: boolean | null;
    /**
     * The time of the event, in seconds since the epoch, to the millisecond; null for
     * unknown events from a newer service.
     */
    occurredAt: number | null;
    /**
     * The time when this attempt was signed, in seconds since the epoch; null if the request
     * has only `X-Service-Signature`, which does not cover a time.
     */
    signedAt: number | null;
    /**
     * The whole body, including fields that a newer service adds. Not enumerable.
     */
    data: Record<string, unknown>;
};
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
export declare function verifyWebhook(body: Uint8Array, headers: Record<string, string | string[] | undefined> | Headers, secret: string | readonly string[], options?: {
    tolerance?: number;
    now?: number;
}): Readonly<WebhookEvent>;
