"use strict";
"use client";
Object.defineProperty(exports, "__esModule", { value: true });
exports.useTaproof = useTaproof;
const react_1 = require("react");
const qr_js_1 = require("../qr.js");
const sign_in_js_1 = require("../sign_in.js");
/**
 * @typedef {import("../sign_in.js").SignInResult} SignInResult
 * @typedef {import("../sign_in.js").SignInOptions} SignInOptions
 * @typedef {import("../link.js").SignInLink} SignInLink
 */
/**
 * @typedef {import("../qr.js").QrCode} QrCode
 */
/**
 * @typedef {object} SignInState
 * @property {"idle" | import("../sign_in.js").WaitingStatus | SignInResult["status"] | "error"} status
 * @property {import("../sign_in.js").Hint | null} hint What the user is doing in the messenger; null before there is a link.
 * @property {SignInLink | null} link The link to show to the user; null before it exists and after the sign-in ends.
 * @property {SignInResult | null} result The result. If it is confirmed, send `result.proof` to your server.
 * @property {Error | null} error The error that ended the sign-in.
 */
/** @type {SignInState} */
const IDLE = { status: "idle", hint: null, link: null, result: null, error: null };
/**
 * Sign users in on your own page. Call `start` to begin. A sign-in continues automatically after a reload, and ends when
 * the component is unmounted.
 *
 * @param {{ projectId: string, baseUrl: string }} options `baseUrl`: the service's address.
 * @returns {SignInState & { qr: QrCode | null, start: () => void, cancel: () => void }} `start` does nothing while a
 *   sign-in is in progress. `qr` is null if no QR code may be shown.
 */
function useTaproof({ projectId, baseUrl }) {
    const [state, setState] = (0, react_1.useState)(IDLE);
    /** The current sign-in. */
    const current = (0, react_1.useRef)(/** @type {AbortController | null} */ (null));
    /** The options of the current or the next sign-in. */
    const owner = (0, react_1.useRef)(/** @type {unknown} */ (null));
    const mounted = (0, react_1.useRef)(false);
    const go = (0, react_1.useCallback)((/** @type {(options: SignInOptions) => Promise<SignInResult> | null} */ begin) => {
        if (current.current !== null)
            return;
        const controller = new AbortController();
        /** @param {Partial<SignInState>} changes */
        const update = (changes) => {
            if (current.current === controller)
                setState((before) => ({ ...before, ...changes }));
        };
        /** @param {Partial<SignInState>} changes */
        const end = (changes) => {
            update({ hint: null, link: null, ...changes });
            if (current.current === controller)
                current.current = null;
        };
        const going = begin({
            projectId,
            baseUrl,
            signal: controller.signal,
            onLink: (link) => update({ link }),
            onStatus: (status) => update({ status }),
            onHint: (hint) => update({ hint }),
        });
        if (going === null)
            return;
        current.current = controller;
        setState({ ...IDLE, status: "starting" });
        going.then((result) => end({ status: result.status, result }), (error) => end({ status: "error", error }));
    }, [projectId, baseUrl]);
    const start = (0, react_1.useCallback)(() => go(sign_in_js_1.signIn), [go]);
    const cancel = (0, react_1.useCallback)(() => {
        const controller = current.current;
        if (controller === null)
            return;
        // Change the state now, not when the abort takes effect: `start` may be called right after this.
        current.current = null;
        setState({ ...IDLE, status: "aborted", result: { status: "aborted" } });
        controller.abort();
    }, []);
    (0, react_1.useEffect)(() => {
        const stop = () => {
            const controller = current.current;
            current.current = null;
            setState(IDLE);
            controller?.abort();
        };
        if (owner.current !== go)
            stop();
        owner.current = go;
        mounted.current = true;
        go(sign_in_js_1.resume);
        return () => {
            mounted.current = false;
            // StrictMode unmounts and immediately mounts again, which must not end a sign-in.
            queueMicrotask(() => {
                if (!mounted.current)
                    stop();
            });
        };
    }, [go]);
    const deeplink = state.link?.returnRequired ? undefined : state.link?.deeplink;
    const qr = (0, react_1.useMemo)(() => (deeplink === undefined ? null : (0, qr_js_1.qrCodeOf)(deeplink)), [deeplink]);
    return { ...state, qr, start, cancel };
}
