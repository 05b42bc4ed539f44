import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Event message in upstream's format; the trailing space stays when `more` is empty. */
export function volumeMessage(what: string, label: string, more: string): string {
  return `${what} for volume ${goQuote(label)} ${more}`;
}

/**
 * Message for a Pod whose volume is attached to another node. Names of Pods in other namespaces are not disclosed.
 * Source: reconciler.go reportMultiAttachError
 */
export function multiAttachMessage(pod: Pod, users: readonly Pod[], label: string): string {
  const own = users.filter(({ metadata }) => metadata.namespace === pod.metadata.namespace).map(({ metadata }) => metadata.name);
  const elsewhere = users.length - own.length;
  const inOthers = `${elsewhere} pod(s) in different namespaces`;
  let why = `Volume is already used by pod(s) ${own.join(", ")}`;
  if (users.length === 0) why = "Volume is already exclusively attached to one node and can't be attached to another";
  else if (own.length === 0) why = `Volume is already used by ${inOthers}`;
  else if (elsewhere > 0) why = `${why} and ${inOthers}`;
  return volumeMessage("Multi-Attach error", label, why);
}
