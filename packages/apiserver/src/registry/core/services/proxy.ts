import { serviceUnavailable } from "@coxswain/apimachinery/errors/status-error";
import type { Endpoints, Service } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { ConnectTarget, SubresourceCall } from "../../generic/subresource.ts";
import { hostUrl, refuseSpecialAddress } from "../nodes/connection.ts";
import { splitSchemeNamePort } from "../pods/proxy.ts";

/**
 * HTTP to one of a service's ready endpoints, picked at random. The port is a name or a number of the service.
 * Source: pkg/registry/core/service/storage/storage.go ResourceLocation
 */
export async function serviceProxy(call: SubresourceCall, path: string): Promise<ConnectTarget> {
  const { scheme, name, port } = splitSchemeNamePort("service", call.name);
  const portName = port === "" ? "" : await portNameOf(call, name, port);
  const endpoints = (await call.services.store("", "endpoints").get(call.namespace, name)).object() as Endpoints;
  const subsets = endpoints.subsets ?? [];
  if (subsets.length === 0) throw serviceUnavailable(`no endpoints available for service "${name}"`);
  const candidates = subsets.flatMap((subset) =>
    (subset.ports ?? [])
      .filter((candidate) => (candidate.name ?? "") === portName || portName === "")
      .slice(0, 1)
      .flatMap((candidate) => (subset.addresses ?? []).map((address) => ({ ip: address.ip, port: candidate.port }))),
  );
  const chosen = candidates[Math.floor(Math.random() * candidates.length)];
  if (chosen === undefined) throw serviceUnavailable(`no endpoints available for service "${call.name}"`);
  refuseSpecialAddress(chosen.ip);
  const url = hostUrl(scheme || "http", chosen.ip, chosen.port);
  url.pathname = path.startsWith("/") ? path : `/${path}`;
  url.search = call.ctx.query.toString();
  return { url, toNode: false, as: "proxy" };
}

/** A number is that of the service's port; endpoints know it by its name. */
async function portNameOf(call: SubresourceCall, name: string, port: string): Promise<string> {
  if (!/^\d{1,5}$/.test(port)) return port;
  const service = (await call.services.store("", "services").get(call.namespace, name)).object() as Service;
  const found = (service.spec?.ports ?? []).find((candidate) => candidate.port === Number(port));
  if (found === undefined) throw serviceUnavailable(`no service port ${port} found for service "${name}"`);
  return found.name ?? "";
}
