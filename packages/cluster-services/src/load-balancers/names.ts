/** `spec.loadBalancerClass` of Services for this program; it also serves those without a class. */
export const loadBalancerClass = "services.coxswain/load-balancer";

/** Services of a namespace with the same value may have the same address of the pool. */
export const sharedAddressAnnotation = "services.coxswain/shared-address";

/** Nodes with this label are no load balancers. Source: k8s.io/api core/v1 LabelNodeExcludeBalancers */
export const excludedLabel = "node.kubernetes.io/exclude-from-external-load-balancers";

/** Contains only the leases of addresses, so that the permission to write them does not extend to other leases. */
export const leaseNamespace = "coxswain-load-balancers";

/** Begins the names of this part's chains, after `--iptables-chain-prefix`. */
export const chainMark = "LB-";

/** The lease of an address: `address-192-0-2-1`, `address-fd00-0-0-0-0-0-0-1`. */
export const leaseOf = (groups: readonly string[]): string => `address-${groups.join("-")}`;
