"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.resume = exports.signIn = exports.PHONE = void 0;
const errors_js_1 = require("./errors.js");
const kept_js_1 = require("./kept.js");
const kept_js_2 = require("./kept.js");
const link_js_1 = require("./link.js");
const pkce_js_1 = require("./pkce.js");
const return_code_js_1 = require("./return_code.js");
const service_js_1 = require("./service.js");
/**
 * @typedef {import("./kept.js").Kept} Kept
 * @typedef {import("./link.js").SignInLink} SignInLink
 *
 * @typedef {object} Identity
 * @property {string} messengerId
 * @property {string} messengerName
 * @property {string | null} messengerUsername
 * @property {string | null} messengerPhone null unless the project collects it and the user shared it.
 *
 * @typedef {object} Confirmed
 * @property {"confirmed"} status
 * @property {Identity} identity For display only: your server must trust only the identity in the proof.
 * @property {string} proof A signed JWT. Send it to your server, which checks it with the webhook secret.
 * @property {string} confirmedAt The time of the confirmation by the service's clock, in ISO 8601.
 *
 * @typedef {object} Ended
 * @property {"cancelled" | "expired" | "used" | "aborted"} status `cancelled`: by the user in the messenger.
 *   `expired`: after ten minutes. `used`: the result was already received, such as by the page that the messenger opened.
 *   `aborted`: by `signal`.
 *
 * @typedef {object} OtherBrowser The messenger opened this page in a browser that did not begin the sign-in.
 * @property {"other_browser"} status
 * @property {string} address Let the user open or copy this address into the browser where the sign-in began. It contains
 *   the return code: send it nowhere.
 *
 * @typedef {Confirmed | Ended | OtherBrowser} SignInResult
 *
 * @typedef {"starting" | "pending" | "retrying"} WaitingStatus `retrying`: the service cannot be reached.
 *
 * @typedef {"waiting" | "opened" | "choosing" | "phone_asked" | "return" | "unreachable"} Hint What the user is doing in the
 *   messenger. `opened`: the link is open. `choosing`: the user must choose the match code. `phone_asked`: the bot asks for
 *   the phone number. `return`: the user confirmed and must tap *Back to …*. `unreachable`: the user has blocked the bot.
 *
 * @typedef {object} SignInOptions
 * @property {string} projectId
 * @property {string} [baseUrl] The service's address; by default, the origin that this module was loaded from.
 * @property {AbortSignal} [signal] Ends, cancels and forgets the sign-in, with the status `aborted`.
 * @property {Pick<Storage, "getItem" | "setItem" | "removeItem"> | null} [storage] Stores the sign-in so that it survives
 *   a reload; by default `sessionStorage`, and also `localStorage` if the messenger opens the page after Confirm, maybe in
 *   a new tab; null for none. The stored data contains the secret for reading the result.
 * @property {(link: SignInLink) => void} [onLink] Called once, with the link to show to the user.
 * @property {(status: WaitingStatus) => void} [onStatus] Called on every change.
 * @property {(hint: Hint) => void} [onHint] Called on every change while the status is `pending`.
 * @property {(result: Confirmed) => unknown} [onConfirmed] Called, and awaited, before the sign-in is forgotten and the
 *   promise resolves. Send the proof to your server here: if the page is reloaded before this finishes, it is called
 *   again. If it throws an error, the promise rejects with that error.
 */
/** Seconds that one call waits for the user; most proxies time out after 30 or 60. */
const WAIT = 25;
/** Milliseconds between two calls if waiting does not work. */
const INTERVAL = 2_000;
const LONGEST_PAUSE = 15_000;
const OVERDUE = 10_000;
/** The media query for phones, where the messenger covers the page. */
exports.PHONE = "(pointer:coarse) and (max-width:600px),(pointer:coarse) and (max-height:500px)";
/** Keys of the sign-ins that this page waits for. @type {Set<string>} */
const running = new Set();
// The user may paste the address with the return code into this tab, which then does not load the page again.
globalThis.document &&
    addEventListener("hashchange", () => {
        if (running.size) {
            (0, return_code_js_1.clearAddress)();
        }
        else if ((0, return_code_js_1.isReturn)()) {
            location.reload();
        }
    });
