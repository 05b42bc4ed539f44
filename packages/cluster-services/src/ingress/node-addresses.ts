import { networkInterfaces } from "node:os";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Interfaces come with containers and networks; nothing reports them. */
const interfacesMs = 10_000;

/** Addresses of all nodes and of this machine, which has further ones, such as those of bridges. @param now monotonic, ms */
export function newNodeAddresses(nodes: () => readonly Node[], now: () => number): () => ReadonlySet<string> {
  let known: { readonly at: number; readonly addresses: ReadonlySet<string> } | undefined;
  return () => {
    if (known !== undefined && now() - known.at < interfacesMs) return known.addresses;
    const interfaces = Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []);
    const ofNodes = nodes().flatMap(({ status }) => status?.addresses?.map(({ address }) => address) ?? []);
    known = { at: now(), addresses: new Set([...interfaces, ...ofNodes]) };
    return known.addresses;
  };
}
