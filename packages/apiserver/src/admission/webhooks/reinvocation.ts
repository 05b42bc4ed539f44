/**
 * Determines which webhooks to reinvoke: those with `reinvocationPolicy: IfNeeded` after whose call the object was changed,
 * by another webhook or by a built-in plugin.
 * Source: k8s.io/apiserver pkg/admission/plugin/webhook/mutating/reinvocationcontext.go
 */
import { deepClone, semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";

export class WebhookReinvocation {
  #requested = new Set<string>();
  readonly #again = new Set<string>();
  #lastOutput: KubeObject | undefined;

  /** Records the call of a webhook whose reinvocation policy is IfNeeded. */
  requested(id: string): void {
    this.#requested.add(id);
  }

  /** The object was changed: schedules reinvocation of all webhooks recorded so far. */
  changed(): void {
    for (const id of this.#requested) this.#again.add(id);
    this.#requested = new Set();
  }

  mustAskAgain(id: string): boolean {
    return this.#again.has(id);
  }

  /** Records the object after the last webhook; the copy is made only when a webhook could be reinvoked. */
  leave(object: KubeObject | undefined): void {
    this.#lastOutput = this.#requested.size > 0 && object !== undefined ? deepClone(object) : undefined;
  }

  /** Start of the second round: detects changes by built-in plugins since `leave`. */
  comeBack(object: KubeObject | undefined): void {
    if (this.#requested.size > 0 && !semanticEqual(this.#lastOutput, object)) this.changed();
  }
}
