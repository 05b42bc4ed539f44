import type { InformerFactory } from "./factory.ts";
import type { SharedInformer } from "./shared-informer.ts";

/** Wraps the informers so that all handlers added through the wrapper can be removed together. */
export function scopedInformers(informers: InformerFactory): { informers: InformerFactory; removeHandlers(): void } {
  const removals: (() => void)[] = [];
  const scoped = <T>(informer: SharedInformer<T>): SharedInformer<T> =>
    Object.create(informer, {
      addHandler: {
        value: (handler: Parameters<SharedInformer<T>["addHandler"]>[0]) => {
          const remove = informer.addHandler(handler);
          removals.push(remove);
          return remove;
        },
      },
    });
  return {
    informers: { ...informers, for: (ref, selectors) => scoped(informers.for(ref, selectors)) },
    removeHandlers() {
      for (const remove of removals.splice(0)) remove();
    },
  };
}
