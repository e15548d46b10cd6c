// Sends the bytes of one part. It uses XMLHttpRequest, because fetch does not report the progress of an upload.
//
// Exports: transport(address, blob, {XMLHttpRequest, signal, onprogress}).

import { Lines } from "./queue.js";
import { refusal, UploadError } from "./service.js";

/** @import { Signed } from "./queue.js" */
/**
 * @typedef {{
 *   XMLHttpRequest?: typeof XMLHttpRequest, signal: AbortSignal, onprogress: (sent: number) => void,
 * }} How
 */

const IDLE = 60_000; // milliseconds that nothing may move on a connection

/** How many parts are sent at once, over all uploads of the page. */
export const AT_ONCE = 4;
const lines = new Lines(AT_ONCE);

/**
 * Sends a Blob once a line is free. `onprogress` gets the number of bytes that have been sent.
 * @param {Signed} address @param {Blob} blob @param {How} options
 */
export async function transport(address, blob, options) {
  const leave = await lines.take(options.signal);
  try {
    await exchange(address, blob, options);
  } finally {
    leave();
  }
}

/** @param {Signed} address @param {Blob} blob @param {How} options @returns {Promise<void>} */
function exchange({ method, url, headers }, blob, { XMLHttpRequest = globalThis.XMLHttpRequest, signal, onprogress }) {
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    let moved = false;
    /** @type {ReturnType<typeof setTimeout>} */
    let idle;
    const watch = (/** @type {number} */ time) => {
      clearTimeout(idle);
      idle = setTimeout(lose, time);
    };
    const end = () => {
      clearTimeout(idle);
      signal.removeEventListener("abort", abort);
    };
    const fail = (/** @type {unknown} */ error) => {
      end();
      reject(error);
      xhr.abort();
    };
    const lose = () => fail(Object.assign(new UploadError({ code: "network" }), { moved }));
    const abort = () => fail(signal.reason);
    xhr.open(method, url);
    for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value);
    xhr.upload.onprogress = ({ loaded }) => {
      moved = loaded > 0;
      watch(loaded < blob.size ? IDLE : 5 * IDLE); // then it is the answer that takes time
      onprogress(Math.min(loaded, blob.size));
    };
    xhr.onload = () => {
      if (xhr.status >= 300)
        return fail(refusal(xhr.status, (/** @type {string} */ name) => xhr.getResponseHeader(name)));
      end();
      resolve();
    };
    xhr.onerror = xhr.onabort = xhr.ontimeout = lose;
    signal.addEventListener("abort", abort);
    watch(IDLE);
    if (signal.aborted) abort();
    else xhr.send(blob);
  });
}
