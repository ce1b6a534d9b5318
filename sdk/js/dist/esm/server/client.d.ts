export type StartedSignIn = {
    sessionToken: string;
    /**
     * The link that the user opens.
     */
    deeplink: string;
    /**
     * null if you passed `codeChallenge`.
     */
    codeVerifier: string | null;
    /**
     * The time when the link stops working, in ISO 8601.
     */
    expiresAt: string;
    /**
     * The number to show next to the link; null unless the project's `match_code` is on.
     */
    matchCode: string | null;
    /**
     * Whether only the page at `returnUrl` gets the result: show no QR code.
     */
    returnRequired: boolean;
};
export type MessengerUser = {
    messengerId: string;
    messengerName: string;
    messengerUsername: string | null;
    messengerPhone: string | null;
};
export type SessionResult = {
    status: "pending";
    hint: string | null;
} | {
    status: "confirmed";
    identity: MessengerUser;
    proof: string;
    confirmedAt: string;
} | {
    status: "cancelled" | "expired" | "used";
};
/**
 * @typedef {object} StartedSignIn Keep it on the server: together with the return code, it reads the result.
 * @property {string} sessionToken
 * @property {string} deeplink The link that the user opens.
 * @property {string | null} codeVerifier null if you passed `codeChallenge`.
 * @property {string} expiresAt The time when the link stops working, in ISO 8601.
 * @property {string | null} matchCode The number to show next to the link; null unless the project's `match_code` is on.
 * @property {boolean} returnRequired Whether only the page at `returnUrl` gets the result: show no QR code.
 *
 * @typedef {object} MessengerUser For display: trust the proof.
 * @property {string} messengerId
 * @property {string} messengerName
 * @property {string | null} messengerUsername
 * @property {string | null} messengerPhone
 *
 * @typedef {{ status: "pending", hint: string | null }
 *   | { status: "confirmed", identity: MessengerUser, proof: string, confirmedAt: string }
 *   | { status: "cancelled" | "expired" | "used" }} SessionResult
 */
/**
 * Calls the service with the project's secret key. Every method can reject with a `TaproofApiError`. No call is repeated.
 */
export declare class Client {
    #private;
    /**
     * @param {object} options
     * @param {string} options.baseUrl The service's address. `http://` is allowed for loopback only.
     * @param {string} options.secretKey `sk_…`
     * @param {number} [options.timeout] Seconds for one call, in addition to `wait`; 10 by default.
     * @throws {TypeError} An option is not valid. The message does not contain it.
     */
    constructor({ baseUrl, secretKey, timeout }: {
        baseUrl: string;
        secretKey: string;
        timeout?: number;
    });
    /**
     * Start a sign-in. Show the user its `deeplink`.
     *
     * @param {object} [options]
     * @param {string} [options.returnUrl] The page that the messenger opens after Confirm, with `#taproof_return=<code>`: one
     *   of the project's `return_urls`, exactly, or, if there are none, a page of its `allowed_origins`.
     * @param {string} [options.codeChallenge] The S256 challenge of a verifier that another part of your application has.
     *   Without it, a new verifier is in the result.
     * @returns {Promise<StartedSignIn>}
     */
    createSession({ returnUrl, codeChallenge }?: {
        returnUrl?: string;
        codeChallenge?: string;
    }): Promise<StartedSignIn>;
    /**
     * Read the status of a sign-in once. If it is confirmed, check the proof with `verifyProof`.
     *
     * @param {{ sessionToken: string, codeVerifier: string | null }} signIn The value that `createSession` returned.
     * @param {object} [options]
     * @param {string} [options.returnCode] The code that the messenger added to `returnUrl`.
     * @param {number} [options.wait] Seconds to wait for the user's decision, at most 30.
     * @param {boolean} [options.hints] Whether a pending result says what the user is doing in the messenger.
     * @param {string} [options.seenHint] With `wait`: return also when the hint is no longer this one.
     * @returns {Promise<SessionResult>}
     */
    verifySession({ sessionToken, codeVerifier }: {
        sessionToken: string;
        codeVerifier: string | null;
    }, { returnCode, wait, hints, seenHint }?: {
        returnCode?: string;
        wait?: number;
        hints?: boolean;
        seenHint?: string;
    }): Promise<SessionResult>;
    /**
     * Cancel a sign-in that is still pending, such as when the user closed the page. The messenger shows it.
     *
     * @param {{ sessionToken: string }} signIn
     * @returns {Promise<string>} The status, which is not `cancelled` if the sign-in had ended before.
     */
    cancelSession({ sessionToken }: {
        sessionToken: string;
    }): Promise<string>;
}
