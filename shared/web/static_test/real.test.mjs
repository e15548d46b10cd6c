// Sends files to a real service: node_test.go starts it, and compares afterwards what has arrived with
// the manifest. By hand: FERRY_BASE=http://127.0.0.1:8080/v1/ FERRY_LOGIN=demo:PASSWORD node --test.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { Bundle } from "../static/bundle.js";
import { bundleSource, fileSource, join, Upload } from "../static/upload.js";
import { Pool } from "../static/worker.js";
import { bytesOf, fileOf, until } from "./cases.mjs";
import { names } from "./service.mjs";
import { agent, cuts, XMLHttpRequest } from "./xhr.mjs";

const { FERRY_BASE: base, FERRY_LOGIN: login, FERRY_REQUEST: token, FERRY_MANIFEST: manifestPath } = process.env;
const MIB = 1 << 20,
  PART = 5 * MIB; // the smallest that a service cuts
const manifest = [];
const skip = base ? false : "FERRY_BASE names no service";

// losing is a fetch that loses the answers to requests of a kind, once each.
function losing(...kinds) {
  return async (url, request) => {
    const headers = { ...request.headers };
    headers.Authorization ??= `Basic ${btoa(login)}`;
    const response = await fetch(url, { ...request, headers }),
      call = `${request.method} ${url.slice(base.length)}`;
    const at = kinds.findIndex((kind) => kind.test(call));
    if (at < 0) return response;
    kinds.splice(at, 1);
    await response.arrayBuffer();
    throw new TypeError("the answer is lost");
  };
}

function begin(source, options = {}) {
  return new Upload(source, {
    names,
    base,
    fetch: losing(),
    XMLHttpRequest,
    partSize: PART,
    wait: { min: 5, max: 20 },
    ...options,
  });
}

// sent notes a file that must have arrived once.
function sent(name, seed, length, more = {}) {
  manifest.push({ name, seed, length, ...more });
}

after(() => {
  agent.destroy();
  const summed = ({ seed, length = 0, ...rest }) => ({
    ...rest,
    sum: createHash("sha256").update(bytesOf(seed, length)).digest("hex"),
  });
  assert.notDeepEqual(bytesOf(1, 100), bytesOf(2, 100)); // or one file would pass for another
  const all = manifest.map(({ entries, ...file }) => ({ ...summed(file), entries: entries?.map(summed) }));
  if (manifestPath) writeFileSync(manifestPath, JSON.stringify(all));
});

test("a file of several parts", { skip }, async () => {
  const upload = begin(fileSource(fileOf("größer.bin", 1, 2 * PART + 12_345)), { i: "hello", m: "bob@example.com" });
  const { id, file, answer } = await upload.start();
  assert.deepEqual([file.id, file.name, file.length], [id, "größer.bin", 2 * PART + 12_345]);
  assert.match(file.linkURL, /^http/);
  assert.ok(Array.isArray(answer.files));
  sent("größer.bin", 1, 2 * PART + 12_345);
});

test("small files, and one of no bytes", { skip }, async () => {
  for (const [name, length] of [
    ["nothing", 0],
    ["one", 1],
    ["exact.bin", PART],
  ]) {
    await begin(fileSource(fileOf(name, 2, length))).start();
    sent(name, 2, length);
  }
});

test("broken connections and lost answers", { skip }, async () => {
  cuts.push(0, 1000, 3 * MIB, Infinity, 1, 4 * MIB);
  const fetch = losing(/^POST uploads$/, /^POST uploads$/, /parts$/, /parts$/, /complete$/, /complete$/);
  const upload = begin(fileSource(fileOf("torn.bin", 3, 3 * PART + 1)), { fetch }),
    states = new Set();
  upload.onchange = ({ state }) => states.add(state);
  await upload.start();
  assert.deepEqual([...states].sort(), ["completing", "done", "hashing", "offline", "sending"]);
  assert.equal(cuts.length, 0);
  sent("torn.bin", 3, 3 * PART + 1);
});

