import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueMapped } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { ConfigMap, Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps, secrets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isBootstrapToken, signingToken } from "../../bootstrap-tokens/token-secret.ts";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { detachedSignature } from "./jws.ts";

/**
 * bootstrap-signer: signs the kubeconfig in the ConfigMap kube-public/cluster-info with each bootstrap token, so that
 * joining nodes can verify it. Watches that ConfigMap and Secrets; writes the ConfigMap.
 * Source: pkg/controller/bootstrap/bootstrapsigner.go
 */
export function newBootstrapSigner(base: ControllerContext): Controller {
  const ctx: BootstrapSignerContext = {
    ...base,
    configMaps: base.informers.for<ConfigMap>(configMaps),
    secrets: base.informers.for<Secret>(secrets),
  };
  return defineController(ctx, {
    name: "bootstrap_signer_queue",
    sources: [
      enqueueMapped(ctx.configMaps, (map) => (keyOf(map) === clusterInfo ? [clusterInfo] : [])),
      enqueueMapped(ctx.secrets, (secret) => (isBootstrapToken(secret) ? [clusterInfo] : [])),
    ],
    reconcile,
  });
}

const clusterInfo = "kube-public/cluster-info";
const signaturePrefix = "jws-kubeconfig-";

interface BootstrapSignerContext extends ControllerContext {
  readonly configMaps: SharedInformer<ConfigMap>;
  readonly secrets: SharedInformer<Secret>;
}

async function reconcile(ctx: BootstrapSignerContext, _key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const map = ctx.configMaps.lister.get(clusterInfo);
  if (map === undefined) return done;
  const data = signedData(map.data ?? {}, ctx.secrets.lister.list(), ctx.clock.now());
  if (deepEqual(data, map.data ?? {})) return done;
  await ctx.client.update<ConfigMap>(configMaps, { ...map, data }, { signal }).catch((err) => {
    if (!isNotFound(err)) throw err;
  });
  return done;
}

/** Pure: the data with exactly one signature for each signing token; unchanged without a kubeconfig. */
function signedData(
  data: Readonly<Record<string, string>>,
  all: readonly Secret[],
  now: number,
): Readonly<Record<string, string>> {
  if (!Object.hasOwn(data, "kubeconfig")) return data;
  const { kubeconfig = "" } = data;
  const others = Object.entries(data).filter(([key]) => !key.startsWith(signaturePrefix));
  const signatures = all.flatMap((secret): [string, string][] => {
    const token = signingToken(secret, now);
    return token === undefined ? [] : [[`${signaturePrefix}${token.id}`, detachedSignature(kubeconfig, token)]];
  });
  return Object.fromEntries([...others, ...signatures]);
}
