import assert from "node:assert/strict";
import test from "node:test";
import { Bundle } from "../static/bundle.js";
import { Crc64 } from "../static/crc.js";
import { bundleSource, fileSource, join, Upload, UploadError } from "../static/upload.js";
import { Pool } from "../static/worker.js";
import { bytesOf, fileOf, until } from "./cases.mjs";
import { FakeService, lost, lostAnswer, when } from "./service.mjs";

// begin returns an upload of a file, and the states that it goes through.
function begin(service, source, options = {}) {
  const upload = new Upload(source, { ...service.options, ...options }),
    states = [];
  upload.onchange = ({ state }) => states.at(-1) === state || states.push(state);
  return { upload, states };
}

const file = (length = 12_345, seed = 1) => fileOf("report.pdf", seed, length);

async function wantFile(service, blob, result) {
  assert.equal(service.files.length, 1, "there is one file");
  assert.deepEqual(new Uint8Array(service.files[0].bytes), new Uint8Array(await blob.arrayBuffer()));
  if (result) assert.deepEqual([result.id, result.file.linkURL], [service.files[0].id, "https://files.example/v1/x"]);
}

test("a file is sent in parts, four at once, and is then complete", async () => {
  const service = new FakeService(),
    source = fileSource(file());
  service.wait = 2;
  const { upload, states } = begin(service, source, {
    m: ["ann@example.com"],
    expires: "7d",
    store: undefined,
    scope: "x",
    unknown: 1,
  });
  const shots = [];
  const note = upload.onchange;
  upload.onchange = (shot) => {
    note(shot);
    shots.push(shot);
  };
  assert.equal(upload.snapshot().state, "paused");
  const result = await upload.start();
  await wantFile(service, file(), result);
  assert.deepEqual(states, ["hashing", "sending", "completing", "done"]);
  assert.equal(service.most, 4);
  assert.equal(service.count("PUT"), 13);
  assert.ok(service.count("POST uploads/7-abc/parts") < 13, "one request asks for several parts");
  const [{ body }] = service.sessions.values();
  assert.deepEqual(body, {
    name: "report.pdf",
    type: "",
    length: 12345,
    bundle: false,
    m: ["ann@example.com"],
    expires: "7d",
  });
  assert.deepEqual([shots.at(-1).sent, shots.at(-1).total, shots.at(-1).left], [12345, 12345, null]);
  assert.equal(await upload.cancel(), false, "it is done");
});

test("it tells how fast it is, and how long it takes", async () => {
  const service = new FakeService(),
    { upload } = begin(service, fileSource(file())),
    shots = [];
  service.wait = 120;
  upload.onchange = (shot) => shots.push(shot);
  await upload.start();
  const moving = shots.filter(({ state, rate }) => state === "sending" && rate > 0);
  assert.ok(moving.length > 0);
  for (const { sent, total, rate, left } of moving) assert.equal(left, (total - sent) / rate);
  assert.ok(shots.length < 40, `${shots.length} calls`);
});

test("uploads of one page share the connections", async () => {
  const service = new FakeService();
  service.wait = 3;
  const uploads = [1, 2, 3].map((seed) => begin(service, fileSource(file(9000, seed))).upload),
    ends = uploads.map((upload) => upload.start());
  ends[1].catch(() => {});
  await until(() => service.count("PUT") > 8);
  assert.equal(await uploads[1].cancel(), true);
  await Promise.all([ends[0], ends[2]]);
  assert.deepEqual([service.most, service.files.length], [4, 2]);
});

for (const length of [0, 1, 1000, 1001]) {
  test(`a file of ${length} bytes`, async () => {
    const service = new FakeService(),
      { upload } = begin(service, fileSource(file(length)));
    await wantFile(service, file(length), await upload.start());
  });
}

test("a bundle is sent as Go would make it", async () => {
  const service = new FakeService();
  const bundle = new Bundle([
    { path: "short", file: file(10) },
    { path: "long", file: file(9000) },
    { path: "empty/" },
    { path: "last", file: file(2500, 2) },
  ]);
  const { upload } = begin(service, bundleSource("all.zip", bundle));
  await wantFile(
    service,
    await bundle.cut(1e6, new Pool({ Worker: null })).part(0, bundle.length),
    await upload.start(),
  );
  const [{ body }] = service.sessions.values();
  assert.deepEqual([body.bundle, body.files, body.type, body.length], [true, 3, "application/zip", bundle.length]);
});

