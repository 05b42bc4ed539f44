import type { Ingress } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { age, tableOf } from "../../cells.ts";
import { loadBalancerText } from "../../core/services/table.ts";

export const ingressTable = tableOf<Ingress>("ingresses", (ingress, ages) => [
  ingress.metadata.name ?? "",
  ingress.spec?.ingressClassName ?? "<none>",
  hostsText(ingress),
  loadBalancerText(ingress.status?.loadBalancer),
  ingress.spec?.tls?.length ? "80, 443" : "80",
  age(ingress, ages),
]);

const mostHosts = 3;

function hostsText(ingress: Ingress): string {
  const hosts = (ingress.spec?.rules ?? []).map((rule) => rule.host ?? "").filter((host) => host !== "");
  if (hosts.length === 0) return "*";
  if (hosts.length > mostHosts) return `${hosts.slice(0, mostHosts).join(",")} + ${hosts.length - mostHosts} more...`;
  return hosts.join(",");
}
