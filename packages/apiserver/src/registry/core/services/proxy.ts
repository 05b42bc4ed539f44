import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { notFound, serviceUnavailable } from "@coxswain/apimachinery/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import type { EndpointAddress, Endpoints, Pod, Service } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { ConnectTarget, SubresourceCall } from "../../generic/subresource.ts";
import { hostUrl, refuseSpecialAddress } from "../nodes/connection.ts";
import { splitSchemeNamePort } from "../pods/proxy.ts";

/**
 * HTTP to one of a service's ready endpoints, picked at random among those that are a pod's. The port is a name or a
 * number of the service; without one it is the port that has no name.
 * Source: pkg/registry/core/service/storage/storage.go ResourceLocation
 */
export async function serviceProxy(call: SubresourceCall, path: string): Promise<ConnectTarget> {
  const { scheme, name, port } = splitSchemeNamePort("service", call.name);
  const portName = await portNameOf(call, name, port);
  const { ip, port: number } = await readyAddress(call, name, portName);
  refuseSpecialAddress(ip);
  const url = hostUrl(scheme || "http", ip, number);
  url.pathname = path.startsWith("/") ? path : `/${path}`;
  url.search = call.ctx.query.toString();
  return { url, toNode: false, as: "proxy" };
}

async function readyAddress(call: SubresourceCall, name: string, portName: string): Promise<{ ip: string; port: number }> {
  const subsets = (await endpointsOf(call, name)).subsets ?? [];
  if (subsets.length === 0) throw serviceUnavailable(`no endpoints available for service ${goQuote(name)}`);
  for (const { ports = [], addresses = [] } of fromAnywhere(subsets)) {
    const found = ports.find((candidate) => (candidate.name ?? "") === portName);
    if (found === undefined) continue;
    for (const address of fromAnywhere(addresses)) {
      if (await isOfPod(call, address)) return { ip: address.ip, port: found.port };
    }
  }
  throw serviceUnavailable(`no endpoints available for service ${goQuote(call.name)}`);
}

/** Upstream names what the request is about, not what was looked for. */
async function endpointsOf({ services, namespace }: SubresourceCall, name: string): Promise<Endpoints> {
  const entry = await services
    .store("", "endpoints")
    .get(namespace, name)
    .catch((err: unknown) => {
      throw isNotFound(err) ? notFound({ group: "", resource: "services" }, name) : err;
    });
  return entry.object() as Endpoints;
}

/** The same list, begun at a random place. */
function fromAnywhere<T>(list: readonly T[]): T[] {
  const start = Math.floor(Math.random() * list.length);
  return [...list.slice(start), ...list.slice(0, start)];
}

/** Whoever may write Endpoints must not reach every address through the server: it has to be that of a pod of the namespace. */
async function isOfPod({ services, namespace }: SubresourceCall, { ip, targetRef }: EndpointAddress): Promise<boolean> {
  if (targetRef?.namespace !== namespace || targetRef.name === undefined) return false;
  const entry = await services
    .store("", "pods")
    .get(namespace, targetRef.name)
    .catch((err: unknown) => {
      if (!isNotFound(err)) throw err;
    });
  const pod = entry?.object() as Pod | undefined;
  return (pod?.status?.podIPs ?? []).some((own) => own.ip === ip);
}

/** A number is that of the service's port; endpoints know it by its name. */
async function portNameOf(call: SubresourceCall, name: string, port: string): Promise<string> {
  if (!/^\d{1,5}$/.test(port)) return port;
  const service = (await call.services.store("", "services").get(call.namespace, name)).object() as Service;
  const found = (service.spec?.ports ?? []).find((candidate) => candidate.port === Number(port));
  if (found === undefined) throw serviceUnavailable(`no service port ${port} found for service "${name}"`);
  return found.name ?? "";
}
