export type SignInLink = import("./link.js").SignInLink;
export type Identity = {
    messengerId: string;
    messengerName: string;
    messengerUsername: string | null;
    /**
     * null unless the project collects it and the user shared it.
     */
    messengerPhone: string | null;
};
export type Confirmed = {
    status: "confirmed";
    /**
     * For display only: your server must trust only the identity in the proof.
     */
    identity: Identity;
    /**
     * A signed JWT. Send it to your server, which checks it with the webhook secret.
     */
    proof: string;
    /**
     * The time of the confirmation by the service's clock, in ISO 8601.
     */
    confirmedAt: string;
};
export type Ended = {
    /**
     * `cancelled`: by the user in the messenger.
     * `expired`: after ten minutes. `used`: the result was already received, such as by the page that the messenger opened.
     * `aborted`: by `signal`.
     */
    status: "cancelled" | "expired" | "used" | "aborted";
};
export type OtherBrowser = {
    status: "other_browser";
    /**
     * Let the user open or copy this address into the browser where the sign-in began. It contains
     * the return code: send it nowhere.
     */
    address: string;
};
export type SignInResult = Confirmed | Ended | OtherBrowser;
export type WaitingStatus = "starting" | "pending" | "retrying";
export type Hint = "waiting" | "opened" | "choosing" | "phone_asked" | "return" | "unreachable";
export type SignInOptions = {
    projectId: string;
    /**
     * The service's address; by default, the origin that this module was loaded from.
     */
    baseUrl?: string;
    /**
     * Ends, cancels and forgets the sign-in, with the status `aborted`.
     */
    signal?: AbortSignal;
    /**
     * Stores the sign-in so that it survives
     * a reload; by default `sessionStorage`, and also `localStorage` if the messenger opens the page after Confirm, maybe in
     * a new tab; null for none. The stored data contains the secret for reading the result.
     */
    storage?: Pick<Storage, "getItem" | "setItem" | "removeItem"> | null;
    /**
     * Called once, with the link to show to the user.
     */
    onLink?: (link: SignInLink) => void;
    /**
     * Called on every change.
     */
    onStatus?: (status: WaitingStatus) => void;
    /**
     * Called on every change while the status is `pending`.
     */
    onHint?: (hint: Hint) => void;
    /**
     * Called, and awaited, before the sign-in is forgotten and the
     * promise resolves. Send the proof to your server here: if the page is reloaded before this finishes, it is called
     * again. If it throws an error, the promise rejects with that error.
     */
    onConfirmed?: (result: Confirmed) => unknown;
};
/**
 * Sign in the user: get a link from the service, pass it to `onLink`, and wait until the user has decided.
 *
 * @param {SignInOptions} options
 * @returns {Promise<SignInResult>} Rejects only with a `SignInError` or an error from `onConfirmed`.
 */
export declare const signIn: (options: SignInOptions) => Promise<SignInResult>;
/**
 * Continue the sign-in that was in progress when this page was left or reloaded, or that the user confirmed before the
 * messenger opened this page.
 *
 * @param {SignInOptions} options The same as for `signIn`.
 * @returns {Promise<SignInResult> | null} null if no sign-in was in progress.
 */
export declare const resume: (options: SignInOptions) => Promise<SignInResult> | null;
