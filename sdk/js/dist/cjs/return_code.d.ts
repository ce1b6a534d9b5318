/** Return the address of this page without its fragment; undefined where there is no page. */
export declare const pageAddress: () => string;
/** Return whether the page's address has a return code. */
export declare const isReturn: () => boolean;
/** Take the return code, if there is one, out of the page's address. */
export declare const clearAddress: () => void;
/** Return the address that opens this page with a return code. @param {string} returnCode */
export declare const addressWith: (returnCode: string) => string;
/** Return the code that was in the address and has not been taken yet, without taking it; "" if there is none. */
export declare const peekReturnCode: () => string;
/**
 * Return the code from the address of the page that the messenger opened, only once. `signIn` and `resume` do this
 * themselves. Call it only if your own server started the sign-in, and send it there.
 *
 * @returns {string} "" if there is none.
 */
export declare const takeReturnCode: () => string;
