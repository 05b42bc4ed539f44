import type { Endpoints } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

export function defaultEndpoints(object: Endpoints): void {
  for (const subset of object.subsets ?? []) for (const port of subset.ports ?? []) port.protocol ||= "TCP";
}
