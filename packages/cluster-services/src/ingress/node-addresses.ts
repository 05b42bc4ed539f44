import { networkInterfaces } from "node:os";
import { canonicalIp, parseIp } from "@coxswain/apimachinery/objects/meta/ip";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Interfaces come with containers and networks; nothing reports them. */
const interfacesMs = 10_000;

/** Canonical addresses of all nodes and of this machine, which has further ones, such as those of bridges. @param now monotonic, ms */
export function newNodeAddresses(nodes: () => readonly Node[], now: () => number): () => ReadonlySet<string> {
  let known: { readonly at: number; readonly addresses: ReadonlySet<string> } | undefined;
  return () => {
    if (known !== undefined && now() - known.at < interfacesMs) return known.addresses;
    const interfaces = Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []);
    const ofNodes = nodes().flatMap(({ status }) => status?.addresses?.map(({ address }) => address) ?? []);
    const all = [...interfaces, ...ofNodes].map(parseIp).filter((address) => address !== undefined);
    known = { at: now(), addresses: new Set(all.map(canonicalIp)) };
    return known.addresses;
  };
}
