// Requests to the API, with the page's cookie or as a guest of a request, and what their errors mean.
//
//   const guest = await join(token);                 // for the page of a request: {token, secret, about}
//   const service = new Service({ guest });
//   const me = await service.call("GET", "me");      // throws an UploadError
//
// Pages are next to v1/, so all addresses are relative.
//
// Exports: Service with call(method, path, {body, headers, signal, keepalive}); join(token, {signal});
// UploadError; and for upload.js mayPass(error), refusal(status, header).

/**
 * @typedef {{ token: string, secret?: string | null, about?: any }} Guest
 * @typedef {(name: string) => string | null} Header
 * @typedef {{
 *   body?: object,
 *   headers?: { [name: string]: string },
 *   signal?: AbortSignal,
 *   keepalive?: boolean,
 *   answered?: (headers: Headers) => void,
 *   login?: { [name: string]: string },
 *   credentials?: RequestCredentials,
 * }} Ask
 */

const LONGEST = 300_000; // milliseconds until an answer

/**
 * Why an upload failed. `status` is that of the service's answer, or 0; `detail` and `parameter`
 * are its Ferry-Error and Ferry-Parameter, `retryAfter` is in seconds. `code` names a failure that
 * is not such an answer: 'network', 'unreachable' (only where the parts go), 'changed' (`path`
 * names the file of a bundle), 'other' (not the file that the session began with), 'gone' (the
 * session has ended, and a new one would lack its password), 'answer' (not from Ferry),
 * 'cancelled'; and 'password' means that a request needs one.
 */
export class UploadError extends Error {
  name = "UploadError";
  moved = false; // what was sent has moved something
  again = false; // the same request may succeed later

  /**
   * @param {{
   *   status?: number, detail?: string, parameter?: string, retryAfter?: number, code?: string, path?: string,
   * }} why
   */
  constructor({ status = 0, detail = "", parameter = "", retryAfter = 0, code = "", path = "" }) {
    super(detail || (status ? `the service answered ${status}` : code));
    this.status = status;
    this.detail = detail;
    this.parameter = parameter;
    this.retryAfter = retryAfter;
    this.code = code;
    this.path = path;
  }
}

/**
 * Begins as a guest: returns {token, secret, about} for the option `guest`. `about` is what the
 * request says (GET requests/in). An UploadError with the code 'password' means that the request's
 * page must ask for its password first.
 * @param {string} token
 * @param {{ signal?: AbortSignal, base?: string, fetch?: typeof fetch }} options
 * @returns {Promise<Guest>}
 */
export async function join(token, { signal, ...options } = {}) {
  const service = new Service({ ...options, guest: { token } });
  const about = await service.join(signal);
  return { token, ...service.guest, about };
}

/** The API. `base` and `fetch` are for tests and other pages. */
export class Service {
  /** @type {Guest | null} */
  guest;
  #base;
  #fetch;

  /** @param {{ base?: string, fetch?: typeof globalThis.fetch, guest?: Guest | null }} options */
  constructor({ base = "v1/", fetch = globalThis.fetch, guest = null }) {
    this.#base = base;
    this.#fetch = fetch;
    this.guest = guest && { ...guest };
  }

  get isGuest() {
    return this.guest !== null;
  }

  // join gets the guest's secret before anything is sent: if that answer were lost, a repeated
  // request would come from another guest, and the file would exist twice. The browser keeps the
  // secret in a cookie, which only this request sends.
  /** @param {AbortSignal} [signal] */
  async join(signal) {
    const { guest } = this;
    if (!guest || guest.secret) return null;
    const answered = (/** @type {Headers} */ headers) => {
      guest.secret = headers.get("Ferry-Guest");
    };
    const path = `requests/in?k=${encodeURIComponent(guest.token)}`;
    return this.call("GET", path, { login: {}, credentials: "same-origin", signal, answered });
  }

  /** @returns {{ [name: string]: string }} */
  #login() {
    if (!this.guest) return {};
    return { Authorization: `Bearer ${this.guest.token}`, "Ferry-Guest": this.guest.secret ?? "" };
  }

  /**
   * Sends a request and returns the JSON of its answer. `answered` receives the headers of a success.
   * @param {string} method @param {string} path @param {Ask} options
   * @returns {Promise<any>}
   */
  async call(method, path, options = {}) {
    const { body, headers, signal, keepalive = false, answered } = options;
    const { login = this.#login(), credentials = this.isGuest ? "omit" : "same-origin" } = options;
    /** @type {{ [name: string]: string }} */
    const all = { Accept: "application/json", ...login, ...headers };
    if (body) all["Content-Type"] = "application/json";
    const controller = new AbortController(),
      stop = () => controller.abort();
    const idle = setTimeout(stop, LONGEST);
    signal?.addEventListener("abort", stop);
    try {
      signal?.throwIfAborted();
      const response = await this.#fetch.call(globalThis, this.#base + path, {
        method,
        headers: all,
        body: body && JSON.stringify(body),
        keepalive,
        credentials,
        cache: "no-store",
        signal: controller.signal,
      });
      const text = await response.text();
      if (!response.ok) throw refusal(response.status, (name) => response.headers.get(name));
      answered?.(response.headers);
      return text ? parsed(text) : null;
    } catch (/** @type {any} */ error) {
      signal?.throwIfAborted();
      throw error instanceof UploadError ? error : new UploadError({ code: "network", detail: error.message });
    } finally {
      clearTimeout(idle);
      signal?.removeEventListener("abort", stop);
    }
  }

  // near returns the address of a part. If the service itself takes the part, the address has the
  // name that the page was opened with, so that no other origin is involved.
  /** @param {string} url @param {string} id */
  near(url, id) {
    const at = url.indexOf(`/uploads/${id}/parts/`);
    return at < 0 ? url : this.#base + url.slice(at + 1);
  }
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new UploadError({ code: "answer" });
  }
}

/**
 * Returns the error in an answer. `header` is a function that returns a header.
 * @param {number} status @param {Header} header
 */
export function refusal(status, header) {
  const asked = header("WWW-Authenticate") ?? header("X-Amzn-Remapped-WWW-Authenticate") ?? "";
  return new UploadError({
    status,
    detail: header("Ferry-Error") ?? "",
    parameter: header("Ferry-Parameter") ?? "",
    retryAfter: retryAfter(header),
    code: status === 401 && asked.includes('realm="link"') ? "password" : "",
  });
}

// retryAfter reads Retry-After in its two forms (RFC 9110, section 10.2.3), in seconds.
/** @param {Header} header */
function retryAfter(header) {
  const value = header("Retry-After") ?? "";
  if (/^\d{1,7}$/.test(value)) return Number(value);
  const after = (Date.parse(value) - Date.parse(header("Date") ?? "")) / 1000;
  return after > 0 ? after : 0;
}

// LOST is what the service says about a file whose bytes it has lost.
const LOST = "the service has lost the bytes";

/**
 * Reports whether the same request may succeed later.
 * @param {UploadError} error
 */
export function mayPass({ status, again, detail, retryAfter: after }) {
  if (again || (status === 409 && after > 0)) return true; // an earlier try still runs
  return [408, 429, 500, 502, 503, 504].includes(status) && !detail.startsWith(LOST);
}
