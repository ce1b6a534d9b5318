export type Identity = {
    /**
     * The id of the user's messenger account, in digits. Only this never changes: use it as the
     * key.
     */
    messengerId: string;
    /**
     * The display name that the user chose. Anybody can choose any name: escape it, do not
     * trust it.
     */
    messengerName: string;
    /**
     * The handle, without "@"; "" if there is none. Another person can take it over.
     */
    messengerUsername: string;
    /**
     * The user's phone number as the messenger knows it, such as "+4915123456789"
     * (E.164); null unless the project collects it and the user shared it.
     */
    messengerPhone: string | null;
    /**
     * The project of the sign-in.
     */
    projectId: string;
    /**
     * The session token. Not enumerable, to keep it out of logs, JSON and copies.
     */
    sessionToken: string;
    /**
     * Always "taproof" (the claim `iss`).
     */
    issuer: string;
    /**
     * The time of issue, in seconds since the epoch (the claim `iat`).
     */
    issuedAt: number;
    /**
     * The time of expiry, in seconds since the epoch (the claim `exp`).
     */
    expiresAt: number;
};
export type ProofOptions = {
    /**
     * The only project whose proofs are accepted; without it, any proof signed with the
     * secret.
     */
    projectId?: string | null;
    /**
     * Seconds that a proof is accepted after its expiry, in case a clock is wrong; 0 by default.
     */
    leeway?: number;
    /**
     * The time in seconds since the epoch, for tests; the machine's clock by default.
     */
    now?: number;
};
export declare function verifyProof(proof: unknown, secret: string | readonly string[], options: ProofOptions & {
    guard: import("./guard.js").SingleUseGuard<Promise<boolean>>;
}): Promise<Readonly<Identity>>;
export declare function verifyProof(proof: unknown, secret: string | readonly string[], options?: ProofOptions & {
    guard?: import("./guard.js").SingleUseGuard<boolean>;
}): Readonly<Identity>;
export declare function verifyProof(proof: unknown, secret: string | readonly string[], options: ProofOptions & {
    guard?: import("./guard.js").SingleUseGuard;
}): Readonly<Identity> | Promise<Readonly<Identity>>;
