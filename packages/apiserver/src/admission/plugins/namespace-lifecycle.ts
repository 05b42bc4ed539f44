/**
 * Rejects creates in missing and terminating namespaces, and deletion of the system namespaces.
 * Source: k8s.io/apiserver pkg/admission/plugin/namespace/lifecycle/admission.go
 */
import { forbidden, notFound, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LRUCache } from "lru-cache";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { type NamespaceObject, namespaceLookup } from "./namespace-lookup.ts";

const immortal = new Set(["default", "kube-system", "kube-public"]);
/** Period after a namespace deletion during which the cache may be stale and a live lookup is made. */
const liveLookupMs = 30_000;

export function namespaceLifecycle(ctx: PluginContext): AdmissionPlugin {
  const lookup = namespaceLookup(ctx.informers, ctx.client);
  // Without `ttlResolution` each look starts a timer of 1 ms.
  const deletedLately = new LRUCache<string, true>({ max: 100, ttl: liveLookupMs, ttlResolution: 0 });

  return {
    name: "NamespaceLifecycle",
    handles: (operation) => operation !== "CONNECT",
    ready: () => lookup.synced,
    async admit(attributes) {
      const { operation, name, namespace, kind } = attributes;
      const isNamespace = kind.group === "" && kind.kind === "Namespace";
      if (operation === "DELETE" && isNamespace && immortal.has(name)) {
        throw forbidden(namespaces, name, "this namespace may not be deleted");
      }
      if (isNamespace) {
        if (operation === "DELETE") deletedLately.set(name, true);
        return;
      }
      if (namespace === "" || operation === "DELETE" || isAccessReview(attributes)) return;
      const found = deletedLately.has(namespace)
        ? await ctx.client.get<NamespaceObject>(namespaces, { name: namespace })
        : await lookup.get(namespace);
      if (found === undefined) throw notFound(namespaces, namespace);
      if (operation === "CREATE" && found.status?.phase === "Terminating") throw terminating(attributes);
    },
  };
}

/** LocalSubjectAccessReviews are not stored and must work in terminating namespaces. */
function isAccessReview({ resource }: AdmissionAttributes): boolean {
  return resource.group === "authorization.k8s.io" && resource.resource === "localsubjectaccessreviews";
}

function terminating(attributes: AdmissionAttributes): StatusError {
  const { namespace } = attributes;
  const { status } = refuse(attributes, `unable to create new content in namespace ${namespace} because it is being terminated`);
  const cause = {
    reason: "NamespaceTerminating",
    message: `namespace ${namespace} is being terminated`,
    field: "metadata.namespace",
  };
  return new StatusError({ ...status, details: { ...status.details, causes: [...(status.details?.causes ?? []), cause] } });
}
