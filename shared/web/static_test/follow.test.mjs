import { deepStrictEqual } from "node:assert";
import { test } from "node:test";
import { follow } from "../static/follow.js";

test("a page follows at most ten times, less and less often, and only while it is seen", async () => {
  for (const [changes, want] of [[Infinity, 10], [3, 3], [1, 1]]) {
    const done = [], pauses = [];
    let looks = 0;
    await follow({
      look: async () => { done.push("look"); return ++looks < changes; },
      seen: async () => { done.push("seen"); },
      pause: async (ms) => { pauses.push(ms); },
    });
    deepStrictEqual(done, Array(want).fill(["seen", "look"]).flat());
    deepStrictEqual(pauses, [...pauses].sort((a, b) => a - b));
    deepStrictEqual(new Set(pauses).size, want);
  }
});
