/**
 * Blocks writes of resources until this server has published their storage versions. Exempt are the writes needed for that,
 * and the leases of other servers. The server's own writes wait; upstream rejects those too, and retries.
 * Source: k8s.io/apiserver pkg/endpoints/filters/storageversion.go
 */
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import { formatGroupResource, type GroupResource } from "@coxswain/apimachinery/objects/meta/group-version";
import type { RequestContext } from "../request/context.ts";
import { apiserverUser, privilegedGroup } from "../request/user-names.ts";

export interface PendingStorageVersions {
  readonly completed: boolean;
  readonly whenCompleted: Promise<void>;
  /** @returns undefined for a resource that does not have to wait */
  pending(resource: GroupResource): { readonly lastError: Error | undefined } | undefined;
}

type Requested = Pick<RequestContext, "info" | "user">;

/**
 * Called before the router, which the server's own requests pass, too.
 * @returns a function that rejects with ServiceUnavailable for a write of a resource whose storage version is not published yet
 */
export function storageVersionPrecondition(versions: PendingStorageVersions): (request: Requested) => Promise<void> {
  return async (request) => {
    if (versions.completed || isExempt(request)) return;
    const { group, resource } = request.info;
    const pending = versions.pending({ group, resource });
    if (pending === undefined) return;
    if (isOwn(request)) return versions.whenCompleted;
    const name = formatGroupResource({ group, resource });
    const seen = pending.lastError?.message ?? "<nil>";
    throw serviceUnavailable(`wait for storage version registration to complete for resource: ${name}, last seen error: ${seen}`);
  };
}

function isOwn({ user }: Requested): boolean {
  return user.name === apiserverUser && user.groups.includes(privilegedGroup);
}

function isExempt(request: Requested): boolean {
  const { info } = request;
  if (!info.isResourceRequest || ["get", "list", "watch"].includes(info.verb)) return true;
  switch (formatGroupResource(info)) {
    case "storageversions.internal.apiserver.k8s.io":
      return true;
    case "namespaces":
      // The namespace of the server identity, which the server creates itself.
      return info.verb === "create" && isOwn(request);
    case "leases.coordination.k8s.io":
      return info.namespace === "kube-system";
    default:
      return false;
  }
}
