"use strict";
/**
 * Draws QR codes (ISO/IEC 18004). It is short because it supports only what sign-in links need: byte mode, correction
 * level L, mask 0, and two versions.
 */
Object.defineProperty(exports, "__esModule", { value: true });
exports.qrCodeOf = exports.modulesOf = exports.EDGE = void 0;
/** The light edge that scanners need, in modules. */
exports.EDGE = 4;
/** For versions 5 and 6: maximum bytes, modules per side, correction bytes per block, number of blocks. */
const VERSIONS = [
    [106, 37, 26, 1],
    [134, 41, 18, 2],
];
/** The format "level L, mask 0": 15 bits including their error correction (section 7.9). */
const FORMAT = 0x77c4;
/** Multiply in the 256-element field used for the correction. @param {number} a @param {number} b */
const times = (a, b) => {
    let product = 0;
    for (; b; b >>= 1) {
        product ^= a * (b & 1);
        a = (a << 1) ^ ((a >> 7) * 285);
    }
    return product;
};
/**
 * Return the Reed-Solomon correction of a block.
 *
 * @param {number[]} data
 * @param {number} count
 */
const correctionOf = (data, count) => {
    /** @type {number[]} */
    const divisor = Array(count).fill(0);
    divisor[count - 1] = 1;
    for (let i = 0, root = 1; i < count; i++, root = times(root, 2)) {
        divisor.forEach((each, at) => (divisor[at] = times(each, root) ^ (divisor[at + 1] ?? 0)));
    }
    /** @type {number[]} */
    const rest = Array(count).fill(0);
    for (const byte of data) {
        const factor = byte ^ /** @type {number} */ (rest.shift());
        rest.push(0);
        divisor.forEach((each, at) => (rest[at] ^= times(each, factor)));
    }
    return rest;
};
/**
 * Return the module of the fixed pattern at a position; undefined if the position is for data.
 *
 * @param {number} x
 * @param {number} y
 * @param {number} size
 */
const fixedModule = (x, y, size) => {
    /** @param {number} left @param {number} top */
    const distance = (left, top) => Math.max(Math.abs(x - left), Math.abs(y - top));
    const finder = Math.min(distance(3, 3), distance(size - 4, 3), distance(3, size - 4));
    const alignment = distance(size - 7, size - 7);
    const far = size - 8;
    if (finder < 5) {
        return +(finder !== 2 && finder !== 4);
    }
    else if (alignment < 3) {
        return (alignment & 1) ^ 1;
    }
    else if (x === 6 || y === 6) {
        return (x + y + 1) & 1;
    }
    else if (x === 8 && (y < 9 || y >= far)) {
        return y === far ? 1 : (FORMAT >> (y < 6 ? y : y < 9 ? y - 1 : y - far + 7)) & 1;
    }
    else if (y === 8 && (x < 8 || x >= far)) {
        return (FORMAT >> (x < 6 ? 14 - x : x < 8 ? 8 : far + 7 - x)) & 1;
    }
    return undefined;
};
/**
 * @param {string} text
 * @returns {number[][] | null} Rows of modules, 1 for dark, without the light edge of four modules; null if the text is
 *   too long.
 */
const modulesOf = (text) => {
    const bytes = [...new TextEncoder().encode(text)];
    const version = VERSIONS.find(([most]) => bytes.length <= most);
    if (!version) {
        return null;
    }
    const [most, size, count, blocks] = version;
    const hex = [bytes.length, ...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const data = `4${hex}0${"ec11".repeat(most)}`.match(/../g) ?? [];
    const length = (most + 2) / blocks;
    const parts = Array.from({ length: blocks }, (_, at) => data.slice(at * length, (at + 1) * length).map((pair) => parseInt(pair, 16)));
    const corrections = parts.map((part) => correctionOf(part, count));
    /** @param {number[][]} lists */
    const interleaved = (lists) => lists[0].flatMap((_, at) => lists.map((list) => list[at]));
    const words = [...interleaved(parts), ...interleaved(corrections)];
    const rows = Array.from({ length: size }, (_, y) => Array.from({ length: size }, (_, x) => fixedModule(x, y, size)));
    let bit = 0;
    for (let right = size - 1; right > 0; right -= 2) {
        right -= +(right === 6);
        for (let step = 0; step < size; step++) {
            const y = (right + 1) & 2 ? step : size - 1 - step;
            for (const x of [right, right - 1]) {
                rows[y][x] ??= (((words[bit >> 3] ?? 0) >> (7 - (bit++ & 7))) ^ x ^ y ^ 1) & 1;
            }
        }
    }
    return /** @type {number[][]} */ (rows);
};
exports.modulesOf = modulesOf;
/**
 * @typedef {object} QrCode A link's QR code, for `<svg viewBox={qr.viewBox}><path d={qr.path} /></svg>`, dark on white.
 * @property {string} viewBox Includes the white edge that scanners need.
 * @property {string} path
 */
/**
 * @param {string} text
 * @returns {QrCode | null} null if the text is too long.
 */
const qrCodeOf = (text) => {
    const rows = (0, exports.modulesOf)(text);
    if (rows === null)
        return null;
    const path = rows.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x},${y}h1v1h-1z` : ""))).join("");
    const side = rows.length + 2 * exports.EDGE;
    return { viewBox: `${-exports.EDGE} ${-exports.EDGE} ${side} ${side}`, path };
};
exports.qrCodeOf = qrCodeOf;
