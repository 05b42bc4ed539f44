/**
 * Probes the server of an APIService by requesting its discovery document. Several requests run in parallel, because a service
 * may have several endpoints; one success suffices.
 * Source: kube-aggregator pkg/controllers/status/available_controller.go sync
 */

import { dialErrorText } from "@coxswain/apimachinery/objects/errors/dial-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { groupVersionPath } from "@coxswain/apimachinery/objects/meta/group-version";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { type ApiService, groupVersionOf, serviceOf } from "./api-services.ts";
import { type Backend, send } from "./backends.ts";
import { identityHeaders } from "./identity-headers.ts";
import { formatLocation, type Location, type ServiceResolver } from "./service-resolver.ts";

/** @returns the error text; undefined on success. */
export type Probe = (apiService: ApiService, signal: AbortSignal) => Promise<string | undefined>;

interface ProbeOptions {
  readonly resolve: ServiceResolver;
  /** Its TLS options skip certificate verification, since probes transfer no confidential data. */
  readonly backendOf: (apiService: ApiService) => Backend | undefined;
  readonly clock: Clock;
}

const attempts = 5;
const timeoutMs = 5_000;
/** A privileged user, so that the server's authorization does not fail the probe. */
const identity = { name: "system:kube-aggregator", groups: ["system:masters"] };

export function newProbe({ resolve, backendOf, clock }: ProbeOptions): Probe {
  const probe = async (apiService: ApiService, signal: AbortSignal): Promise<void> => {
    const { namespace, name, port } = serviceOf(apiService)!;
    const location = resolve(namespace, name, port);
    const url = `https://${formatLocation(location)}${groupVersionPath(groupVersionOf(apiService))}`;
    const backend = backendOf(apiService)!;
    const code = await statusOf(backend, location, url, clock, signal).catch((err: unknown) => {
      throw new Error(`failing or missing response from ${url}: Get "${url}": ${messageOf(err)}`, { cause: err });
    });
    if (code < 200 || code > 299) throw new Error(`failing or missing response from ${url}: bad status from ${url}: ${code}`);
  };
  return async (apiService, signal) => {
    const settled = new AbortController();
    try {
      await Promise.any(Array.from({ length: attempts }, () => probe(apiService, AbortSignal.any([signal, settled.signal]))));
      return undefined;
    } catch (err) {
      signal.throwIfAborted();
      return messageOf((err as AggregateError).errors.at(-1)); // cast: `Promise.any` rejects with one
    } finally {
      settled.abort();
    }
  };
}

async function statusOf(backend: Backend, location: Location, url: string, clock: Clock, signal: AbortSignal): Promise<number> {
  const late = new AbortController();
  const timer = clock.after(timeoutMs, () => late.abort());
  try {
    const answer = await send(backend, location, {
      method: "GET",
      path: new URL(url).pathname,
      headers: { host: formatLocation(location), "user-agent": "Go-http-client/2.0", ...identityHeaders(identity) },
      signal: AbortSignal.any([signal, late.signal]),
    });
    answer.destroy();
    return answer.statusCode ?? 0;
  } catch (err) {
    if (late.signal.aborted) throw new Error("context deadline exceeded (Client.Timeout exceeded while awaiting headers)");
    throw new Error(dialErrorText(err), { cause: err });
  } finally {
    timer.cancel();
  }
}
