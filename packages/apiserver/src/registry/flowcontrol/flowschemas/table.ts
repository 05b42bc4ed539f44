import type { FlowSchema } from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";
import { age, ageColumn, nameColumn, tableOf, text } from "../../cells.ts";
import type { TableColumns } from "../../generic/strategy.ts";

const cells = tableOf<FlowSchema>(
  [
    nameColumn,
    text(
      "PriorityLevel",
      "`priorityLevelConfiguration` should reference a PriorityLevelConfiguration in the cluster. If the reference cannot be resolved, the FlowSchema will be ignored and marked as invalid in its status. Required.",
    ),
    text(
      "MatchingPrecedence",
      "`matchingPrecedence` is used to choose among the FlowSchemas that match a given request. The chosen FlowSchema is among those with the numerically lowest (which we take to be logically highest) MatchingPrecedence.",
    ),
    text(
      "DistinguisherMethod",
      "`distinguisherMethod` defines how to compute the flow distinguisher for requests that match this schema. `nil` specifies that the distinguisher is disabled and thus will always be the empty string.",
    ),
    ageColumn,
    text("MissingPL", "references a broken or non-existent PriorityLevelConfiguration"),
  ],
  (schema, ages) => {
    const dangling = (schema.status?.conditions ?? []).find((c) => c.type === "Dangling")?.status;
    return [
      schema.metadata.name ?? "",
      schema.spec?.priorityLevelConfiguration?.name ?? "",
      schema.spec?.matchingPrecedence ?? 0,
      schema.spec?.distinguisherMethod?.type ?? "<none>",
      age(schema, ages),
      dangling ?? "?",
    ];
  },
);

/** Rows are in matching order. Source: pkg/printers/internalversion/printers.go printFlowSchemaList */
export const flowSchemaTable: TableColumns = {
  ...cells,
  order: (a, b) => precedence(a as FlowSchema) - precedence(b as FlowSchema),
};

const precedence = (schema: FlowSchema): number => schema.spec?.matchingPrecedence ?? 0;
