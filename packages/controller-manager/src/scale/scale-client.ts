import type { Client } from "@coxswain/apimachinery/client/client";
import { discoverPreferredResources } from "@coxswain/apimachinery/client/discovery";
import { groupVersionPath, parseGroupVersion, type ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { Scale } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";

/** Access to the `scale` subresource of any resource, including custom resources, by kind. */
export interface ScaleClient {
  /**
   * @param apiVersion of the reference; the result has the server's preferred version
   * @param scope selects the wording of upstream's error text
   * @throws Error with upstream's text when the kind is not served or apiVersion is malformed
   */
  resourceOf(apiVersion: string, kind: string, scope?: "this version" | "any version"): Promise<ResourceRef>;
  /** @throws NotFound when the object does not exist or its resource has no scale subresource */
  get(ref: ResourceRef, target: { namespace?: string | undefined; name: string }, signal: AbortSignal): Promise<Scale>;
  /**
   * Sets `spec.replicas`.
   * @throws Conflict when the object changed since `scale` was read
   */
  update(ref: ResourceRef, scale: Scale, signal: AbortSignal): Promise<Scale>;
  /** Whether the resource has a scale subresource; distinguishes the two causes of NotFound. */
  hasScale(ref: ResourceRef, signal: AbortSignal): Promise<boolean>;
}

/** How long discovery results are cached. Source: cmd/kube-controller-manager/app, the reset of the RESTMapper */
const cacheMs = 30_000;

/**
 * Creates a scale client with its own discovery cache.
 * Source: client-go scale/client.go, restmapper.DeferredDiscoveryRESTMapper
 */
export function newScaleClient(client: Client, clock: Clock): ScaleClient {
  let known: { readonly at: number; readonly resources: Promise<readonly ResourceRef[]> } | undefined;

  const discover = (): Promise<readonly ResourceRef[]> => {
    const now = clock.monotonic();
    if (known !== undefined && now - known.at < cacheMs) return known.resources;
    const resources = discoverPreferredResources(client).then((discovered) => discovered.resources);
    const entry = { at: now, resources };
    known = entry;
    resources.catch(() => {
      if (known === entry) known = undefined;
    });
    return resources;
  };

  return {
    async resourceOf(apiVersion, kind, scope = "this version") {
      const version = parseGroupVersion(apiVersion);
      if (version === undefined) throw new Error(`unexpected GroupVersion string: ${apiVersion}`);
      const found = (await discover()).find((resource) => resource.group === version.group && resource.kind === kind);
      if (found === undefined) {
        const where = scope === "this version" ? `version "${apiVersion}"` : `group "${version.group}"`;
        throw new Error(`no matches for kind "${kind}" in ${where}`);
      }
      return found;
    },
    get: (ref, target, signal) => client.get<Scale>(ref, { ...target, subresource: "scale" }, { signal }),
    update: (ref, scale, signal) => client.update<Scale>(ref, scale, { subresource: "scale", signal }),
    async hasScale(ref, signal) {
      const { status, body } = await client.raw("GET", groupVersionPath(ref), { signal });
      if (status !== 200) throw new Error(`cannot discover ${groupVersionPath(ref)}: unexpected status ${status}`);
      const list: unknown = JSON.parse(body.toString("utf8"));
      const resources: unknown = isJsonObject(list) ? list["resources"] : undefined;
      if (resources === null || resources === undefined) return false; // some servers write null for an empty list
      if (!Array.isArray(resources))
        throw new Error(`cannot discover ${groupVersionPath(ref)}: the response is not an APIResourceList`);
      return resources.some((one) => isJsonObject(one) && one["name"] === `${ref.resource}/scale` && one["kind"] === "Scale");
    },
  };
}
