export type SignInResult = import("./sign_in.js").SignInResult;
export type ButtonStatus = import("./sign_in.js").WaitingStatus | import("./sign_in.js").SignInResult["status"] | "error";
declare const TaproofButton_base: {
    new (): HTMLElement;
    prototype: HTMLElement;
};
/**
 * The element `<taproof-button project-id="proj_…" submit-url="/auth/taproof">`. See the README for its attributes, events
 * and parts.
 *
 * The module can be imported without a browser; the element is then not defined.
 */
export declare class TaproofButton extends /** @type {typeof HTMLElement} */ /** @type {typeof HTMLElement} */ TaproofButton_base {
    #private;
    static observedAttributes: string[];
    constructor();
    connectedCallback(): void;
    disconnectedCallback(): void;
    attributeChangedCallback(): void;
    focus(): void;
}
export {};
