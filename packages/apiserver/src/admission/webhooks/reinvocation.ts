/**
 * Which webhooks are asked a second time: those that want to be (`reinvocationPolicy: IfNeeded`) and that something came
 * after which changed the object, be it another webhook or a plugin of the server.
 * Source: k8s.io/apiserver pkg/admission/plugin/webhook/mutating/reinvocationcontext.go
 */
import { deepClone, semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";

export class WebhookReinvocation {
  #asked = new Set<string>();
  readonly #again = new Set<string>();
  #lastOutput: KubeObject | undefined;

  /** It was asked, and would like to be asked again. */
  asked(id: string): void {
    this.#asked.add(id);
  }

  /** The object changed: all that were asked so far have to see that. */
  changed(): void {
    for (const id of this.#asked) this.#again.add(id);
    this.#asked = new Set();
  }

  mustAskAgain(id: string): boolean {
    return this.#again.has(id);
  }

  /** What the webhooks leave behind; only worth keeping while one of them could be asked again. */
  leave(object: KubeObject | undefined): void {
    this.#lastOutput = this.#asked.size > 0 && object !== undefined ? deepClone(object) : undefined;
  }

  /** The server's plugins went over the object a second time. */
  comeBack(object: KubeObject | undefined): void {
    if (this.#asked.size > 0 && !semanticEqual(this.#lastOutput, object)) this.changed();
  }
}
