// Helps with the links of what was sent: the first is selected, and devices that can share do. What becomes of
// its messages follows by itself.

import { follow } from "./follow.js";

const field = document.querySelector("input[readonly][autofocus]");
field?.focus();
field?.select();

for (const button of document.querySelectorAll("[data-share]")) {
  if (!navigator.share) break;
  button.hidden = false;
  button.addEventListener("click", () => {
    const { value } = document.getElementById(button.dataset.share);
    navigator.share({ url: value }).catch(() => {}); // whoever changes their mind
  });
}

// isCorrected reports whether somebody is correcting an address in a part of the page.
const isCorrected = (part) =>
  part.contains(document.activeElement) || [...part.querySelectorAll("input")].some((one) => one.value !== one.defaultValue);

// look shows what has become of the messages, but for those that somebody is correcting. It returns whether that
// may change.
async function look() {
  const parts = [...document.querySelectorAll("[data-follow]")];
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelectorAll("[data-follow]");
    if (fresh.length !== parts.length) return false;
    parts.forEach((part, i) => isCorrected(part) || part.replaceWith(document.adoptNode(fresh[i])));
  } catch {} // without a connection, the next time
  return document.querySelector("[data-waits]") !== null;
}

const seen = () =>
  document.visibilityState === "visible" ||
  new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));

if (document.querySelector("[data-waits]"))
  follow({ look, seen, pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) });
