// Small helpers that need no page.
//
// Exports: pick(from, names), hex(bytes), byPath(a, b).

/**
 * Returns those of the named fields that are set.
 * @param {{ [name: string]: any }} from
 * @param {string[]} names
 * @returns {any}
 */
export function pick(from, names) {
  return Object.fromEntries(names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]));
}

/**
 * Writes bytes as hexadecimal digits.
 * @param {Uint8Array} bytes
 */
export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Orders entries by their paths alone, as Go does, and not by a language.
 * @param {{ path: string }} a @param {{ path: string }} b
 */
export function byPath(a, b) {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}
