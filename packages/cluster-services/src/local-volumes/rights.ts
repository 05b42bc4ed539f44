import type { PartRights } from "../part.ts";

const read = ["list", "watch"];

export const localVolumesRights: PartRights = {
  cluster: [
    { apiGroups: [""], resources: ["nodes", "persistentvolumeclaims"], verbs: read },
    { apiGroups: [""], resources: ["persistentvolumes"], verbs: [...read, "create", "delete"] },
    { apiGroups: ["storage.k8s.io"], resources: ["storageclasses"], verbs: [...read, "create"] },
  ],
};
