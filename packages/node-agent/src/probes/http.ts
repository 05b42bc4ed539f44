import type { IncomingMessage } from "node:http";
import { request as tls } from "node:https";
import { isIPv6 } from "node:net";
import { dialErrorText } from "@coxswain/apimachinery/objects/errors/dial-error";
import type { HTTPGetAction } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { request as plain } from "@coxswain/apimachinery/transport/node-http";
import type { AnyContainer } from "../pod/pod.ts";

/** Result of one probe; `output` is shown in events. */
export interface ProbeOutcome {
  result: "success" | "failure" | "warning";
  output: string;
}

const maxBodyBytes = 10 * 1024;
const maxRequests = 10;
/** Upstream's user agent; servers use it to filter access logs. */
export const probeUserAgent = "kube-probe/1.23";

/** Resolves a port number or name. @throws Error when the name is unknown or the number is out of range */
export function portNumber(port: number | string | undefined, container: AnyContainer): number {
  if (typeof port === "number") return checked(port);
  const named = (container.ports ?? []).find((candidate) => candidate.name === port);
  if (named !== undefined) return checked(named.containerPort);
  if (!/^\d+$/.test(port ?? "")) throw new Error(`couldn't find port: ${port ?? ""}`);
  return checked(Number(port));
}

function checked(port: number): number {
  if (port > 0 && port < 65_536) return port;
  throw new Error(`invalid port number: ${port}`);
}

/** Values by lower-case name. */
type ProbeHeaders = ReadonlyMap<string, readonly string[]>;

/** The URL and headers of an HTTP action. @throws Error when the port cannot be resolved */
export function httpTarget(action: HTTPGetAction, container: AnyContainer, podIp: string): { url: URL; headers: ProbeHeaders } {
  const scheme = (action.scheme ?? "HTTP").toLowerCase();
  const host = action.host || podIp;
  const url = new URL(`${scheme}://${isIPv6(host) ? `[${host}]` : host}:${portNumber(action.port, container)}`);
  const path = action.path ?? "";
  const query = path.indexOf("?");
  url.pathname = query < 0 ? path : path.slice(0, query);
  if (query >= 0) url.search = path.slice(query);
  const headers = new Map<string, string[]>();
  for (const { name, value } of action.httpHeaders ?? []) headers.getOrInsertComputed(name.toLowerCase(), () => []).push(value);
  return { url, headers };
}

const redirects = [301, 302, 303, 307, 308];

/**
 * Succeeds with a status from 200 to 399; a redirect to another host is a success with a warning.
 * Source: pkg/probe/http/http.go; Go's net/http Client
 */
export async function probeHttp(url: URL, headers: ProbeHeaders, timeoutMs: number): Promise<ProbeOutcome> {
  const deadline = AbortSignal.timeout(timeoutMs);
  let at = url;
  for (let requests = 1; ; requests++) {
    try {
      const { status, body, location } = await get(at, headers, deadline);
      if (status < 200 || status >= 400) return { result: "failure", output: `HTTP probe failed with statuscode: ${status}` };
      if (status < 300) return { result: "success", output: body };
      const next = redirects.includes(status) && location ? new URL(location, at) : undefined;
      if (next?.hostname !== url.hostname)
        return { result: "warning", output: `Probe terminated redirects, Response body: ${body}` };
      if (requests >= maxRequests) throw new Error(`stopped after ${maxRequests} redirects`);
      at = next;
    } catch (err) {
      return { result: "failure", output: failureText(at, err, deadline.aborted) };
    }
  }
}

/** Sends a GET request on a new connection without certificate verification. Also used by lifecycle hooks. */
export function get(
  url: URL,
  headers: ProbeHeaders,
  signal: AbortSignal,
): Promise<{ status: number; body: string; location: string | undefined }> {
  return new Promise((resolve, reject) => {
    const options = { method: "GET", agent: false as const, signal };
    const onResponse = (response: IncomingMessage): void => {
      const pieces: Buffer[] = [];
      let size = 0;
      const done = (): void => {
        const body = Buffer.concat(pieces).subarray(0, maxBodyBytes).toString("utf8");
        resolve({ status: response.statusCode ?? 0, body, location: response.headers.location });
      };
      response.on("data", (piece: Buffer) => {
        pieces.push(piece);
        size += piece.length;
        if (size < maxBodyBytes) return;
        response.destroy();
        done();
      });
      response.on("end", done);
      response.on("error", reject);
    };
    const sent =
      url.protocol === "https:"
        ? tls(url, { ...options, rejectUnauthorized: false }, onResponse)
        : plain(url, options, onResponse);
    sent.on("error", reject);
    // An unsolicited protocol upgrade counts as a response with its status code.
    sent.once("upgrade", ({ statusCode = 101 }: IncomingMessage, socket) => {
      socket.destroy();
      resolve({ status: statusCode, body: "", location: undefined });
    });
    for (const [name, values] of [...defaultHeaders, ...headers]) {
      // An empty Accept header suppresses the default.
      if (name === "accept" && values[0] === "") sent.removeHeader(name);
      else sent.setHeader(name, values.length === 1 ? values[0]! : values);
    }
    sent.end();
  });
}

const defaultHeaders: ProbeHeaders = new Map([
  ["user-agent", [probeUserAgent]],
  ["accept", ["*/*"]],
  ["connection", ["close"]],
]);

function failureText(url: URL, err: unknown, timedOut: boolean): string {
  if (timedOut) return `Get "${url.href}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`;
  return `Get "${url.href}": ${dialErrorText(err)}`;
}
