import type { ReplicationController } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { replicaTable } from "../../apps/replicasets/table.ts";
import { labelsText } from "../../cells.ts";

export const replicationControllerTable = replicaTable<ReplicationController>("replicationcontrollers", ({ spec }) =>
  labelsText(spec?.selector),
);
