/**
 * Until this server has said which versions it stores, nothing is written in them. What has to be written for that, and
 * what other servers' leases need, goes on. The server's own writes wait; upstream's are refused too, and tried again.
 * Source: k8s.io/apiserver pkg/endpoints/filters/storageversion.go
 */
import { serviceUnavailable } from "@coxswain/apimachinery/errors/status-error";
import { formatGroupResource, type GroupResource } from "@coxswain/apimachinery/meta/group-version";
import type { RequestContext } from "../request/context.ts";
import { apiserverUser, privilegedGroup } from "../request/user-names.ts";

export interface PendingStorageVersions {
  readonly completed: boolean;
  readonly whenCompleted: Promise<void>;
  /** @returns undefined for a resource that nobody has to wait for */
  pending(resource: GroupResource): { readonly lastError: Error | undefined } | undefined;
}

type Asked = Pick<RequestContext, "info" | "user">;

/**
 * Stands before the router, where the server's own requests pass, too.
 * @returns what rejects with ServiceUnavailable for a write of a resource whose version is not said yet
 */
export function storageVersionPrecondition(versions: PendingStorageVersions): (request: Asked) => Promise<void> {
  return async (request) => {
    if (versions.completed || goesOn(request)) return;
    const { group, resource } = request.info;
    const pending = versions.pending({ group, resource });
    if (pending === undefined) return;
    if (isOwn(request)) return versions.whenCompleted;
    const name = formatGroupResource({ group, resource });
    const seen = pending.lastError?.message ?? "<nil>";
    throw serviceUnavailable(`wait for storage version registration to complete for resource: ${name}, last seen error: ${seen}`);
  };
}

function isOwn({ user }: Asked): boolean {
  return user.name === apiserverUser && user.groups.includes(privilegedGroup);
}

function goesOn(request: Asked): boolean {
  const { info } = request;
  if (!info.isResourceRequest || ["get", "list", "watch"].includes(info.verb)) return true;
  switch (formatGroupResource(info)) {
    case "storageversions.internal.apiserver.k8s.io":
      return true;
    case "namespaces":
      // The identity's namespace, which the server makes itself.
      return info.verb === "create" && isOwn(request);
    case "leases.coordination.k8s.io":
      return info.namespace === "kube-system";
    default:
      return false;
  }
}
