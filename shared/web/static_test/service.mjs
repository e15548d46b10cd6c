// A service in memory, as the engine sees it: fetch for the interface, and XMLHttpRequest for parts. It
// checks what the real one checks, and fails where a test wants it to.

import { Crc64 } from "../static/crc.js";

const PART = 1000; // bytes
const base = "https://files.example/v1/";

/** The names of the options that a page lists, as far as tests use them. */
export const names = ["m", "c", "i", "expires", "downloads", "d", "notify", "lang", "by"];

/** A Ferry service. `faults` are functions of {method, path, count}, each of which may return an answer or an Error. */
export class FakeService {
  sessions = new Map();
  files = [];
  calls = []; // such as 'POST uploads'
  faults = [];
  sending = 0;
  most = 0; // parts at once
  wait = 0; // milliseconds that a part takes
  slow = null; // a pattern of paths whose answers take a while
  #keys = new Map();

  constructor() {
    const service = this;
    this.fetch = (url, request) => service.#fetch(url, request);
    this.XMLHttpRequest = class extends FakeXMLHttpRequest {
      service = service;
    };
    this.options = {
      names,
      base: "/v1/",
      fetch: this.fetch,
      XMLHttpRequest: this.XMLHttpRequest,
      wait: { min: 1, max: 2 },
      events: new EventTarget(),
    };
  }

  /** Counts the calls that begin so. */
  count(prefix) {
    return this.calls.filter((call) => call.startsWith(prefix)).length;
  }

  /** Returns the answer of a fault, after noting a call. */
  fault(method, path) {
    const call = `${method} ${path}`;
    this.calls.push(call);
    for (const fault of this.faults) {
      const answer = fault({ method, path, count: this.count(call), request: call });
      if (answer) return answer;
    }
    return null;
  }

  async #fetch(url, { method, headers, body, signal }) {
    if (!url.startsWith("/v1/")) throw new Error(`fetched ${url}`);
    const path = url.slice(4);
    const fault = this.fault(method, path);
    await new Promise((resolve) => setTimeout(resolve, this.slow?.test(path) ? 50 : 0));
    if (signal?.aborted) throw signal.reason;
    if (fault && !fault.after) return respond(fault);
    const done = this.#answer(method, path, headers, body && JSON.parse(body));
    return respond(fault ?? done);
  }

  #answer(method, path, headers, body) {
    if (path.startsWith("requests/in?k=")) {
      if (this.password) {
        return { status: 401, headers: { "WWW-Authenticate": 'Basic realm="link", charset="UTF-8"' } };
      }
      return { status: 200, body: { maker: "ann" }, headers: { "Ferry-Guest": "secret" } };
    }
    if (this.guests && (headers.Authorization !== "Bearer a b" || headers["Ferry-Guest"] !== "secret"))
      return { status: 401 };
    if (method === "POST" && path === "uploads") return this.#begin(headers["Idempotency-Key"], body);
    const [, id, action = ""] = path.match(/^uploads\/([^/]+)\/?(\w*)$/) ?? [];
    const session = this.sessions.get(id);
    if (!session) return { status: 404, headers: { "Ferry-Error": "no upload session with that id" } };
    if (method === "GET") return { status: 200, body: this.#show(session, true) };
    if (method === "DELETE") {
      if (session.done) return { status: 409 };
      this.sessions.delete(id);
      return { status: 204 };
    }
    return action === "parts" ? this.#sign(session, body) : this.#complete(session, body);
  }

  #begin(key, body) {
    if (!key) return { status: 400, headers: { "Ferry-Error": "the test wants a key" } };
    if (!this.#keys.has(key)) {
      const id = `${this.sessions.size + 7}-abc`;
      this.sessions.set(id, { id, body, parts: new Map(), partSize: body.partSize ?? PART });
      this.#keys.set(key, id);
    }
    return { status: 201, body: this.#show(this.sessions.get(this.#keys.get(key))) };
  }

  #show({ id, body: { name, length }, partSize, parts, done }, arrived = false) {
    const shown = {
      id,
      name,
      length,
      partSize,
      parts: Math.max(1, Math.ceil(length / partSize)),
      state: done ? "done" : "open",
    };
    if (arrived)
      shown.arrived = done ? [] : [...parts].map(([number, { size, sum }]) => ({ number, size, crc64nvme: sum }));
    return shown;
  }

  #sign(session, { numbers, crc64nvme }) {
    if (session.done) return { status: 409, headers: { "Ferry-Error": "the upload is complete" } };
    const parts = numbers.map((number) => ({
      number,
      method: "PUT",
      url: `${base}uploads/${session.id}/parts/${number}?e=1&s=2`,
      headers: { "X-Amz-Checksum-Crc64nvme": crc64nvme[number] },
    }));
    return { status: 200, body: { parts } };
  }

  /** Takes a part. */
  async take(url, headers, blob) {
    const [, id, number] = url.match(/^\/v1\/uploads\/([^/]+)\/parts\/(\d+)\?e=1&s=2$/);
    const session = this.sessions.get(id);
    if (!session || session.done) return { status: 404 };
    const bytes = new Uint8Array(await blob.arrayBuffer()),
      sum = new Crc64().update(bytes).text;
    const size = Math.min(session.partSize, session.body.length - (number - 1) * session.partSize);
    if (sum !== headers["X-Amz-Checksum-Crc64nvme"] || bytes.length !== size) return { status: 400 };
    session.parts.set(Number(number), { size, sum, bytes });
    return { status: 200 };
  }

  #complete(session, { crc64nvme }) {
    if (!session.done) {
      const all = Buffer.concat(
        [...session.parts.keys()].sort((a, b) => a - b).map((number) => session.parts.get(number).bytes),
      );
      if (all.length !== session.body.length) return { status: 400, headers: { "Ferry-Error": "parts are missing" } };
      if (new Crc64().update(all).text !== crc64nvme)
        return { status: 400, headers: { "Ferry-Error": "another checksum" } };
      session.done = true;
      this.files.push({
        id: parseInt(session.id, 10),
        name: session.body.name,
        bytes: all,
        linkURL: "https://files.example/v1/x",
      });
    }
    return { status: 200, body: { files: this.files.map(({ id, name, linkURL }) => ({ id, name, linkURL })) } };
  }
}

