/** @typedef {import("./sign_in.js").SignInOptions} SignInOptions */
export type SignInOptions = import("./sign_in.js").SignInOptions;
/** @param {SignInOptions} options */
export declare const baseOf: ({ baseUrl }: SignInOptions) => string;
/**
 * Call a public endpoint of the service.
 *
 * @param {SignInOptions} options
 * @param {string} verb
 * @param {object} body
 * @param {AbortSignal} [signal] Without it, the call survives the end of the page.
 */
export declare const post: (options: SignInOptions, verb: string, body: object, signal?: AbortSignal) => Promise<Response>;
