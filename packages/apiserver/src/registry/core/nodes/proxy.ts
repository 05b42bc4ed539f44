import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { CatalogueConfig } from "../../config.ts";
import type { ConnectTarget, SubresourceCall } from "../../generic/resource.ts";
import { splitSchemeNamePort } from "../pods/proxy.ts";
import { hostUrl, kubeletOf, preferredAddress, proxiedTo, refuseSpecialAddress } from "./connection.ts";

/**
 * HTTP proxy to a node. Without a port, or with the kubelet's port, it connects to the kubelet with this server's client
 * certificate; to any other port without it.
 * Source: pkg/registry/core/node/strategy.go ResourceLocation
 */
export function nodeProxy(config: CatalogueConfig): (call: SubresourceCall, path: string) => Promise<ConnectTarget> {
  return async (call, path) => {
    const { scheme, name, port } = splitSchemeNamePort("node", call.name);
    const kubelet = await kubeletOf(call, name, config);
    let url = kubelet;
    let toNode = true;
    if (port !== "" && port !== kubelet.port) {
      const node = (await call.services.store("", "nodes").get("", name, { minimumRevision: 0 })).object<Node>();
      const address = preferredAddress(node, config.kubeletConnection.preferredAddressTypes);
      refuseSpecialAddress(address);
      url = hostUrl(scheme || "http", address, port);
      toNode = false;
    }
    return { url: proxiedTo(url, call, path), toNode, as: "proxy" };
  };
}
