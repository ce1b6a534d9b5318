/**
 * Draws QR codes (ISO/IEC 18004). It is short because it supports only what sign-in links need: byte mode, correction
 * level L, mask 0, and two versions.
 */
/** The light edge that scanners need, in modules. */
export declare const EDGE = 4;
/**
 * @param {string} text
 * @returns {number[][] | null} Rows of modules, 1 for dark, without the light edge of four modules; null if the text is
 *   too long.
 */
export declare const modulesOf: (text: string) => number[][] | null;
export type QrCode = {
    /**
     * Includes the white edge that scanners need.
     */
    viewBox: string;
    path: string;
};
/**
 * @typedef {object} QrCode A link's QR code, for `<svg viewBox={qr.viewBox}><path d={qr.path} /></svg>`, dark on white.
 * @property {string} viewBox Includes the white edge that scanners need.
 * @property {string} path
 */
/**
 * @param {string} text
 * @returns {QrCode | null} null if the text is too long.
 */
export declare const qrCodeOf: (text: string) => QrCode | null;
