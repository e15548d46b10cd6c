// Sends a file or a bundle to Ferry in an upload session: in parts, four at once, each with its
// checksum. It resumes by itself after a lost connection, and after the tab was closed if the page
// resumes what store.js remembers. It follows shared/client/put.go.
//
//   const upload = new Upload(fileSource(file), { m: ["ann@example.com"], expires: "7d", store, scope: "user:bob" });
//   upload.onchange = ({ state, sent, total, rate, left, error }) => ...;
//   const { file } = await upload.start();        // its links; throws an UploadError
//   upload.pause(); upload.resume(); await upload.cancel();
//
//   new Upload(bundleSource("holiday.zip", new Bundle(entriesOf(files))), ...)
//   new Upload(source, { store, resume: record })           // a record of store.list()
//   const guest = await join(token);                        // for the page of a request
//   new Upload(source, { guest, by: "Ann" })
//
// States: 'paused' (also before the start), 'hashing' (it reads, and has sent nothing yet),
// 'sending', 'offline' (it waits for the network and resumes by itself), 'completing', 'done',
// 'failed'. After a failure start() retries with what has arrived; a cancelled upload is a failed
// one whose error has the code 'cancelled'.
//
// Options: those of POST uploads (m, c, i, expires, downloads, password, d, notify, lang, by, partSize);
// guest; store, scope, handles, resume (see store.js); for tests and other pages base, fetch,
// XMLHttpRequest, pool, wait (of retries: {tries, min, max} in milliseconds).
//
// Exports: Upload with start(), pause(), resume(), cancel(), snapshot(), onchange; fileSource(file, name),
// bundleSource(name, bundle). join and UploadError are those of service.js.

import { Crc64, text64 } from "./crc.js";
import { mayPass, refusal, Service, UploadError } from "./service.js";
import { ChangedError, Pool } from "./worker.js";

export { join, UploadError } from "./service.js";

const AT_ONCE = 4; // parts that are sent at once, over all uploads of the page
const READING = 2; // parts whose checksum is computed at once
const AHEAD = 8; // parts that are read and waiting to be sent
const SIGNED_LIFE = 5 * 60_000; // the service says 15 minutes, by its own clock
const IDLE = 60_000; // how long nothing may move on a connection
const LONGEST_WAIT = 120; // seconds that the service may ask to wait
const RIVALS = 5; // retries, as another tab may have completed or ended the session
const UNREACHABLE = 30; // lost connections of a part, while the service answers; one that took no byte counts as 3
const RATE_OVER = 5_000; // what the rate is averaged over
const EMIT_EVERY = 100;

const FIELDS = ["m", "c", "i", "expires", "downloads", "password", "d", "notify", "lang", "by", "partSize"];

/** A source of one file, or of any Blob with a name. */
export function fileSource(file, name = file.name) {
  return { name, type: file.type, length: file.size, bundle: false, cut: (size, pool) => new Sections(file, size, pool) };
}

/** A source of several files: a Bundle, see bundle.js. */
export function bundleSource(name, bundle) {
  const entries = bundle.entries.map(({ path }) => path);
  const cut = (size, pool) => bundle.cut(size, pool);
  return { name, type: "application/zip", length: bundle.length, bundle: true, entries, cut };
}

// Sections are the parts of a file, with the same methods as the Parts of a bundle.
class Sections {
  #file;
  #size;
  #pool;

  constructor(file, size, pool) {
    this.#file = file;
    this.#size = size;
    this.#pool = pool;
  }

