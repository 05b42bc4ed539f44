import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueMapped, enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { hasCause, isAlreadyExists } from "@coxswain/apimachinery/objects/errors/predicates";
import { type ObjectKey, toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Namespace, ServiceAccount } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { namespaces, serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";

/**
 * service-account-controller: creates the ServiceAccount `default` in every active namespace.
 * Watches Namespaces and ServiceAccounts (key of the namespace); writes ServiceAccounts.
 * Source: pkg/controller/serviceaccount/serviceaccounts_controller.go
 */
export function newServiceAccountController(base: ControllerContext): Controller {
  const ctx: ServiceAccountContext = {
    ...base,
    namespaces: base.informers.for<Namespace>(namespaces),
    accounts: base.informers.for<ServiceAccount>(serviceAccounts),
  };
  return defineController(ctx, {
    name: "serviceaccount",
    sources: [
      enqueueSelf(ctx.namespaces),
      enqueueMapped(ctx.accounts, ({ metadata }) => (metadata.name === accountName ? [metadata.namespace ?? ""] : [])),
    ],
    reconcile,
  });
}

const accountName = "default";

interface ServiceAccountContext extends ControllerContext {
  readonly namespaces: SharedInformer<Namespace>;
  readonly accounts: SharedInformer<ServiceAccount>;
}

async function reconcile(ctx: ServiceAccountContext, namespace: ObjectKey, signal: AbortSignal): Promise<Result> {
  const found = ctx.namespaces.lister.get(namespace);
  if (found?.status?.phase !== "Active") return done; // terminating namespaces reject new objects
  if (ctx.accounts.lister.get(toKey(namespace, accountName)) !== undefined) return done;
  try {
    await ctx.client.create<ServiceAccount>(serviceAccounts, { metadata: { namespace, name: accountName } }, { signal });
  } catch (err) {
    if (!isAlreadyExists(err) && !hasCause(err, "NamespaceTerminating")) throw err;
  }
  return done;
}
