export type SingleUseGuard<Answer = boolean | Promise<boolean>> = {
    /**
     * Returns true only for the
     * first call with a token. `expiresAt`: the time until which to remember the token, in whole seconds since the epoch.
     */
    take: (sessionToken: string, expiresAt: number) => Answer;
};
/** Remembers proofs in this process. It stores only hashes of the session tokens and forgets expired ones. */
export declare class MemoryGuard {
    #private;
    /** @param {{ now?: () => number }} [options] `now`: the clock, in seconds since the epoch, for tests. */
    constructor({ now }?: {
        now?: () => number;
    });
    /**
     * @param {string} sessionToken
     * @param {number} expiresAt
     * @returns {boolean}
     */
    take(sessionToken: string, expiresAt: number): boolean;
    /** The number of remembered proofs. */
    get size(): number;
}
