export type Speech = {
    language: string;
    direction: "ltr" | "rtl";
    texts: string[];
};
/** @typedef {{ language: string, direction: "ltr" | "rtl", texts: string[] }} Speech */
/**
 * Return the texts of the first available language: the requested one, the page's, the browser's, English.
 *
 * @param {string | null} wanted An IETF language tag.
 * @returns {Speech}
 */
export declare const speechFor: (wanted: string | null) => Speech;
