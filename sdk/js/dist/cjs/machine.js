"use strict";
// The rules of a sign-in as a state machine without input or output: `step` returns the next state and the effects that
// runner.js performs. The machine learns only of answers, alarms, what the user does, and the end of `onConfirmed`.
Object.defineProperty(exports, "__esModule", { value: true });
exports.step = exports.initial = exports.TABLE = void 0;
const errors_js_1 = require("./errors.js");
const kept_js_1 = require("./kept.js");
const link_js_1 = require("./link.js");
/**
 * @typedef {import("./kept.js").Kept} Kept
 * @typedef {import("./link.js").SignInLink} SignInLink
 * @typedef {import("./sign_in.js").Confirmed} Confirmed
 * @typedef {import("./sign_in.js").Hint} Hint
 * @typedef {import("./sign_in.js").SignInResult} SignInResult
 * @typedef {import("./sign_in.js").WaitingStatus} WaitingStatus
 *
 * @typedef {"starting" | "asking" | "pausing" | "held" | "away" | "confirmed" | "over"} Phase `held`: the service requested
 *   the pause. `away`: a phone shows the messenger instead of this page. `confirmed`: `onConfirmed` runs.
 *
 * @typedef {object} State
 * @property {Phase} phase
 * @property {number} turn The number of the last request. What belongs to an earlier one is ignored.
 * @property {string} base The service's address.
 * @property {Kept | null} own The sign-in of this tab.
 * @property {Kept[]} candidates The sign-ins that a return code may belong to, each with the code, which does not tell which.
 * @property {SignInResult} [lost] The result if the code belongs to none of them and there is no `own`.
 * @property {string} [returnUrl] The page that the messenger opens after Confirm.
 * @property {{ verifier: string, challenge: string }} [secrets] Of a new sign-in.
 * @property {number} deadline When to give up, by the clock that nobody can change.
 * @property {number} asked When the request was sent, by that clock.
 * @property {number} seconds How long the service may hold the current request.
 * @property {number} wait How long the service may hold a request at most.
 * @property {number} failures The number of requests without a usable answer since the last usable one.
 * @property {string} told The last status that the caller was told.
 * @property {string} hint The last hint that the caller was told.
 *
 * @typedef {object} Moment Details of every event.
 * @property {number} now The time by the clock that nobody can change, in milliseconds.
 * @property {number} time The time by the local clock, in milliseconds.
 * @property {boolean} away Whether a phone shows the messenger instead of this page.
 * @property {number} random From 0 to 1.
 *
 * @typedef {object} Answered Details of `answer`.
 * @property {number} status 0 if there was no answer.
 * @property {any} body undefined unless it was JSON.
 * @property {string | null} [code] The header X-Error-Code.
 * @property {string | null} [retryAfter] The header Retry-After.
 *
 * @typedef {Moment & { type: string, turn?: number, [detail: string]: unknown }} Event `turn`: of the request that it answers, or that the pause follows.
 *
 * @typedef {["ask", "generate" | "verify", object, number]
 *   | ["pause", number?]
 *   | ["keep" | "share" | "cancel", Kept]
 *   | ["keepCode", string | undefined]
 *   | ["forgetCode"]
 *   | ["onStatus", WaitingStatus]
 *   | ["onHint", Hint]
 *   | ["onLink", SignInLink | null]
 *   | ["confirm", Confirmed]
 *   | ["clear", Kept | null, boolean]
 *   | ["resolve", SignInResult | undefined]
 *   | ["reject", unknown]} Effect `ask`, `pause` and `clear` end the current request or pause. `pause` without a time has no
 *   alarm. `clear` forgets the sign-in; the boolean tells whether its result was received.
 *
 * @typedef {(...effect: Effect) => void} Emit
 *
 * @callback Handler
 * @param {State} state A copy, to be changed.
 * @param {any} event
 * @param {Emit} emit
 * @returns {void}
 */
/** Seconds that one call waits for the user; most proxies time out after 30 or 60. */
const WAIT = 25;
/** Milliseconds between two calls if waiting does not work. */
const INTERVAL = 2_000;
const LONGEST_PAUSE = 15_000;
/** Return the sign-in that is asked for. @param {State} state @returns {Kept | null} */
const keptOf = ({ candidates, own }) => candidates[0] ?? own;
/** Set when to give up. @param {State} state @param {Moment} event */
const limit = (state, { now, time }) => {
    state.deadline = now + Math.min(kept_js_1.LIFETIME, (keptOf(state)?.expiresAt ?? Infinity) - time);
};
/** @param {State} state @param {Emit} emit @param {WaitingStatus} status */
const tell = (state, emit, status) => {
    if (status !== state.told) {
        state.told = status;
        emit("onStatus", status);
    }
};
/** @param {State} state @param {Emit} emit @param {Effect} outcome */
const end = (state, emit, ...outcome) => {
    emit("clear", state.own, state.phase === "confirmed");
    emit(...outcome);
    state.phase = "over";
};
/** @type {Handler} */
const accepted = (state, { result }, emit) => end(state, emit, "resolve", result);
/** Another tab has received the result. @type {Handler} */
const used = (state, _, emit) => end(state, emit, "resolve", { status: "used" });
/** @type {Handler} */
const thrown = (state, { error }, emit) => end(state, emit, "reject", error);
/**
 * Ask the service, unless a phone shows the messenger. A confirmed result can be read again for only 60 seconds. The phone
 * may suspend this page for longer and lose the answer, so the page asks when it is visible again.
 *
 * @type {Handler}
 */
