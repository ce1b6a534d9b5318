"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.TaproofButton = void 0;
const errors_js_1 = require("./errors.js");
const qr_js_1 = require("./qr.js");
const runner_js_1 = require("./runner.js");
const sign_in_js_1 = require("./sign_in.js");
const style_js_1 = require("./style.js");
const texts_js_1 = require("./texts.js");
/**
 * @typedef {import("./sign_in.js").SignInResult} SignInResult
 * @typedef {import("./sign_in.js").WaitingStatus | import("./sign_in.js").SignInResult["status"] | "error"} ButtonStatus
 */
/** Size of one module of the QR code, in screen pixels. */
const MODULE = 5;
/** Milliseconds for which "Confirmed" is shown if the page stays open. */
const CLOSING_DELAY = 1_500;
/** Maximum time between two attempts to send the proof, in milliseconds. The proof is valid for five minutes. */
const LONGEST_PAUSE = 5_000;
/** Indexes of the texts. */
const LABEL = 0, SCAN = 1, OPEN = 2, NOTHING_HAPPENS = 4, SEND = 5, COPY = 6, CLOSE = 7, AGAIN = 8, CHOOSE = 14;
const SEND_ADDRESS = 21, OPEN_ADDRESS = 22, RELOAD = 24, BLOCKED = 25;
/** Links to this machine, such as those of the sandbox: a phone cannot open them, so they get no QR code. */
const LOCAL = /^https?:\/\/(127\.|\[::1]|([^/:]+\.)?localhost[:/])/;
/** The text of each status. @type {Record<string, number>} */
const SAID = { pending: 3, retrying: 12, confirmed: 9, cancelled: 10, expired: 11, used: 23, error: 13, other_browser: 20 };
/** The text of each hint, instead of that of the status "pending". @type {Record<string, number | null>} */
const HINTED = { __proto__: null, opened: 15, choosing: 16, phone_asked: 17, return: 18, unreachable: 19 };
/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} part
 * @param {Node[]} children
 * @returns {HTMLElementTagNameMap[T]}
 */
const make = (tag, part, ...children) => {
    const made = document.createElement(tag);
    made.setAttribute("part", part);
    made.append(...children);
    return made;
};
/**
 * Draw the QR code of a link: dark on light with a light edge, independent of the colours of the page.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {string} link
 * @returns {boolean} False if the link is too long for a QR code.
 */
const draw = (canvas, link) => {
    const rows = (0, qr_js_1.modulesOf)(link);
    const context = canvas.getContext("2d");
    if (!rows || !context) {
        return false;
    }
    const side = rows.length + 2 * qr_js_1.EDGE;
    canvas.width = canvas.height = side * MODULE;
    context.scale(MODULE, MODULE);
    context.fillStyle = "#fff";
    context.fillRect(0, 0, side, side);
    context.fillStyle = "#000";
    rows.forEach((row, y) => row.forEach((dark, x) => context.fillRect(x + qr_js_1.EDGE, y + qr_js_1.EDGE, dark, dark)));
    return true;
};
/**
 * @param {unknown} address
 * @returns {URL | null} null unless it is a page of this origin; for example, null for a script or another site. Also null
 *   for a path that begins with two slashes, such as "/.//other.example" after parsing: routers that use only the path
 *   would leave the site.
 */
const pageOf = (address) => {
    try {
        const page = new URL(/** @type {string} */ (address), document.baseURI);
        const isOwn = page.origin === location.origin && page.protocol.startsWith("http") && !page.pathname.startsWith("//");
        return address && isOwn ? page : null;
    }
    catch {
        return null;
    }
};
/**
 * The element `<taproof-button project-id="proj_…" submit-url="/auth/taproof">`. See the README for its attributes, events
 * and parts.
 *
 * The module can be imported without a browser; the element is then not defined.
 */
