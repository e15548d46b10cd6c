// Helpers for the pages that send files.
//
// Exports: words, byId, find, copyOf, isolated, element, label, warn.

import { Words } from "./words.js";

export const byId = (id) => document.getElementById(id);

/** The texts of the page's scripts. */
export const words = new Words(JSON.parse(byId("texts").textContent));

export const find = (selector, within = document) => within.querySelector(selector);

/** Returns a new element from a <template>. */
export const copyOf = (id) => byId(id).content.cloneNode(true).firstElementChild;

export const element = (name, properties) => Object.assign(document.createElement(name), properties);

/** Returns a name that does not change the direction of the text around it. */
export const isolated = (textContent) => element("bdi", { textContent });

/** Puts pieces of a text into an element in one span, because a flex container would lay them out separately. */
export function label(button, pieces) {
  const span = element("span");
  span.append(...pieces);
  button.replaceChildren(span);
}

/** Shows what is wrong in the alert of a part of the page. A text may come in pieces; without any, the alert is hidden. */
export function warn(part, text = "") {
  const alert = find(".alert", part);
  alert.hidden = !text;
  find("p", alert).replaceChildren(...[text].flat());
}
