import type { RegistryServices } from "./generic/resource.ts";

/** What happens in a range of cluster IPs, by its CIDR. Source: pkg/registry/core/service/ipallocator/metrics.go */
export interface ClusterIpMetrics {
  used(cidr: string, allocated: number, available: number): void;
  allocated(cidr: string): void;
  failed(cidr: string): void;
}

/** Configuration of the built-in resources, from the flags. */
export interface CatalogueConfig {
  /** Lazy: the stores are created from the catalogue. */
  readonly services: () => RegistryServices;
  /** --service-cluster-ip-range, one or two CIDRs; the first family is the primary one. */
  readonly serviceClusterIpRange: readonly string[];
  readonly clusterIpMetrics?: ClusterIpMetrics;
  /** --service-node-port-range, inclusive. */
  readonly nodePortRange: { readonly from: number; readonly to: number };
  readonly featureEnabled: (gate: string) => boolean;
  readonly kubeletConnection: {
    /** --kubelet-preferred-address-types. */
    readonly preferredAddressTypes: readonly string[];
    readonly port: number;
  };
  /** etcd servers shown in componentstatuses. Default: none. */
  readonly etcd?: {
    /** Distinct URLs of --etcd-servers. */
    readonly servers: readonly string[];
    readonly tls?: { readonly ca: Buffer | undefined; readonly cert: Buffer | undefined; readonly key: Buffer | undefined };
  };
  /** --allow-privileged. Default true. */
  readonly allowPrivileged?: boolean;
}
