import { deepStrictEqual } from "node:assert";
import { test } from "node:test";
import { follow, isCorrected, renew } from "../static/follow.js";

test("a page follows at most ten times, less and less often, and only while it is seen", async () => {
  for (const [changes, want] of [
    [Infinity, 10],
    [3, 3],
    [1, 1],
  ]) {
    const done = [],
      pauses = [];
    let looks = 0;
    await follow({
      look: async () => {
        done.push("look");
        return ++looks < changes;
      },
      seen: async () => {
        done.push("seen");
      },
      pause: async (ms) => {
        pauses.push(ms);
      },
    });
    deepStrictEqual(done, Array(want).fill(["seen", "look"]).flat());
    deepStrictEqual(
      pauses,
      [...pauses].sort((a, b) => a - b),
    );
    deepStrictEqual(new Set(pauses).size, want);
  }
});

// partOf returns a part of a page with fields {value, defaultValue}, in which an element has the focus.
function partOf(inputs, active = null) {
  const part = { shown: "old" };
  part.contains = (element) => element !== null && element === active;
  part.querySelectorAll = (selector) => (selector === "input" ? inputs : []);
  part.replaceWith = (fresh) => {
    part.shown = fresh;
  };
  return part;
}

test("an address that is being corrected is not lost when the page follows by itself", () => {
  const untouched = { value: "ann@exmaple.com", defaultValue: "ann@exmaple.com" };
  const typed = { value: "ann@example.com", defaultValue: "ann@exmaple.com" };
  const focused = {};
  for (const [part, want] of [
    [partOf([]), false],
    [partOf([untouched]), false],
    [partOf([typed]), true],
    [partOf([untouched, typed]), true],
    [partOf([untouched], focused), true],
    [partOf([], focused), true],
  ]) {
    deepStrictEqual(isCorrected(part, focused), want);
    renew([part], ["new"], focused);
    deepStrictEqual(part.shown, want ? "old" : "new");
  }
});

test("each part is replaced by what it is now, and no other", () => {
  const parts = [partOf([]), partOf([{ value: "typed", defaultValue: "" }]), partOf([])];
  renew(parts, ["a", "b", "c"], null);
  deepStrictEqual(
    parts.map(({ shown }) => shown),
    ["a", "old", "c"],
  );
});
