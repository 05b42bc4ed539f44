import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { refuse } from "../errors.ts";
import type { AdmissionPlugin } from "../plugin.ts";

/**
 * Rejects new external IPs, which can be used to intercept traffic (CVE-2020-8554); existing ones may be kept or removed.
 * Source: plugin/pkg/admission/network/denyserviceexternalips
 */
export const denyServiceExternalIps = (): AdmissionPlugin<Service> => ({
  name: "DenyServiceExternalIPs",
  handles: (operation) => operation === "CREATE" || operation === "UPDATE",
  async validate(attributes) {
    const { resource, subresource, object, oldObject } = attributes;
    if (resource.group !== "" || resource.resource !== "services" || subresource !== "") return;
    const before = new Set(oldObject?.spec?.externalIPs);
    const added = (object?.spec?.externalIPs ?? []).filter((ip) => !before.has(ip));
    if (added.length > 0) throw refuse(attributes, "Use of external IPs is denied by admission control.");
  },
});
