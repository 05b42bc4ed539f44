import type { Client } from "@coxswain/apimachinery/client/client";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Plugin } from "../framework/extension-points.ts";
import { failed } from "../framework/status.ts";

/** Binds a pod by creating the pods/binding subresource. */
export const newDefaultBinder = (client: Client): Plugin => ({
  name: "DefaultBinder",
  async bind(_, { pod }, nodeName) {
    const { name = "", namespace, uid } = pod.metadata;
    const binding = {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name, namespace, uid },
      target: { kind: "Node", name: nodeName },
    };
    try {
      await client.create(pods, binding, { namespace, name, subresource: "binding" });
      return undefined;
    } catch (err) {
      return failed(err);
    }
  },
});
