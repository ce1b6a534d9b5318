"use strict";
// The errors of the checks, with the same names as in the SDK for Python. No message contains a proof, webhook or secret.
Object.defineProperty(exports, "__esModule", { value: true });
exports.TaproofApiError = exports.WebhookFromFuture = exports.WebhookTooOld = exports.WebhookSignatureInvalid = exports.WebhookMalformed = exports.WebhookError = exports.ProofAlreadyUsed = exports.ProofNotYetValid = exports.ProofExpired = exports.ProofWrongProject = exports.ProofSignatureInvalid = exports.ProofMalformed = exports.ProofError = void 0;
/** The proof is not accepted: do not sign the user in. */
class ProofError extends Error {
}
exports.ProofError = ProofError;
/** It is not a Taproof proof: not a JWT, another issuer, or a claim that is missing or of the wrong type. */
class ProofMalformed extends ProofError {
}
exports.ProofMalformed = ProofMalformed;
/** The proof was not signed with HS256 and a given secret: it is forged, altered, or from before a rotation. */
class ProofSignatureInvalid extends ProofError {
}
exports.ProofSignatureInvalid = ProofSignatureInvalid;
/** The proof was signed for another project. */
class ProofWrongProject extends ProofError {
}
exports.ProofWrongProject = ProofWrongProject;
/** The proof is more than five minutes old. */
class ProofExpired extends ProofError {
}
exports.ProofExpired = ProofExpired;
/** The proof was issued in the future: one of the two servers' clocks is wrong. */
class ProofNotYetValid extends ProofError {
}
exports.ProofNotYetValid = ProofNotYetValid;
/** The proof was already accepted: somebody copied it, or the user sent it twice. */
class ProofAlreadyUsed extends ProofError {
}
exports.ProofAlreadyUsed = ProofAlreadyUsed;
/** The request may not come from the service: ignore it. */
class WebhookError extends Error {
}
exports.WebhookError = WebhookError;
/** The request is not a Taproof webhook: a header is missing, or the body is not an event. */
class WebhookMalformed extends WebhookError {
}
exports.WebhookMalformed = WebhookMalformed;
/** The webhook was not signed with a given secret: it is forged, altered, or from before or after a rotation. */
class WebhookSignatureInvalid extends WebhookError {
}
exports.WebhookSignatureInvalid = WebhookSignatureInvalid;
/** The webhook was signed longer ago than the tolerance: an old request was sent again, or a clock is wrong. */
class WebhookTooOld extends WebhookError {
}
exports.WebhookTooOld = WebhookTooOld;
/** The webhook was signed further in the future than the tolerance: one of the two servers' clocks is wrong. */
class WebhookFromFuture extends WebhookError {
}
exports.WebhookFromFuture = WebhookFromFuture;
/** A call to the service failed. */
class TaproofApiError extends Error {
    /**
     * @param {string} message The problem and the remedy, in the service's words if it sent any.
     * @param {{ status?: number | null, code?: string, retryAfter?: number | null }} [details] `status`: the HTTP status of
     *   the answer, null if there was none. `code`: its `X-Error-Code`. `retryAfter`: its `Retry-After`, in seconds.
     */
    constructor(message, { status = null, code = "", retryAfter = null } = {}) {
        super(message);
        this.status = status;
        this.code = code;
        this.retryAfter = retryAfter;
    }
}
exports.TaproofApiError = TaproofApiError;
// A minifier renames classes, but the name in a log must not change.
for (const [name, type] of Object.entries({
    ProofError, ProofMalformed, ProofSignatureInvalid, ProofWrongProject, ProofExpired, ProofNotYetValid,
    ProofAlreadyUsed, WebhookError, WebhookMalformed, WebhookSignatureInvalid, WebhookTooOld, WebhookFromFuture,
    TaproofApiError,
})) {
    Object.defineProperty(type.prototype, "name", { value: name });
}
