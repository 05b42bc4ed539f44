/**
 * Effective security context of a container: its own settings, else those of the pod.
 * Source: pkg/securitycontext/accessors.go
 */
import type {
  Container,
  EphemeralContainer,
  PodSpec,
  SecurityContext,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

export type AnyContainer = Container | EphemeralContainer;

const inherited = ["runAsUser", "runAsGroup", "runAsNonRoot", "seLinuxOptions"] as const;

/** The container's security context, with the fields that it may inherit from the pod filled in; a new object. */
export function effectiveContext({ securityContext: pod }: PodSpec, { securityContext: own }: AnyContainer): SecurityContext {
  const merged: SecurityContext = { ...own };
  for (const field of inherited) {
    const value = own?.[field] ?? pod?.[field];
    if (value !== undefined && value !== null) Object.assign(merged, { [field]: value });
  }
  return merged;
}
