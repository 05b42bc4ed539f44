import { formatGroupVersion, type ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { FakeClient } from "@coxswain/apimachinery/testing/fake-client";

/** Sets the discovery responses of a fake client: these resources, some with a scale subresource, some deletable. */
export function serveDiscovery(
  { rawAnswers }: FakeClient,
  resources: readonly (ResourceRef & { scale?: boolean; deletable?: boolean })[],
): void {
  const groups = Map.groupBy(resources, ({ group }) => group);
  rawAnswers.set("/api", { versions: [...new Set(groups.get("")?.map(({ version }) => version))] });
  rawAnswers.set("/apis", {
    groups: [...groups]
      .filter(([group]) => group !== "")
      .map(([name, served]) => ({
        name,
        versions: [...new Set(served.map(({ version }) => version))].map((version) => ({ version })),
      })),
  });
  for (const [groupVersion, served] of Map.groupBy(resources, formatGroupVersion)) {
    rawAnswers.set(groupVersion.includes("/") ? `/apis/${groupVersion}` : `/api/${groupVersion}`, {
      resources: served.flatMap(({ resource: name, kind, namespaced, scale, deletable }) => [
        { name, kind, namespaced, verbs: ["get", "list", "watch", "update", ...(deletable === true ? ["delete"] : [])] },
        ...(scale === true ? [{ name: `${name}/scale`, kind: "Scale", namespaced, verbs: ["get", "update"] }] : []),
      ]),
    });
  }
}
