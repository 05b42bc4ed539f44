import { type Controller, done, newController } from "@coxswain/apimachinery/controller/controller";
import { enqueueMapped } from "@coxswain/apimachinery/controller/sources";
import { isConflict, isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import type { Secret } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { secrets } from "@coxswain/apimachinery/schema/kinds/resources";
import { isBootstrapToken, msUntilExpiry } from "../../bootstrap-tokens/token-secret.ts";
import type { ControllerContext } from "../../controller-context.ts";

/**
 * token-cleaner: deletes expired bootstrap tokens. Watches and deletes Secrets.
 * Source: pkg/controller/bootstrap/tokencleaner.go
 */
export function newTokenCleaner(ctx: ControllerContext): Controller {
  const informer = ctx.informers.for<Secret>(secrets);
  return newController({
    name: "token_cleaner",
    sources: [enqueueMapped(informer, (secret) => (isBootstrapToken(secret) ? [keyOf(secret)] : []))],
    async reconcile(key, signal) {
      const secret = informer.lister.get(key);
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
    },
    log: ctx.log,
    clock: ctx.clock,
    metrics: ctx.queueMetrics,
  });
}
