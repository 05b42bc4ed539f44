import type { PartRights } from "../part.ts";

export const podNetworkRights: PartRights = {
  cluster: [{ apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"] }],
};
