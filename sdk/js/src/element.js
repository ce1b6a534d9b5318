import { SignInError } from "./errors.js";
import { modulesOf } from "./qr.js";
import { PHONE, resume, signIn } from "./sign_in.js";
import { STYLE } from "./style.js";
import { speechFor } from "./texts.js";

/**
 * @typedef {import("./sign_in.js").SignInResult} SignInResult
 * @typedef {import("./sign_in.js").WaitingStatus | import("./sign_in.js").SignInResult["status"] | "error"} ButtonStatus
 */

/** Places in the texts. */
const [LABEL, SCAN, OPEN, NOTHING_HAPPENS, SEND, COPY, CLOSE, AGAIN, CHOOSE] = [0, 1, 2, 4, 5, 6, 7, 8, 14];
/** What is said of a status. @type {Record<string, number>} */
const SAID = { pending: 3, retrying: 12, confirmed: 9, cancelled: 10, expired: 11, used: 11, error: 13 };
/** Screen pixels of one module of the QR code. */
const MODULE = 5;
/** Modules of the light edge around it. */
const EDGE = 4;
/** How long "Confirmed" is to be seen when the page stays. */
const CLOSING_DELAY = 1_500;
/** Milliseconds at most between two attempts to hand the proof over: it holds for five minutes. */
const LONGEST_PAUSE = 5_000;

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
 * Draw the QR code of a link, dark on light with the light edge that it needs, whatever the colours of the page.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {string} link
 * @returns {boolean} False when the link is too long for one.
 */
const draw = (canvas, link) => {
  const rows = modulesOf(link);
  const context = canvas.getContext("2d");
  if (!rows || !context) {
    return false;
  }
  const side = rows.length + 2 * EDGE;
  canvas.width = canvas.height = side * MODULE;
  context.scale(MODULE, MODULE);
  context.fillStyle = "#fff";
  context.fillRect(0, 0, side, side);
  context.fillStyle = "#000";
  rows.forEach((row, y) => row.forEach((dark, x) => context.fillRect(x + EDGE, y + EDGE, dark, dark)));
  return true;
};

/**
 * @param {unknown} address
 * @returns {URL | null} null for anything but a page of this origin: never a script's address, never another site's. Nor
 *   a path that begins with two slashes, as "/.//other.example" does once it is read: whoever goes there by the path alone,
 *   as routers do, leaves the site.
 */
const pageOf = (address) => {
  try {
    const page = new URL(/** @type {string} */ (address), document.baseURI);
    const isOwn = page.origin === location.origin && page.protocol.startsWith("http") && !page.pathname.startsWith("//");
    return address && isOwn ? page : null;
  } catch {
    return null;
  }
};

/**
 * `<taproof-button project-id="proj_…" submit-url="/auth/taproof">`: see the README for its attributes, events and parts.
 *
 * The module can be imported where there is no browser; the element is then not defined.
 */