/**
 * Sign in the user: get a link from the service, pass it to `onLink`, and wait until the user has decided.
 *
 * @param {SignInOptions} options
 * @returns {Promise<SignInResult>} Rejects only with a `SignInError` or an error from `onConfirmed`.
 */
const signIn = (options) => run(options, null);
exports.signIn = signIn;
/**
 * Continue the sign-in that was in progress when this page was left or reloaded, or that the user confirmed before the
 * messenger opened this page.
 *
 * @param {SignInOptions} options The same as for `signIn`.
 * @returns {Promise<SignInResult> | null} null if no sign-in was in progress.
 */
const resume = (options) => {
    const { pending, hasEnded, isElsewhere } = (0, kept_js_2.returning)(options);
    if (running.has((0, kept_js_1.keyOf)(options))) {
        return null;
    }
    const kept = (0, kept_js_1.ownKept)(options);
    const own = kept && (0, link_js_1.linkOf)(kept.deeplink) && kept.expiresAt > Date.now() ? kept : null;
    const before = (0, kept_js_1.keptCode)(options);
    if ((0, return_code_js_1.peekReturnCode)() || before) {
        // The code may belong to a sign-in of another button on this page.
        const code = (own || !isElsewhere ? (0, return_code_js_1.takeReturnCode)() : "") || before;
        const others = pending.filter(({ challenge }) => challenge !== own?.challenge);
        const candidates = own ? [own, ...others] : others;
        if (code && candidates.length) {
            return run(options, own, code, candidates, hasEnded ? "used" : undefined);
        }
        if (code && !hasEnded) {
            return Promise.resolve({ status: "other_browser", address: (0, return_code_js_1.addressWith)(code) });
        }
    }
    return own && run(options, own);
};
exports.resume = resume;
/** Return when to give up, by the clock that nobody can change. @param {Kept | null} kept */
const deadlineOf = (kept) => performance.now() + Math.min(kept_js_1.LIFETIME, kept ? kept.expiresAt - Date.now() : kept_js_1.LIFETIME);
/** @param {Kept} kept @param {string} returnCode @returns {Kept} */
const withCode = (kept, returnCode) => ({ ...kept, returnCode, expiresAt: Date.now() + kept_js_2.RETURN_TIME });
/**
 * @param {SignInOptions} options
 * @param {Kept | null} own The sign-in of this tab.
 * @param {string} [code] A return code from the page's address.
 * @param {Kept[]} [candidates] The sign-ins that the code may belong to. The code does not tell which.
 * @param {Ended["status"]} [ended] The status of a sign-in of this browser that the code may belong to and that has ended.
 * @returns {Promise<SignInResult>}
 */