  get count() {
    return Math.max(1, Math.ceil(this.#file.size / this.#size));
  }

  order() {
    return Array.from({ length: this.count }, (_, i) => i + 1);
  }

  async sum(number, { signal } = {}) {
    const [{ crc64 }] = await this.#pool.sums([this.blob(number)], { signal });
    return crc64;
  }

  blob(number) {
    return this.#file.slice((number - 1) * this.#size, number * this.#size);
  }
}

/** One upload. It does nothing before start(). */
export class Upload {
  /** Is called with a snapshot() when something changes, at most ten times a second while bytes move. */
  onchange = null;

  #source;
  #options;
  #service;
  #pool;

  #state = "paused";
  #phase = "hashing"; // what it does when it is not offline
  #error = null;
  #cancelled = false;
  #ending = null; // {promise, resolve, reject} of start()
  #run = null; // {controller, over}: the work under way, until a pause, a failure or the end

  #key = ""; // Idempotency-Key of a session that is being made
  #session = null;
  #record = null; // what the store keeps about it
  #held = null; // {id, release}: the session that no other tab may offer

  #parts = null; // of the source, as the session divides it
  #sums = new Map(); // of the parts, by their numbers
  #there = new Map(); // sizes of the parts that the service has
  #moving = new Map(); // bytes that have been sent, of parts under way
  #meter = new Meter();
  #emitting = null;

  constructor(source, options = {}) {
    this.#source = source;
    const { resume } = options, before = { ...resume?.options, scope: resume?.scope, handles: resume?.handles };
    this.#options = { XMLHttpRequest: globalThis.XMLHttpRequest, events: globalThis, ...before, ...options };
    this.#options.wait = { tries: 10, min: 500, max: 30_000, ...options.wait };
    this.#service = new Service(options);
    this.#pool = options.pool ?? Pool.shared();
    if (resume) {
      this.#record = resume;
      this.#session = { id: resume.id };
    }
  }

  /** Begins, or resumes after a pause or a failure. Returns {id, file, answer} once the file is complete. */
  start() {
    if (this.#cancelled) return Promise.reject(this.#error);
    if (!this.#ending) {
      const ending = {};
      ending.promise = new Promise((resolve, reject) => Object.assign(ending, { resolve, reject }));
      ending.promise.catch(() => {}); // a page may watch only the state
      this.#ending = ending;
    }
    const { promise } = this.#ending;
    if (this.#state === "paused" || this.#state === "failed") this.#begin();
    return promise;
  }

  /** Stops sending. What has arrived stays. */
  pause() {
    if (!["hashing", "sending", "offline"].includes(this.#state)) return;
    this.#run.controller.abort(new UploadError({ code: "paused" }));
    this.#to("paused");
  }

  /** Resumes, as start() does. */
  resume() {
    this.start().catch(() => {});
  }

  /**
   * Ends the upload, and its session with everything that has arrived. Returns false if the file
   * was already complete: then the upload is done.
   */
  async cancel() {
    if (this.#state === "done" || this.#cancelled) return this.#state !== "done";
    this.#cancelled = true;
    this.#run?.controller.abort(new UploadError({ code: "cancelled" }));
    await this.#run?.over;
    if (this.#state === "done") return false;
    if (await this.#end()) {
      this.#fail(new UploadError({ code: "cancelled" }));
      return true;
    }
    this.#cancelled = false;
    this.#state = "paused";
    this.resume(); // this gets the answer that was lost
    return false;
  }

  /** Returns {state, sent, total, rate, left, error, id}: bytes, bytes a second, seconds (or null). */
  snapshot() {
    const total = this.#source.length, sent = Math.min(sumOf(this.#there) + sumOf(this.#moving), total);
    const rate = this.#state === "sending" ? this.#meter.rate() : 0, left = rate > 0 ? (total - sent) / rate : null;
    return { state: this.#state, sent, total, rate, left, error: this.#error, id: this.#session?.id ?? null };
  }

  #begin() {
    const before = this.#run?.over, controller = new AbortController(), { signal } = controller;
    this.#run = { controller, over: null };
    this.#error = null;
    this.#phase = "hashing";
    this.#to("hashing");
    const work = async () => {
      await before; // another run would send the same parts
      signal.throwIfAborted();
      const result = await this.#put(signal);
      this.#forget();
      this.#to("done");
      this.#ending.resolve(result);
    };
    const ticking = setInterval(() => this.#emit(), 1000); // the rate falls while nothing moves
    this.#run.over = work().catch((error) => {
      if (!signal.aborted) this.#fail(asUploadError(error));
    }).finally(() => clearInterval(ticking));
  }

  #fail(error) {
    this.#error = error;
    this.#letGo();
    this.#to("failed");
    this.#ending?.reject(error);
    this.#ending = null;
  }

  // put sends everything and completes the session. If another tab has completed it, or is about
  // to, this one gets the same answer.
  async #put(signal) {
    let status = await this.#open(signal), failed = null;
    for (let tries = 0; ; tries++) {
      try {
        return await this.#attempt(status, signal);
      } catch (error) {
        if (!failed || error.status !== 404) failed = error; // otherwise the earlier one says more
        if (signal.aborted || tries === RIVALS || ![400, 404, 409].includes(error.status)) throw failed;
      }
      await this.#sleep(50 * tries, signal);
      status = await this.#status(signal).catch(() => { throw failed; });
    }
  }

  // open returns the session, and what has arrived in it.
  async #open(signal) {
    const record = this.#options.resume;
    if (record && (record.size !== this.#source.length || record.name !== this.#source.name)) {
      throw new UploadError({ code: "other" });
    }
    await this.#retry(signal, () => this.#service.join(signal));
    if (this.#session) {
      try {
        return await this.#status(signal);
      } catch (error) {
        if (error.status !== 404) throw error;
        if (record?.protected && !this.#options.password) throw new UploadError({ status: 404, code: "gone" });
      }
      this.#forget();
    }
    return this.#create(signal);
  }

  async #status(signal) {
    const status = await this.#retry(signal, () => this.#service.call("GET", sessionPath(this.#session), { signal }));
    this.#use(status);
    return status;
  }

  // create begins a session. If the answer is lost, the same key gets the session again.
  async #create(signal) {
    const { name, type, length, bundle, entries } = this.#source, { scope, handles, store } = this.#options;
    const options = pick(this.#options, FIELDS), { password, ...kept } = options;
    const files = entries?.filter((path) => !path.endsWith("/")).length;
    const body = { name, type, length, bundle, files, ...options };
    this.#key ||= randomKey();
    const headers = { "Idempotency-Key": this.#key };
    const session = await this.#retry(signal, () => this.#service.call("POST", "uploads", { body, headers, signal }));
    this.#key = "";
    this.#use(session);
    this.#record = {
      id: session.id, scope, name, size: length, type, bundle, entries, handles, created: Date.now(),
      first: null, protected: Boolean(password), options: kept,
    };
    unhurried(store?.put(this.#record));
    return session;
  }

  // use takes over a session, whose parts must add up to the file.
  #use(session) {
    const { id, length, partSize, parts } = session ?? {}, same = length === this.#source.length;
    if (!id || !same || !(partSize > 0) || parts !== Math.max(1, Math.ceil(length / partSize))) {
      throw new UploadError({ code: same ? "answer" : "other" });
    }
    if (this.#session?.partSize !== partSize) {
      this.#parts = this.#source.cut(partSize, this.#pool);
      this.#sums.clear();
    }
    if (this.#held?.id !== id) {
      this.#letGo();
      this.#held = { id, release: this.#options.store?.hold(id) };
    }
    this.#session = session;
    this.#there = new Map((session.arrived ?? []).map(({ number, size }) => [number, size]));
    this.#moving.clear();
    this.#tell();
  }

  #forget() {
    const id = this.#session?.id;
    this.#session = this.#record = null;
    this.#letGo();
    if (id) unhurried(this.#options.store?.delete(id));
  }

  #letGo() {
    this.#held?.release?.();
    this.#held = null;
  }

  // end removes the session. It returns false if the session has become a file.
  async #end() {
    const { signal } = new AbortController(), tries = 3;
    try {
      // Its creation may have been cut off: then its id is not known.
      if (!this.#session && this.#key) await this.#create(signal);
      if (!this.#session) return true;
      const path = sessionPath(this.#session);
      await this.#retry(signal, () => this.#service.call("DELETE", path, { signal, keepalive: true }), tries);
    } catch (error) {
      if (error.status === 409) return false;
      if (error.status !== 404) return true; // it expires within a week, and the store still offers it
    }
    this.#forget();
    return true;
  }

  // attempt sends what has not arrived, and completes the session.
  async #attempt(status, signal) {
    if (status.state === "done") return this.#complete(signal, {}); // get its answer again
    const order = this.#parts.order(), arrived = new Map((status.arrived ?? []).map((part) => [part.number, part]));
    if (this.#record?.first && arrived.size && order[0] === 1) {
      const first = text64(await this.#sum(1, signal));
      if (first !== this.#record.first) throw new UploadError({ code: "other" });
    }
    try {
      // What has arrived is read too, but last: the checksum of the whole needs it, and its bytes may differ.
      await this.#send([...order.filter((n) => !arrived.has(n)), ...order.filter((n) => arrived.has(n))], arrived, signal);
    } catch (error) {
      if (error.status !== 404) throw error;
      if ((await this.#status(signal)).state === "done") return this.#complete(signal, {}); // throws if it has ended
      // The parts have become one object, which is perhaps not yet a file.
      for (const number of order) await this.#sum(number, signal);
    }
    const whole = new Crc64();
    for (let number = 1; number <= this.#session.parts; number++) whole.append(this.#sums.get(number), this.#size(number));
    return this.#complete(signal, { crc64nvme: whole.text });
  }

  // complete makes the file. A repeated request gets the same answer.
  async #complete(signal, body) {
    this.#enter("completing");
    let said = "";
    const answer = await this.#retry(signal, async () => {
      try {
        return await this.#service.call("POST", `${sessionPath(this.#session)}/complete`, { body, signal });
      } catch (error) {
        if (error.status === 503 && error.message !== said) { // the service says how far it is
          said = error.message;
          error.moved = true;
        }
        throw error;
      }
    });
    if (!Array.isArray(answer?.files)) throw new UploadError({ code: "answer" });
    this.#there = new Map([[1, this.#source.length]]);
    this.#moving.clear();
    const id = parseInt(this.#session.id, 10); // of the file
    const file = this.#service.isGuest ? answer.files[0] : answer.files.find((one) => one.id === id);
    return { id, answer, file: file ?? await this.#service.call("GET", `files/${id}`, { signal }).catch(() => null) };
  }

  // send reads all parts and sends those that have not arrived, several at once. It ends at the first error.
  async #send(numbers, arrived, outer) {
    const controller = new AbortController(), { signal } = controller, queue = new Queue(), next = numbers.values();
    const stop = () => controller.abort(outer.reason);
    outer.addEventListener("abort", stop);
    signal.addEventListener("abort", () => queue.end(signal.reason));
    if (outer.aborted) stop();
    let readers = READING;
    const read = async () => {
      for (const number of next) {
        const sum = text64(await this.#sum(number, signal)), size = this.#size(number), there = arrived.get(number);
        if (there?.crc64nvme === sum && there.size === size) continue;
        this.#there.delete(number);
        await queue.put({ number, size, sum });
      }
      if (--readers === 0) queue.end();
    };
    const send = async () => {
      for (let part; (part = await queue.take());) await this.#sendPart(part, queue, signal);
    };
    const lanes = [...Array.from({ length: READING }, read), ...Array.from({ length: AT_ONCE }, send)];
    try {
      await Promise.all(lanes);
    } catch (error) {
      controller.abort(error);
      throw error;
    } finally {
      await Promise.allSettled(lanes);
      outer.removeEventListener("abort", stop);
    }
  }

  #size(number) {
    const { length, partSize } = this.#session;
    return Math.min(partSize, length - (number - 1) * partSize);
  }

  // sum returns the checksum of a part.
  async #sum(number, signal) {
    signal.throwIfAborted();
    if (!this.#sums.has(number)) {
      const parts = this.#parts, sum = await parts.sum(number, { signal });
      signal.throwIfAborted();
      this.#sums.set(number, sum);
      if (number === 1 && this.#record && !this.#record.first) {
        this.#record = { ...this.#record, first: text64(sum) };
        unhurried(this.#options.store?.put(this.#record));
      }
    }
    return this.#sums.get(number);
  }

  async #sendPart(part, queue, signal) {
    let unreached = 0;
    await this.#retry(signal, async () => {
      const address = await this.#address(part, queue, signal);
      this.#enter("sending");
      try {
        const blob = await this.#parts.blob(part.number, { signal });
        await this.#transfer(address, blob, part.number, signal);
      } catch (error) {
        this.#moving.delete(part.number);
        part.signed = null;
        signal.throwIfAborted();
        if (error.status === 0 || error.status === 400) await this.#unchanged(part, signal);
        // The address is too old, bytes were changed on the way, or an earlier try is still running.
        if ([400, 403, 409].includes(error.status)) error.again = true;
        // The service has just answered, or there would be no address.
        if (error.code === "network") unreached += error.moved ? 1 : 3;
        if (unreached >= UNREACHABLE) error.code = "unreachable";
        throw error;
      }
    });
    this.#moving.delete(part.number);
    this.#there.set(part.number, part.size);
    this.#emit();
  }

  // unchanged throws if a part has other bytes than before, which may be why the service refused it.
  async #unchanged({ number, sum }, signal) {
    const now = text64(await this.#parts.sum(number, { fresh: true, signal }));
    if (now !== sum) throw new ChangedError();
  }

  // address returns where a part goes. One request gets the addresses of all parts that wait.
  async #address(part, queue, signal) {
    const fresh = ({ signed, at }) => signed && Date.now() - at < SIGNED_LIFE && Date.now() >= at;
    if (!fresh(part)) {
      const batch = [part, ...queue.parts.filter((waiting) => !fresh(waiting))]; // a request may ask for 100
      const signing = this.#sign(batch, signal);
      for (const one of batch) {
        one.at = Date.now();
        one.signed = signing.then((found) => found.get(one.number));
        one.signed.catch(() => { one.signed = null; });
      }
    }
    return part.signed;
  }

  async #sign(batch, signal) {
    const numbers = batch.map(({ number }) => number);
    const body = { numbers, crc64nvme: Object.fromEntries(batch.map(({ number, sum }) => [number, sum])) };
    const answer = await this.#service.call("POST", `${sessionPath(this.#session)}/parts`, { body, signal });
    const found = new Map(answer?.parts?.map((part) => [part.number, part]));
    if (numbers.some((number) => !found.has(number))) throw new UploadError({ code: "answer" });
    return found;
  }

  // transfer sends one part, once a line is free.
  async #transfer(address, blob, number, signal) {
    const leave = await lines.take(signal);
    try {
      await this.#exchange(address, blob, number, signal);
    } finally {
      leave();
    }
  }

  // exchange sends one part. It uses XMLHttpRequest, because fetch does not report the progress of an upload.
  #exchange({ method, url, headers }, blob, number, signal) {
    return new Promise((resolve, reject) => {
      const xhr = new this.#options.XMLHttpRequest();
      let moved = 0, idle;
      const watch = (time) => {
        clearTimeout(idle);
        idle = setTimeout(() => fail(new UploadError({ code: "network" })), time);
      };
      const end = (settle, value) => {
        clearTimeout(idle);
        signal.removeEventListener("abort", abort);
        settle(value);
      };
      const fail = (error) => {
        if (error.code === "network") error.moved = moved > 0;
        end(reject, error);
        xhr.abort();
      };
      const abort = () => fail(signal.reason);
      xhr.open(method, this.#service.near(url, this.#session));
      for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value);
      xhr.upload.onprogress = ({ loaded }) => {
        this.#meter.add(loaded - moved);
        moved = loaded;
        this.#moving.set(number, Math.min(loaded, blob.size));
        watch(loaded < blob.size ? IDLE : 5 * IDLE); // then it is the answer that takes time
        this.#online();
        this.#emit();
      };
      xhr.onload = () => (xhr.status < 300 ? end(resolve) : fail(refusal(xhr.status, (name) => xhr.getResponseHeader(name))));
      xhr.onerror = xhr.onabort = xhr.ontimeout = () => fail(new UploadError({ code: "network" }));
      signal.addEventListener("abort", abort);
      watch(IDLE);
      if (signal.aborted) abort();
      else xhr.send(blob);
    });
  }

  // retry repeats work that may succeed later: without end while there is no network, and a few
  // times when the service is busy. After a try that moved something, it counts from the beginning.
  async #retry(signal, work, most = Infinity) {
    const { tries, min, max } = this.#options.wait;
    for (let failed = 1, refused = 0; ; failed++) {
      try {
        const result = await work();
        this.#online();
        return result;
      } catch (error) {
        signal.throwIfAborted();
        if (error.moved) failed = 1, refused = 0;
        const lost = error.code === "network";
        if (!lost) refused++;
        if (!lost && !mayPass(error) || refused >= tries || failed >= most || error.retryAfter > LONGEST_WAIT) throw error;
        if (lost) this.#offline();
        const pause = Math.random() * Math.min(max, min * 2 ** Math.min(failed - 1, 20)); // or all would come back at once
        await this.#sleep(pause + 1000 * error.retryAfter, signal, lost);
      }
    }
  }

  // sleep waits. If `lost`, it waits only until there is a network again.
  #sleep(time, signal, lost = false) {
    const { events } = this.#options;
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        events.removeEventListener?.("online", end);
        if (signal.aborted) reject(signal.reason);
        else resolve();
      };
      const timer = setTimeout(end, time);
      signal.addEventListener("abort", end);
      if (lost) events.addEventListener?.("online", end);
      if (signal.aborted) end();
    });
  }

  #offline() {
    if (this.#state === this.#phase) this.#to("offline");
  }

  #online() {
    if (this.#state === "offline") this.#to(this.#phase);
  }

  #enter(phase) {
    const shown = this.#state === this.#phase;
    this.#phase = phase;
    if (shown && this.#state !== phase) this.#to(phase);
  }

  #to(state) {
    this.#state = state;
    this.#tell();
  }

  #emit() {
    this.#emitting ??= setTimeout(() => this.#tell(), EMIT_EVERY);
  }

  #tell() {
    clearTimeout(this.#emitting);
    this.#emitting = null;
    try {
      this.onchange?.(this.snapshot());
    } catch (error) {
      (globalThis.reportError ?? console.error)(error); // a fault in the page must not end the upload
    }
  }
}

