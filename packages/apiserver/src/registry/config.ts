import type { RegistryServices } from "./generic/subresource.ts";

/** What the resources have to know of the process; from the flags. */
export interface CatalogueConfig {
  /** Late: the stores are made from the catalogue. */
  readonly services: () => RegistryServices;
  /** --service-cluster-ip-range, one or two CIDRs; the first family is the primary one. */
  readonly serviceClusterIpRange: readonly string[];
  /** --service-node-port-range, both ends included. */
  readonly nodePortRange: { readonly from: number; readonly to: number };
  readonly featureEnabled: (gate: string) => boolean;
  readonly kubeletConnection: {
    /** --kubelet-preferred-address-types. */
    readonly preferredAddressTypes: readonly string[];
    readonly port: number;
  };
  /** What component statuses show of --etcd-servers. Default: nothing. */
  readonly etcd?: {
    /** URLs, each once. */
    readonly servers: readonly string[];
    readonly tls?: { readonly ca: Buffer | undefined; readonly cert: Buffer | undefined; readonly key: Buffer | undefined };
  };
  /** --allow-privileged. Default true. */
  readonly allowPrivileged?: boolean;
}
