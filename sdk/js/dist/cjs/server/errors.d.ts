/** The proof is not accepted: do not sign the user in. */
export declare class ProofError extends Error {
}
/** It is not a Taproof proof: not a JWT, another issuer, or a claim that is missing or of the wrong type. */
export declare class ProofMalformed extends ProofError {
}
/** The proof was not signed with HS256 and a given secret: it is forged, altered, or from before a rotation. */
export declare class ProofSignatureInvalid extends ProofError {
}
/** The proof was signed for another project. */
export declare class ProofWrongProject extends ProofError {
}
/** The proof is more than five minutes old. */
export declare class ProofExpired extends ProofError {
}
/** The proof was issued in the future: one of the two servers' clocks is wrong. */
export declare class ProofNotYetValid extends ProofError {
}
/** The proof was already accepted: somebody copied it, or the user sent it twice. */
export declare class ProofAlreadyUsed extends ProofError {
}
/** The request may not come from the service: ignore it. */
export declare class WebhookError extends Error {
}
/** The request is not a Taproof webhook: a header is missing, or the body is not an event. */
export declare class WebhookMalformed extends WebhookError {
}
/** The webhook was not signed with a given secret: it is forged, altered, or from before or after a rotation. */
export declare class WebhookSignatureInvalid extends WebhookError {
}
/** The webhook was signed longer ago than the tolerance: an old request was sent again, or a clock is wrong. */
export declare class WebhookTooOld extends WebhookError {
}
/** The webhook was signed further in the future than the tolerance: one of the two servers' clocks is wrong. */
export declare class WebhookFromFuture extends WebhookError {
}
/** A call to the service failed. */
export declare class TaproofApiError extends Error {
    status: number | null;
    code: string;
    retryAfter: number | null;
    /**
     * @param {string} message The problem and the remedy, in the service's words if it sent any.
     * @param {{ status?: number | null, code?: string, retryAfter?: number | null }} [details] `status`: the HTTP status of
     *   the answer, null if there was none. `code`: its `X-Error-Code`. `retryAfter`: its `Retry-After`, in seconds.
     */
    constructor(message: string, { status, code, retryAfter }?: {
        status?: number | null;
        code?: string;
        retryAfter?: number | null;
    });
}
