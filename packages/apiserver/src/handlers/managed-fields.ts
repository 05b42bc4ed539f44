/**
 * Maintains `metadata.managedFields` on writes, with one field manager per endpoint, which processes each create and update
 * before admission. Failures to compute the entries drop them from the object and never fail the request.
 * Source: k8s.io/apiserver pkg/endpoints/installer.go, handlers/create.go (managerOrUserAgent),
 * handlers/fieldmanager/fieldmanager.go (UpdateNoErrors), admission.go, versionconverter.go
 */

import { coerce } from "@coxswain/apimachinery/objects/codec/json";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { formatGroupVersion, type GroupVersionKind, parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject, ManagedFieldsEntry } from "@coxswain/apimachinery/objects/meta/types";
import { type ApplyType, applyTypeOf, deducedType } from "@coxswain/apimachinery/objects/patch/apply/apply-type";
import { FieldManager } from "@coxswain/apimachinery/objects/patch/apply/field-manager";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { ResourceDefinition } from "../registry/generic/resource.ts";
import { fromHub, fromHubInSteps } from "./convert.ts";
import { toHubAsIs } from "./decode.ts";
import type { Call, HandlerEnv } from "./env.ts";
import type { ServedResource } from "./served-resources.ts";
import { type Converted, withConversions } from "./webhook-conversions.ts";

const maxManagerBytes = 128;

/** The `fieldManager` parameter; default: the product name of the User-Agent. */
export function managerName(call: Call, fieldManager: string): string {
  if (fieldManager !== "") return fieldManager;
  const product = String(call.ctx.exchange.headers["user-agent"] ?? "").split("/")[0]!;
  let name = "";
  let size = 0;
  for (const char of product) {
    if (!printable.test(char)) continue;
    size += Buffer.byteLength(char);
    if (size > maxManagerBytes) break;
    name += char;
  }
  return name;
}

const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/**
 * Sets the managed fields of an object that is about to be written.
 * @param live the stored object in the hub version; undefined when it is created
 * @param next the new object in the hub version; modified in place
 * @param sizeBytes size of the request body, as an estimate of the object's
 */
export function trackFields(
  call: Call,
  fieldManager: string,
  live: KubeObject | undefined,
  next: KubeObject,
  sizeBytes?: number,
): KubeObject | Promise<KubeObject> {
  const { env, served } = call;
  if (!env.gates.tracksFields) return withEntries(next, undefined);
  const failed = (err: unknown): KubeObject => {
    call.ctx.throwIfAborted(); // the request has ended, and nothing is wrong with the fields
    env.log.error("cannot update managed fields", err, { resource: served.definition.resource, name: call.name });
    return withEntries(next, undefined);
  };
  try {
    const [manager, now] = [managerName(call, fieldManager), env.services.now()];
    const entries = withFieldManager(
      call,
      function* (fields) {
        const before = live === undefined ? undefined : yield* inServedVersion(served, live);
        return yield* fields.update(before, yield* inServedVersion(served, next), manager, now);
      },
      sizeBytes,
    );
    if (!(entries instanceof Promise)) return withEntries(next, entries);
    return entries.then((found) => withEntries(next, found)).catch(failed);
  } catch (err) {
    return failed(err);
  }
}

function* inServedVersion(served: ServedResource, hub: KubeObject): Steps<KubeObject> {
  return served.isHub ? hub : yield* fromHubInSteps(served, hub);
}

/** As `trackFields`, for an object that the generic store does not store: a review, a binding. */
export async function trackCreated(
  call: Call,
  fieldManager: string,
  kind: GroupVersionKind,
  object: KubeObject,
): Promise<KubeObject> {
  const { env } = call;
  const descriptor = scheme.kind(kind);
  if (descriptor === undefined || !env.gates.tracksFields) return withEntries(object, undefined);
  const manager = new FieldManager({
    apiVersion: formatGroupVersion(kind),
    kind: kind.kind,
    type: applyTypeOf(descriptor),
    subresource: call.subresource,
    resetFields: [],
    convert: () => undefined,
  });
  try {
    const entries = manager.update(undefined, object, managerName(call, fieldManager), env.services.now());
    return withEntries(object, await env.services.turns.run(entries));
  } catch (err) {
    env.log.error("cannot update managed fields", err, { kind: kind.kind });
    return withEntries(object, undefined);
  }
}

