/**
 * Downloads OpenAPI documents from aggregated servers.
 * Source: kube-aggregator pkg/controllers/openapi/aggregator/downloader.go
 */
import { createHash } from "node:crypto";
import { readUpTo } from "@coxswain/apimachinery/client/read-up-to";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { type ApiService, isAvailable } from "../api-services.ts";
import { type Backend, type Backends, send } from "../backends.ts";
import { identityHeaders } from "../identity-headers.ts";
import { failureText } from "../proxy.ts";
import { formatLocation, type Location, type ServiceResolver } from "../service-resolver.ts";

export interface Download {
  readonly code: number;
  readonly contentType: string;
  readonly body: Buffer;
  /** From the response, or derived from the body of a 200 without ETag. */
  readonly etag: string;
}

const timeoutMs = 60_000;
const longestBytes = 32 * 1024 * 1024;
/** Marks ETags computed here, which must not be sent to the server in If-None-Match. */
const ownPrefix = '"own-';
/** An unprivileged user: OpenAPI documents are readable by every authenticated user. */
const identity = { name: "system:aggregator", groups: [] };

/** @param path with query. @throws Error when the request fails or the response is too large. */
export type Fetch = (apiService: ApiService, path: string, headers: Readonly<Record<string, string>>) => Promise<Download>;

export function newFetch({ backends, resolve, clock }: { backends: Backends; resolve: ServiceResolver; clock: Clock }): Fetch {
  return async (apiService, path, headers) => {
    const backend = backends.of(apiService);
    if (backend === undefined || !isAvailable(apiService)) throw new Error("service unavailable");
    const { namespace, name, port } = backend.service;
    return download(backend, resolve(namespace, name, port), path, headers, clock);
  };
}

async function download(
  backend: Backend,
  location: Location,
  path: string,
  headers: Readonly<Record<string, string>>,
  clock: Clock,
): Promise<Download> {
  if (backend.problem !== undefined) throw new Error(backend.problem);
  const late = new AbortController();
  const timer = clock.after(timeoutMs, () => late.abort());
  const { "if-none-match": known = "", ...others } = headers;
  try {
    const answer = await send(backend, location, {
      method: "GET",
      path,
      headers: {
        ...others,
        ...(known === "" || known.startsWith(ownPrefix) ? {} : { "if-none-match": known }),
        host: formatLocation(location),
        ...identityHeaders(identity),
      },
      signal: late.signal,
    });
    const tooLong = (): Error => new Error(`the document at ${path} is longer than ${longestBytes} bytes`);
    const body = await readUpTo(answer, longestBytes, tooLong);
    const etag = answer.headers.etag || `${ownPrefix}${createHash("sha512").update(body).digest("hex").toUpperCase()}"`;
    return { code: answer.statusCode ?? 0, contentType: answer.headers["content-type"] ?? "", body, etag };
  } catch (err) {
    throw new Error(`cannot read ${path}: ${failureText(err)}`, { cause: err });
  } finally {
    timer.cancel();
  }
}
