// Reads recipients as people write and paste them: addresses and telephone numbers, alone, in lists,
// and with names, as in "Bob <bob@example.com>; +39 340 123 4567".
//
//   for (const { kind, text, value } of people(pasted)) ...   // kind: 'm' address, 'c' number, '' neither
//
// Exports: people(text, region). With a region, numbers need no country code. The service decides
// what it sends to; this only finds what is mistyped.

/** @typedef {{ kind: string, text: string, value: string }} Person */

const ADDRESS = /^[^\s@<>"(),:;\\[\]%!]+@[^\s@]+\.[^\s@.\d][^\s@.]*$/;

/**
 * Returns the recipients in a text, each once: {kind, text, value}, as written and as sent.
 * @param {string} text
 */
export function people(text, region = false) {
  /** @type {Map<string, Person>} */
  const found = new Map();
  /** @type {(kind: string, written: string, value: string) => void} */
  const add = (kind, written, value) => {
    const key = value.toLowerCase();
    if (!found.has(key)) found.set(key, { kind, text: written, value });
  };
  const one = (/** @type {string} */ written) => {
    const digits = written.replace(/[\s().\/-]/g, ""),
      abroad = region ? digits : digits.replace(/^00/, "+");
    if (/^\+\d{6,15}$/.test(abroad) || (region && /^\d{3,17}$/.test(digits))) add("c", written, abroad);
    else add(ADDRESS.test(written) ? "m" : "", written, written);
  };
  const unquoted = text.replace(/"[^"\n]*"/g, ""); // a name, which may have a comma
  for (const piece of unquoted.split(/[,;\n\r\t]+/)) {
    const named = piece.match(/<([^<>]*)>/);
    for (const written of named ? [named[1].trim()] : words(piece)) {
      if (written) one(written);
    }
  }
  return [...found.values()];
}

// words separates addresses and numbers that have spaces between them. A number may contain spaces
// itself, and a name beside an address is neither.
/** @param {string} piece */
function words(piece) {
  if (!piece.includes("@")) return piece.trim().split(/\s+(?=\+)/);
  /** @type {string[]} */
  const all = [];
  let rest = "";
  for (const word of [...piece.trim().split(/\s+/), "@"]) {
    if (!word.includes("@")) {
      rest += ` ${word}`;
      continue;
    }
    if (/\d/.test(rest)) all.push(...rest.trim().split(/\s+(?=\+)/));
    rest = "";
    if (word !== "@") all.push(word);
  }
  return all;
}
