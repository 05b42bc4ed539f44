/**
 * Webhook conversions for field managers, which compute synchronously. A missing conversion aborts the computation; it is
 * requested from the webhook, and the computation is repeated until nothing is missing.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/fieldmanager/versionconverter.go, which blocks in between
 */
import { encodeAny } from "@coxswain/apimachinery/objects/codec/json-encode";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";

type ConvertByWebhook = (object: KubeObject, apiVersion: string) => Promise<KubeObject>;
/** Returns the object in another version; the caller owns the result. */
export type Converted = (object: KubeObject, apiVersion: string) => KubeObject;

/**
 * Upper bound of conversions in one computation. It exceeds the number of versions times the few objects that an apply compares, so
 * that only a computation that does not terminate reaches it.
 */
const mostQuestions = 100;

class Unconverted extends Error {
  readonly object: KubeObject;
  readonly apiVersion: string;
  constructor(object: KubeObject, apiVersion: string) {
    super(`the object in ${apiVersion} is not known yet`);
    this.object = object;
    this.apiVersion = apiVersion;
  }
}

/**
 * Runs a synchronous computation that needs objects in other versions, for which a webhook has to be called: it is repeated after
 * each call until all conversions that it needs are known.
 * @param convert converts an object by a webhook
 * @param compute has no side effects, is deterministic, and does not catch errors of `converted`
 * @throws the errors of `compute` and `convert`
 */
export async function withConversions<T>(
  convert: ConvertByWebhook,
  compute: (converted: Converted) => T | Promise<T>,
): Promise<T> {
  const known = new Map<string, KubeObject>();
  const keyOf = (object: KubeObject, apiVersion: string): string => `${apiVersion} ${encodeAny(object)}`;
  for (let questions = 0; ; questions++) {
    try {
      return await compute((object, apiVersion) => {
        const found = known.get(keyOf(object, apiVersion));
        if (found === undefined) throw new Unconverted(object, apiVersion);
        return deepClone(found);
      });
    } catch (err) {
      if (!(err instanceof Unconverted) || questions === mostQuestions) throw err;
      const { object, apiVersion } = err;
      known.set(keyOf(object, apiVersion), await convert(deepClone(object), apiVersion));
    }
  }
}
