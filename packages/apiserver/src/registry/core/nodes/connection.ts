import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { badRequest, notFound, plainError } from "@coxswain/apimachinery/errors/status-error";
import { parseIp } from "@coxswain/apimachinery/meta/ip";
import type { Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { CatalogueConfig } from "../../config.ts";
import { checkNonSpecialIp } from "../../field-checks.ts";
import type { SubresourceCall } from "../../generic/subresource.ts";

/**
 * Where a node's kubelet listens: the first address of a preferred type, the port the node reports.
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

/** @throws NotFound of the resource that was asked for, whose name upstream's stores take from the request */
async function nodeOf(call: SubresourceCall, name: string): Promise<Node> {
  try {
    return (await call.services.store("", "nodes").get("", name, { minimumRevision: 0 })).object() as Node;
  } catch (err) {
    if (!isNotFound(err)) throw err;
    const { group, resource } = call.ctx.info;
    throw notFound({ group, resource }, name);
  }
}

export function preferredAddress(node: Node, types: readonly string[]): string {
  const addresses = node.status?.addresses ?? [];
  for (const type of types) {
    const found = addresses.find((address) => address.type === type);
    if (found?.address) return found.address;
    // The label is what nodes without a host name entry go by.
    if (type === "Hostname" && node.metadata.labels?.["kubernetes.io/hostname"])
      return node.metadata.labels["kubernetes.io/hostname"];
  }
  const known = addresses.map((address) => address.type).join(" ");
  throw plainError(`no preferred addresses found; known addresses: [${known}]`);
}

export function hostUrl(scheme: string, host: string, port: number | string): URL {
  const at = host.includes(":") ? `[${host}]` : host;
  return new URL(`${scheme}://${at}:${port}/`);
}

/** Refuses addresses that users could point at this very host or its metadata service. */
export function refuseSpecialAddress(host: string): void {
  if (parseIp(host) === undefined) return;
  const errors = checkNonSpecialIp(host, "address");
  if (errors.length > 0) throw badRequest("address not allowed");
}
