/** The objects by which the API server finds this one: a Service with Endpoints, and an APIService. */
import type { Client } from "@coxswain/apimachinery/client/client";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isAlreadyExists, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { APIService } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";
import type { Endpoints, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { apiServices, endpoints, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { apiServiceName, serviceName, serviceNamespace } from "./names.ts";
import { group } from "./objects.ts";

const labels = { "app.kubernetes.io/managed-by": "coxswain-services" };
const portName = "https";

interface Registration {
  readonly address: string;
  readonly port: number;
  /** Port of the Service, as it is when that exists already. Default 443. */
  readonly servicePort?: number;
  /** CA of the serving certificate, PEM. */
  readonly caPem: string;
}

/** The other server that is registered for the metrics API; undefined: none, or an instance of this program. */
function otherServer(existing: APIService | undefined): string | undefined {
  if (existing === undefined) return undefined;
  const { service } = existing.spec ?? {};
  if (service === undefined) return "the API server itself"; // e.g. a custom resource
  const isOwn = service.namespace === serviceNamespace && service.name === serviceName;
  return isOwn ? undefined : `the Service ${service.namespace}/${service.name}`;
}

/**
 * Writes what is missing or different.
 * @throws Error when another server is registered; errors of the API server
 */
export async function register(client: Client, registration: Registration, signal: AbortSignal): Promise<void> {
  const { address, port, servicePort = 443, caPem } = registration;
  const existing = await read<APIService>(client, apiServices, { name: apiServiceName }, signal);
  const other = otherServer(existing);
  if (other !== undefined) throw new Error(`${apiServiceName} is served by ${other}`);
  const at = { namespace: serviceNamespace, name: serviceName };
  if ((await read<Service>(client, services, at, signal)) === undefined) {
    const ports = [{ name: portName, protocol: "TCP" as const, port: servicePort, targetPort: port }];
    await ensure(client, services, { apiVersion: "v1", kind: "Service", metadata: { ...at, labels }, spec: { ports } }, signal);
  }
  await apply<Endpoints>(
    client,
    endpoints,
    {
      apiVersion: "v1",
      kind: "Endpoints",
      metadata: { ...at, labels },
      subsets: [{ addresses: [{ ip: address }], ports: [{ name: portName, port, protocol: "TCP" }] }],
    },
    (one) => one.subsets,
    signal,
  );
  await apply<APIService>(
    client,
    apiServices,
    {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: apiServiceName, labels },
      spec: {
        group,
        version: "v1beta1",
        groupPriorityMinimum: 100,
        versionPriority: 100,
        service: { ...at, port: servicePort },
        caBundle: Buffer.from(caPem).toString("base64"),
      },
    },
    (one) => one.spec,
    signal,
  );
}

async function apply<T extends KubeObject>(
  client: Client,
  ref: ResourceRef,
  wanted: T,
  content: (object: T) => unknown,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name = "" } = wanted.metadata;
  const known = await read<T>(client, ref, { namespace, name }, signal);
  if (known === undefined) return ensure(client, ref, wanted, signal);
  if (deepEqual(content(known), content(wanted))) return;
  const { resourceVersion } = known.metadata;
  await client.update(ref, { ...wanted, metadata: { ...known.metadata, ...wanted.metadata, resourceVersion } }, { signal });
}

/** Another process may have created it in the meantime; the next round compares. */
async function ensure<T extends KubeObject>(client: Client, ref: ResourceRef, object: T, signal: AbortSignal): Promise<void> {
  await client.create<T>(ref, object, { signal }).catch((err: unknown) => {
    if (!isAlreadyExists(err)) throw err;
  });
}

async function read<T extends KubeObject>(
  client: Client,
  ref: ResourceRef,
  target: { namespace?: string | undefined; name: string },
  signal: AbortSignal,
): Promise<T | undefined> {
  return client.get<T>(ref, target, { signal }).catch((err: unknown) => {
    if (isNotFound(err)) return undefined;
    throw err;
  });
}

/** How often the objects are compared. */
const registerMs = 30_000;
const registerAgainMs = 2_000;
/** Then the part is restarted with another certificate. */
const renewAfterMs = 180 * 86_400_000;

interface KeepOptions {
  register(): Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** The server is to be replaced. */
  fail(err: Error): void;
}

/** Registers this server again and again until `signal` is aborted. */
export function keepRegistered({ register, clock, log, signal, fail }: KeepOptions) {
  let problem: string | undefined = "the API server does not know this server yet";
  const keep = async (): Promise<void> => {
    const until = clock.monotonic() + renewAfterMs;
    while (!signal.aborted) {
      try {
        await register();
        if (problem !== undefined) log.info("Serving the metrics API");
        problem = undefined;
      } catch (err) {
        if (signal.aborted) break;
        if (problem !== messageOf(err)) log.error("cannot register the metrics API", err);
        problem = messageOf(err);
      }
      if (clock.monotonic() >= until) fail(new Error("the serving certificate is to be renewed"));
      await clock.sleep(problem === undefined ? registerMs : registerAgainMs, signal).catch(() => {});
    }
  };
  return {
    /** Does not reject. */
    ended: keep(),
    /** @throws Error while this server is not registered */
    check(): void {
      if (problem !== undefined) throw new Error(problem);
    },
  };
}
