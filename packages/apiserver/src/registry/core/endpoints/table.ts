import type { Endpoints } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, tableOf } from "../../cells.ts";

const most = 3;

export const endpointsTable = tableOf<Endpoints>("endpoints", (endpoints, ages) => [
  endpoints.metadata.name ?? "",
  endpointsText(endpoints),
  age(endpoints, ages),
]);

/** `10.0.0.1:80,10.0.0.2:80 + 3 more...` */
function endpointsText(endpoints: Endpoints): string {
  const subsets = endpoints.subsets ?? [];
  if (subsets.length === 0) return "<none>";
  const texts: string[] = [];
  for (const { addresses = [], ports = [] } of subsets) {
    if (ports.length === 0) texts.push(...addresses.map((address) => address.ip));
    else for (const port of ports) texts.push(...addresses.map((address) => join(address.ip, port.port)));
  }
  const shown = texts.slice(0, most).join(",");
  return texts.length > most ? `${shown} + ${texts.length - most} more...` : shown;
}

function join(ip: string, port: number): string {
  return ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`;
}
