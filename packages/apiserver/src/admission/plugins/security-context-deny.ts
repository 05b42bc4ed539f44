/** Rejects pods that set users, groups or SELinux options. Source: plugin/pkg/admission/securitycontext/scdeny/admission.go */
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { AdmissionPlugin } from "../plugin.ts";
import { allContainers } from "./pod-containers.ts";
import { podWithContainers } from "./pod-of.ts";

const podFields = [
  ["supplementalGroups", "SupplementalGroups"],
  ["seLinuxOptions", "SELinuxOptions"],
  ["runAsUser", "RunAsUser"],
  ["fsGroup", "FSGroup"],
] as const;
const containerFields = [
  ["seLinuxOptions", "SELinuxOptions"],
  ["runAsUser", "RunAsUser"],
] as const;

export const securityContextDeny = (): AdmissionPlugin => ({
  name: "SecurityContextDeny",
  handles: (operation) => operation === "CREATE" || operation === "UPDATE",
  async validate(attributes) {
    const pod = podWithContainers(attributes);
    if (pod === undefined) return;
    const refused = (field: string): Error => forbidden(attributes.resource, pod.metadata.name ?? "", `${field} is forbidden`);
    for (const [field, goName] of podFields) {
      if (pod.spec.securityContext?.[field] !== undefined) throw refused(`pod.Spec.SecurityContext.${goName}`);
    }
    for (const { container } of allContainers(pod)) {
      for (const [field, goName] of containerFields) {
        if (container.securityContext?.[field] !== undefined) throw refused(`SecurityContext.${goName}`);
      }
    }
  },
});
