/**
 * Field managers compute without waiting, but some conversions take asking a webhook: what is missing is asked for, and the
 * computation done again with the answer, until nothing is missing.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/fieldmanager/versionconverter.go, which waits in the middle
 */
import { encodeAny } from "@coxswain/apimachinery/codec/json-encode";
import { deepClone } from "@coxswain/apimachinery/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";

type Ask = (object: KubeObject, apiVersion: string) => Promise<KubeObject>;
/** The object in another version, which the caller owns. */
export type Converted = (object: KubeObject, apiVersion: string) => KubeObject;

/** Versions times the few objects that an apply compares; beyond that something does not come to rest. */
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
 * @param compute without effects, and the same whenever it is given the same; lets errors of `converted` pass
 * @throws whatever `compute` and `ask` throw
 */
export async function withConversions<T>(ask: Ask, compute: (converted: Converted) => T | Promise<T>): Promise<T> {
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
      known.set(keyOf(object, apiVersion), await ask(deepClone(object), apiVersion));
    }
  }
}
