// Reads forms for the API, and says what is wrong with them, without needing a page.
//
// Exports: collect(fields) makes the JSON of fields {name, type, value, checked, data};
// explain(answer, errors, words) says why a request failed; address(text, answer) fills in where to go afterwards.
//
// A field's data says how it is read: with `skip` an empty field is left out; `unit` multiplies a
// number; `recipients` are divided into m and c. The choice "-" is left out too, and an unchecked
// box whose data has `empty` changes nothing.

import { people } from "./people.js";

/** @import { Words } from "./words.js" */
/**
 * @typedef {{
 *   name: string, type?: string, value: string, checked?: boolean, data?: { [name: string]: string | undefined },
 * }} Field
 * @typedef {{ json?: { [name: string]: any }, wrong?: string[], name?: string }} Collected
 */

/**
 * Returns what the fields of a form say, or {wrong, name} with the invalid recipients.
 * @param {Field[]} fields
 * @returns {Collected}
 */
export function collect(fields) {
  /** @type {{ [name: string]: any }} */
  const all = {};
  for (const { name, type, value, checked, data = {} } of fields) {
    if (!name || value === "-" || ("skip" in data && value === "")) continue;
    if (type === "checkbox") {
      if (!("empty" in data)) all[name] = checked;
      else if (checked) all[name] = "";
    } else if (type === "number") {
      all[name] = value === "" ? 0 : Math.round(Number(value) * Number(data.unit ?? 1));
    } else if ("recipients" in data) {
      const found = people(value),
        wrong = found.filter(({ kind }) => !kind);
      if (wrong.length) return { wrong: wrong.map(({ text }) => text), name };
      for (const kind of ["m", "c"]) {
        const some = found.filter((one) => one.kind === kind).map((one) => one.value);
        if (some.length) all[kind] = some;
      }
    } else all[name] = value;
  }
  return { json: all };
}

/**
 * Says why a request failed: by the parameter that is wrong, or else by the status.
 * @param {{ status: number, parameter: string, retryAfter: number }} error
 * @param {{ [key: string]: string }} errors
 * @param {Words} words
 */
export function explain({ status, parameter, retryAfter }, errors, words) {
  if (!status) return words.t("offline");
  if (status === 401) return words.t("login");
  if (status === 429) return errors.wait.replace("%s", words.n("seconds", retryAfter || 1));
  for (const key of [`parameter.${parameter}`, `${status}`]) {
    if (words.has(key)) return words.t(key);
  }
  return errors[status] ?? words.t("failed");
}

/**
 * Fills the answer's id into an address, in place of {id}.
 * @param {string} text @param {{ id?: string | number } | null} answer
 */
export function address(text, answer) {
  return text.replace("{id}", encodeURIComponent(answer?.id ?? ""));
}
