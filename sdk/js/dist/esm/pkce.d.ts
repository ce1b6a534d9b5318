/** Return a new code verifier. */
export declare const newVerifier: () => string;
/** Return the code challenge of a code verifier. @param {string} verifier */
export declare const challengeOf: (verifier: string) => Promise<string>;
