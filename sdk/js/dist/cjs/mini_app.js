"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.signInMiniApp = exports.SignInError = void 0;
const errors_js_1 = require("./errors.js");
Object.defineProperty(exports, "SignInError", { enumerable: true, get: function () { return errors_js_1.SignInError; } });
/**
 * @typedef {object} MiniAppOptions
 * @property {string} projectId
 * @property {string} [baseUrl] The service's address; by default, the origin that this module was loaded from.
 * @property {string} [initData] The data that Telegram signed; by default `Telegram.WebApp.initData`.
 */
/**
 * Sign in the user who opened this page as a Telegram Mini App. There is no link and nothing to confirm.
 *
 * Each start of the Mini App signs in once, so the call is not repeated after a failure.
 *
 * @param {MiniAppOptions} options
 * @returns {Promise<import("./sign_in.js").Confirmed>} Rejects only with a `SignInError`.
 */
const signInMiniApp = async ({ projectId, baseUrl, initData }) => {
    const data = initData ?? /** @type {any} */ (globalThis).Telegram?.WebApp?.initData;
    if (!data) {
        throw new errors_js_1.SignInError("not_a_mini_app", "Open this page as a Mini App in Telegram.");
    }
    const base = (baseUrl || new URL("file:///").origin).replace(/\/$/, "");
    /** @type {Response | undefined} */
    let response;
    /** @type {any} */
    let answer;
    try {
        response = await fetch(`${base}/api/v1/mini-app/public`, {
            method: "POST",
            credentials: "omit",
            headers: { "Content-Type": "application/json" },
            body: JSON.stringify({ project_id: projectId, init_data: data }),
        });
        answer = await response.json();
    }
    catch {
        // There was no answer, or a proxy's error page.
    }
    if (!response) {
        throw new errors_js_1.SignInError("no_connection", "The sign-in service cannot be reached. Close this page and open it again.");
    }
    if (response.status !== 200 || answer?.status !== "confirmed") {
        throw new errors_js_1.SignInError(response.headers.get("X-Error-Code") ?? "unexpected_answer", answer?.error ?? `${base} is not a sign-in service: it answered with status ${response.status}.`, response.status);
    }
    return {
        status: "confirmed",
        identity: {
            messengerId: answer.messenger_id,
            messengerName: answer.messenger_name,
            messengerUsername: answer.messenger_username,
            messengerPhone: null,
        },
        proof: answer.proof,
        confirmedAt: answer.confirmed_at,
    };
};
exports.signInMiniApp = signInMiniApp;
