"use strict";
// RFC 7636, S256 only.
Object.defineProperty(exports, "__esModule", { value: true });
exports.challengeOf = exports.newVerifier = void 0;
/** @param {Uint8Array} bytes */
const base64url = (bytes) => btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
/** Return a new code verifier. */
const newVerifier = () => base64url(crypto.getRandomValues(new Uint8Array(32)));
exports.newVerifier = newVerifier;
/** Return the code challenge of a code verifier. @param {string} verifier */
const challengeOf = async (verifier) => base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
exports.challengeOf = challengeOf;
