import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import { age, tableOf } from "../../cells.ts";

export const leaseTable = tableOf<Lease>("leases", (lease, ages) => [
  lease.metadata.name ?? "",
  lease.spec?.holderIdentity ?? "",
  age(lease, ages),
]);
