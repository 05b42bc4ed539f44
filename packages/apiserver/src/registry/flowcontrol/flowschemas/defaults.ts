import type { FlowSchema } from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";

/** Source: pkg/apis/flowcontrol/v1beta2/defaults.go */
export function defaultFlowSchema(schema: FlowSchema): void {
  schema.spec ??= {} as NonNullable<FlowSchema["spec"]>;
  schema.spec.matchingPrecedence ||= 1000;
}
