import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";

/** Source: pkg/apis/discovery/v1/defaults.go */
export function defaultEndpointSlice(object: KubeObject): void {
  for (const port of (object as EndpointSlice).ports ?? []) {
    port.name ??= "";
    port.protocol ??= "TCP";
  }
}
