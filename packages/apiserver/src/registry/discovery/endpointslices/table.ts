import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { age, firstThree, tableOf } from "../../cells.ts";

export const endpointSliceTable = tableOf<EndpointSlice>("endpointslices", (slice, ages) => [
  slice.metadata?.name ?? "",
  slice.addressType ?? "",
  firstThree((slice.ports ?? []).map((port) => (port.port !== undefined ? String(port.port) : port.name ? port.name : "*"))),
  firstThree((slice.endpoints ?? []).flatMap((endpoint) => endpoint.addresses ?? [])),
  age(slice, ages),
]);
