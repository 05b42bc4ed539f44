import type { Plugin } from "../framework/extension-points.ts";
import { unresolvable } from "../framework/status.ts";

/** Admits only the node that `spec.nodeName` names, if it is set. */
export const newNodeName = (): Plugin => ({
  name: "NodeName",
  wakeUpOn: ["Node/Add"],
  mayRefuse: (_, { pod }) => Boolean(pod.spec.nodeName),
  filter: (_, { pod }, node) =>
    pod.spec.nodeName && pod.spec.nodeName !== node.name
      ? unresolvable("node(s) didn't match the requested node name")
      : undefined,
});
