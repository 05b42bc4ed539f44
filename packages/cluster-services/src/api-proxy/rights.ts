import type { PartRights } from "../part.ts";

export const apiProxyRights: PartRights = {
  cluster: [{ apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] }],
};