test("lost connections and lost answers make no second file", async () => {
  const service = new FakeService(),
    { upload, states } = begin(service, fileSource(file()));
  service.faults = [
    when(/^POST uploads$/, [1, 3], lostAnswer),
    when(/^POST uploads$/, [2], lost),
    when(/parts$/, [1, 3], lost),
    when(/parts$/, [2], lostAnswer),
    when(/^PUT/, [1, 2, 5], lost),
    when(/^PUT/, [3, 7], { ...lost, moved: true }),
    when(/^PUT/, [4, 9], lostAnswer),
    when(/complete$/, [1, 2], lostAnswer),
    when(/complete$/, [3], lost),
  ];
  await wantFile(service, file(), await upload.start());
  assert.equal(service.sessions.size, 1);
  assert.ok(states.includes("offline"));
  assert.equal(states.at(-1), "done");
});

test("a network that comes back wakes it", async () => {
  const service = new FakeService();
  const { upload, states } = begin(service, fileSource(file()), { wait: { min: 1e6, max: 1e6 } });
  service.faults = [when(/^PUT/, [3], lost)];
  const done = upload.start();
  await until(() => states.includes("offline") && service.count("PUT") === 13);
  service.options.events.dispatchEvent(new Event("online"));
  await wantFile(service, file(), await done);
});

test("it goes on for as long as there is no network", async () => {
  const service = new FakeService(),
    { upload } = begin(service, fileSource(file()));
  service.faults = [
    when(
      /./,
      Array.from({ length: 60 }, (_, i) => i + 5),
      lost,
    ),
  ];
  await wantFile(service, file(), await upload.start());
});

test("an address that nothing reaches while the service answers is an error", async () => {
  const service = new FakeService(),
    { upload } = begin(service, fileSource(file()));
  service.faults = [when(/^PUT/, "always", lost)];
  await assert.rejects(upload.start(), { code: "unreachable", status: 0 });
  assert.equal(upload.snapshot().state, "failed");
  service.faults = [];
  await wantFile(service, file(), await upload.start());
});

test("a part that never arrives is an error in the end", async () => {
  for (const [fault, wanted] of [
    [{ status: 403 }, { status: 403 }],
    [{ status: 503 }, { status: 503 }],
    [{ ...lost, moved: true }, { code: "unreachable" }],
  ]) {
    const service = new FakeService(),
      { upload } = begin(service, fileSource(file(900)));
    service.faults = [when(/^PUT/, "always", fault)];
    await assert.rejects(upload.start(), wanted);
    assert.equal(service.count("PUT"), fault.lost ? 30 : 10);
    service.faults = [];
    await wantFile(service, file(900), await upload.start());
  }
});

test("a store that hangs or fails holds nothing up", async () => {
  const never = {
    put: () => new Promise(() => {}),
    delete: () => Promise.reject(new Error("no")),
    hold: () => () => {},
  };
  const service = new FakeService(),
    { upload } = begin(service, fileSource(file()), { store: never });
  await wantFile(service, file(), await upload.start());
});

test("a busy service is asked again when it wants", async () => {
  const service = new FakeService(),
    { upload } = begin(service, fileSource(file()));
  const busy = (status, after) => ({ status, headers: { "Retry-After": after, "Ferry-Error": "busy" } });
  service.faults = [
    when(/^POST uploads$/, [1], busy(429, "0")),
    when(/^PUT/, [2, 3], busy(503, "1")),
    when(/parts$/, [2], busy(500, "0")),
    when(/complete$/, [1], busy(503, "0")),
  ];
  const start = performance.now();
  await wantFile(service, file(), await upload.start());
  assert.ok(performance.now() - start >= 1000);
});

