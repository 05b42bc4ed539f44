import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { RuntimeClass } from "@coxswain/apimachinery/objects/schema/kinds/node/v1";

interface RuntimeClassV1alpha1 extends KubeObject {
  spec?: { runtimeHandler?: string; overhead?: RuntimeClass["overhead"]; scheduling?: RuntimeClass["scheduling"] };
}

/** v1alpha1 has its fields below `spec`. Source: pkg/apis/node/v1alpha1/conversion.go */
export function runtimeClassToV1({ spec, ...rest }: RuntimeClassV1alpha1): RuntimeClass {
  const converted: RuntimeClass = { ...rest, apiVersion: "node.k8s.io/v1", handler: spec?.runtimeHandler ?? "" };
  if (spec?.overhead !== undefined) converted.overhead = spec.overhead;
  if (spec?.scheduling !== undefined) converted.scheduling = spec.scheduling;
  return converted;
}

/** The reverse of `runtimeClassToV1`; the argument is not modified. */
export function runtimeClassFromV1({ handler, overhead, scheduling, ...rest }: RuntimeClass): RuntimeClassV1alpha1 {
  const spec: NonNullable<RuntimeClassV1alpha1["spec"]> = { runtimeHandler: handler };
  if (overhead !== undefined) spec.overhead = overhead;
  if (scheduling !== undefined) spec.scheduling = scheduling;
  return { ...rest, apiVersion: "node.k8s.io/v1alpha1", spec };
}
