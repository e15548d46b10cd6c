// Follows what becomes of messages that were sent.
//
// Exports: follow, renew, isCorrected.

const MOST = 10; // times
const FIRST = 2000; // milliseconds until the first; each further pause is half as long again

/**
 * Calls look at most ten times, at growing intervals and only while the page is visible, for as
 * long as it returns true. pause waits for a number of milliseconds, and seen until the page is visible.
 * @param {{
 *   look: () => Promise<boolean>, pause: (ms: number) => Promise<void>, seen: () => Promise<void>,
 * }} how
 */
export async function follow({ look, pause, seen }) {
  for (let n = 0; n < MOST; n++) {
    await pause(FIRST * 1.5 ** n);
    await seen();
    if (!(await look())) return;
  }
}

/**
 * Replaces parts of the page by what they are now, except where the user is correcting an address.
 * @param {Element[]} parts @param {ArrayLike<Element>} fresh @param {Element | null} active
 */
export function renew(parts, fresh, active = document.activeElement) {
  parts.forEach((part, i) => isCorrected(part, active) || part.replaceWith(fresh[i]));
}

/**
 * Reports whether the user is correcting an address in a part of the page, where the focus is `active`.
 * @param {Element} part @param {Element | null} active
 */
export function isCorrected(part, active) {
  return part.contains(active) || [...part.querySelectorAll("input")].some((one) => one.value !== one.defaultValue);
}