class TaproofButton extends /** @type {typeof HTMLElement} */ /** @type {typeof HTMLElement} */ (globalThis.HTMLElement ?? Object) {
    static observedAttributes = ["label", "language"];
    #label = make("span", "label");
    #button = make("button", "button action", make("span", "icon"), this.#label);
    #title = make("p", "title");
    #code = make("canvas", "code");
    #scan = make("p", "scan");
    #choose = make("span", "choose");
    #number = make("strong", "number");
    #match = make("p", "match", this.#choose, this.#number);
    #link = make("a", "link action");
    #status = make("p", "status");
    #detail = make("p", "detail");
    #again = make("button", "retry action");
    #summary = make("summary", "summary");
    #send = make("span", "send");
    #command = make("code", "command");
    #copy = make("button", "copy");
    #help = make("details", "help", this.#summary, this.#send, this.#command, this.#copy);
    #close = make("button", "close");
    #panel = make("dialog", "panel", this.#title, this.#code, this.#scan, this.#match, this.#link, this.#status, this.#detail, this.#again, this.#help, this.#close);
    /** The controller of the current or the last sign-in. */
    #controller = new AbortController();
    /** @type {ButtonStatus} */
    #now = "starting";
    #ended = false;
    #hint = "";
    /** Whether the QR code of the current sign-in is drawn and useful. */
    #canScan = false;
    /** Whether the browser has blocked the window of the messenger. */
    #isBlocked = false;
    constructor() {
        super();
        const root = this.attachShadow({ mode: "open" });
        const sheet = new CSSStyleSheet();
        sheet.replaceSync?.(style_js_1.STYLE); // jsdom, which tests of applications use, has no such method.
        root.adoptedStyleSheets = [sheet];
        root.append(this.#button, this.#panel);
        // Screen readers announce each of these parts as a whole when it changes.
        for (const part of [this.#status, this.#match]) {
            part.setAttribute("role", "status");
        }
        this.#copy.setAttribute("aria-live", "polite");
        // The QR code is hidden from screen readers: users who cannot see it can use the link.
        this.#code.setAttribute("aria-hidden", "true");
        this.#command.dir = "ltr";
        this.#detail.dir = "auto";
        this.#close.textContent = "✕";
        this.#link.target = "_blank";
        this.#link.rel = "noopener";
        for (const button of [this.#button, this.#again]) {
            button.type = "button";
            // If another tab has signed in, this page need only be loaded again.
            button.onclick = () => (button === this.#again && this.#now === "used" ? location.reload() : this.#start());
        }
        this.#close.onclick = () => this.#panel.close();
        this.#panel.onclose = () => this.#controller.abort();
        this.#copy.onclick = async () => {
            try {
                await navigator.clipboard.writeText(this.#command.textContent);
                this.#copy.textContent += " ✓";
            }
            catch {
                getSelection()?.selectAllChildren(this.#command);
            }
        };
    }
    connectedCallback() {
        this.#speak();
        // Continue a sign-in from before a reload. `resume` does not return one that is already running.
        const controller = new AbortController();
        const going = (0, sign_in_js_1.resume)(this.#options(controller, true));
        if (going) {
            this.#start(controller, going);
        }
    }
    disconnectedCallback() {
        // If the element was only moved, it is connected again when this microtask runs.
        queueMicrotask(() => this.isConnected || this.#controller.abort());
    }
    attributeChangedCallback() {
        this.#speak();
    }
    focus() {
        this.#button.focus();
    }
    /**
     * @param {AbortController} controller
     * @param {boolean} [resumed]
     * @returns {import("./sign_in.js").SignInOptions}
     */
    #options(controller, resumed) {
        const { signal } = controller;
        return {
            projectId: this.getAttribute("project-id") ?? "",
            baseUrl: this.getAttribute("base-url") ?? "",
            signal,
            onStatus: (status) => this.#show(status),
            onHint: (hint) => {
                this.#hint = hint;
                // Only the page that the messenger opens continues after "return".
                this.#help.hidden ||= hint === "return";
                if (hint === "phone_asked" || hint === "return") {
                    // The user has chosen.
                    this.#number.textContent = "";
                }
                this.#speak();
                this.#tell("hint", { hint });
            },
            onConfirmed: async (result) => {
                this.#show("confirmed");
                this.#tell("confirmed", { result });
                const submitUrl = this.getAttribute("submit-url");
                const to = submitUrl === null ? null : await this.#submit(submitUrl, result.proof, signal);
                if (to && this.#tell("signed-in", { location: to.pathname + to.search + to.hash })) {
                    // Close the panel, so that it is not open if the user returns to this page from the browser's cache.
                    addEventListener("pagehide", () => this.#panel.close(), { once: true });
                    location.assign(to);
                }
                else {
                    setTimeout(() => this.#controller === controller && this.#panel.close(), CLOSING_DELAY);
                }
            },
            onLink: ({ deeplink, appLink, command, matchCode, returnRequired }) => {
                const phone = matchMedia(runner_js_1.PHONE).matches;
                this.#number.textContent = matchCode;
                this.#link.href = deeplink;
                this.#command.textContent = command;
                // A sign-in that must be finished in this browser cannot be confirmed on another device.
                const same = returnRequired || this.getAttribute("same-device") === "require";
                this.#canScan = !phone && !same && !LOCAL.test(deeplink) && draw(this.#code, deeplink);
                this.#speak();
                this.#link.hidden = this.#help.hidden = false;
                if (phone) {
                    this.#link.focus();
                    // If the browser blocks this or the app is not installed, the page stays open and the user can tap the link. With
                    // a match code, do not leave the page, because the user must read the number first.
                    if (resumed || matchCode) {
                        return;
                    }
                    if (appLink) {
                        location.href = appLink;
                    }
                    else {
                        // With "noopener", the answer would be null in any case.
                        const opened = open(deeplink, "_blank");
                        if (opened) {
                            opened.opener = null;
                        }
                        else {
                            this.#isBlocked = true;
                            this.#speak();
                        }
                    }
                }
            },
        };
    }
    async #start(controller = new AbortController(), going = (0, sign_in_js_1.signIn)(this.#options(controller))) {
        this.#controller = controller;
        const { signal } = controller;
        if (!this.#panel.open) {
            this.#panel.showModal();
        }
        this.#close.focus();
        try {
            const result = await going;
            if (result.status !== "confirmed") {
                this.#show(result.status);
                if (result.status === "other_browser") {
                    this.#link.href = this.#command.textContent = result.address;
                    this.#link.hidden = this.#help.hidden = false;
                    this.#help.open = true;
                    this.#copy.focus();
                }
                this.#tell("ended", { status: result.status });
            }
        }
        catch (error) {
            if (signal.aborted) {
                this.#tell("ended", { status: "aborted" });
            }
            else {
                this.#show("error", error instanceof errors_js_1.SignInError ? error.message : "");
                this.#tell("error", { error });
            }
        }
    }
    /**
     * Send the proof to the application's own server.
     *
     * @param {string} url
     * @param {string} proof
     * @param {AbortSignal} signal
     * @returns {Promise<URL>} The next page, from the server's answer; always on this origin.
     */
    async #submit(url, proof, signal) {
        /** @type {Response | undefined} */
        let response;
        /** @type {any} */
        let answer;
        for (let attempts = 0; !signal.aborted && attempts < 3; attempts++) {
            const ordered = Number(response?.headers.get("Retry-After")) * 1_000 || 0;
            const pause = Math.min(LONGEST_PAUSE, Math.max(attempts * 1_000, ordered));
            await new Promise((resolve) => setTimeout(resolve, pause));
            try {
                response = await fetch(url, {
                    method: "POST",
                    headers: { "Content-Type": "application/json" },
                    body: JSON.stringify({ proof }),
                    signal,
                });
                answer = await response.json();
                if (answer && ![429, 502, 503, 504].includes(response.status)) {
                    break;
                }
            }
            catch {
                // There was no answer, or a proxy's error page: try again.
            }
        }
        const to = response?.ok ? pageOf(answer?.location) : null;
        if (!to) {
            const said = response
                ? `${url} answered with status ${response.status}, not with {"location": "/…"} of this site.`
                : "This site cannot be reached. Check your connection, then try again.";
            throw new errors_js_1.SignInError("submit_failed", answer?.error ?? said, response?.status);
        }
        return to;
    }
    /**
     * @param {ButtonStatus} status
     * @param {string} [detail]
     */
    #show(status, detail = "") {
        const ended = (this.#ended = !["starting", "pending", "retrying"].includes(status));
        const isElsewhere = status === "other_browser";
        this.#now = status;
        this.#detail.textContent = detail;
        this.#detail.hidden = !detail;
        if (ended || status === "starting") {
            this.#hint = "";
            this.#help.open = false;
            this.#canScan = this.#isBlocked = false;
            this.#link.hidden = this.#help.hidden = true;
            this.#number.textContent = "";
            // In another browser, the address must first of all be copied to where the sign-in began.
            (isElsewhere ? this.#help : this.#match).after(this.#link);
            this.#link.part.toggle("action", !isElsewhere);
            this.#copy.part.toggle("action", isElsewhere);
            this.#summary.hidden = isElsewhere;
        }
        this.#again.hidden = !ended || status === "confirmed" || isElsewhere;
        this.#speak();
        if (!this.#again.hidden) {
            this.#again.focus();
        }
        this.#tell("status", { status });
    }
    /**
     * @param {string} name
     * @param {object} detail
     * @returns {boolean} False if a listener called preventDefault.
     */
    #tell(name, detail) {
        return this.dispatchEvent(new CustomEvent(`taproof-${name}`, { bubbles: true, composed: true, cancelable: true, detail }));
    }
    /** Show the state, with all texts in the current language. */
    #speak() {
        const { language, direction, texts } = (0, texts_js_1.speechFor)(this.getAttribute("language"));
        for (const part of [this.#button, this.#panel]) {
            part.lang = language;
            part.dir = direction;
        }
        this.#label.textContent = this.#title.textContent = this.getAttribute("label") ?? texts[LABEL];
        this.#panel.setAttribute("aria-label", this.#title.textContent);
        this.#scan.textContent = texts[SCAN];
        this.#choose.textContent = this.#number.textContent && texts[CHOOSE];
        const isElsewhere = this.#now === "other_browser";
        const hinted = HINTED[this.#hint];
        const said = (this.#now === "pending" && (hinted || (this.#isBlocked && BLOCKED))) || SAID[this.#now];
        // Once the link is open, there is nothing left to scan.
        this.#code.hidden = this.#scan.hidden = !this.#canScan || !!hinted;
        // Until the user has unblocked the bot, nothing happens either.
        this.#panel.toggleAttribute("data-ended", this.#ended || said === HINTED.unreachable);
        this.#link.textContent = texts[isElsewhere ? OPEN_ADDRESS : OPEN];
        this.#status.textContent = texts[said]?.replace("#", this.#number.textContent) ?? "…";
        this.#summary.textContent = texts[NOTHING_HAPPENS];
        this.#send.textContent = texts[isElsewhere ? SEND_ADDRESS : SEND];
        this.#copy.textContent = texts[COPY];
        this.#close.setAttribute("aria-label", texts[CLOSE]);
        this.#again.textContent = texts[this.#now === "used" ? RELOAD : AGAIN];
    }
}
exports.TaproofButton = TaproofButton;
if (globalThis.customElements && !customElements.get("taproof-button")) {
    customElements.define("taproof-button", TaproofButton);
}
