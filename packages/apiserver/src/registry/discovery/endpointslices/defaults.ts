import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";

/** Source: pkg/apis/discovery/v1/defaults.go */
export function defaultEndpointSlice(object: EndpointSlice): void {
  for (const port of object.ports ?? []) {
    port.name ??= "";
    port.protocol ??= "TCP";
  }
}
