export type SignedIn = import("./endpoint.js").SignedIn;
export type Request = import("express").Request & {
    session?: any;
};
/**
 * Return the handler to mount at the button's `submit-url`, after express-session:
 *
 *     app.use("/auth/taproof", taproofExpress({ projectId, webhookSecret, guard: new MemoryGuard() }));
 *
 * It handles `POST` on that path, which signs in, and `POST …/sign-out`. Each sign-in starts a new, empty session with a
 * new id, because another person may have planted the previous one. A preceding body parser does no harm.
 *
 * Behind a proxy, set Express's "trust proxy", for browsers that do not send Sec-Fetch-Site.
 *
 * @param {import("./endpoint.js").EndpointOptions & {
 *   onSignIn?: (user: SignedIn, req: Request) => unknown,
 * }} options `onSignIn` is called, and awaited, when the proof is valid and the new session contains the user: store the
 *   user in it, or add to `req.session`. Returning false refuses the account with 403. If it throws an error, Express's
 *   error handler handles it. In both cases, nobody is signed in.
 * @returns {(req: Request, res: import("express").Response, next: import("express").NextFunction) => Promise<void>}
 * @throws {TypeError} An option is missing or invalid.
 */
export declare function taproofExpress({ onSignIn, ...options }: import("./endpoint.js").EndpointOptions & {
    onSignIn?: (user: SignedIn, req: Request) => unknown;
}): (req: Request, res: import("express").Response, next: import("express").NextFunction) => Promise<void>;
/**
 * Start a sign-in from your server, and keep it in the user's session. Pass the same `client` to `taproofExpress`. The page
 * at `returnUrl` sends `{"return_code": takeReturnCode()}` to the path of `taproofExpress`, which signs the user in.
 *
 * @param {Request} req
 * @param {import("./client.js").Client} client
 * @param {{ returnUrl: string }} options
 * @returns {Promise<{ deeplink: string, matchCode: string | null, expiresAt: string }>} What the page may know.
 */
export declare function startSignIn(req: Request, client: import("./client.js").Client, { returnUrl }: {
    returnUrl: string;
}): Promise<{
    deeplink: string;
    matchCode: string | null;
    expiresAt: string;
}>;
/**
 * Return the signed-in user, or null if nobody is signed in.
 *
 * @param {Request} req
 * @returns {SignedIn | null}
 */
export declare function signedIn(req: Request): SignedIn | null;
/**
 * Return a handler that requires a signed-in user: `app.get("/orders", requireSignedIn("/sign-in"), …)`.
 *
 * @param {string} [page] The path of the page with the button. Visitors who are not signed in are redirected to it, with
 *   the requested page as `?next=`. Without `page`, they get 401.
 * @returns {(req: Request, res: import("express").Response, next: import("express").NextFunction) => void}
 */
export declare function requireSignedIn(page?: string): (req: Request, res: import("express").Response, next: import("express").NextFunction) => void;
