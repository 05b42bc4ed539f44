import type { PartRights } from "../part.ts";

const read = ["list", "watch"];

export const dnsRights: PartRights = {
  cluster: [
    { apiGroups: [""], resources: ["services", "namespaces", "nodes"], verbs: read },
    { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: read },
  ],
  namespaced: {
    "kube-system": [
      { apiGroups: [""], resources: ["services"], verbs: ["create"] },
      { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["create", "update", "delete"] },
    ],
  },
};