const run = async (options, own, code = "", candidates = [], ended) => {
    const { signal, onLink, onStatus, onHint, onConfirmed } = options;
    const key = (0, kept_js_1.keyOf)(options);
    const listening = new AbortController();
    const verifier = (0, pkce_js_1.newVerifier)();
    const [first] = candidates;
    /** The sign-in that is asked for: `own`, or one that the return code may belong to. */
    let kept = first ? withCode(first, code) : own;
    let deadline = deadlineOf(kept);
    /** @type {string | undefined} */
    let returnUrl = (0, return_code_js_1.pageAddress)();
    let wait = WAIT;
    let failures = 0;
    let told = "";
    let hint = "";
    /** Whether to call again immediately. */
    let woken = false;
    /** Whether the service requested the current pause, which only `signal` can end early. */
    let held = false;
    /** Whether another tab has received the result of this sign-in. */
    let gone = false;
    /** Ends the current wait for an answer or for the next call. */
    let interrupt = () => { };
    /** @param {WaitingStatus} status */
    const tell = (status) => {
        if (status !== told) {
            told = status;
            onStatus?.(status);
        }
    };
    /** @param {Hint} now */
    const tellHint = (now) => {
        if (now && now !== hint) {
            hint = now;
            if (hint === "return" && own) {
                own.expiresAt = Date.now() + kept_js_2.RETURN_TIME;
                deadline = deadlineOf(own);
                (0, kept_js_1.keep)(options, own);
            }
            onHint?.(now);
        }
    };
    /** Show the sign-in that the user must confirm. */
    const show = () => {
        const link = own === kept && (0, link_js_1.linkOf)(kept?.deeplink, kept?.matchCode, kept?.returnRequired);
        if (link && !hint) {
            tell("pending");
            tellHint("waiting");
            onLink?.(link);
        }
    };
    // A confirmed result can be read again for only 60 seconds. While a phone shows the messenger, it may suspend this page
    // for longer and lose the answer, so the page requests the result when it is visible again.
    const away = () => kept && document.hidden && matchMedia(exports.PHONE).matches;
    // Browsers slow down the timers of hidden tabs, and a request sent before a phone went to sleep may never be answered. A
    // user who returns must not wait for either.
    /** @param {Event} event */
    const look = (event) => {
        // The first `pageshow` only means that the page has loaded.
        if (!held && (away() || (!document.hidden && /** @type {PageTransitionEvent} */ (event).persisted !== false))) {
            woken = true;
            wait = WAIT;
            interrupt();
        }
    };
    for (const type of ["visibilitychange", "pageshow", "online"]) {
        addEventListener(type, look, { signal: listening.signal });
    }
    /** @param {StorageEvent} event Another tab has changed `localStorage`. */
    const onStorage = ({ key: name, newValue }) => {
        if (own && name === (0, kept_js_1.nameOf)(options, own) && !newValue?.includes(own.token)) {
            gone = !!newValue?.includes('"used"');
            woken = true;
            interrupt();
        }
    };
    addEventListener("storage", onStorage, { signal: listening.signal });
    const onHash = () => {
        const pasted = own && own === kept && (0, return_code_js_1.takeReturnCode)();
        if (own && pasted) {
            own.returnCode = pasted;
            (0, kept_js_1.keep)(options, own);
            woken = true;
            interrupt();
        }
    };
    addEventListener("hashchange", onHash, { signal: listening.signal });
    signal?.addEventListener("abort", () => interrupt(), { signal: listening.signal });
    running.add(key);
    let isConfirmed = false;
    try {
        if (!crypto.subtle) {
            throw new errors_js_1.SignInError("insecure_context", "Signing in needs a secure page: open this one over https, or on localhost.");
        }
        const challenge = await (0, pkce_js_1.challengeOf)(verifier);
        if (code) {
            // After a reload, this tab still has the code. It does not keep another tab's sign-in: the code may be a foreign one.
            (0, kept_js_1.keepCode)(options, code);
        }
        tell(kept && kept === own ? "pending" : "starting");
        show();
        while (!signal?.aborted) {
            if (gone) {
                return { status: "used" };
            }
            if (away()) {
                await new Promise((resolve) => {
                    interrupt = () => resolve(null);
                });
                continue;
            }
            // After a failure, request an immediate answer to find out whether the service is back.
            const seconds = failures || !kept || kept.returnCode ? 0 : wait;
            const asked = performance.now();
            const request = new AbortController();
            const timer = setTimeout(() => request.abort(), seconds * 1_000 + OVERDUE);
            interrupt = () => request.abort();
            woken = false;
            /** @type {Response | undefined} */
            let response;
            /** @type {any} */
            let answer;
            try {
                response = kept
                    ? await (0, service_js_1.post)(options, "verify", {
                        session_token: kept.token,
                        code_verifier: kept.verifier,
                        return_code: kept.returnCode,
                        wait: seconds,
                        hints: true,
                        seen_hint: hint,
                    }, request.signal)
                    : await (0, service_js_1.post)(options, "generate", {
                        code_challenge: challenge,
                        code_challenge_method: "S256",
                        return_url: returnUrl,
                    }, request.signal);
                answer = await response.json();
            }
            catch {
                // There was no answer, a partial one, or a proxy's error page: try again.
            }
            clearTimeout(timer);
            if (signal?.aborted) {
                break;
            }
            const status = response?.status ?? 0;
            const isRefused = status >= 400 && status < 500 && status !== 408 && status !== 429 && (answer?.error || !kept);
            const link = (0, link_js_1.linkOf)(answer?.deeplink, answer?.match_code, answer?.return_required);
            const isOver = status === 200 && ["cancelled", "expired", "used"].includes(answer?.status);
            let pause = INTERVAL;
            if (status === 200 && !kept && link) {
                own = kept = {
                    ...link,
                    token: String(answer.session_token),
                    verifier,
                    challenge,
                    returns: !!(answer.return_required || answer.return_offered),
                    expiresAt: Date.now() + kept_js_1.LIFETIME,
                };
                (0, kept_js_1.keep)(options, own);
                (0, kept_js_2.share)(options, own);
                deadline = deadlineOf(own);
                failures = 0;
                show();
                continue;
            }
            else if (status === 200 && kept && answer?.status === "confirmed") {
                /** @type {Confirmed} */
                const result = {
                    status: "confirmed",
                    identity: {
                        messengerId: answer.messenger_id,
                        messengerName: answer.messenger_name,
                        messengerUsername: answer.messenger_username,
                        messengerPhone: answer.messenger_phone ?? null,
                    },
                    proof: answer.proof,
                    confirmedAt: answer.confirmed_at,
                };
                isConfirmed = true;
                if (own !== kept) {
                    // The code is that of this sign-in: after a reload, this tab reads the same result again.
                    own = kept;
                    (0, kept_js_1.keep)(options, own);
                    (0, kept_js_1.forgetCode)(options);
                }
                await onConfirmed?.(result);
                return result;
            }
            else if (kept !== own && (status === 200 || (status === 404 && isRefused))) {
                // The return code is not that of this sign-in, or this sign-in has ended.
                if (isOver) {
                    ended = answer.status;
                }
                candidates.shift();
                const [next] = candidates;
                kept = next ? withCode(next, code) : own;
                if (!next) {
                    (0, kept_js_1.forgetCode)(options);
                }
                if (!kept) {
                    return ended ? { status: ended } : { status: "other_browser", address: (0, return_code_js_1.addressWith)(code) };
                }
                deadline = deadlineOf(kept);
                show();
                continue;
            }
            else if (status === 200 && kept && answer?.status === "pending") {
                const before = hint;
                tell("pending");
                tellHint(answer.hint);
                // An early answer with the same hint means that the service cannot hold this call.
                const isHeld = hint !== before || performance.now() - asked > seconds * 1_000 - 1_000;
                pause = seconds && isHeld ? 0 : INTERVAL;
                if (kept.returnCode) {
                    kept.returnCode = undefined;
                    (0, kept_js_1.keep)(options, kept);
                    pause = 0;
                }
                failures = 0;
            }
            else if (kept && isOver) {
                return { status: answer.status };
            }
            else if (isRefused && returnUrl && response?.headers.get("X-Error-Code") === "return_url_not_allowed") {
                // The project does not accept a return to this page. It may list the page without its query string.
                [returnUrl] = returnUrl.includes("?") ? returnUrl.split("?") : [];
                continue;
            }
            else if (isRefused) {
                throw new errors_js_1.SignInError(response?.headers.get("X-Error-Code") ?? "unexpected_answer", answer?.error ?? `${(0, service_js_1.baseOf)(options)} is not a sign-in service: it answered with status ${status}.`, status);
            }
            else if (woken) {
                continue;
            }
            else {
                // A proxy may have ended a long call: try half the time.
                if (performance.now() - asked > 1_000) {
                    wait >>= 1;
                }
                const ordered = Number(response?.headers.get("Retry-After")) * 1_000 || 0;
                held = ordered > 0;
                pause = Math.max(ordered, Math.min(LONGEST_PAUSE, 1_000 * 2 ** failures++) * (0.5 + Math.random() / 2));
                if (failures > 1) {
                    tell("retrying");
                }
            }
            const left = deadline - performance.now();
            if (left < 0) {
                return { status: "expired" };
            }
            if (pause) {
                await new Promise((resolve) => {
                    const alarm = setTimeout(resolve, Math.min(pause, left));
                    interrupt = () => {
                        clearTimeout(alarm);
                        resolve(null);
                    };
                });
            }
            held = false;
        }
        if (own) {
            // Nobody can read the result any more. If this call is lost, the session expires.
            (0, service_js_1.post)(options, "cancel", { session_token: own.token, code_verifier: own.verifier }).catch(() => { });
        }
        return { status: "aborted" };
    }
    finally {
        listening.abort();
        running.delete(key);
        (0, kept_js_1.forgetCode)(options);
        if (own) {
            (0, kept_js_1.forget)(options, own);
            (0, kept_js_2.unshare)(options, own, isConfirmed);
        }
    }
};
