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
  const rules = ingress.spec?.rules ?? [];
  const hosts: string[] = [];
  for (const { host } of rules) {
    // Like upstream, rules are counted, also those without a host.
    if (hosts.length === mostHosts) return `${hosts.join(",")} + ${rules.length - mostHosts} more...`;
    if (host) hosts.push(host);
  }
  return hosts.length === 0 ? "*" : hosts.join(",");
}
