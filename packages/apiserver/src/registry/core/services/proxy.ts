import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { EndpointAddress, Endpoints, Pod, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { ConnectTarget, SubresourceCall } from "../../generic/resource.ts";
import { hostUrl, proxiedTo, refuseSpecialAddress } from "../nodes/connection.ts";
import { splitSchemeNamePort } from "../pods/proxy.ts";

/**
 * HTTP proxy to a random ready endpoint of a service; only endpoints that belong to a pod are used. The port is a name or
 * number of a service port; without one, the unnamed port is used.
 * Source: pkg/registry/core/service/storage/storage.go ResourceLocation
 */
export async function serviceProxy(call: SubresourceCall, path: string): Promise<ConnectTarget> {
  const { scheme, name, port } = splitSchemeNamePort("service", call.name);
  const portName = await portNameOf(call, name, port);
  const { ip, port: number } = await readyAddress(call, name, portName);
  refuseSpecialAddress(ip);
  const url = hostUrl(scheme || "http", ip, number);
  return { url: proxiedTo(url, call, path), toNode: false, as: "proxy" };
}

async function readyAddress(call: SubresourceCall, name: string, portName: string): Promise<{ ip: string; port: number }> {
  const subsets = (await endpointsOf(call, name)).subsets ?? [];
  if (subsets.length === 0) throw serviceUnavailable(`no endpoints available for service ${goQuote(name)}`);
  for (const { ports = [], addresses = [] } of rotatedAtRandom(subsets)) {
    const found = ports.find((candidate) => (candidate.name ?? "") === portName);
    if (found === undefined) continue;
    for (const address of rotatedAtRandom(addresses)) {
      if (await isOfPod(call, address)) return { ip: address.ip, port: found.port };
    }
  }
  throw serviceUnavailable(`no endpoints available for service ${goQuote(call.name)}`);
}

/** @throws NotFound that names the service instead of its Endpoints, like upstream */
async function endpointsOf({ services, namespace }: SubresourceCall, name: string): Promise<Endpoints> {
  const entry = await services
    .store("", "endpoints")
    .get(namespace, name)
    .catch((err: unknown) => {
      throw isNotFound(err) ? notFound({ group: "", resource: "services" }, name) : err;
    });
  return entry.object();
}

/** The list rotated by a random offset. */
function rotatedAtRandom<T>(list: readonly T[]): T[] {
  const start = Math.floor(Math.random() * list.length);
  return [...list.slice(start), ...list.slice(0, start)];
}

/** The address must be that of a pod in the namespace; otherwise writers of Endpoints could proxy to any address. */
async function isOfPod({ services, namespace }: SubresourceCall, { ip, targetRef }: EndpointAddress): Promise<boolean> {
  if (targetRef?.namespace !== namespace || targetRef.name === undefined) return false;
  const entry = await services
    .store("", "pods")
    .get(namespace, targetRef.name)
    .catch((err: unknown) => {
      if (!isNotFound(err)) throw err;
    });
  const pod = entry?.object<Pod>();
  return (pod?.status?.podIPs ?? []).some((own) => own.ip === ip);
}

/** Resolves the number of a service port to its name, by which Endpoints are looked up. */
async function portNameOf(call: SubresourceCall, name: string, port: string): Promise<string> {
  if (!/^\d{1,5}$/.test(port)) return port;
  const service = (await call.services.store("", "services").get(call.namespace, name)).object<Service>();
  const found = (service.spec?.ports ?? []).find((candidate) => candidate.port === Number(port));
  if (found === undefined) throw serviceUnavailable(`no service port ${port} found for service "${name}"`);
  return found.name ?? "";
}
