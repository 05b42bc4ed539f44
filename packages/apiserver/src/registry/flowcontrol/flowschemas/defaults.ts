import type { FlowSchema } from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";
import { emptyStruct } from "../../rules.ts";

/** Source: pkg/apis/flowcontrol/v1beta2/defaults.go */
export function defaultFlowSchema(schema: FlowSchema): void {
  schema.spec ??= emptyStruct();
  schema.spec.matchingPrecedence ||= 1000;
}
