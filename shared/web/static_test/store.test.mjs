import assert from "node:assert/strict";
import test from "node:test";
import { guestScope, Store } from "../static/store.js";
import { names } from "./service.mjs";

// fakeIndexedDB is as much of IndexedDB as a Store uses.
function fakeIndexedDB() {
  const kept = new Map();
  const ask = (work) => {
    const request = {};
    queueMicrotask(() => {
      try {
        request.result = work();
        request.onsuccess();
      } catch (error) {
        request.error = error;
        request.onerror();
      }
    });
    return request;
  };
  const uploads = {
    getAll: () => ask(() => [...kept.values()].map((record) => structuredClone(record))),
    put: (record) =>
      ask(() => {
        kept.set(record.id, structuredClone(record));
        return record.id;
      }),
    delete: (id) =>
      ask(() => {
        kept.delete(id);
      }),
  };
  const database = { createObjectStore() {}, transaction: () => ({ objectStore: () => uploads }) };
  const open = () => {
    const request = ask(() => database);
    queueMicrotask(() => {
      request.result = database;
      request.onupgradeneeded();
    });
    return request;
  };
  return { open, kept };
}

// fakeLocks is as much of the Web Locks API.
function fakeLocks() {
  const held = [];
  return {
    query: async () => ({ held: held.map((name) => ({ name })) }),
    request: async (name, options, work) => {
      held.push(name);
      await work();
      held.splice(held.indexOf(name), 1);
    },
  };
}

const record = (id, more = {}) => ({
  id,
  scope: "user:ann",
  name: "x",
  size: 5,
  type: "",
  bundle: false,
  first: null,
  ...more,
});

test("records come back, the newest first, to those whose they are", async () => {
  let now = 1e12;
  const indexedDB = fakeIndexedDB(),
    store = new Store({ names, indexedDB, locks: undefined, now: () => now });
  await store.put(record("1", { entries: ["a", "b"] }));
  now += 1000;
  await store.put(record("2", { options: { m: ["ann@example.com"], downloads: 3 } }));
  await store.put(record("3", { scope: "user:bob" }));
  const [two, one] = await store.list("user:ann");
  assert.deepEqual([two.id, two.options, two.created], ["2", { m: ["ann@example.com"], downloads: 3 }, 1e12 + 1000]);
  assert.deepEqual([one.id, one.entries, one.size], ["1", ["a", "b"], 5]);
  await store.put({ ...one, first: "AAAAAAAAAAA=" });
  assert.deepEqual(
    (await store.list("user:ann")).map(({ id, first }) => [id, first]),
    [
      ["2", null],
      ["1", "AAAAAAAAAAA="],
    ],
  );
  await store.delete("2");
  assert.equal((await new Store({ names, indexedDB, now: () => now }).list("user:ann")).length, 1);
  now += 7 * 24 * 3600 * 1000;
  assert.deepEqual(await store.list("user:ann"), []);
  assert.equal(indexedDB.kept.size, 0, "the sessions are over by then");
});

test("no secret is kept", async () => {
  const indexedDB = fakeIndexedDB(),
    store = new Store({ names, indexedDB });
  const secrets = { password: "hunter2", token: "hunter2", guest: { token: "hunter2", secret: "hunter2" } };
  await store.put(record("1", { ...secrets, protected: true, options: { ...secrets, i: "hello", fetch: () => {} } }));
  assert.ok(!JSON.stringify([...indexedDB.kept.values()]).includes("hunter2"));
  assert.deepEqual((await store.list("user:ann"))[0].options, { i: "hello" });
  assert.equal((await store.list("user:ann"))[0].protected, true);
});

test("what cannot be stored is left out", async () => {
  const store = new Store({ names, indexedDB: fakeIndexedDB() });
  await store.put(record("1", { handles: [() => {}] }));
  const [kept] = await store.list("user:ann");
  assert.deepEqual([kept.id, kept.handles], ["1", undefined]);
});

test("an upload that a tab sends is in no list", async () => {
  const store = new Store({ names, indexedDB: fakeIndexedDB(), locks: fakeLocks() });
  await store.put(record("1"));
  const release = store.hold("1");
  assert.deepEqual(await store.list("user:ann"), []);
  release();
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal((await store.list("user:ann")).length, 1);
});

test("without a store nothing fails", async () => {
  const broken = {
    open() {
      throw new Error("SecurityError");
    },
  };
  for (const indexedDB of [undefined, broken]) {
    const store = new Store({ names, indexedDB, locks: undefined });
    await store.put(record("1"));
    await store.delete("1");
    store.hold("1")();
    assert.deepEqual(await store.list("user:ann"), []);
  }
});

test("the scope of a guest tells nothing of the token", async () => {
  const scope = await guestScope("token");
  assert.match(scope, /^guest:[0-9a-f]{32}$/);
  assert.equal(scope, await guestScope("token"));
  assert.notEqual(scope, await guestScope("other"));
});
