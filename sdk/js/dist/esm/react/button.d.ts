import "../element.js";
export type SignInResult = import("../index.js").SignInResult;
export type TaproofButtonProps = {
    projectId: string;
    /**
     * The service's address.
     */
    baseUrl: string;
    /**
     * The path on your own server that receives the proof. Its answer names the next page.
     */
    submitUrl?: string;
    label?: string;
    language?: string;
    /**
     * Shows no QR code; for a project whose `same_device` is `require`.
     */
    sameDevice?: "require";
    className?: string;
    onStatus?: (status: string, event: CustomEvent) => void;
    onHint?: (hint: string, event: CustomEvent) => void;
    /**
     * Without
     * `submitUrl`: send `result.proof` to your server.
     */
    onConfirmed?: (result: Extract<SignInResult, {
        status: "confirmed";
    }>, event: CustomEvent) => void;
    /**
     * Your server has accepted the proof. Call
     * `event.preventDefault()` if you navigate with your own router.
     */
    onSignedIn?: (location: string, event: CustomEvent) => void;
    onEnded?: (status: string, event: CustomEvent) => void;
    onError?: (error: Error, event: CustomEvent) => void;
};
/**
 * Render `<taproof-button>` with props and callbacks.
 *
 * @param {TaproofButtonProps & Record<string, unknown>} props
 */
export declare function TaproofButton(props: TaproofButtonProps & Record<string, unknown>): import("react").ReactElement<{
    onStatus?: (status: string, event: CustomEvent) => void;
    onHint?: (hint: string, event: CustomEvent) => void;
    onConfirmed?: (result: Extract<SignInResult, {
        status: "confirmed";
    }>, event: CustomEvent) => void;
    onSignedIn?: (location: string, event: CustomEvent) => void;
    onEnded?: (status: string, event: CustomEvent) => void;
    onError?: (error: Error, event: CustomEvent) => void;
    ref: (element: HTMLElement | null) => void;
    class: string | undefined;
    label: string | undefined;
    language: string | undefined;
    "same-device": "require" | undefined;
    "project-id": string;
    "base-url": string;
    "submit-url": string | undefined;
}, string | import("react").JSXElementConstructor<any>>;
