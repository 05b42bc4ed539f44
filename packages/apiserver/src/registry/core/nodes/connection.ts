import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { badRequest, notFound, plainError } from "@coxswain/apimachinery/objects/errors/status-error";
import { parseIp } from "@coxswain/apimachinery/objects/meta/ip";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { CatalogueConfig } from "../../config.ts";
import { checkNonSpecialIp } from "../../field-checks.ts";
import type { SubresourceCall } from "../../generic/resource.ts";

/**
 * URL of a node's kubelet: the first address of a preferred type and the port that the node reports.
 * Source: pkg/kubelet/client/kubelet_client.go NodeConnectionInfoGetter, pkg/util/node/node.go GetPreferredNodeAddress
 */
export async function kubeletOf(
  call: SubresourceCall,
  nodeName: string,
  config: Pick<CatalogueConfig, "kubeletConnection">,
): Promise<URL> {
  const node = await nodeOf(call, nodeName);
  const address = preferredAddress(node, config.kubeletConnection.preferredAddressTypes);
  const port = node.status?.daemonEndpoints?.kubeletEndpoint?.Port || config.kubeletConnection.port;
  return hostUrl("https", address, port);
}

/** @throws NotFound that names the requested resource instead of nodes, like upstream */
async function nodeOf(call: SubresourceCall, name: string): Promise<Node> {
  try {
    return (await call.services.store("", "nodes").get("", name, { minimumRevision: 0 })).object<Node>();
  } catch (err) {
    if (!isNotFound(err)) throw err;
    const { group, resource } = call.ctx.info;
    throw notFound({ group, resource }, name);
  }
}

/**
 * The first address of a node in the order of the preferred types.
 * @param types address types of --kubelet-preferred-address-types
 * @throws 500 when the node has no address of these types
 */
export function preferredAddress(node: Node, types: readonly string[]): string {
  const addresses = node.status?.addresses ?? [];
  for (const type of types) {
    const found = addresses.find((address) => address.type === type);
    if (found?.address) return found.address;
    // Fallback for nodes without a Hostname address.
    if (type === "Hostname" && node.metadata.labels?.["kubernetes.io/hostname"])
      return node.metadata.labels["kubernetes.io/hostname"];
  }
  const known = addresses.map((address) => address.type).join(" ");
  throw plainError(`no preferred addresses found; known addresses: [${known}]`);
}

/** `<scheme>://<host>:<port>/`, with brackets around IPv6 addresses. */
export function hostUrl(scheme: string, host: string, port: number | string): URL {
  const at = host.includes(":") ? `[${host}]` : host;
  return new URL(`${scheme}://${at}:${port}/`);
}

/** The request's path and query at another server. @param path the part of the path that follows `/proxy` */
export function proxiedTo(url: URL, call: SubresourceCall, path: string): URL {
  url.pathname = path.startsWith("/") ? path : `/${path}`;
  url.search = call.ctx.query.toString();
  return url;
}

/** Rejects loopback, link-local and similar addresses, which could point at this host or its metadata service. */
export function refuseSpecialAddress(host: string): void {
  if (parseIp(host) === undefined) return;
  const errors = checkNonSpecialIp(host, "address");
  if (errors.length > 0) throw badRequest("address not allowed");
}
