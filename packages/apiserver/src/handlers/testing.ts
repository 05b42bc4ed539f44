/** What the tests of this room share: the way to a server, and small objects. */
import type { KubeObject } from "@coxswain/apimachinery/meta/types";

export const configMaps = "/api/v1/namespaces/default/configmaps";

export function aConfigMap(name: string, data?: Record<string, string>, labels?: Record<string, string>): KubeObject {
  return {
    kind: "ConfigMap",
    apiVersion: "v1",
    metadata: { name, ...(labels && { labels }) },
    ...(data && { data }),
  } as KubeObject;
}
