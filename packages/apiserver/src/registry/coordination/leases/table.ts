import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import { age, ageColumn, nameColumn, text } from "../../cells.ts";
import type { Ages, TableColumns } from "../../generic/strategy.ts";

export const leaseTable: TableColumns = {
  columns: [nameColumn, text("Holder", "holderIdentity contains the identity of the holder of a current lease."), ageColumn],
  cells: (object: Unstructured, ages: Ages) => [
    object.metadata.name ?? "",
    (object as unknown as Lease).spec?.holderIdentity ?? "",
    age(object, ages),
  ],
};
