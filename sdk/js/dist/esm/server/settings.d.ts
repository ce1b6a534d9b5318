export type Settings = {
    /**
     * The service's address for browsers: `https://signin.example.com` (`TAPROOF_BASE_URL`).
     */
    baseUrl: string;
    /**
     * `proj_…` (`TAPROOF_PROJECT_ID`).
     */
    projectId: string;
    /**
     * `whsec_…`, or several during a rotation, separated by commas
     * (`TAPROOF_WEBHOOK_SECRET`). Not enumerable, to keep it out of logs; a copy by spread does not include it.
     */
    webhookSecret: string[];
};
/**
 * Read the three settings from `process.env` or another object.
 *
 * @param {Record<string, string | undefined>} values
 * @returns {Readonly<Settings>}
 * @throws {TypeError} A setting is missing or invalid. The message names all such settings and contains no value.
 */
export declare function settingsFrom(values: Record<string, string | undefined>): Readonly<Settings>;
