/**
 * Creates and maintains the default flow schemas and priority levels: the mandatory ones unconditionally, the suggested ones
 * unless a user has taken them over. Obsolete defaults are deleted.
 * Source: pkg/registry/flowcontrol/rest/storage_flowcontrol.go, pkg/registry/flowcontrol/ensurer/strategy.go
 */
import type { Client } from "@coxswain/apimachinery/client/client";
import { isAlreadyExists, isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { flowSchemas, priorityLevelConfigurations } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { defaultLevels, defaultSchemas, isMandatory } from "./flow-schemas.ts";

/** "true": the server maintains the spec. "false": the user does. */
export const autoUpdate = "apf.kubernetes.io/autoupdate-spec";

const fieldManager = "api-priority-and-fairness-config-producer-v1";
const periodMs = 60_000;

interface WithSpec extends KubeObject {
  spec: object;
}

/** Creates, updates and deletes the objects once. */
export async function ensureFlowConfiguration(client: Client, signal?: AbortSignal): Promise<void> {
  await ensureAll(client, priorityLevelConfigurations, defaultLevels, signal);
  await ensureAll(client, flowSchemas, defaultSchemas, signal);
}

/** Runs `ensureFlowConfiguration` periodically until `signal` is aborted. */
export function keepFlowConfiguration(client: Client, clock: Clock, log: Logger, signal: AbortSignal): void {
  const timer = clock.every(periodMs, () => {
    ensureFlowConfiguration(client, signal).catch((err: unknown) => {
      if (!signal.aborted) log.error("cannot maintain the default flow schemas and priority levels", err);
    });
  });
  signal.addEventListener("abort", () => timer.cancel(), { once: true });
}

async function ensureAll(client: Client, ref: ResourceRef, defaults: readonly WithSpec[], signal?: AbortSignal): Promise<void> {
  const existing = new Map<string, WithSpec>();
  for (const object of (await client.list<WithSpec>(ref, {}, { signal })).items) existing.set(object.metadata.name ?? "", object);
  for (const wanted of defaults) {
    const name = wanted.metadata.name ?? "";
    const found = existing.get(name);
    existing.delete(name);
    if (found === undefined) {
      const made = { metadata: { name, annotations: { [autoUpdate]: "true" } }, spec: wanted.spec };
      await unlessOutrun(client.create(ref, made, { fieldManager, signal }));
      continue;
    }
    const next = revise(found, wanted);
    if (next !== undefined) await unlessOutrun(client.update(ref, next, { fieldManager, signal }));
  }
  for (const [name, { metadata }] of existing) {
    if (metadata.annotations?.[autoUpdate] === "true") await unlessOutrun(client.delete(ref, { name }, { signal }));
  }
}

/** Ignores conflicts with other servers that do the same; the next round sees the result. */
async function unlessOutrun(write: Promise<unknown>): Promise<void> {
  await write.catch((err: unknown) => {
    if (!isAlreadyExists(err) && !isConflict(err) && !isNotFound(err)) throw err;
  });
}

/** @returns the object to write; undefined when it is up to date */
export function revise<T extends WithSpec>(found: T, wanted: WithSpec): T | undefined {
  const ours = isMandatory(wanted) || isOurs(found);
  const marked = found.metadata.annotations?.[autoUpdate] === String(ours);
  const differs = ours && !semanticEqual(found.spec, wanted.spec);
  if (marked && !differs) return undefined;
  return {
    ...found,
    metadata: { ...found.metadata, annotations: { ...found.metadata.annotations, [autoUpdate]: String(ours) } },
    ...(differs && { spec: wanted.spec }),
  };
}

/** Without the annotation an object that was never changed belongs to the server. */
function isOurs({ metadata: { annotations, generation } }: KubeObject): boolean {
  const said = annotations?.[autoUpdate];
  return said === "true" || (said !== "false" && generation === 1);
}