const ask = (state, { away, now }, emit) => {
    const kept = keptOf(state);
    // After a failure, request an immediate answer to find out whether the service is back.
    const seconds = state.failures || !kept || kept.returnCode ? 0 : state.wait;
    state.turn++;
    state.asked = now;
    state.seconds = seconds;
    state.phase = kept && away ? "away" : "asking";
    if (kept && away) {
        emit("pause");
    }
    else if (kept) {
        emit("ask", "verify", {
            session_token: kept.token,
            code_verifier: kept.verifier,
            return_code: kept.returnCode,
            wait: seconds,
            hints: true,
            seen_hint: state.hint,
        }, seconds);
    }
    else {
        emit("ask", "generate", {
            code_challenge: state.secrets?.challenge,
            code_challenge_method: "S256",
            return_url: state.returnUrl,
        }, seconds);
    }
};
/** Ask for a sign-in that was not asked for before, and show it if the user must confirm it. @type {Handler} */
const begin = (state, event, emit) => {
    const { own, candidates } = state;
    limit(state, event);
    if (own && !candidates.length) {
        tell(state, emit, "pending");
        state.hint = "waiting";
        emit("onHint", "waiting");
        emit("onLink", (0, link_js_1.linkOf)(own.deeplink, own.matchCode, own.returnRequired));
    }
    ask(state, event, emit);
};
/** @param {State} state @param {Moment} event @param {Emit} emit @param {number} pause @param {Phase} [phase] */
const rest = (state, event, emit, pause, phase = "pausing") => {
    const left = state.deadline - event.now;
    if (left <= 0) {
        end(state, emit, "resolve", { status: "expired" });
    }
    else if (pause) {
        state.phase = phase;
        emit("pause", Math.min(pause, left));
    }
    else {
        ask(state, event, emit);
    }
};
/** @type {Handler} */
const ready = (state, event, emit) => {
    const { candidates: [first], own } = state;
    state.secrets = event.secrets;
    if (first) {
        // After a reload, this tab still has the code. It does not keep another tab's sign-in: the code may be a foreign one.
        emit("keepCode", first.returnCode);
    }
    if (first || !own) {
        tell(state, emit, "starting");
    }
    begin(state, event, emit);
};
/** The service has created a sign-in. @type {Handler} */
const created = (state, event, emit) => {
    const { body, time } = event;
    const own = /** @type {Kept} */ ({
        ...(0, link_js_1.linkOf)(body.deeplink, body.match_code, body.return_required),
        token: String(body.session_token),
        ...state.secrets,
        returns: !!(body.return_required || body.return_offered),
        expiresAt: time + kept_js_1.LIFETIME,
    });
    state.own = own;
    state.failures = 0;
    emit("keep", own);
    emit("share", own);
    begin(state, event, emit);
};
/** The user has confirmed. @type {Handler} */
const confirmed = (state, { body }, emit) => {
    const own = /** @type {Kept} */ (keptOf(state));
    if (own !== state.own) {
        // The code is that of this sign-in: after a reload, this tab reads the same result again.
        state.own = own;
        emit("keep", own);
        emit("forgetCode");
    }
    state.phase = "confirmed";
    emit("confirm", {
        status: "confirmed",
        identity: {
            messengerId: body.messenger_id,
            messengerName: body.messenger_name,
            messengerUsername: body.messenger_username,
            messengerPhone: body.messenger_phone ?? null,
        },
        proof: body.proof,
        confirmedAt: body.confirmed_at,
    });
};
/** The return code is not that of this sign-in, or this sign-in has ended. @type {Handler} */
const tryNext = (state, event, emit) => {
    state.candidates = state.candidates.slice(1);
    if (!keptOf(state)) {
        end(state, emit, "resolve", state.lost);
        return;
    }
    if (!state.candidates.length) {
        emit("forgetCode");
    }
    begin(state, event, emit);
};
/** The user has not decided yet. @type {Handler} */
const pending = (state, event, emit) => {
    const { seconds, asked } = state;
    const own = /** @type {Kept} */ (state.own);
    const hint = event.body.hint || state.hint;
    const isNew = hint !== state.hint;
    // An early answer with the same hint means that the service cannot hold this call.
    const isHeld = isNew || event.now - asked > seconds * 1_000 - 1_000;
    state.failures = 0;
    state.hint = hint;
    tell(state, emit, "pending");
    if (own.returnCode || (isNew && hint === "return")) {
        state.own = { ...own, returnCode: undefined };
        if (isNew && hint === "return") {
            state.own.expiresAt = event.time + kept_js_1.RETURN_TIME;
            limit(state, event);
        }
        emit("keep", state.own);
    }
    if (isNew) {
        emit("onHint", hint);
    }
    rest(state, event, emit, own.returnCode || (seconds && isHeld) ? 0 : INTERVAL);
};
/** There was no usable answer. @type {Handler} */
const failed = (state, event, emit) => {
    const ordered = event.retryAfter * 1_000 || 0;
    const pause = Math.min(LONGEST_PAUSE, 1_000 * 2 ** state.failures) * (0.5 + event.random / 2);
    // A proxy may have ended a long call: try half the time.
    if (event.now - state.asked > 1_000) {
        state.wait >>= 1;
    }
    if (state.failures++) {
        tell(state, emit, "retrying");
    }
    rest(state, event, emit, Math.max(ordered, pause), ordered > 0 ? "held" : "pausing");
};
/** @param {State} state @param {Moment & Answered} event @param {Emit} emit */
const answer = (state, event, emit) => {
    const { status, body, code } = event;
    const { base, candidates, returnUrl } = state;
    const kept = keptOf(state);
    const said = kept && status === 200 && body?.status;
    const isOver = ["cancelled", "expired", "used"].includes(said);
    const isRefused = status >= 400 && status < 500 && status !== 408 && status !== 429 && (body?.error || !kept);
    if (!kept && status === 200 && (0, link_js_1.linkOf)(body?.deeplink)) {
        created(state, event, emit);
    }
    else if (said === "confirmed") {
        confirmed(state, event, emit);
    }
    else if (candidates.length && (said === "pending" || isOver || (isRefused && status === 404))) {
        if (isOver) {
            state.lost = { status: said };
        }
        tryNext(state, event, emit);
    }
    else if (said === "pending") {
        pending(state, event, emit);
    }
    else if (isOver) {
        end(state, emit, "resolve", { status: said });
    }
    else if (isRefused && returnUrl && code === "return_url_not_allowed") {
        // The project does not accept a return to this page. It may list the page without its query string.
        state.returnUrl = /^([^?]+)\?/.exec(returnUrl)?.[1];
        ask(state, event, emit);
    }
    else if (isRefused) {
        const sentence = body?.error ?? `${base} is not a sign-in service: it answered with status ${status}.`;
        end(state, emit, "reject", new errors_js_1.SignInError(code ?? "unexpected_answer", sentence, status));
    }
    else {
        failed(state, event, emit);
    }
};
/** The user is back, or has left. @type {Handler} */
const look = (state, event, emit) => {
    if (keptOf(state) || !event.away) {
        state.wait = WAIT;
        ask(state, event, emit);
    }
};
/** The user has pasted the address with the return code into this tab. @type {Handler} */
const pasted = (state, event, emit) => {
    state.own = /** @type {Kept} */ ({ ...state.own, returnCode: event.code });
    emit("keep", state.own);
    if (state.phase !== "starting") {
        ask(state, event, emit);
    }
};
/** @type {Handler} */
const abort = (state, _, emit) => {
    if (state.own) {
        // Nobody can read the result any more. If this call is lost, the session expires.
        emit("cancel", state.own);
    }
    end(state, emit, "resolve", { status: "aborted" });
};
const always = { used, pasted, abort, thrown };
const waiting = { ...always, changed: ask };
/** What happens in each phase at each event. Other events change nothing. @type {Record<Phase, Record<string, Handler>>} */
exports.TABLE = {
    starting: { ...always, ready },
    asking: { ...waiting, look, answer },
    pausing: { ...waiting, look, alarm: ask },
    held: { ...waiting, alarm: ask },
    away: { ...waiting, look },
    confirmed: { accepted, thrown },
    over: { thrown },
};
/**
 * Return the state of a sign-in that has not started.
 *
 * @param {Pick<State, "base" | "own" | "candidates" | "lost" | "returnUrl">} given
 * @returns {State}
 */
const initial = (given) => ({
    ...given,
    phase: "starting",
    turn: 0,
    deadline: 0,
    asked: 0,
    seconds: 0,
    wait: WAIT,
    failures: 0,
    told: "",
    hint: "",
});
exports.initial = initial;
/**
 * Return the next state, and the effects to perform in this order.
 *
 * @param {State} state
 * @param {Event} event
 * @returns {[State, Effect[]]}
 */
const step = (state, event) => {
    /** @type {Effect[]} */
    const effects = [];
    const next = { ...state };
    if ((event.turn ?? state.turn) === state.turn) {
        exports.TABLE[state.phase][event.type]?.(next, event, (...effect) => effects.push(effect));
    }
    return [next, effects];
};
exports.step = step;
