import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";

/** Server and credentials. */
export interface Target {
  readonly url: string;
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly token?: string;
}

export interface Sent {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer | undefined;
  /** Bytes sent after the server accepted an upgrade. */
  readonly afterUpgrade?: Buffer;
  /** Time until the response is cut, from its first byte. Default: 400 ms, enough to look at a stream. */
  readonly cutAfterMs?: number;
}

export interface Answer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Bytes received within the time limit; streaming responses (watch, logs) are cut there. */
  readonly bytes: Buffer;
  /** `bytes` decoded as UTF-8. */
  readonly text: string;
  readonly wasCut: boolean;
}

export interface Client {
  send(sent: Sent): Promise<Answer>;
  close(): void;
}

const defaultCutAfterMs = 400;
export const giveUpAfterMs = 20_000;
const mostBytes = 4 << 20;

/** Sends requests exactly as given. Rejects when there is no response. */
export function newClient(target: Target): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const { hostname, port } = new URL(target.url);
  const { ca, cert, key, token } = target;
  /** @param again retries the request once on a new connection */
  const send = (sent: Sent, again?: () => Promise<Answer>): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const { cutAfterMs = defaultCutAfterMs } = sent;
      const outgoing = request({
        ...{ host: hostname, port, agent, method: sent.method, path: sent.path },
        ...{ ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }), rejectUnauthorized: ca !== undefined },
        headers: {
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...sent.headers,
          ...(sent.body !== undefined && { "content-length": String(sent.body.length) }),
        },
      });
      const silence = setTimeout(() => outgoing.destroy(new Error(`no answer within ${giveUpAfterMs} ms`)), giveUpAfterMs);
      outgoing.on("error", (err: NodeJS.ErrnoException) => {
        clearTimeout(silence);
        // The server closed the idle connection while it was being reused, and has not processed the request.
        if (again !== undefined && outgoing.reusedSocket && err.code === "ECONNRESET") return resolve(again());
        reject(err);
      });
      outgoing.on("upgrade", (response, socket) => {
        clearTimeout(silence);
        const end = setTimeout(() => socket.destroy(), cutAfterMs);
        socket.on("error", () => {});
        socket.on("close", () => {
          clearTimeout(end);
          resolve({ code: response.statusCode ?? 0, headers: response.headers, bytes: Buffer.alloc(0), text: "", wasCut: true });
        });
        socket.resume();
        socket.write(sent.afterUpgrade ?? "");
      });
      outgoing.on("response", (response) => {
        clearTimeout(silence);
        const chunks: Buffer[] = [];
        let bytes = 0;
        const finish = (wasCut: boolean): void => {
          clearTimeout(cut);
          if (wasCut) outgoing.destroy();
          const all = Buffer.concat(chunks);
          resolve({ code: response.statusCode ?? 0, headers: response.headers, bytes: all, text: all.toString(), wasCut });
        };
        const cut = setTimeout(() => finish(true), cutAfterMs);
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes <= mostBytes) chunks.push(chunk);
        });
        response.on("end", () => finish(false));
        response.on("error", () => finish(true));
      });
      outgoing.end(sent.body);
    });
  return { send: (sent) => send(sent, () => send(sent)), close: () => agent.destroy() };
}

interface Kubeconfig {
  clusters: [{ cluster: { server: string; "certificate-authority-data"?: string } }];
  users: [{ user: { "client-certificate-data"?: string; "client-key-data"?: string; token?: string } }];
}

/** First cluster and user of a kubeconfig in JSON format, as written by `./cox up`. */
export function targetOfKubeconfig(file: string): Target {
  const config = JSON.parse(readFileSync(file, "utf8")) as Kubeconfig; // cast: the file is the cluster's own
  const { server, "certificate-authority-data": ca } = config.clusters[0].cluster;
  const { "client-certificate-data": cert, "client-key-data": key, token } = config.users[0].user;
  const pem = (base64: string): Buffer => Buffer.from(base64, "base64");
  return {
    url: server,
    ...(ca !== undefined && { ca: pem(ca) }),
    ...(cert !== undefined && { cert: pem(cert) }),
    ...(key !== undefined && { key: pem(key) }),
    ...(token !== undefined && { token }),
  };
}
