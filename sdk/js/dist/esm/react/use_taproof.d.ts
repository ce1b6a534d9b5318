export type SignInResult = import("../sign_in.js").SignInResult;
export type SignInOptions = import("../sign_in.js").SignInOptions;
export type SignInLink = import("../link.js").SignInLink;
export type QrCode = import("../qr.js").QrCode;
export type SignInState = {
    status: "idle" | import("../sign_in.js").WaitingStatus | SignInResult["status"] | "error";
    /**
     * What the user is doing in the messenger; null before there is a link.
     */
    hint: import("../sign_in.js").Hint | null;
    /**
     * The link to show to the user; null before it exists and after the sign-in ends.
     */
    link: SignInLink | null;
    /**
     * The result. If it is confirmed, send `result.proof` to your server.
     */
    result: SignInResult | null;
    /**
     * The error that ended the sign-in.
     */
    error: Error | null;
};
/**
 * Sign users in on your own page. Call `start` to begin. A sign-in continues automatically after a reload, and ends when
 * the component is unmounted.
 *
 * @param {{ projectId: string, baseUrl: string }} options `baseUrl`: the service's address.
 * @returns {SignInState & { qr: QrCode | null, start: () => void, cancel: () => void }} `start` does nothing while a
 *   sign-in is in progress. `qr` is null if no QR code may be shown.
 */
export declare function useTaproof({ projectId, baseUrl }: {
    projectId: string;
    baseUrl: string;
}): SignInState & {
    qr: QrCode | null;
    start: () => void;
    cancel: () => void;
};