/** A fault that happens when the path of a request matches, for the nth such requests. */
export function when(pattern, nths, answer) {
  let seen = 0;
  return ({ request }) => {
    if (!pattern.test(request)) return null;
    seen++;
    return nths === "always" || nths.includes(seen) ? answer : null;
  };
}

/** The connection is lost: before the request arrives or, if `after`, before its answer does. */
export const lost = { lost: true };
export const lostAnswer = { lost: true, after: true };

function respond({ lost: gone, status, body, headers = {} }) {
  if (gone) throw new TypeError("fetch failed");
  return new Response(body ? JSON.stringify(body) : null, { status, headers });
}

class FakeXMLHttpRequest {
  upload = {};
  status = 0;
  #url = "";
  #headers = {};
  #answer = {};
  #ended = false;
  #busy = true;

  open(method, url) {
    this.#url = url;
    if (method !== "PUT") throw new Error(method);
  }

  setRequestHeader(name, value) {
    this.#headers[name] = value;
  }

  getResponseHeader(name) {
    return this.#answer.headers?.[name] ?? null;
  }

  abort() {
    this.#ended = true;
    this.#free();
  }

  #free() {
    if (this.#busy) this.service.sending--;
    this.#busy = false;
  }

  async send(blob) {
    if (!(blob instanceof Blob)) throw new Error("only a Blob is not held in memory");
    const { service } = this;
    service.most = Math.max(service.most, ++service.sending);
    const fault = service.fault("PUT", this.#url.replace(/\?.*/, ""));
    await new Promise((resolve) => setTimeout(resolve, service.wait));
    this.#free();
    if (this.#ended) return;
    if (!fault?.lost || fault.moved) this.upload.onprogress?.({ loaded: Math.ceil(blob.size / 2), total: blob.size });
    await new Promise((resolve) => setTimeout(resolve));
    if (this.#ended) return;
    this.#answer = fault && !fault.after ? fault : await service.take(this.#url, this.#headers, blob);
    if (this.#ended) return;
    this.#ended = true;
    if (fault?.lost) return this.onerror();
    if (blob.size) this.upload.onprogress?.({ loaded: blob.size, total: blob.size });
    this.status = this.#answer.status;
    this.onload();
  }
}