test("pausing, and going on in another tab", { skip }, async () => {
  const records = new Map(),
    length = 4 * PART;
  const store = {
    put: async (record) => records.set(record.id, structuredClone(record)),
    delete: async (id) => records.delete(id),
    hold: () => () => {},
  };
  const file = () => fileOf("resumed.bin", 4, length),
    sending = new Set();
  const first = begin(fileSource(file()), { store, d: undefined });
  first.start();
  cuts.push(Infinity, Infinity, 2 * MIB);
  await until(() => first.snapshot().sent > 2.5 * PART);
  first.pause();
  first.resume();
  first.pause();
  const [record] = records.values();
  const second = begin(fileSource(file()), { store, resume: record });
  second.onchange = ({ state, sent: bytes }) => state === "sending" && sending.add(bytes);
  await assert.rejects(begin(fileSource(fileOf("resumed.bin", 5, length)), { resume: record }).start(), {
    code: "other",
  });
  await second.start();
  assert.ok(Math.min(...sending) > 0, "it begins with what is there");
  assert.equal(records.size, 0);
  sent("resumed.bin", 4, length);
});

test("a cancelled upload leaves nothing", { skip }, async () => {
  const upload = begin(fileSource(fileOf("cancelled.bin", 6, 2 * PART)));
  const ended = assert.rejects(upload.start(), { code: "cancelled" });
  await until(() => upload.snapshot().sent > 0);
  assert.equal(await upload.cancel(), true);
  await ended;
  const open = await losing()(`${base}uploads`, { method: "GET" }).then((response) => response.json());
  assert.deepEqual(open.uploads, []);
});

test("what the service refuses", { skip }, async () => {
  await assert.rejects(
    begin(fileSource(fileOf("x", 1, 10)), { m: "nobody" }).start(),
    ({ status, parameter, detail }) => {
      assert.deepEqual([status, parameter], [400, "m"]);
      return detail.includes("address");
    },
  );
});

test("a bundle", { skip }, async () => {
  const at = Date.UTC(2024, 1, 29, 12, 30, 58);
  const entries = [
    { path: "short.txt", seed: 1, length: 100 },
    { path: "tree/long.bin", seed: 2, length: PART + 100 },
    { path: "tree/empty folder/" },
    { path: "tree/empty.txt", length: 0 },
    { path: "tree/日本語/ファイル.txt", seed: 3, length: 9 },
    { path: "tree/Grüße.txt", seed: 4, length: 2 * MIB },
    { path: "run.sh", seed: 5, length: 30, executable: true },
    { path: "tree/longer.bin", seed: 6, length: PART + 3 * MIB },
  ];
  for (let i = 0; i < 300; i++) entries.push({ path: `many/${i}`, seed: i, length: i * 7 });
  const bundle = new Bundle(
    entries.map(({ path, seed, length, executable }) => ({
      path,
      executable,
      modified: at,
      file: path.endsWith("/") ? undefined : fileOf(path, seed ?? 0, length),
    })),
  );
  cuts.push(Infinity, 2 * MIB);
  const { file } = await begin(bundleSource("tree.zip", bundle), { fetch: losing(/complete$/) }).start();
  assert.equal(file.length, bundle.length);
  const archive = await new Bundle(bundle.entries.map((entry) => ({ ...entry, modified: at })))
    .cut(PART, new Pool())
    .part(0, bundle.length);
  const download = await fetch(file.linkURL).then((response) => response.arrayBuffer());
  assert.ok(Buffer.from(download).equals(Buffer.from(await archive.arrayBuffer())));
  sent("tree.zip", 0, bundle.length, { entries, modified: at });
});

test("a guest", { skip: skip || (token ? false : "FERRY_REQUEST has no token") }, async () => {
  const guestFetch = (url, request) =>
    fetch(url, { ...request, headers: { Authorization: "none", ...request.headers } });
  await assert.rejects(join(token, { base, fetch: guestFetch }), { status: 401, code: "password" });
  const Authorization = `Basic ${Buffer.from(":größer").toString("base64")}`; // as the request's page sends it
  const opened = await fetch(`${base}requests/in?k=${encodeURIComponent(token)}`, { headers: { Authorization } });
  assert.equal((await opened.json()).maker, "ann");
  const guest = { token, secret: opened.headers.get("Ferry-Guest") };
  const fetchAsGuest = losing(/^POST uploads$/, /complete$/);
  const { file } = await begin(fileSource(fileOf("from a guest.bin", 8, PART + 8)), {
    guest,
    by: "Bob",
    fetch: fetchAsGuest,
  }).start();
  assert.deepEqual(file, { name: "from a guest.bin", length: PART + 8 });
  sent("from a guest.bin", 8, PART + 8);
});
