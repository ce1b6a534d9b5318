"use strict";
// Reads JSON strictly: it accepts what the service writes and refuses text that parsers read in different ways. The SDK
// for Python has the same rules (src/taproof/sdk/strict_json.py); sdk/vectors tests both.
Object.defineProperty(exports, "__esModule", { value: true });
exports.readObject = readObject;
exports.isText = isText;
exports.isPhone = isPhone;
exports.own = own;
const MOST_BRACKETS = 500;
const MOST_DIGITS = 4300; // Python's limit for one whole number.
const TOKEN = /"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/g;
/**
 * Return the JSON object in `data`, and the original text of each number at its top level.
 *
 * JSON.parse itself would keep the last of two fields with the same name, read 1e3 and 1.0 as whole numbers, and read
 * 2^53 + 1 as 2^53.
 *
 * @param {Uint8Array} data
 * @returns {{ fields: Record<string, unknown>, numbers: Map<string, string> }}
 * @throws {SyntaxError | TypeError} `data` is not strict UTF-8, not JSON, not an object, or nested too deeply; a field is
 *   repeated; or a number is too long. The messages may contain `data`.
 */
function readObject(data) {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
    if ((text.match(/[{[]/g)?.length ?? 0) > MOST_BRACKETS)
        throw new SyntaxError("The JSON has too many objects and lists.");
    const fields = JSON.parse(text);
    if (typeof fields !== "object" || fields === null || Array.isArray(fields))
        throw new SyntaxError("Not an object.");
    const numbers = new Map();
    /** @type {(Set<string> | null)[]} For each enclosing object, the names of its fields so far; null for a list. */
    const around = [];
    let before = ""; // The last string, which may be the name of a field.
    let name = "";
    for (const [token] of text.matchAll(TOKEN)) {
        if (token === "{")
            around.push(new Set());
        else if (token === "[")
            around.push(null);
        else if (token === "}" || token === "]")
            around.pop();
        else if (token === ":") {
            name = JSON.parse(before);
            const names = /** @type {Set<string>} */ (around.at(-1));
            if (names.has(name))
                throw new SyntaxError("A field is repeated.");
            names.add(name);
        }
        else if (/^-?[0-9]/.test(token)) {
            if (/^-?[0-9]+$/.test(token) && token.length - Number(token[0] === "-") > MOST_DIGITS) {
                throw new SyntaxError("A number has too many digits.");
            }
            if (around.length === 1)
                numbers.set(name, token);
        }
        else
            before = token;
    }
    return { fields, numbers };
}
/**
 * Return whether the value is a string without lone surrogates, which could not be stored or hashed.
 *
 * @param {unknown} value
 * @returns {value is string}
 */
function isText(value) {
    return typeof value === "string" && !/\p{Surrogate}/u.test(value);
}
/**
 * Return whether the value is a phone number as the service writes it: "+" and 5 to 15 digits, the first not 0 (E.164).
 *
 * @param {unknown} value
 * @returns {value is string}
 */
function isPhone(value) {
    return typeof value === "string" && /^\+[1-9][0-9]{4,14}$/.test(value);
}
/**
 * Return the field's value, or undefined if it is not an own field of the object.
 *
 * @param {Record<string, unknown>} fields
 * @param {string} name
 */
function own(fields, name) {
    return Object.hasOwn(fields, name) ? fields[name] : undefined;
}
