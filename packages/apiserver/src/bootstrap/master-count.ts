/**
 * --endpoint-reconciler-type=master-count: the endpoints are the list of servers, limited to --apiserver-count. Liveness is
 * not tracked: a server adds itself, and removes another one when there are too many.
 * Source: pkg/controlplane/reconcilers/mastercount.go
 */
import { byAddress, type LiveServers } from "./kubernetes-service.ts";

export function newMasterCount(count: number): LiveServers {
  return {
    renew: async (address) => (current) => withServer(current, address, count),
    remove: async (address) => (current) => current.filter((other) => other !== address),
  };
}

/** Adds `address`; removes the addresses that follow it, cyclically, until at most `count` are left. */
export function withServer(current: readonly string[], address: string, count: number): readonly string[] {
  if (current.includes(address)) return current;
  const addresses = [...current, address].sort(byAddress);
  while (addresses.length > count) addresses.splice((addresses.indexOf(address) + 1) % addresses.length, 1);
  return addresses;
}
