import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueMapped, enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import { hasCause, isAlreadyExists } from "@coxswain/apimachinery/errors/predicates";
import { toKey } from "@coxswain/apimachinery/meta/object-key";
import type { Namespace, ServiceAccount } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { namespaces, serviceAccounts } from "@coxswain/apimachinery/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";

/**
 * service-account-controller: creates the ServiceAccount `default` in every active namespace.
 * Watches Namespaces and ServiceAccounts (key of the namespace); writes ServiceAccounts.
 * Source: pkg/controller/serviceaccount/serviceaccounts_controller.go
 */
export function newServiceAccountController(ctx: ControllerContext): Controller {
  const accounts = ctx.informers.for<ServiceAccount>(serviceAccounts);
  return defineController(ctx, {
    name: "serviceaccount",
    sources: [
      enqueueSelf(ctx.informers.for<Namespace>(namespaces)),
      enqueueMapped(accounts, ({ metadata }) => (metadata.name === accountName ? [metadata.namespace ?? ""] : [])),
    ],
    reconcile,
  });
}

const accountName = "default";

async function reconcile(ctx: ControllerContext, namespace: string, signal: AbortSignal): Promise<Result> {
  const found = ctx.informers.for<Namespace>(namespaces).lister.get(namespace);
  if (found?.status?.phase !== "Active") return done; // terminating namespaces reject new objects
  if (ctx.informers.for<ServiceAccount>(serviceAccounts).lister.get(toKey(namespace, accountName)) !== undefined) return done;
  try {
    await ctx.client.create<ServiceAccount>(serviceAccounts, { metadata: { namespace, name: accountName } }, { signal });
  } catch (err) {
    if (!isAlreadyExists(err) && !hasCause(err, "NamespaceTerminating")) throw err;
  }
  return done;
}
