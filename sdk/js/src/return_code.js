// The page that the messenger's *Back to …* button opens has a return code in its address: `#taproof_return=<code>`.
// Importing this module takes the code out of the address, so that it does not stay in the tab's history or in links that
// the user copies. The browser's own list of visited addresses keeps it, but it works once, and only with the verifier.

const PATTERN = /^#taproof_return=([\w-]+)$/;

let code = "";

/** Return the address of this page without its fragment; undefined where there is no page. */
export const pageAddress = () => globalThis.document?.URL.split("#")[0];

/** Return whether the page's address has a return code. */
export const isReturn = () => PATTERN.test(location.hash);

/** Take the return code, if there is one, out of the page's address. */
export const clearAddress = () => {
  const found = PATTERN.exec(location.hash);
  if (found) {
    code = found[1];
    history.replaceState(history.state, "", pageAddress());
  }
};

/** Return the address that opens this page with a return code. @param {string} returnCode */
export const addressWith = (returnCode) => `${pageAddress()}#taproof_return=${returnCode}`;

/** Return the code that was in the address and has not been taken yet, without taking it; "" if there is none. */
export const peekReturnCode = () => code;

/**
 * Return the code from the address of the page that the messenger opened, only once. `signIn` and `resume` do this
 * themselves. Call it only if your own server started the sign-in, and send it there.
 *
 * @returns {string} "" if there is none.
 */
export const takeReturnCode = () => {
  const taken = code;
  code = "";
  return taken;
};

if (globalThis.document) {
  clearAddress();
}
