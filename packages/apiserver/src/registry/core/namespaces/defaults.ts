import type { Namespace } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

export const namespaceNameLabel = "kubernetes.io/metadata.name";

/** Source: pkg/apis/core/v1/defaults.go */
export function defaultNamespace(namespace: Namespace): void {
  namespace.status ??= {};
  namespace.status.phase ||= "Active";
  // A generated name is not known yet; the strategy sets the label in that case.
  if (namespace.metadata.name)
    namespace.metadata.labels = { ...namespace.metadata.labels, [namespaceNameLabel]: namespace.metadata.name };
}
