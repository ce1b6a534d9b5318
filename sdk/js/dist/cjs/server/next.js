"use strict";
// Sign-in for the Next.js App Router, and for other servers with Web-standard Request and Response. The application must
// bring its own session, because Next.js has none.
Object.defineProperty(exports, "__esModule", { value: true });
exports.taproofSignIn = taproofSignIn;
exports.taproofSignOut = taproofSignOut;
const endpoint_js_1 = require("./endpoint.js");
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
function taproofSignIn(options) {
    /** @param {SignInOptions} given */
    const prepare = ({ startSession, currentUser, startedSignIn, ...rest }) => {
        if (typeof startSession !== "function")
            throw new TypeError("Pass startSession: it starts your own session.");
        return { startSession, currentUser, startedSignIn, endpoint: (0, endpoint_js_1.makeEndpoint)(rest) };
    };
    let prepared = typeof options === "function" ? null : prepare(options);
    return {
        async POST(request) {
            const refused = (0, endpoint_js_1.refusal)(asked(request));
            if (refused !== null)
                return response(refused);
            prepared ??= prepare(/** @type {() => SignInOptions} */ (options)());
            const next = new URL(request.url).searchParams.get("next");
            const held = /** @type {any} */ (await prepared.currentUser?.(request))?.proofDigest;
            const started = /** @type {any} */ (await prepared.startedSignIn?.(request));
            const answer = await prepared.endpoint.signIn(await (0, endpoint_js_1.readBody)(streamOf(request)), next, held, started);
            const { signedIn, proofDigest = "" } = answer;
            if (signedIn === undefined)
                return response(answer);
            const more = await prepared.startSession({ ...signedIn, proofDigest }, request);
            return more === false ? response((0, endpoint_js_1.refusedAccount)()) : response(answer, more);
        },
    };
}
/**
 * Return the handler for `app/auth/taproof/sign-out/route.js`.
 *
 * @param {{ endSession: (request: Request) => unknown }} options `endSession` is called, and awaited, for a request from a
 *   page of this application. It must end the session on the server and delete its cookie, with `cookies()` or in a
 *   `Headers` that it returns.
 * @returns {{ POST: (request: Request) => Promise<Response> }}
 */
function taproofSignOut({ endSession }) {
    if (typeof endSession !== "function")
        throw new TypeError("Pass endSession: it ends your own session.");
    return {
        async POST(request) {
            const refused = (0, endpoint_js_1.refusal)(asked(request));
            return refused === null
                ? response({ status: 200, content: { location: endpoint_js_1.HOME } }, await endSession(request))
                : response(refused);
        },
    };
}
/**
 * @param {import("./endpoint.js").Answer} answer
 * @param {unknown} [more] Additional headers.
 */
function response({ status, content }, more) {
    const headers = new Headers(more instanceof Headers ? more : undefined);
    headers.set("Cache-Control", "no-store");
    headers.set("Content-Type", "application/json");
    return new Response(JSON.stringify(content), { status, headers });
}
/** @param {Request} request */
function asked({ headers, url }) {
    // Next.js sets both X-Forwarded headers if no proxy has set them. A page of another site cannot set them: the browser
    // would first send a preflight, which this endpoint does not answer.
    const { protocol, host } = new URL(url);
    /** @param {string} name */
    const forwarded = (name) => headers.get(name)?.split(",")[0].trim();
    return {
        contentType: headers.get("Content-Type"),
        fetchSite: headers.get("Sec-Fetch-Site"),
        origin: headers.get("Origin"),
        scheme: forwarded("X-Forwarded-Proto") || protocol.slice(0, -1),
        host: forwarded("X-Forwarded-Host") || headers.get("Host") || host,
    };
}
/**
 * @param {Request} request
 * @returns {AsyncIterable<Uint8Array>}
 */
async function* streamOf({ body }) {
    const reader = body?.getReader();
    try {
        for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read())
            yield part.value;
    }
    finally {
        // Needed if the consumer stops early; a stream that has ended ignores it.
        await reader?.cancel();
    }
}
