import { type IncomingMessage, request as plain } from "node:http";
import { request as tls } from "node:https";
import { isIPv6 } from "node:net";
import { dialErrorText } from "@coxswain/apimachinery/errors/dial-error";
import type { HTTPGetAction } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { AnyContainer } from "../pods/pod.ts";

export interface ProbeOutcome {
  result: "success" | "failure" | "warning";
  output: string;
}

const maxBodyBytes = 10 * 1024;
const maxRedirects = 10;
/** As upstream's probes name themselves; servers filter their logs by it. */
export const probeUserAgent = "kube-probe/1.23";

/** @throws Error when a port has no number. */
export function portNumber(port: number | string | undefined, container: AnyContainer): number {
  if (typeof port === "number") return checked(port);
  const named = (container.ports ?? []).find((candidate) => candidate.name === port);
  if (named !== undefined) return checked(named.containerPort);
  const parsed = Number.parseInt(port ?? "", 10);
  if (!Number.isInteger(parsed)) throw new Error(`couldn't find port: ${port ?? ""}`);
  return checked(parsed);
}

function checked(port: number): number {
  if (port > 0 && port < 65_536) return port;
  throw new Error(`invalid port number: ${port}`);
}

export function httpTarget(
  action: HTTPGetAction,
  container: AnyContainer,
  podIp: string,
): { url: URL; headers: Record<string, string> } {
  const scheme = (action.scheme ?? "HTTP").toLowerCase();
  const host = action.host || podIp;
  const url = new URL(`${scheme}://${isIPv6(host) ? `[${host}]` : host}:${portNumber(action.port, container)}`);
  const path = action.path ?? "";
  const query = path.indexOf("?");
  url.pathname = query < 0 ? path : path.slice(0, query);
  if (query >= 0) url.search = path.slice(query);
  const headers: Record<string, string> = {};
  for (const { name, value } of action.httpHeaders ?? []) headers[name] = value;
  return { url, headers };
}

/** Success is a status from 200 up to 399; a redirect to another host is a success with a warning. Source: pkg/probe/http/http.go */
export async function probeHttp(url: URL, headers: Readonly<Record<string, string>>, timeoutMs: number): Promise<ProbeOutcome> {
  const deadline = AbortSignal.timeout(timeoutMs);
  let at = url;
  for (let redirects = 0; ; redirects++) {
    let answer: { status: number; body: string; location: string | undefined };
    try {
      answer = await get(at, headers, deadline);
    } catch (err) {
      return { result: "failure", output: failureText(url, err, deadline.aborted) };
    }
    if (answer.status >= 300 && answer.status < 400 && answer.location !== undefined) {
      const next = new URL(answer.location, at);
      if (next.hostname !== url.hostname) {
        return { result: "warning", output: `Probe terminated redirects, Response body: ${answer.body}` };
      }
      if (redirects >= maxRedirects)
        return { result: "failure", output: `Get "${next.href}": stopped after ${maxRedirects} redirects` };
      at = next;
      continue;
    }
    if (answer.status >= 200 && answer.status < 400) return { result: "success", output: answer.body };
    return { result: "failure", output: `HTTP probe failed with statuscode: ${answer.status}` };
  }
}

/** One GET without a pool; the certificate of a probed container is not checked. Used by hooks too. */
export function get(
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<{ status: number; body: string; location: string | undefined }> {
  return new Promise((resolve, reject) => {
    const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
    const all: Record<string, string> = { ...headers, Connection: "close" };
    if (!names.has("user-agent")) all["User-Agent"] = probeUserAgent;
    if (!names.has("accept")) all["Accept"] = "*/*";
    const options = { method: "GET", headers: all, agent: false as const, signal };
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
    sent.end();
  });
}

function failureText(url: URL, err: unknown, timedOut: boolean): string {
  if (timedOut) return `Get "${url.href}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`;
  return `Get "${url.href}": ${dialErrorText(err)}`;
}
