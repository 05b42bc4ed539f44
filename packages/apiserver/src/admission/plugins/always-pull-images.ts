import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import { allContainers } from "./pod-containers.ts";

/** Images of private registries stay private on shared nodes. Source: plugin/pkg/admission/alwayspullimages/admission.go */
export const alwaysPullImages = (): AdmissionPlugin => ({
  name: "AlwaysPullImages",
  handles: (operation) => operation === "CREATE" || operation === "UPDATE",
  async admit(attributes) {
    const pod = podIn(attributes);
    if (pod === undefined) return;
    for (const { container } of allContainers(pod)) container.imagePullPolicy = "Always";
  },
  async validate(attributes) {
    const pod = podIn(attributes);
    if (pod === undefined) return;
    for (const { container, path } of allContainers(pod)) {
      if (container.imagePullPolicy !== "Always") {
        throw refuse(
          attributes,
          `${path}.imagePullPolicy: Unsupported value: "${container.imagePullPolicy ?? ""}": supported values: "Always"`,
        );
      }
    }
  },
});

function podIn({ resource, subresource, object }: AdmissionAttributes): Pod | undefined {
  if (resource.group !== "" || resource.resource !== "pods") return undefined;
  return subresource === "" || subresource === "ephemeralcontainers" ? (object as Pod | undefined) : undefined;
}
