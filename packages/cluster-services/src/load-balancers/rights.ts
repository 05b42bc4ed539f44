import type { PartRights } from "../part.ts";
import { leaseNamespace } from "./names.ts";

const read = ["list", "watch"];

export const loadBalancersRights: PartRights = {
  cluster: [
    { apiGroups: [""], resources: ["services", "nodes"], verbs: read },
    { apiGroups: [""], resources: ["services/status"], verbs: ["update"] },
    { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: read },
  ],
};

export const loadBalancerAddressesRights: PartRights = {
  namespaces: [leaseNamespace],
  cluster: [
    { apiGroups: [""], resources: ["services", "nodes", "pods"], verbs: read },
    { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: read },
  ],
  namespaced: {
    // A lease for each address, whose names are not known before.
    [leaseNamespace]: [{ apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get", "create", "update"] }],
  },
};
