import type { FlowSchema } from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";
import { age, tableOf } from "../../cells.ts";
import type { TableColumns } from "../../generic/strategy.ts";

const cells = tableOf<FlowSchema>("flowschemas", (schema, ages) => {
  const dangling = (schema.status?.conditions ?? []).find((c) => c.type === "Dangling")?.status;
  return [
    schema.metadata.name ?? "",
    schema.spec?.priorityLevelConfiguration?.name ?? "",
    schema.spec?.matchingPrecedence ?? 0,
    schema.spec?.distinguisherMethod?.type ?? "<none>",
    age(schema, ages),
    dangling ?? "?",
  ];
});

/** Rows are in matching order. Source: pkg/printers/internalversion/printers.go printFlowSchemaList */
export const flowSchemaTable: TableColumns = {
  ...cells,
  order: (a: FlowSchema, b: FlowSchema) => precedence(a) - precedence(b),
};

const precedence = (schema: FlowSchema): number => schema.spec?.matchingPrecedence ?? 0;
