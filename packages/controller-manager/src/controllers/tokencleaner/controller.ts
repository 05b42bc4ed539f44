import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueMapped } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { secrets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isBootstrapToken, msUntilExpiry } from "../../bootstrap-tokens/token-secret.ts";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";

/**
 * token-cleaner: deletes expired bootstrap tokens. Watches and deletes Secrets.
 * Source: pkg/controller/bootstrap/tokencleaner.go
 */
export function newTokenCleaner(base: ControllerContext): Controller {
  const ctx: TokenCleanerContext = { ...base, secrets: base.informers.for<Secret>(secrets) };
  return defineController(ctx, {
    name: "token_cleaner",
    sources: [enqueueMapped(ctx.secrets, (secret) => (isBootstrapToken(secret) ? [keyOf(secret)] : []))],
    reconcile,
  });
}

interface TokenCleanerContext extends ControllerContext {
  readonly secrets: SharedInformer<Secret>;
}

async function reconcile(ctx: TokenCleanerContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const secret = ctx.secrets.lister.get(key);
  if (secret === undefined || !isBootstrapToken(secret)) return done;
  const leftMs = msUntilExpiry(secret, ctx.clock.now());
  if (leftMs === undefined) return done;
  if (leftMs > 0) return { requeueAfterMs: leftMs };
  const { namespace, name = "", uid } = secret.metadata;
  const preconditions = uid === undefined ? {} : { preconditions: { uid } };
  await ctx.client.delete(secrets, { namespace, name }, { ...preconditions, signal }).catch((err) => {
    if (!isNotFound(err) && !isConflict(err)) throw err; // deleted, or replaced by another Secret of the same name
  });
  return done;
}