function asUploadError(error) {
  if (error instanceof UploadError) return error;
  if (error instanceof ChangedError) return new UploadError({ code: "changed", detail: error.message, path: error.path });
  return new UploadError({ code: "internal", detail: String(error) });
}

// Queue hands parts that have been read to the senders. It holds only a few.
class Queue {
  parts = [];
  #ended = false;
  #error = null;
  #wake = () => {};
  #change = null;

  async put(part) {
    while (this.parts.length >= AHEAD && !this.#error) await this.#changed();
    if (this.#error) throw this.#error;
    this.parts.push(part);
    this.#wake();
  }

  // take returns undefined at the end.
  async take() {
    while (!this.parts.length && !this.#ended) await this.#changed();
    if (this.#error) throw this.#error;
    this.#wake();
    return this.parts.shift();
  }

  end(error = null) {
    this.#ended = true;
    this.#error ??= error;
    this.#wake();
  }

  #changed() {
    this.#change ??= new Promise((resolve) => {
      this.#wake = () => {
        this.#change = null;
        this.#wake = () => {};
        resolve();
      };
    });
    return this.#change;
  }
}

// Lines limits how many parts are sent at once. A browser has six connections to a host for all its
// uploads and requests, and a part that waits for one would look like a lost connection.
class Lines {
  #waiting = [];

