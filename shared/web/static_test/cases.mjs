// What several tests use: the cases of the Go tests, bytes from seeds, and a few helpers.

import { readFileSync } from "node:fs";

const shared = new URL("../../", import.meta.url);

/** Returns the cases that a Go test has written. */
export function cases(path) {
  return JSON.parse(readFileSync(new URL(path, shared), "utf8"));
}

/** Returns n bytes that follow from a seed, as goldenBytes in Go. */
export function bytesOf(seed, n) {
  const bytes = new Uint8Array(n);
  for (let i = 0; i < n; i++) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    bytes[i] = seed >>> 24;
  }
  return bytes;
}

/** Returns a file as a page gets it. */
export function fileOf(name, seed, length, lastModified = 1e12) {
  return Object.assign(new Blob([bytesOf(seed, length)]), { name, lastModified });
}

export const hex = (bytes) => Buffer.from(bytes).toString("hex");

/** Waits until something holds. */
export async function until(holds, what = "it") {
  for (let i = 0; !holds(); i++) {
    if (i > 2000) throw new Error(`${what} does not happen`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
