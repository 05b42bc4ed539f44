import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Endpoints } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

export function defaultEndpoints(object: KubeObject): void {
  for (const subset of (object as Endpoints).subsets ?? []) for (const port of subset.ports ?? []) port.protocol ||= "TCP";
}
