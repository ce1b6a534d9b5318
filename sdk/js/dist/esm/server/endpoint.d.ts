/** In bytes: twice the length of the longest accepted proof. */
export declare const BODY_LIMIT = 32768;
export declare const HOME = "/";
export type SignedIn = {
    /**
     * The id of the user's messenger account, in digits: use it as the key.
     */
    messengerId: string;
    /**
     * The display name that the user chose. Anybody can choose any name: escape it, do not
     * trust it.
     */
    messengerName: string;
    /**
     * The handle, without "@"; "" if there is none. Another person can take it over.
     */
    messengerUsername: string;
    /**
     * The time of the sign-in, in seconds since the epoch.
     */
    signedInAt: number;
    /**
     * The user's phone number, such as "+4915123456789"; set only if the project collects
     * it and the user shared it.
     */
    messengerPhone?: string;
};
export type EndpointOptions = {
    /**
     * The project whose proofs are accepted, `proj_…`.
     */
    projectId: string;
    /**
     * `whsec_…`; several during a rotation.
     */
    webhookSecret: string | readonly string[];
    /**
     * Accepts each proof only once; all processes of the application must
     * share it. It has no default, because `new MemoryGuard()` is right for a single process only.
     */
    guard: import("./guard.js").SingleUseGuard;
    /**
     * Needed only if your server starts sign-ins itself: reads the result
     * when the page that the messenger opened sends `{"return_code": "…"}` in place of a proof.
     */
    client?: import("./client.js").Client;
    /**
     * The next page if the endpoint's URL has no `?next=/page`; "/" by default.
     */
    afterSignIn?: string;
    /**
     * The clock, in seconds since the epoch, for tests.
     */
    now?: () => number;
};
export type Asked = {
    contentType: string | null | undefined;
    fetchSite: string | null | undefined;
    origin: string | null | undefined;
    scheme: string;
    host: string;
};
export type Answer = {
    status: number;
    content: {
        location: string;
    } | {
        error: string;
    };
    signedIn?: SignedIn;
    /**
     * Identifies the proof. Store it in the session together with `signedIn`.
     */
    proofDigest?: string;
};
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
export declare function makeEndpoint(options: EndpointOptions): {
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
    signIn(body: unknown, next: string | null | undefined, held?: unknown, started?: import("./client.js").StartedSignIn | null): Promise<Answer>;
};
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
export declare function refusal({ contentType, fetchSite, origin, scheme, host }: Asked): Answer | null;
/** Return the answer for a valid proof from an account that the application refuses. @returns {Answer} */
export declare const refusedAccount: () => Answer;
/** @param {number} status @param {string} error @returns {Answer} */
export declare const failed: (status: number, error: string) => Answer;
/**
 * Return the path if it leads to a page of this site: a sign-in must not redirect to another site.
 *
 * @param {string | null | undefined} path
 * @param {string} [otherwise]
 */
export declare function ownPath(path: string | null | undefined, otherwise?: string): string;
/**
 * Return the user from a session's value; null if there is none, or if another release wrote it.
 *
 * @param {any} value
 * @returns {SignedIn | null}
 */
export declare function signedInOf(value: any): SignedIn | null;
/**
 * Read a request's body up to a limit. The rest is read and dropped, up to 4 MiB: closing the connection early could
 * prevent the client from receiving the answer.
 *
 * @param {AsyncIterable<Uint8Array>} stream
 * @returns {Promise<Buffer>} At most one byte more than the limit.
 */
export declare function readBody(stream: AsyncIterable<Uint8Array>): Promise<Buffer>;
