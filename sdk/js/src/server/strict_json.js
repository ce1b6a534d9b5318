// JSON read so that no two readers can take one text differently: what the service writes passes, doubts do not.
// The SDK for Python reads by the same rules (src/taproof/sdk/strict_json.py); sdk/vectors holds both to them.

const MOST_BRACKETS = 500;
const MOST_DIGITS = 4300; // Python's limit for one whole number.
const TOKEN = /"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * Return the JSON object that `data` holds, and how each number directly in it was written.
 *
 * JSON.parse alone would take the last of two equal fields, 1e3 and 1.0 for whole numbers, and 2^53 + 1 for 2^53.
 *
 * @param {Uint8Array} data
 * @returns {{ fields: Record<string, unknown>, numbers: Map<string, string> }}
 * @throws {SyntaxError | TypeError} It is not strict UTF-8 or not JSON, a field comes twice, a number is of endless
 *   digits, it is nested deep, or it is no object. The messages may hold `data`.
 */
export function readObject(data) {
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  if ((text.match(/[{[]/g)?.length ?? 0) > MOST_BRACKETS) throw new SyntaxError("Too many objects and lists.");
  const fields = JSON.parse(text);
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) throw new SyntaxError("Not an object.");

  const numbers = new Map();
  /** @type {(Set<string> | null)[]} For each object and list around the token: the fields so far; null for a list. */
  const around = [];
  let before = ""; // The string that may turn out to be a field's name.
  let name = "";
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === "{") around.push(new Set());
    else if (token === "[") around.push(null);
    else if (token === "}" || token === "]") around.pop();
    else if (token === ":") {
      name = JSON.parse(before);
      const names = /** @type {Set<string>} */ (around.at(-1));
      if (names.has(name)) throw new SyntaxError("A field comes twice.");
      names.add(name);
    } else if (/^-?[0-9]/.test(token)) {
      if (/^-?[0-9]+$/.test(token) && token.length - Number(token[0] === "-") > MOST_DIGITS) {
        throw new SyntaxError("A number has too many digits.");
      }
      if (around.length === 1) numbers.set(name, token);
    } else before = token;
  }
  return { fields, numbers };
}

/**
 * Return whether it is a string of whole characters: half a surrogate pair could not be stored or hashed later.
 *
 * @param {unknown} value
 * @returns {value is string}
 */
export function isText(value) {
  return typeof value === "string" && !/\p{Surrogate}/u.test(value);
}

/**
 * Return whether it is a phone number as the service writes one: "+" and 5 to 15 digits, the first no 0 (E.164).
 *
 * @param {unknown} value
 * @returns {value is string}
 */
export function isPhone(value) {
  return typeof value === "string" && /^\+[1-9][0-9]{4,14}$/.test(value);
}

/**
 * Return the field's value, or undefined when it is not the object's own.
 *
 * @param {Record<string, unknown>} fields
 * @param {string} name
 */
export function own(fields, name) {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}
