/**
 * --endpoint-reconciler-type=master-count: the endpoints themselves are the list of servers, which has no more than
 * --apiserver-count of them. Nobody says who is alive: a server adds itself, and one that is too many makes room.
 * Source: pkg/controlplane/reconcilers/mastercount.go
 */
import { byAddress, type LiveServers } from "./kubernetes-service.ts";

export function newMasterCount(count: number): LiveServers {
  return {
    renew: async (address) => (current) => withServer(current, address, count),
    remove: async (address) => (current) => current.filter((other) => other !== address),
  };
}

/** Whoever follows the server in the list goes, round its end, until there are no more than may be. */
export function withServer(current: readonly string[], address: string, count: number): readonly string[] {
  if (current.includes(address)) return current;
  const addresses = [...current, address].sort(byAddress);
  while (addresses.length > count) addresses.splice((addresses.indexOf(address) + 1) % addresses.length, 1);
  return addresses;
}
