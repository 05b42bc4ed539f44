import { Agent, request as httpsRequest } from "node:https";
import type { Answer, Connection, RequestOptions } from "./http.ts";

/** Requests over HTTP/1.1 with keep-alive connections. */
export function openHttp1(url: string, token: string, ca: Buffer | undefined): Connection {
  const agent = new Agent({ keepAlive: true, ...(ca === undefined ? { rejectUnauthorized: false } : { ca }) });
  const auth = { authorization: `Bearer ${token}` };
  return {
    request: (path, options = {}) => exchange(new URL(path, url), agent, auth, options),
    close: () => agent.destroy(),
  };
}

function exchange(url: URL, agent: Agent, auth: Record<string, string>, options: RequestOptions): Promise<Answer> {
  const { method = "GET", body, headers = {}, keepBody = false } = options;
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const sent = httpsRequest(url, { agent, method, headers: { ...auth, ...headers } }, (response) => {
      const status = response.statusCode ?? 0;
      let firstByteMs = 0;
      let bytes = 0;
      const kept: Buffer[] = [];
      response.on("data", (chunk: Buffer) => {
        if (bytes === 0) firstByteMs = performance.now() - start;
        bytes += chunk.length;
        if (keepBody || status >= 400) kept.push(chunk);
      });
      response.once("error", reject);
      response.once("end", () => {
        const text = Buffer.concat(kept);
        if (status >= 400) reject(new Error(`${method} ${url.pathname}: ${status} ${text.toString("utf8", 0, 300)}`));
        else resolve({ status, firstByteMs, totalMs: performance.now() - start, bytes, body: text });
      });
    });
    sent.once("error", reject);
    sent.end(body);
  });
}