  constructor(free) {
    this.free = free;
  }

  // take returns a function that gives the line back.
  async take(signal) {
    signal.throwIfAborted();
    if (this.free > 0) this.free--;
    else await this.#wait(signal);
    return () => {
      const next = this.#waiting.shift();
      if (next) next();
      else this.free++;
    };
  }

  #wait(signal) {
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.#waiting = this.#waiting.filter((one) => one !== go);
        reject(signal.reason);
      };
      const go = () => {
        signal.removeEventListener("abort", stop);
        resolve();
      };
      signal.addEventListener("abort", stop, { once: true });
      this.#waiting.push(go);
    });
  }
}

const lines = new Lines(AT_ONCE);

// Meter measures how fast bytes have moved lately.
class Meter {
  #moves = [];
  #since = null;

  add(bytes, now = performance.now()) {
    this.#since ??= now;
    if (bytes > 0) this.#moves.push({ bytes, now });
  }

  rate(now = performance.now()) {
    this.#moves = this.#moves.filter((move) => now - move.now < RATE_OVER);
    const over = Math.min(now - (this.#since ?? now), RATE_OVER);
    return this.#moves.reduce((sum, { bytes }) => sum + bytes, 0) / Math.max(over, 500) * 1000;
  }
}

// unhurried lets a store work in the background: no upload waits for it, or fails because of it.
function unhurried(work) {
  Promise.resolve(work).catch(() => {});
}

function sessionPath({ id }) {
  return `uploads/${encodeURIComponent(id)}`;
}

function sumOf(map) {
  let sum = 0;
  for (const value of map.values()) sum += value;
  return sum;
}

function pick(from, names) {
  return Object.fromEntries(names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]));
}

// randomKey works without https too, unlike crypto.randomUUID.
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