test("a service that stays busy, or for long, is an error that says so", async () => {
  for (const [headers, calls] of [
    [{ "Retry-After": "3600", "Ferry-Error": "too many notices", "Ferry-Parameter": "m" }, 1],
    [{}, 10],
  ]) {
    const service = new FakeService(),
      { upload } = begin(service, fileSource(file()));
    service.faults = [when(/^POST uploads$/, "always", { status: 429, headers })];
    await assert.rejects(upload.start(), (error) => {
      assert.ok(error instanceof UploadError);
      assert.deepEqual(
        [error.status, error.detail, error.parameter, error.retryAfter],
        [429, headers["Ferry-Error"] ?? "", headers["Ferry-Parameter"] ?? "", Number(headers["Retry-After"] ?? 0)],
      );
      return true;
    });
    assert.equal(service.count("POST uploads"), calls);
    service.faults = [];
    await wantFile(service, file(), await upload.start());
  }
});

test("a refusal is an error at once", async () => {
  const service = new FakeService(),
    { upload, states } = begin(service, fileSource(file()));
  service.faults = [
    when(/^POST uploads$/, "always", { status: 400, headers: { "Ferry-Error": "no address", "Ferry-Parameter": "m" } }),
  ];
  await assert.rejects(upload.start(), { status: 400, detail: "no address", parameter: "m", message: "no address" });
  assert.deepEqual(states, ["hashing", "failed"]);
  assert.equal(service.calls.length, 1);
});

test("an address that is too old is asked for again", async () => {
  const service = new FakeService(),
    { upload } = begin(service, fileSource(file()));
  service.faults = [
    when(/^PUT/, [1, 2, 3, 8, 9, 10], { status: 403 }),
    when(/^PUT/, [4], { status: 409 }),
    when(/^PUT/, [5], { status: 400 }),
  ];
  await wantFile(service, file(), await upload.start());
});

test("a part that is refused for a while is sent again, when the store wants, and by an address that is still good", async () => {
  for (const [status, headers] of [
    [429, { "Retry-After": "1" }],
    [500, {}],
    [502, {}],
    [503, {}],
    [504, {}],
    [403, {}],
  ]) {
    const service = new FakeService(),
      { upload } = begin(service, fileSource(file(900)));
    service.faults = [when(/^PUT/, [1], { status, headers })];
    const start = performance.now();
    await wantFile(service, file(900), await upload.start());
    assert.deepEqual([service.count("PUT"), service.count("POST uploads/7-abc/parts")], [2, 2], `${status}`);
    assert.equal(performance.now() - start >= 1000, status === 429);
  }
});

test("a session that ends meanwhile is an error at once, and the next try sends all in another", async () => {
  const service = new FakeService(),
    { upload } = begin(service, fileSource(file(60_000)));
  service.wait = 2;
  const failed = assert.rejects(upload.start(), { status: 404 });
  await until(() => service.count("PUT") > 5);
  service.sessions.clear(); // discarded, or too old
  await failed;
  assert.ok(service.count("PUT") < 20 && !service.count("POST uploads/7-abc/complete"));
  service.sessions.set("6-old", {}); // so that the next id is another
  await wantFile(service, file(60_000), await upload.start());
});

test("pause and resume", async () => {
  const service = new FakeService(),
    { upload, states } = begin(service, fileSource(file()));
  service.wait = 5;
  const done = upload.start();
  upload.pause();
  upload.resume();
  await until(() => service.count("PUT") > 5);
  upload.pause();
  upload.pause();
  assert.equal(upload.snapshot().state, "paused");
  const before = service.calls.length;
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.equal(service.calls.length, before, "nothing is sent meanwhile");
  const [{ parts }] = service.sessions.values(),
    arrived = parts.size;
  upload.resume();
  upload.resume();
  await wantFile(service, file(), await done);
  assert.deepEqual(states.filter((state) => state === "paused").length, 2);
  assert.ok(arrived > 0 && service.count("PUT") <= 13 + 4, "what has arrived is not sent again");
});

test("cancel ends the session", async () => {
  for (const after of [/^POST uploads$/, /parts$/, /^PUT/, /complete$/]) {
    const service = new FakeService(),
      { upload, states } = begin(service, fileSource(file()));
    service.wait = 1;
    service.slow = /complete$/;
    const ended = assert.rejects(upload.start(), { code: "cancelled" });
    await until(() => service.calls.some((call) => after.test(call)));
    assert.equal(await upload.cancel(), true);
    await ended;
    assert.equal(service.sessions.size + service.files.length, 0, `after ${after}`);
    assert.equal(states.at(-1), "failed");
    await assert.rejects(upload.start(), { code: "cancelled" });
  }
});

