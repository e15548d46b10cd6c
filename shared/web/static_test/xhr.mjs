// XMLHttpRequest for node, as far as upload.js uses it. `cuts` are numbers of bytes, after each of which
// the connection of one request breaks.

import http from "node:http";

export const cuts = [];
export const agent = new http.Agent({ keepAlive: true });

export class XMLHttpRequest {
  upload = {};
  status = 0;
  #request;
  #response;
  #ended = false;

  open(method, url) {
    this.#request = http.request(url, { method, agent });
  }

  setRequestHeader(name, value) {
    this.#request.setHeader(name, value);
  }

  getResponseHeader(name) {
    return this.#response.headers[name.toLowerCase()] ?? null;
  }

  abort() {
    this.#ended = true;
    this.#request.destroy();
  }

  async send(blob) {
    const request = this.#request,
      cut = cuts.shift() ?? Infinity;
    const end = (how) => {
      if (!this.#ended) how();
      this.#ended = true;
    };
    request.setHeader("Content-Length", blob.size);
    request.on("error", () => end(() => this.onerror()));
    request.on("response", (response) => {
      this.#response = response;
      response.resume();
      response.on("end", () =>
        end(() => {
          this.status = response.statusCode;
          this.onload();
        }),
      );
    });
    let loaded = 0;
    for await (const chunk of blob.stream()) {
      if (this.#ended || request.destroyed) return;
      if (loaded + chunk.length > cut) return request.destroy(new Error("cut"));
      await new Promise((resolve) => request.write(chunk, resolve));
      loaded += chunk.length;
      if (!this.#ended) this.upload.onprogress?.({ loaded, total: blob.size });
    }
    request.end();
  }
}
