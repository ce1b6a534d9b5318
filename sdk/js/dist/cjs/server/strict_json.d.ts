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
export declare function readObject(data: Uint8Array): {
    fields: Record<string, unknown>;
    numbers: Map<string, string>;
};
/**
 * Return whether the value is a string without lone surrogates, which could not be stored or hashed.
 *
 * @param {unknown} value
 * @returns {value is string}
 */
export declare function isText(value: unknown): value is string;
/**
 * Return whether the value is a phone number as the service writes it: "+" and 5 to 15 digits, the first not 0 (E.164).
 *
 * @param {unknown} value
 * @returns {value is string}
 */
export declare function isPhone(value: unknown): value is string;
/**
 * Return the field's value, or undefined if it is not an own field of the object.
 *
 * @param {Record<string, unknown>} fields
 * @param {string} name
 */
export declare function own(fields: Record<string, unknown>, name: string): unknown;
