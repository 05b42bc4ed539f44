import { child, type FieldError, formatFieldErrors, notSupported } from "@coxswain/apimachinery/objects/errors/field-error";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import { allContainers } from "./pod-containers.ts";
import { type PodObject, podWithContainers } from "./pod-of.ts";

/**
 * Sets imagePullPolicy to Always, so that pods cannot use private images which other pods pulled to the node.
 * Source: plugin/pkg/admission/alwayspullimages/admission.go
 */
export const alwaysPullImages = (): AdmissionPlugin<PodObject> => ({
  name: "AlwaysPullImages",
  handles: (operation) => operation === "CREATE" || operation === "UPDATE",
  async admit(attributes) {
    for (const { container } of newContainers(attributes)) container.imagePullPolicy = "Always";
  },
  async validate(attributes) {
    const errors = newContainers(attributes).flatMap(({ container, path }): FieldError[] => {
      const policy = container.imagePullPolicy ?? "";
      return policy === "Always" ? [] : [notSupported(child(path, "imagePullPolicy"), policy, ["Always"])];
    });
    if (errors.length > 0) throw refuse(attributes, formatFieldErrors(errors));
  },
});

/** Updates that add no image are ignored: the pull policy of existing containers is immutable. */
function newContainers(attributes: AdmissionAttributes<PodObject>): ReturnType<typeof allContainers> {
  const pod = podWithContainers(attributes);
  if (pod === undefined) return [];
  const containers = allContainers(
    attributes.subresource === "" ? pod : { spec: { containers: [], ephemeralContainers: pod.spec.ephemeralContainers ?? [] } },
  );
  if (attributes.operation === "CREATE") return containers;
  const known = new Set(allContainers(attributes.oldObject!).map(({ container }) => container.image));
  return containers.every(({ container }) => known.has(container.image)) ? [] : containers;
}
