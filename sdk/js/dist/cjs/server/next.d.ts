export type SignedIn = import("./endpoint.js").SignedIn;
export type SignInOptions = import("./endpoint.js").EndpointOptions & {
    startSession: (user: SignedIn & {
        proofDigest: string;
    }, request: Request) => unknown;
    currentUser?: (request: Request) => unknown;
    startedSignIn?: (request: Request) => unknown;
};
/** @typedef {import("./endpoint.js").SignedIn} SignedIn */
/**
 * @typedef {import("./endpoint.js").EndpointOptions & {
 *   startSession: (user: SignedIn & { proofDigest: string }, request: Request) => unknown,
 *   currentUser?: (request: Request) => unknown,
 *   startedSignIn?: (request: Request) => unknown,
 * }} SignInOptions `startSession` is called, and awaited, when the proof is valid. It must start a new, empty session with
 *   a new random id. Set its cookie with `cookies()` from `next/headers`, or return a `Headers` with Set-Cookie. Returning
 *   false refuses the account with 403. Next.js handles the errors that it throws.
 *
 *   `currentUser` is called, and awaited. It returns the user that `startSession` received for the request's session, or
 *   null. With it, a page whose answer was lost can send the same proof again from that session and get the same answer
 *   (recognised by the user's `proofDigest`). Without it, the second request gets 401.
 *
 *   `startedSignIn` is called, and awaited, if your server starts sign-ins with a `client`. It returns the value of
 *   `client.createSession` that you stored in the request's session, or null.
 */
/**
 * Return the handler for `app/auth/taproof/route.js`, the button's `submit-url`:
 *
 *     export const { POST } = taproofSignIn(() => {
 *       const { projectId, webhookSecret } = settingsFrom(process.env);
 *       return { projectId, webhookSecret, guard: new MemoryGuard(), startSession };
 *     });
 *
 * @param {SignInOptions | (() => SignInOptions)} options A function is called once, at the first request, because
 *   `next build` also loads this module, often without the secret.
 * @returns {{ POST: (request: Request) => Promise<Response> }}
 * @throws {TypeError} An option is missing or invalid. If `options` is a function, the first request throws it.
 */
export declare function taproofSignIn(options: SignInOptions | (() => SignInOptions)): {
    POST: (request: Request) => Promise<Response>;
};
/**
 * Return the handler for `app/auth/taproof/sign-out/route.js`.
 *
 * @param {{ endSession: (request: Request) => unknown }} options `endSession` is called, and awaited, for a request from a
 *   page of this application. It must end the session on the server and delete its cookie, with `cookies()` or in a
 *   `Headers` that it returns.
 * @returns {{ POST: (request: Request) => Promise<Response> }}
 */
export declare function taproofSignOut({ endSession }: {
    endSession: (request: Request) => unknown;
}): {
    POST: (request: Request) => Promise<Response>;
};