test("a cancelled upload that was complete already is done", async () => {
  const service = new FakeService(),
    { upload } = begin(service, fileSource(file()), { wait: { min: 50, max: 50 } });
  service.faults = [when(/complete$/, [1], lostAnswer)];
  const done = upload.start();
  await until(() => service.files.length === 1);
  assert.equal(await upload.cancel(), false);
  await wantFile(service, file(), await done);
  assert.equal(upload.snapshot().state, "done");
});

// remembering returns a store that keeps what a Store would.
function remembering() {
  const store = { records: new Map(), held: new Set() };
  store.put = async (record) =>
    store.records.set(record.id, structuredClone({ ...record, options: { m: record.options.m } }));
  store.delete = async (id) => store.records.delete(id);
  store.hold = (id) => {
    store.held.add(id);
    return () => store.held.delete(id);
  };
  return store;
}

// interrupted returns a service that has a part of a file, and the record of its upload.
async function interrupted(source, options = {}) {
  const service = new FakeService(),
    store = remembering();
  service.wait = 3;
  const { upload } = begin(service, source, { store, m: "ann@example.com", ...options });
  upload.start();
  await until(() => service.sessions.get("7-abc")?.parts.size > 4);
  upload.pause();
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(store.held.has("7-abc"));
  store.held.clear(); // the tab is closed
  service.calls = [];
  return { service, store, record: store.records.get("7-abc") };
}

test("an upload goes on after the tab was closed", async () => {
  const { service, store, record } = await interrupted(fileSource(file()));
  assert.deepEqual(
    [record.name, record.size, record.first],
    ["report.pdf", 12345, new Crc64().update(bytesOf(1, 1000)).text],
  );
  const arrived = service.sessions.get("7-abc").parts.size;
  const { upload } = begin(service, fileSource(file()), { store, resume: record });
  await wantFile(service, file(), await upload.start());
  assert.equal(service.count("PUT"), 13 - arrived);
  assert.equal(
    service.count("POST uploads/") + service.count("POST uploads"),
    service.count("POST uploads/") * 2,
    "there is no new session",
  );
  assert.deepEqual([store.records.size, store.held.size], [0, 0]);
});

test("a bundle goes on after the tab was closed", async () => {
  const entries = () => [
    { path: "a", file: file(3000) },
    { path: "long", file: file(9000) },
    { path: "c", file: file(10) },
  ];
  const source = () => bundleSource("all.zip", new Bundle(entries()));
  const { service, store, record } = await interrupted(source());
  assert.deepEqual(record.entries, ["a", "long", "c"]);
  const { upload } = begin(service, source(), { store, resume: record });
  await wantFile(
    service,
    await new Bundle(entries()).cut(1e6, new Pool({ Worker: null })).part(0, source().length),
    await upload.start(),
  );
});

test("another file is not taken for the rest of an upload", async () => {
  for (const other of [fileOf("other.pdf", 1, 12_345), file(12_344), file(12_345, 2)]) {
    const { service, store, record } = await interrupted(fileSource(file()));
    const { upload } = begin(service, fileSource(other), { store, resume: record });
    await assert.rejects(upload.start(), { code: "other" });
    assert.equal(service.count("PUT"), 0);
    assert.equal(store.records.size, 1, "it may still go on with the right file");
  }
});

test("parts that have arrived with other bytes are sent again", async () => {
  const { service, record } = await interrupted(fileSource(file()));
  service.sessions.get("7-abc").parts.set(2, { size: 1000, sum: "AAAAAAAAAAA=", bytes: Buffer.alloc(1000) });
  const { upload } = begin(service, fileSource(file()), { resume: record });
  await wantFile(service, file(), await upload.start());
});

test("a session that has ended is begun again, with the same options", async () => {
  const { service, store, record } = await interrupted(fileSource(file()));
  service.sessions.clear();
  const { upload } = begin(service, fileSource(file()), { store, resume: record });
  await wantFile(service, file(), await upload.start());
  assert.equal([...service.sessions.values()][0].body.m, "ann@example.com");
});

