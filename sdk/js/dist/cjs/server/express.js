"use strict";
// Sign-in for Express 5, and 4 from 4.18, using express-session.
Object.defineProperty(exports, "__esModule", { value: true });
exports.taproofExpress = taproofExpress;
exports.startSignIn = startSignIn;
exports.signedIn = signedIn;
exports.requireSignedIn = requireSignedIn;
const endpoint_js_1 = require("./endpoint.js");
/** @typedef {import("./endpoint.js").SignedIn} SignedIn */
/** @typedef {import("express").Request & { session?: any }} Request With express-session's session. */
const SESSION_KEY = "taproof";
const STARTED_KEY = "taproofStarted";
const SIGN_IN_FIRST = "Sign in first.";
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
function taproofExpress({ onSignIn, ...options }) {
    const endpoint = (0, endpoint_js_1.makeEndpoint)(options);
    /** @param {Request} req @returns {Promise<import("./endpoint.js").Answer>} */
    async function signIn(req) {
        // By default, a loop that stops early closes the connection before the answer.
        const body = req.body === undefined ? await (0, endpoint_js_1.readBody)(req.iterator({ destroyOnReturn: false })) : req.body;
        const next = typeof req.query.next === "string" ? req.query.next : null;
        const held = signedIn(req) && req.session[SESSION_KEY].proofDigest;
        const answer = await endpoint.signIn(body, next, held, req.session[STARTED_KEY]);
        if (answer.signedIn === undefined)
            return answer;
        await step(req, "regenerate");
        req.session[SESSION_KEY] = { ...answer.signedIn, proofDigest: answer.proofDigest };
        let isStored = false;
        try {
            if ((await onSignIn?.(answer.signedIn, req)) === false)
                return (0, endpoint_js_1.refusedAccount)();
            await step(req, "save");
            isStored = true;
            return answer;
        }
        finally {
            // Otherwise express-session would store the session when the answer is sent.
            if (!isStored)
                await step(req, "destroy");
        }
    }
    /** @param {Request} req @returns {Promise<import("./endpoint.js").Answer>} */
    async function signOut(req) {
        await step(req, "destroy");
        return { status: 200, content: { location: endpoint_js_1.HOME } };
    }
    return async function taproof(req, res, next) {
        const act = { "/": signIn, "/sign-out": signOut }[req.path];
        if (act === undefined)
            return next();
        try {
            requireSession(req);
            if (req.method !== "POST")
                res.set("Allow", "POST");
            const { status, content } = req.method === "POST" ? ((0, endpoint_js_1.refusal)(asked(req)) ?? (await act(req))) : (0, endpoint_js_1.failed)(405, "Send a POST request.");
            // Otherwise the rest of the request would be read while the client sends it.
            if (status === 413 && !req.complete)
                res.once("finish", () => req.destroy());
            res.status(status).set("Cache-Control", "no-store").json(content);
        }
        catch (error) {
            next(error);
        }
    };
}
/**
 * Start a sign-in from your server, and keep it in the user's session. Pass the same `client` to `taproofExpress`. The page
 * at `returnUrl` sends `{"return_code": takeReturnCode()}` to the path of `taproofExpress`, which signs the user in.
 *
 * @param {Request} req
 * @param {import("./client.js").Client} client
 * @param {{ returnUrl: string }} options
 * @returns {Promise<{ deeplink: string, matchCode: string | null, expiresAt: string }>} What the page may know.
 */
async function startSignIn(req, client, { returnUrl }) {
    requireSession(req);
    const started = await client.createSession({ returnUrl });
    req.session[STARTED_KEY] = started;
    await step(req, "save");
    const { deeplink, matchCode, expiresAt } = started;
    return { deeplink, matchCode, expiresAt };
}
/**
 * Return the signed-in user, or null if nobody is signed in.
 *
 * @param {Request} req
 * @returns {SignedIn | null}
 */
function signedIn(req) {
    return (0, endpoint_js_1.signedInOf)(req.session?.[SESSION_KEY]);
}
/**
 * Return a handler that requires a signed-in user: `app.get("/orders", requireSignedIn("/sign-in"), …)`.
 *
 * @param {string} [page] The path of the page with the button. Visitors who are not signed in are redirected to it, with
 *   the requested page as `?next=`. Without `page`, they get 401.
 * @returns {(req: Request, res: import("express").Response, next: import("express").NextFunction) => void}
 */
function requireSignedIn(page) {
    return (req, res, next) => {
        if (signedIn(req) !== null)
            return next();
        if (page === undefined)
            res.status(401).json({ error: SIGN_IN_FIRST });
        else
            res.redirect(303, `${page}?next=${encodeURIComponent(req.originalUrl)}`);
    };
}
/** @param {Request} req */
function requireSession(req) {
    if (typeof req.session?.regenerate !== "function") {
        throw new Error("Put express-session before taproofExpress: app.use(session({ … })).");
    }
}
/**
 * @param {Request} req
 * @param {"regenerate" | "save" | "destroy"} name
 * @returns {Promise<void>}
 */
function step(req, name) {
    return new Promise((resolve, reject) => {
        req.session[name]((/** @type {unknown} */ error) => (error ? reject(error) : resolve()));
    });
}
/** @param {Request} req */
function asked(req) {
    // Like Express's `req.hostname`, but with the port.
    const trusted = req.app.get("trust proxy fn")?.(req.socket.remoteAddress, 0);
    const forwarded = trusted ? req.get("X-Forwarded-Host")?.split(",")[0].trim() : undefined;
    return {
        contentType: req.get("Content-Type"),
        fetchSite: req.get("Sec-Fetch-Site"),
        origin: req.get("Origin"),
        scheme: req.protocol,
        host: forwarded || req.get("Host") || "",
    };
}