export class TaproofButton extends /** @type {typeof HTMLElement} */ (
  globalThis.HTMLElement ?? Object
) {
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
  #panel = make(
    "dialog",
    "panel",
    this.#title,
    this.#code,
    this.#scan,
    this.#match,
    this.#link,
    this.#status,
    this.#detail,
    this.#again,
    this.#help,
    this.#close,
  );
  /** Of the sign-in that is under way, or was the last. */
  #controller = new AbortController();
  /** @type {ButtonStatus} */
  #now = "starting";

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    root.append(this.#button, this.#panel);
    // Each is said aloud as a whole when it changes.
    for (const part of [this.#status, this.#match]) {
      part.setAttribute("role", "status");
    }
    this.#copy.setAttribute("aria-live", "polite");
    // Who cannot see it cannot scan it; the link stands beside it.
    this.#code.setAttribute("aria-hidden", "true");
    this.#command.dir = "ltr";
    this.#detail.dir = "auto";
    this.#close.textContent = "✕";
    this.#link.target = "_blank";
    this.#link.rel = "noopener";
    for (const button of [this.#button, this.#again]) {
      button.type = "button";
      button.onclick = () => this.#start();
    }
    this.#close.onclick = () => this.#panel.close();
    this.#panel.onclose = () => this.#controller.abort();
    this.#copy.onclick = async () => {
      try {
        await navigator.clipboard.writeText(this.#command.textContent);
        this.#copy.textContent += " ✓";
      } catch {
        getSelection()?.selectAllChildren(this.#command);
      }
    };
  }

  connectedCallback() {
    this.#speak();
    // A sign-in of this page, from before it was reloaded; one that this element goes on with is not found again.
    const controller = new AbortController();
    const going = resume(this.#options(controller, true));
    if (going) {
      this.#start(controller, going);
    }
  }

  disconnectedCallback() {
    // An element that is only moved is connected again by then.
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
      onConfirmed: async (result) => {
        this.#show("confirmed");
        this.#tell("confirmed", { result });
        const submitUrl = this.getAttribute("submit-url");
        const to = submitUrl === null ? null : await this.#submit(submitUrl, result.proof, signal);
        if (to && this.#tell("signed-in", { location: to.pathname + to.search + to.hash })) {
          // Should the user come back to this page as it was left, the panel is not there any more.
          addEventListener("pagehide", () => this.#panel.close(), { once: true });
          location.assign(to);
        } else {
          setTimeout(() => this.#controller === controller && this.#panel.close(), CLOSING_DELAY);
        }
      },
      onLink: ({ deeplink, appLink, command, matchCode }) => {
        const phone = matchMedia(PHONE).matches;
        this.#number.textContent = matchCode;
        this.#speak();
        this.#link.href = deeplink;
        this.#command.textContent = command;
        this.#code.hidden = this.#scan.hidden = phone || !draw(this.#code, deeplink);
        this.#link.hidden = this.#help.hidden = false;
        if (phone) {
          this.#link.focus();
          // A browser that blocks this, or a phone without the app, leaves the page as it is, with the link to tap. So does
          // a number: whoever is taken to the messenger at once has not read it.
          if (resumed || matchCode) {
            return;
          }
          if (appLink) {
            location.href = appLink;
          } else {
            open(deeplink, "_blank", "noopener");
          }
        }
      },
    };
  }

  async #start(controller = new AbortController(), going = signIn(this.#options(controller))) {
    this.#controller = controller;
    const { signal } = controller;
    if (!this.#panel.open) {
      // A page that does not say which colours it has gets those that the user prefers.
      this.#panel.style.colorScheme = getComputedStyle(this).colorScheme === "normal" ? "light dark" : "";
      this.#panel.showModal();
    }
    this.#close.focus();
    try {
      const result = await going;
      if (result.status !== "confirmed") {
        this.#show(result.status);
        this.#tell("ended", { status: result.status });
      }
    } catch (error) {
      if (signal.aborted) {
        this.#tell("ended", { status: "aborted" });
      } else {
        this.#show("error", error instanceof SignInError ? error.message : "");
        this.#tell("error", { error });
      }
    }
  }

  /**
   * Hand the proof to the application's own server.
   *
   * @param {string} url
   * @param {string} proof
   * @param {AbortSignal} signal
   * @returns {Promise<URL>} Where its answer says that the page goes: to this origin only.
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
      } catch {
        // No answer, or the page of a proxy: try again.
      }
    }
    const to = response?.ok ? pageOf(answer?.location) : null;
    if (!to) {
      const said = `${url} answered with status ${response?.status ?? 0}, not with {"location": "/…"} of this site.`;
      throw new SignInError("submit_failed", answer?.error ?? said, response?.status);
    }
    return to;
  }

  /**
   * @param {ButtonStatus} status
   * @param {string} [detail]
   */
  #show(status, detail = "") {
    const ended = !["starting", "pending", "retrying"].includes(status);
    this.#now = status;
    this.#panel.toggleAttribute("data-ended", ended);
    this.#detail.textContent = detail;
    this.#detail.hidden = !detail;
    if (ended || status === "starting") {
      this.#code.hidden = this.#scan.hidden = this.#link.hidden = this.#help.hidden = true;
      this.#number.textContent = "";
    }
    this.#again.hidden = !ended || status === "confirmed";
    this.#speak();
    if (!this.#again.hidden) {
      this.#again.focus();
    }
    this.#tell("status", { status });
  }

  /**
   * @param {string} name
   * @param {object} detail
   * @returns {boolean} False when a listener has called preventDefault.
   */
  #tell(name, detail) {
    return this.dispatchEvent(
      new CustomEvent(`taproof-${name}`, { bubbles: true, composed: true, cancelable: true, detail }),
    );
  }

  /** Say everything in the language that is right now. */
  #speak() {
    const { language, direction, texts } = speechFor(this.getAttribute("language"));
    for (const part of [this.#button, this.#panel]) {
      part.lang = language;
      part.dir = direction;
    }
    this.#label.textContent = this.#title.textContent = this.getAttribute("label") ?? texts[LABEL];
    this.#panel.setAttribute("aria-label", this.#title.textContent);
    this.#scan.textContent = texts[SCAN];
    this.#choose.textContent = this.#number.textContent && texts[CHOOSE];
    this.#link.textContent = texts[OPEN];
    this.#status.textContent = texts[SAID[this.#now]] ?? "…";
    this.#summary.textContent = texts[NOTHING_HAPPENS];
    this.#send.textContent = texts[SEND];
    this.#copy.textContent = texts[COPY];
    this.#close.setAttribute("aria-label", texts[CLOSE]);
    this.#again.textContent = texts[AGAIN];
  }
}

if (globalThis.customElements && !customElements.get("taproof-button")) {
  customElements.define("taproof-button", TaproofButton);
}