test("a session that has ended is not begun again without its password", async () => {
  const { service, store, record } = await interrupted(fileSource(file()), { password: "open sesame" });
  service.sessions.clear();
  await assert.rejects(begin(service, fileSource(file()), { store, resume: record }).upload.start(), {
    code: "gone",
    status: 404,
  });
  const { upload } = begin(service, fileSource(file()), { store, resume: record, password: "open sesame" });
  await wantFile(service, file(), await upload.start());
});

test("a session that another tab has completed is complete", async () => {
  for (const at of [/^GET/, /^PUT/, /complete$/]) {
    const { service, record } = await interrupted(fileSource(file()));
    const first = begin(service, fileSource(file()), { resume: record }).upload,
      second = begin(service, fileSource(file()), { resume: record }).upload;
    second.start();
    await until(() => service.calls.some((call) => at.test(call)));
    await wantFile(service, file(), await first.start());
    await wantFile(service, file(), await second.start());
  }
});

test("a file that changes meanwhile is not sent", async () => {
  const service = new FakeService(),
    bytes = bytesOf(1, 5000),
    blob = file(5000);
  const changing = {
    name: "x",
    type: "",
    size: 5000,
    slice: (from, to) =>
      (service.count("PUT") ? new Blob([bytes.map((byte) => byte ^ 1)]) : new Blob([bytes])).slice(from, to),
  };
  const { upload } = begin(service, fileSource(changing), { pool: new Pool({ Worker: null }) });
  service.wait = 1;
  service.faults = [when(/^PUT/, [4], lost)];
  await assert.rejects(upload.start(), (error) => error.code === "changed" || error.status === 400);
  assert.equal(service.files.length, 0);
  assert.equal(blob.size, 5000);
});

test("a file that cannot be read is named", async () => {
  const service = new FakeService(),
    broken = {
      size: 50,
      lastModified: 0,
      slice: () => broken,
      arrayBuffer: async () => {
        throw new Error("gone");
      },
    };
  const bundle = new Bundle([
    { path: "good", file: file(10) },
    { path: "folder/bad", file: broken },
  ]);
  await assert.rejects(begin(service, bundleSource("x.zip", bundle)).upload.start(), {
    code: "changed",
    path: "folder/bad",
  });
  await assert.rejects(begin(service, fileSource({ ...broken, name: "bad", type: "" })).upload.start(), {
    code: "changed",
    path: "",
  });
});

test("a guest is known before anything is sent", async () => {
  const service = new FakeService(),
    { upload } = begin(service, fileSource(file()), { guest: { token: "a b" }, by: "Ann" });
  service.guests = true;
  await upload.start();
  await wantFile(service, file());
  assert.equal(service.calls[0], "GET requests/in?k=a%20b");
  assert.equal([...service.sessions.values()][0].body.by, "Ann");
});

test("a request may need a password", async () => {
  const service = new FakeService();
  service.password = "größer";
  await assert.rejects(join("token", service.options), { status: 401, code: "password" });
  service.password = "";
  const guest = await join("token", service.options);
  assert.deepEqual(guest, { token: "token", secret: "secret", about: { maker: "ann" } });
  service.calls = [];
  await wantFile(service, file(), await begin(service, fileSource(file()), { guest }).upload.start());
  assert.equal(service.calls[0], "POST uploads");
});

test("an answer that is not from Ferry is an error", async () => {
  for (const answer of [
    { status: 201, body: { id: "7-abc", length: 5, partSize: 1000, parts: 1 } },
    { status: 201, body: { length: 12345 } },
    { status: 200 },
  ]) {
    const service = new FakeService(),
      { upload } = begin(service, fileSource(file()));
    service.faults = [when(/^POST uploads$/, "always", answer)];
    await assert.rejects(upload.start(), (error) => ["answer", "other"].includes(error.code));
  }
});

test("what the page does with a change ends no upload", async () => {
  const service = new FakeService(),
    { upload } = begin(service, fileSource(file()));
  const thrown = new Promise((resolve) => {
    globalThis.reportError = resolve;
  });
  let told = 0;
  upload.onchange = () => {
    if (told++ === 0) throw new Error("the page");
  };
  await wantFile(service, file(), await upload.start());
  assert.equal((await thrown).message, "the page");
});
