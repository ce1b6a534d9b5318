export type Kept = import("./kept.js").Kept;
export type SignInLink = import("./link.js").SignInLink;
export type Confirmed = import("./sign_in.js").Confirmed;
export type Hint = import("./sign_in.js").Hint;
export type SignInResult = import("./sign_in.js").SignInResult;
export type WaitingStatus = import("./sign_in.js").WaitingStatus;
export type Phase = "starting" | "asking" | "pausing" | "held" | "away" | "confirmed" | "over";
export type State = {
    phase: Phase;
    /**
     * The number of the last request. What belongs to an earlier one is ignored.
     */
    turn: number;
    /**
     * The service's address.
     */
    base: string;
    /**
     * The sign-in of this tab.
     */
    own: Kept | null;
    /**
     * The sign-ins that a return code may belong to, each with the code, which does not tell which.
     */
    candidates: Kept[];
    /**
     * The result if the code belongs to none of them and there is no `own`.
     */
    lost?: SignInResult;
    /**
     * The page that the messenger opens after Confirm.
     */
    returnUrl?: string;
    /**
     * Of a new sign-in.
     */
    secrets?: {
        verifier: string;
        challenge: string;
    };
    /**
     * When to give up, by the clock that nobody can change.
     */
    deadline: number;
    /**
     * When the request was sent, by that clock.
     */
    asked: number;
    /**
     * How long the service may hold the current request.
     */
    seconds: number;
    /**
     * How long the service may hold a request at most.
     */
    wait: number;
    /**
     * The number of requests without a usable answer since the last usable one.
     */
    failures: number;
    /**
     * The last status that the caller was told.
     */
    told: string;
    /**
     * The last hint that the caller was told.
     */
    hint: string;
};
export type Moment = {
    /**
     * The time by the clock that nobody can change, in milliseconds.
     */
    now: number;
    /**
     * The time by the local clock, in milliseconds.
     */
    time: number;
    /**
     * Whether a phone shows the messenger instead of this page.
     */
    away: boolean;
    /**
     * From 0 to 1.
     */
    random: number;
};
export type Answered = {
    /**
     * 0 if there was no answer.
     */
    status: number;
    /**
     * undefined unless it was JSON.
     */
    body: any;
    /**
     * The header X-Error-Code.
     */
    code?: string | null;
    /**
     * The header Retry-After.
     */
    retryAfter?: string | null;
};
export type Event = Moment & {
    type: string;
    turn?: number;
    [detail: string]: unknown;
};
export type Effect = ["ask", "generate" | "verify", object, number] | ["pause", number?] | ["keep" | "share" | "cancel", Kept] | ["keepCode", string | undefined] | ["forgetCode"] | ["onStatus", WaitingStatus] | ["onHint", Hint] | ["onLink", SignInLink | null] | ["confirm", Confirmed] | ["clear", Kept | null, boolean] | ["resolve", SignInResult | undefined] | ["reject", unknown];
export type Emit = (...effect: Effect) => void;
export type Handler = (state: State, event: any, emit: Emit) => void;
/** What happens in each phase at each event. Other events change nothing. @type {Record<Phase, Record<string, Handler>>} */
export declare const TABLE: Record<Phase, Record<string, Handler>>;
/**
 * Return the state of a sign-in that has not started.
 *
 * @param {Pick<State, "base" | "own" | "candidates" | "lost" | "returnUrl">} given
 * @returns {State}
 */
export declare const initial: (given: Pick<State, "base" | "own" | "candidates" | "lost" | "returnUrl">) => State;
/**
 * Return the next state, and the effects to perform in this order.
 *
 * @param {State} state
 * @param {Event} event
 * @returns {[State, Effect[]]}
 */
export declare const step: (state: State, event: Event) => [State, Effect[]];