/** Sets the entries of `object` in place; undefined removes them. */
export function withEntries(object: KubeObject, entries: ManagedFieldsEntry[] | undefined): KubeObject {
  if (entries === undefined) delete object.metadata.managedFields;
  else object.metadata.managedFields = entries;
  return object;
}

/**
 * Computes with the field manager of the call's endpoint.
 * @param compute may run several times when conversions call a webhook
 * @param sizeBytes total size of the objects, when known
 * @returns a promise only when a webhook is called or the computation yields
 */
export function withFieldManager<T>(
  call: Call,
  compute: (manager: FieldManager) => Steps<T>,
  sizeBytes?: number,
): T | Promise<T> {
  const { convert: convertByWebhook } = call.served.version;
  const { turns } = call.env.services;
  if (convertByWebhook === undefined) return turns.run(compute(fieldManagerOf(call)), sizeBytes, call.ctx);
  return withConversions(convertByWebhook, (converted) => turns.run(compute(newManager(call, converted)), 0, call.ctx));
}

/** The field manager of the endpoint: the resource or subresource, in the request's version. */
function fieldManagerOf(call: Call): FieldManager {
  return call.served.fieldManagers.getOrInsertComputed(call.subresource, () => newManager(call, undefined));
}

function newManager({ env, served, subresource }: Call, converted: Converted | undefined): FieldManager {
  return new FieldManager({
    apiVersion: formatGroupVersion(served.kind),
    kind: served.kind.kind,
    type: typeOf(served),
    subresource,
    resetFields: resetFieldsOf(served.definition, subresource),
    convert: (object, from, to) => convert(env, served, object, from, to, converted),
  });
}

function typeOf(served: ServedResource): ApplyType {
  if (served.version.applyType !== undefined) return served.version.applyType();
  const descriptor = scheme.kind(served.kind);
  return descriptor === undefined ? deducedType : applyTypeOf(descriptor);
}

function resetFieldsOf(definition: ResourceDefinition, subresource: string): readonly string[] {
  if (subresource === "") return definition.strategy?.resetFields ?? [];
  const subresources = definition.subresources ?? {};
  if (Object.hasOwn(subresources, subresource)) {
    const handler = subresources[subresource]?.handler;
    return handler?.type === "strategy" ? (handler.strategy.resetFields ?? []) : [];
  }
  return subresource === "status" ? (definition.statusStrategy?.resetFields ?? []) : [];
}

/** Converts between versions of a resource through the hub, without applying defaults. */
function convert(
  env: HandlerEnv,
  served: ServedResource,
  object: KubeObject,
  from: string,
  to: string,
  converted: Converted | undefined,
): { object: KubeObject; type: ApplyType } | undefined {
  const target = inVersion(env, served, to);
  if (target === undefined) return undefined;
  if (from === to) return { object, type: typeOf(target) };
  const source = inVersion(env, served, from);
  if (source === undefined) return undefined;
  if (converted !== undefined) return { object: converted({ ...object, apiVersion: from }, to), type: typeOf(target) };
  const descriptor = scheme.kind(source.kind);
  const copy = deepClone(object);
  const hub = toHubAsIs(source, descriptor === undefined ? copy : coerce(copy, descriptor));
  return { object: fromHub(target, hub), type: typeOf(target) };
}

/** The resource in another version, served or not. Events exist in two groups. */
function inVersion(env: HandlerEnv, served: ServedResource, apiVersion: string): ServedResource | undefined {
  if (formatGroupVersion(served.kind) === apiVersion) return served;
  const gv = parseGroupVersion(apiVersion);
  if (gv === undefined) return undefined;
  const { definition } = served;
  const found = env.resources.find(gv.group, gv.version, definition.resource);
  if (found !== undefined && sameHub(found, served)) return found;
  const version = gv.group === definition.group ? definition.versions.find((one) => one.version === gv.version) : undefined;
  if (version === undefined) return undefined;
  const kind = { ...gv, kind: definition.kind };
  return { ...served, version, kind, isHub: formatGroupVersion(served.hubKind) === apiVersion, fieldManagers: new Map() };
}

function sameHub(a: ServedResource, b: ServedResource): boolean {
  return formatGroupVersion(a.hubKind) === formatGroupVersion(b.hubKind) && a.hubKind.kind === b.hubKind.kind;
}
