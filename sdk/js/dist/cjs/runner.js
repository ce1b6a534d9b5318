"use strict";
// Performs the effects of machine.js in a page, or where there is none, such as in a worker or in Node.
Object.defineProperty(exports, "__esModule", { value: true });
exports.run = exports.running = exports.PHONE = void 0;
const errors_js_1 = require("./errors.js");
const kept_js_1 = require("./kept.js");
const machine_js_1 = require("./machine.js");
const pkce_js_1 = require("./pkce.js");
const return_code_js_1 = require("./return_code.js");
const service_js_1 = require("./service.js");
/**
 * @typedef {import("./kept.js").Kept} Kept
 * @typedef {import("./sign_in.js").SignInOptions} SignInOptions
 * @typedef {import("./sign_in.js").SignInResult} SignInResult
 */
/** Milliseconds after which an answer is overdue. */
const OVERDUE = 10_000;
/** The media query for phones, where the messenger covers the page. */
exports.PHONE = "(pointer:coarse) and (max-width:600px),(pointer:coarse) and (max-height:500px)";
/** Keys of the sign-ins that this page waits for. @type {Set<string>} */
exports.running = new Set();
/** Return whether a phone shows the messenger instead of this page. */
const isAway = () => !!globalThis.document?.hidden && matchMedia(exports.PHONE).matches;
/** Return the details of the event `ready`. */
const createSecrets = async () => {
    if (!crypto.subtle) {
        throw new errors_js_1.SignInError("insecure_context", "Signing in needs a secure page: open this one over https, or on localhost.");
    }
    const verifier = (0, pkce_js_1.newVerifier)();
    return { secrets: { verifier, challenge: await (0, pkce_js_1.challengeOf)(verifier) } };
};
/**
 * Call the service, and return what machine.js must know of the answer.
 *
 * @param {SignInOptions} options
 * @param {string} verb
 * @param {object} body
 * @param {AbortSignal} [signal]
 */
const call = async (options, verb, body, signal) => {
    /** @type {Response | undefined} */
    let response;
    let answer;
    try {
        response = await (0, service_js_1.post)(options, verb, body, signal);
        answer = await response.json();
    }
    catch {
        // There was no answer, a partial one, or a proxy's error page.
    }
    return {
        status: response?.status ?? 0,
        body: answer,
        code: response?.headers.get("X-Error-Code"),
        retryAfter: response?.headers.get("Retry-After"),
    };
};
/**
 * @param {SignInOptions} options
 * @param {Kept | null} own The sign-in of this tab.
 * @param {Kept[]} [candidates] The sign-ins that the return code from the page's address may belong to, each with the code.
 * @param {SignInResult} [lost] The result if it belongs to none.
 * @returns {Promise<SignInResult>}
 */
const run = (options, own, candidates = [], lost) => new Promise((resolve, reject) => {
    const { signal, onLink, onStatus, onHint, onConfirmed } = options;
    const key = (0, kept_js_1.keyOf)(options);
    const listening = new AbortController();
    let state = (0, machine_js_1.initial)({ base: (0, service_js_1.baseOf)(options), own, candidates, lost, returnUrl: (0, return_code_js_1.pageAddress)() });
    /** Ends the current request or pause. */
    let stop = () => { };
    /** Events with effects to perform. A function of the caller can cause another event. @type {any[]} */
    const events = [];
    /** @param {string} type @param {object} [details] */
    const send = (type, details) => {
        const moment = { now: performance.now(), time: Date.now(), random: Math.random(), away: isAway() };
        if (events.push({ type, ...moment, ...details }) > 1) {
            return;
        }
        for (; events.length; events.shift()) {
            try {
                const [next, effects] = (0, machine_js_1.step)(state, events[0]);
                state = next;
                for (const [name, ...given] of effects) {
                    const act = perform[name];
                    act?.(...given);
                }
            }
            catch (error) {
                send("thrown", { error });
            }
        }
    };
    /**
     * What each effect of machine.js does. Some are functions of the caller.
     *
     * @type {Record<string, ((...given: any[]) => unknown) | undefined>}
     */
    const perform = {
        onStatus,
        onHint,
        onLink,
        ask: async (verb, body, seconds) => {
            stop();
            if (signal?.aborted) {
                return;
            }
            const { turn } = state;
            const request = new AbortController();
            const timer = setTimeout(() => request.abort(), seconds * 1_000 + OVERDUE);
            stop = () => request.abort();
            const answer = await call(options, verb, body, request.signal);
            clearTimeout(timer);
            send("answer", { turn, ...answer });
        },
        pause: (milliseconds) => {
            stop();
            const { turn } = state;
            const alarm = milliseconds && setTimeout(() => send("alarm", { turn }), milliseconds);
            stop = () => clearTimeout(alarm);
        },
        keep: (kept) => (0, kept_js_1.keep)(options, kept),
        share: (kept) => (0, kept_js_1.share)(options, kept),
        keepCode: (code) => (0, kept_js_1.keepCode)(options, code),
        forgetCode: () => (0, kept_js_1.forgetCode)(options),
        confirm: async (result) => {
            try {
                await onConfirmed?.(result);
                send("accepted", { result });
            }
            catch (error) {
                send("thrown", { error });
            }
        },
        cancel: ({ token, verifier }) => {
            call(options, "cancel", { session_token: token, code_verifier: verifier });
        },
        clear: (kept, isUsed) => {
            stop();
            listening.abort();
            exports.running.delete(key);
            (0, kept_js_1.forgetCode)(options);
            if (kept) {
                (0, kept_js_1.forget)(options, kept);
                (0, kept_js_1.unshare)(options, kept, isUsed);
            }
        },
        resolve,
        reject,
    };
    // Browsers slow down the timers of hidden tabs, and a request sent before a phone went to sleep may never be answered.
    // A user who returns must not wait for either. The first `pageshow` only means that the page has loaded.
    /** @param {any} event */
    const look = ({ persisted }) => {
        if (isAway() || (!globalThis.document?.hidden && persisted !== false)) {
            send("look");
        }
    };
    /** @type {Record<string, (event: any) => void>} */
    const listeners = {
        visibilitychange: look,
        pageshow: look,
        online: look,
        // Another tab has changed `localStorage`.
        storage: ({ key: name, newValue }) => {
            const { own } = state;
            if (own && name === (0, kept_js_1.nameOf)(options, own) && !newValue?.includes(own.token)) {
                send(newValue?.includes('"used"') ? "used" : "changed");
            }
        },
        hashchange: () => {
            const code = state.own && !state.candidates.length && (0, return_code_js_1.takeReturnCode)();
            if (code) {
                send("pasted", { code });
            }
        },
    };
    for (const type in listeners) {
        globalThis.addEventListener?.(type, listeners[type], { signal: listening.signal });
    }
    signal?.addEventListener("abort", () => send("abort"), { signal: listening.signal });
    exports.running.add(key);
    // Not immediately: the caller first gets the promise.
    createSecrets().then((details) => send(signal?.aborted ? "abort" : "ready", details), (error) => send("thrown", { error }));
});
exports.run = run;
