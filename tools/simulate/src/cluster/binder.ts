import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Life } from "./daemon.ts";

/** Replaces the scheduler where none is tested: binds each Pod to the node that its affinity names (Pods of DaemonSets), otherwise to any node. */
export async function runBinder({ process, client, log, signal }: Life, nodes: readonly string[]): Promise<void> {
  const { clock } = process;
  const informers = newInformerFactory(client, { log, clock });
  const unbound = informers.for<Pod>(pods, { fieldSelector: "spec.nodeName=" });
  let next = 0;
  const bind = async (pod: Pod): Promise<void> => {
    const { namespace, name = "", uid } = pod.metadata;
    const node = namedNode(pod) ?? nodes[next++ % nodes.length];
    const target = { apiVersion: "v1", kind: "Node", name: node };
    for (let tries = 0; !signal.aborted && unbound.lister.get(keyOf(pod))?.metadata.uid === uid; tries++) {
      try {
        // cast: a Binding, which is not the resource's type
        await client.create(pods, { metadata: { namespace, name, uid }, target } as never, {
          namespace,
          name,
          subresource: "binding",
        });
        return;
      } catch (err) {
        if (isNotFound(err) || isConflict(err)) return;
        await clock.sleep(Math.min(100 * 2 ** tries, 2_000));
      }
    }
  };
  unbound.addHandler({ added: (pod) => void bind(pod) });
  informers.start(signal);
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
}

function namedNode({ spec }: Pod): string | undefined {
  const terms = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  return terms.flatMap(({ matchFields = [] }) => matchFields.flatMap(({ values = [] }) => values))[0];
}
