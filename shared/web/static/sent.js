// Aids for the links of what was sent: the first is selected, and devices that can share offer it.
// The states of its messages are updated by themselves.

import { byId, find, pageAt } from "./dom.js";
import { follow, renew } from "./follow.js";

const field = find("input[readonly][autofocus]");
field?.focus();
field?.select();

/** @type {NodeListOf<HTMLElement>} */
const sharing = document.querySelectorAll("[data-share]");
for (const button of sharing) {
  if (!navigator.share) break;
  button.hidden = false;
  button.addEventListener("click", () => {
    const { value } = byId(button.dataset.share ?? "");
    navigator.share({ url: value }).catch(() => {}); // the user may change their mind
  });
}

// look shows what has become of the messages. It returns whether this may still change.
async function look() {
  const parts = [...document.querySelectorAll("[data-follow]")];
  try {
    const { page } = await pageAt(location.href);
    const fresh = page.querySelectorAll("[data-follow]");
    if (fresh.length !== parts.length) return false;
    renew(parts, fresh);
  } catch {} // without a connection, wait for the next time
  return find("[data-waits]") !== null;
}

async function seen() {
  if (document.visibilityState === "visible") return;
  await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}

if (find("[data-waits]")) follow({ look, seen, pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) });
