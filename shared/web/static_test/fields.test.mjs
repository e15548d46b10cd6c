import { deepStrictEqual, equal } from "node:assert";
import { test } from "node:test";
import { address, collect, explain } from "../static/fields.js";
import { Words } from "../static/words.js";

const words = new Words({
  lang: "en",
  offline: "offline",
  login: "log in",
  failed: "failed",
  "parameter.m": "bad address",
  409: "changed",
  seconds: ["second", "seconds"],
});
const errors = { wait: "Wait %s.", 403: "not allowed" };

test("fields become JSON as the interface reads it", () => {
  for (const [field, want] of [
    [{ name: "name", type: "text", value: "a.txt" }, { name: "a.txt" }],
    [{ name: "message", type: "textarea", value: "" }, { message: "" }],
    [{ name: "password", type: "text", value: "", data: { skip: "" } }, {}],
    [{ name: "password", type: "text", value: "x", data: { skip: "" } }, { password: "x" }],
    [{ name: "password", type: "checkbox", value: "", checked: true, data: { empty: "" } }, { password: "" }],
    [{ name: "password", type: "checkbox", value: "", checked: false, data: { empty: "" } }, {}],
    [{ name: "notify", type: "checkbox", value: "1", checked: false }, { notify: false }],
    [{ name: "downloads", type: "number", value: "3" }, { downloads: 3 }],
    [{ name: "downloads", type: "number", value: "" }, { downloads: 0 }],
    [{ name: "bytes", type: "number", value: "0.1", data: { unit: "1000000000" } }, { bytes: 100000000 }],
    [{ name: "expires", type: "select-one", value: "-" }, {}],
    [{ name: "expires", type: "select-one", value: "" }, { expires: "" }],
    [{ name: "to", type: "textarea", value: "", data: { recipients: "" } }, {}],
    [
      { name: "to", type: "textarea", value: "Bob <bob@example.com>; +39 340 123 4567", data: { recipients: "" } },
      { m: ["bob@example.com"], c: ["+393401234567"] },
    ],
  ]) {
    deepStrictEqual(collect([field]), { json: want });
  }
});

test("a later field of the same name wins", () => {
  const both = [
    { name: "password", type: "text", value: "", data: { skip: "" } },
    { name: "password", type: "checkbox", value: "", checked: true, data: { empty: "" } },
  ];
  deepStrictEqual(collect(both), { json: { password: "" } });
});

test("what is no recipient is told", () => {
  deepStrictEqual(collect([{ name: "to", value: "bob@, ann@example.com", data: { recipients: "" } }]), {
    wrong: ["bob@"],
    name: "to",
  });
});

test("a failure is explained by its parameter, else by its status", () => {
  for (const [answer, want] of [
    [{ status: 0 }, "offline"],
    [{ status: 401 }, "log in"],
    [{ status: 429, retryAfter: 7 }, "Wait 7\u00a0seconds."],
    [{ status: 400, parameter: "m" }, "bad address"],
    [{ status: 409 }, "changed"],
    [{ status: 403, parameter: "x" }, "not allowed"],
    [{ status: 400 }, "failed"],
  ]) {
    equal(explain(answer, errors, words), want);
  }
});

test("an address can name what was made", () => {
  equal(address("requests?made={id}", { id: "a&b" }), "requests?made=a%26b");
  equal(address("files", null), "files");
});
