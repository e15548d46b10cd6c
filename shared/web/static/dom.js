// Helpers for pages.
//
// Exports: byId, find, copyOf, element, isolated, put, label, warn; pageAt.

/** @type {(id: string) => any} */
export const byId = (id) => document.getElementById(id);

/**
 * @type {{
 *   <K extends keyof HTMLElementTagNameMap>(selector: K, within?: ParentNode): HTMLElementTagNameMap[K],
 *   (selector: string, within?: ParentNode): any,
 * }}
 */
export const find = (/** @type {string} */ selector, /** @type {ParentNode} */ within = document) =>
  within.querySelector(selector);

/**
 * Returns a new element from a <template>.
 * @type {(id: string) => HTMLElement}
 */
export const copyOf = (id) => byId(id).content.cloneNode(true).firstElementChild;

/** @type {<K extends keyof HTMLElementTagNameMap>(name: K, properties?: object) => HTMLElementTagNameMap[K]} */
export const element = (name, properties) => Object.assign(document.createElement(name), properties);

/**
 * Returns a name that does not change the direction of the text around it.
 * @type {(textContent: string) => HTMLElement}
 */
export const isolated = (textContent) => element("bdi", { textContent });

/**
 * Changes a text, unless it is the same: it would be drawn again.
 * @param {Element} where @param {string} text
 */
export function put(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

/**
 * Puts pieces of a text into an element in one span, because a flex container would lay them out separately.
 * @param {Element} button @param {(string | Node)[]} pieces
 */
export function label(button, pieces) {
  const span = element("span");
  span.append(...pieces);
  button.replaceChildren(span);
}

/**
 * Shows what is wrong in the alert of a part of the page. A text may come in pieces; without any, the alert is hidden.
 * @param {ParentNode} part @param {string | (string | Node)[]} text
 */
export function warn(part, text = "") {
  const alert = find(".alert", part);
  alert.hidden = !text;
  find("p", alert).replaceChildren(...[text].flat());
}

/**
 * Returns the page at an address, and whether the address led elsewhere.
 * @param {string} address
 */
export async function pageAt(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return { page, redirected: answer.redirected };
}
