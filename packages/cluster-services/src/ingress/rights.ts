import type { PartRights } from "../part.ts";

const read = ["list", "watch"];

export const ingressRights: PartRights = {
  cluster: [
    { apiGroups: [""], resources: ["services", "nodes"], verbs: read },
    { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: read },
    { apiGroups: ["networking.k8s.io"], resources: ["ingresses"], verbs: read },
    { apiGroups: ["networking.k8s.io"], resources: ["ingresses/status"], verbs: ["patch"] },
    { apiGroups: ["networking.k8s.io"], resources: ["ingressclasses"], verbs: [...read, "create"] },
    // Those that Ingresses name, one by one: without list and watch no others can be found.
    { apiGroups: [""], resources: ["secrets"], verbs: ["get"] },
  ],
};
