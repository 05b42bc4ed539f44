import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { ControllerContext } from "../controller-context.ts";

/** A context that counts how often its controllers look at an object. */
export function countingLooks(base: ControllerContext) {
  let looks = 0;
  const none = (): void => {};
  const queueMetrics: NonNullable<ControllerContext["queueMetrics"]> = () => ({
    ...{ added: none, done: none, retried: none },
    got: () => void looks++,
  });
  return {
    ctx: { ...base, queueMetrics },
    /** The number of looks that a change causes. */
    async looksAfter(change: () => void): Promise<number> {
      const before = looks;
      change();
      await settle(40);
      return looks - before;
    },
  };
}
