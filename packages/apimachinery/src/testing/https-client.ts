/** A request to an HTTPS server, sent on a new connection. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { request as httpsRequest } from "node:https";
import type { Readable } from "node:stream";

export interface RequestSettings {
  readonly port: number;
  /** Trusted CA certificate, PEM. */
  readonly ca: string;
  readonly method?: string | undefined;
  readonly path?: string | undefined;
  readonly headers?: Record<string, string> | undefined;
  readonly body?: string | Buffer | undefined;
  readonly pair?: { readonly certPem: string; readonly keyPem: string } | undefined;
}

interface OpenAnswer {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  /** Header names as sent by the server. */
  readonly names: readonly string[];
  readonly body: Readable;
  /** Aborts the request without reading the rest of the body. */
  leave(): void;
}

export interface FullAnswer extends Omit<OpenAnswer, "body" | "leave"> {
  readonly body: string;
}

type Protocol = "HTTP/1.1" | "HTTP/2";

const open: Record<Protocol, (requested: RequestSettings) => Promise<OpenAnswer>> = {
  async "HTTP/1.1"({ port, ca, method = "GET", path = "/", headers = {}, body, pair }) {
    const options = { host: "127.0.0.1", port, ca, method, path, headers, agent: false as const };
    const request = httpsRequest({ ...options, cert: pair?.certPem, key: pair?.keyPem });
    request.on("error", () => {});
    request.end(body);
    const [answer] = await once(request, "response");
    const names = answer.rawHeaders.filter((_: string, i: number) => i % 2 === 0);
    return { status: answer.statusCode, headers: answer.headers, names, body: answer, leave: () => request.destroy() };
  },
  async "HTTP/2"({ port, ca, method = "GET", path = "/", headers = {}, body, pair }) {
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca, cert: pair?.certPem, key: pair?.keyPem });
    session.on("error", () => {});
    const stream = session.request({ ":method": method, ":path": path, ...headers }, { endStream: false });
    stream.on("error", () => {});
    stream.once("close", () => session.close());
    stream.end(body);
    const [answer] = await once(stream, "response");
    const names = Object.keys(answer).filter((name) => !name.startsWith(":"));
    return { status: answer[":status"], headers: answer, names, body: stream, leave: () => stream.close() };
  },
};

/** Resolves when the response headers have arrived. */
export function openAnswer(protocol: Protocol, requested: RequestSettings): Promise<OpenAnswer> {
  return open[protocol](requested);
}

/** Sends a request and reads the whole response. @throws Error when the body is incomplete */
export async function requestOver(protocol: Protocol, requested: RequestSettings): Promise<FullAnswer> {
  const { status, headers, names, body } = await openAnswer(protocol, requested);
  const chunks: Buffer[] = await body.toArray();
  return { status, headers, names, body: Buffer.concat(chunks).toString() };
}
