// RFC 7636, S256 only.

/** @param {Uint8Array} bytes */
const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

/** Return a new code verifier. */
export const newVerifier = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

/** Return the code challenge of a code verifier. @param {string} verifier */
export const challengeOf = async (verifier) =>
  base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
