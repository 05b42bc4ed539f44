import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { age, tableOf } from "../../cells.ts";

export const endpointSliceTable = tableOf<EndpointSlice>("endpointslices", (slice, ages) => [
  slice.metadata?.name ?? "",
  slice.addressType ?? "",
  portsCell(slice),
  endpointsCell(slice),
  age(slice, ages),
]);

function portsCell(slice: EndpointSlice): string {
  const ports = slice.ports ?? [];
  if (ports.length === 0) return "<unset>";
  return firstThree(ports.map((port) => (port.port !== undefined ? String(port.port) : port.name ? port.name : "*")));
}

function endpointsCell(slice: EndpointSlice): string {
  const addresses = (slice.endpoints ?? []).flatMap((endpoint) => endpoint.addresses ?? []);
  return addresses.length === 0 ? "<unset>" : firstThree(addresses);
}

function firstThree(texts: readonly string[]): string {
  return texts.length <= 3 ? texts.join(",") : `${texts.slice(0, 3).join(",")} + ${texts.length - 3} more...`;
}
