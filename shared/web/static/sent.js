// Aids for the links of what was sent: the first is selected, and devices that can share offer it.
// The states of its messages are updated by themselves.

import { follow } from "./follow.js";

const field = document.querySelector("input[readonly][autofocus]");
field?.focus();
field?.select();

for (const button of document.querySelectorAll("[data-share]")) {
  if (!navigator.share) break;
  button.hidden = false;
  button.addEventListener("click", () => {
    const { value } = document.getElementById(button.dataset.share);
    navigator.share({ url: value }).catch(() => {}); // the user may change their mind
  });
}

// isCorrected reports whether the user is correcting an address in a part of the page.
const isCorrected = (part) =>
  part.contains(document.activeElement) || [...part.querySelectorAll("input")].some((one) => one.value !== one.defaultValue);

// look shows what has become of the messages, except where the user is correcting an address. It
// returns whether this may still change.
async function look() {
  const parts = [...document.querySelectorAll("[data-follow]")];
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelectorAll("[data-follow]");
    if (fresh.length !== parts.length) return false;
    parts.forEach((part, i) => isCorrected(part) || part.replaceWith(document.adoptNode(fresh[i])));
  } catch {} // without a connection, wait for the next time
  return document.querySelector("[data-waits]") !== null;
}

const seen = () =>
  document.visibilityState === "visible" ||
  new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));

if (document.querySelector("[data-waits]"))
  follow({ look, seen, pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) });
