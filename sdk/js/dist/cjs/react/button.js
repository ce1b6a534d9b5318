"use strict";
"use client";
Object.defineProperty(exports, "__esModule", { value: true });
exports.TaproofButton = TaproofButton;
const react_1 = require("react");
require("../element.js");
/** @typedef {import("../index.js").SignInResult} SignInResult */
/**
 * @typedef {object} TaproofButtonProps Other props, such as `id`, `style` or `slot`, are passed to the element.
 * @property {string} projectId
 * @property {string} baseUrl The service's address.
 * @property {string} [submitUrl] The path on your own server that receives the proof. Its answer names the next page.
 * @property {string} [label]
 * @property {string} [language]
 * @property {"require"} [sameDevice] Shows no QR code; for a project whose `same_device` is `require`.
 * @property {string} [className]
 * @property {(status: string, event: CustomEvent) => void} [onStatus]
 * @property {(hint: string, event: CustomEvent) => void} [onHint]
 * @property {(result: Extract<SignInResult, { status: "confirmed" }>, event: CustomEvent) => void} [onConfirmed] Without
 *   `submitUrl`: send `result.proof` to your server.
 * @property {(location: string, event: CustomEvent) => void} [onSignedIn] Your server has accepted the proof. Call
 *   `event.preventDefault()` if you navigate with your own router.
 * @property {(status: string, event: CustomEvent) => void} [onEnded]
 * @property {(error: Error, event: CustomEvent) => void} [onError]
 */
/** Each event of the element, its prop, and the field of `detail` that the prop receives. @type {[string, string, string][]} */
const EVENTS = [
    ["taproof-status", "onStatus", "status"],
    ["taproof-hint", "onHint", "hint"],
    ["taproof-confirmed", "onConfirmed", "result"],
    ["taproof-signed-in", "onSignedIn", "location"],
    ["taproof-ended", "onEnded", "status"],
    ["taproof-error", "onError", "error"],
];
/**
 * Render `<taproof-button>` with props and callbacks.
 *
 * @param {TaproofButtonProps & Record<string, unknown>} props
 */
function TaproofButton(props) {
    const { projectId, baseUrl, submitUrl, label, language, sameDevice, className, ...rest } = props;
    for (const [, prop] of EVENTS)
        delete rest[prop];
    // Listeners are attached once and call the latest props, because an older callback could use outdated state.
    const latest = (0, react_1.useRef)(/** @type {Record<string, any>} */ (props));
    latest.current = props;
    const listening = (0, react_1.useRef)(/** @type {AbortController | null} */ (null));
    const attach = (0, react_1.useCallback)((/** @type {HTMLElement | null} */ element) => {
        listening.current?.abort();
        if (element === null)
            return;
        listening.current = new AbortController();
        for (const [type, prop, part] of EVENTS) {
            const tell = (/** @type {any} */ event) => latest.current[prop]?.(event.detail[part], event);
            element.addEventListener(type, tell, { signal: listening.current.signal });
        }
    }, []);
    return (0, react_1.createElement)("taproof-button", {
        ...rest,
        ref: attach,
        class: className,
        label,
        language,
        "same-device": sameDevice,
        "project-id": projectId,
        "base-url": baseUrl,
        "submit-url": submitUrl,
    });
}
