import { encodeJsonText } from "@coxswain/apimachinery/objects/codec/json";
import { encodeJsonTextInSteps } from "@coxswain/apimachinery/objects/codec/json-encode-steps";
import { methodNotSupported, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { deepClone, deepCloneInSteps } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { formatGroupVersion, type GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import { toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { KubeObject, ManagedFieldsEntry } from "@coxswain/apimachinery/objects/meta/types";
import { applyTypeOf } from "@coxswain/apimachinery/objects/patch/apply/apply-type";
import { FieldManager, type FieldManagerOptions } from "@coxswain/apimachinery/objects/patch/apply/field-manager";
import { decodeManaged } from "@coxswain/apimachinery/objects/patch/apply/managed-fields";
import { newScaleEntries } from "@coxswain/apimachinery/objects/patch/apply/scale-entries";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { RegistryStore, ResourceDefinition, ScalePaths, SubresourceDefinition } from "../registry/generic/resource.ts";
import { applyScale, scaleOf } from "../registry/generic/scale.ts";
import type { Strategy } from "../registry/generic/strategy.ts";
import { type Entry, type EntryCodec, newUnstoredEntry } from "../storage/entry.ts";
import { admissionAttributes, guardEntries, strategyContext } from "./admission.ts";
import { readApply } from "./apply.ts";
import { inputMediaType, readBody } from "./body.ts";
import { connect } from "./connect.ts";
import { checkName, decodeBody, matchNamespace } from "./decode.ts";
import type { Call } from "./env.ts";
import { get } from "./get.ts";
import { managerName, trackCreated, withEntries } from "./managed-fields.ts";
import { negotiate } from "./negotiation.ts";
import { checkFieldSelector, listOptions, readOptions, type WriteRequestOptions, writeOptions } from "./options.ts";
import { patch, patchTypeOf, readPatch } from "./patch.ts";
import { linkedList, writeAnswer, writeEntry, writeObject } from "./response.ts";
import { type ServedResource, servesSubresource } from "./served-resources.ts";
import { subresourceCall } from "./subresource-call.ts";
import { update } from "./update.ts";
import { writeList } from "./write-list.ts";

/** A served subresource, either listed in the definition or implied by a status strategy or scale paths. */
export interface ServedSubresource {
  readonly kind: GroupVersionKind;
  readonly verbs: readonly string[];
  run(call: Call, verb: string, rest: string): Promise<void>;
}

/** Sorted names of the subresources of a definition. */
export function subresourceNames(definition: ResourceDefinition): string[] {
  const names = new Set(Object.keys(definition.subresources ?? {}).filter((name) => name !== ""));
  if (definition.statusStrategy !== undefined) names.add("status");
  if (definition.scale !== undefined) names.add("scale");
  return [...names].sort();
}

/** @returns undefined when the resource has no such subresource */
export function findSubresource(served: ServedResource, name: string): ServedSubresource | undefined {
  if (!servesSubresource(served, name)) return undefined;
  const { subresources = {}, statusStrategy, scale } = served.definition;
  if (Object.hasOwn(subresources, name)) return listed(served, name, subresources[name]!);
  if (name === "status") return viewOf(served, served.kind, partVerbs, name, statusStrategy!);
  return scaleView(served, scale!, partVerbs);
}

const partVerbs = ["get", "patch", "update"] as const;

function listed(served: ServedResource, name: string, subresource: SubresourceDefinition): ServedSubresource {
  const { handler, verbs } = subresource;
  const kind = { ...(subresource.kindGroupVersion ?? groupVersionOf(served)), kind: subresource.kind };
  switch (handler.type) {
    case "strategy":
      return viewOf(served, kind, verbs, name, handler.strategy);
    case "scale":
      return scaleView(served, served.definition.scale!, verbs);
    case "connect":
      return { kind, verbs, run: (call, _verb, rest) => connect(call, handler, kind, rest) };
    case "object":
      return { kind, verbs, run: (call, verb) => runObject(call, verb, subresource, kind) };
  }
}

function groupVersionOf(served: ServedResource): { group: string; version: string } {
  return { group: served.kind.group, version: served.kind.version };
}

/** Status and similar views: the parent object, written through a strategy that takes only a part of it. */
function viewOf(
  served: ServedResource,
  kind: GroupVersionKind,
  verbs: readonly string[],
  name: string,
  strategy: Strategy,
): ServedSubresource {
  return {
    kind,
    verbs,
    run(call, verb) {
      if (verb === "get") return get(call);
      const whole = served.store!;
      const store = served.subresourceStores.getOrInsertComputed(name, () => whole.withStrategy(strategy));
      return verb === "update" ? update(call, store) : patch(call, store);
    },
  };
}

function scaleView(served: ServedResource, paths: ScalePaths, verbs: readonly string[]): ServedSubresource {
  const [group = "", version = ""] = paths.version.split("/");
  const kind = { group, version, kind: "Scale" };
  return { kind, verbs, run: (call, verb) => runScale(call, verb, served, paths, kind) };
}

/** `/scale`: the number of replicas of an object, in the same kind for all scalable resources. */
async function runScale(
  call: Call,
  verb: string,
  served: ServedResource,
  paths: ScalePaths,
  kind: GroupVersionKind,
): Promise<void> {
  const { ctx } = call;
  const { turns } = call.env.services;
  const store = served.store!;
  const output = negotiate(ctx, asMetadata);
  if (verb === "get") {
    const entry = await readParent(call, store).catch((err: unknown) => {
      throw paths.unknownAs === undefined ? err : notFound(paths.unknownAs, call.name); // regardless of the cause
    });
    paths.checkRead?.(entry.object());
    return writeAnswer(call, 200, scaleOf(entry.object(), paths), output);
  }
  const { options, uid, changed } = verb === "update" ? await readScale(call, kind) : await readScalePatch(call, kind);
  const entries = newScaleEntries(formatGroupVersion(served.kind), paths.version, paths.specReplicas);
  const { entry } = await store.update(
    strategyContext(call, options.dryRun),
    call.name,
    async (current) => {
      if (current === undefined) throw notFound(served.definition, call.name);
      const owned = readable(current.metadata.managedFields);
      const old = withEntries(scaleOf(current, paths), entries.toScale(owned));
      const scale = await turns.run(changed(old), 0, ctx);
      checkName(scale, call.name, call.namespace);
      await guardEntries(call, scale, () => admitScale(call, scale, old, kind, options));
      const next = applyScale(await turns.run(deepCloneInSteps(current), 0, ctx), scale, paths);
      return withEntries(next, call.env.gates.tracksFields ? entries.toParent(owned, scale.metadata.managedFields) : undefined);
    },
    { ...(uid && { preconditions: { uid } }), signal: ctx.signal },
  );
  return writeAnswer(call, 200, scaleOf(entry.object(), paths), output);
}

/**
 * Responses that are not stored support PartialObjectMetadata, but not Table, which is specific to the resource's own objects.
 */
const asMetadata = { transforms: true, tables: false } as const;

async function readParent({ ctx, namespace, name }: Call, store: RegistryStore): Promise<Entry> {
  return store.get(namespace, name, readOptions(ctx, store.storage.cached ? "cache" : "etcd"));
}

/** The entries when they can be decoded, else none. */
function readable(entries: ManagedFieldsEntry[] | undefined): ManagedFieldsEntry[] | undefined {
  try {
    decodeManaged(entries);
    return entries;
  } catch {
    return undefined;
  }
}

interface ScaleChange {
  readonly options: WriteRequestOptions;
  /** UID precondition of an update; a patch has none. */
  readonly uid?: string | undefined;
  /** @returns the new scale with its managed fields */
  changed(current: KubeObject): Steps<KubeObject>;
}

async function readScale(call: Call, kind: GroupVersionKind): Promise<ScaleChange> {
  const body = await readBody(call);
  const options = writeOptions(call.ctx.query, "UpdateOptions");
  const mediaType = inputMediaType(call);
  const scale = await decodeBody(call, body, mediaType, kind, options.fieldValidation);
  checkName(scale, call.name, call.namespace);
  const { uid } = scale.metadata;
  return {
    options,
    uid,
    *changed(current) {
      return yield* trackScale(call, options, kind, current, yield* deepCloneInSteps(scale));
    },
  };
}

async function readScalePatch(call: Call, kind: GroupVersionKind): Promise<ScaleChange> {
  const type = patchTypeOf(call, kind);
  if (type === "apply") {
    const { options, applied } = await readApply(call, kind);
    return { options, changed: (current) => applied(scaleManager(kind), current) };
  }
  const patched = await readPatch(call, type, kind);
  const options = writeOptions(call.ctx.query, "PatchOptions");
  return {
    options,
    *changed(current) {
      return yield* trackScale(call, options, kind, current, yield* patched(deepClone(current)));
    },
  };
}

function* trackScale(
  call: Call,
  options: WriteRequestOptions,
  kind: GroupVersionKind,
  current: KubeObject,
  next: KubeObject,
): Steps<KubeObject> {
  if (!call.env.gates.tracksFields) return withEntries(next, undefined);
  const manager = managerName(call, options.fieldManager);
  return withEntries(next, yield* scaleManager(kind).update(current, next, manager, call.env.services.now()));
}

/** By API version of a built-in Scale. A pure cache: managers have no state. */
const scaleManagers = new Map<string, FieldManager>();

const scaleManager = (kind: GroupVersionKind): FieldManager =>
  scaleManagers.getOrInsertComputed(formatGroupVersion(kind), (apiVersion) => {
    const type = applyTypeOf(scheme.kind(kind)!);
    const convert: FieldManagerOptions["convert"] = (object, _from, to) => (to === apiVersion ? { object, type } : undefined);
    return new FieldManager({ apiVersion, kind: kind.kind, type, subresource: "scale", resetFields: [], convert });
  });

async function admitScale(
  call: Call,
  scale: KubeObject,
  old: KubeObject,
  kind: GroupVersionKind,
  options: WriteRequestOptions,
): Promise<void> {
  const attributes = admissionAttributes(call, "UPDATE", scale, old, { dryRun: options.dryRun, options, kind });
  await call.env.admission.mutate(attributes);
  await call.env.admission.validate(attributes);
}

/** Operations and reviews: the handler produces the response, nothing is stored generically. */
export async function runObject(
  call: Call,
  verb: string,
  subresource: SubresourceDefinition,
  kind: GroupVersionKind,
): Promise<void> {
  const { ctx } = call;
  const { handler } = subresource;
  if (handler.type !== "object") throw methodNotSupported(call.served.definition, verb);
  // Table columns belong to the resource; its subresources have none.
  const forms = { transforms: true, tables: call.subresource === "" };
  if (verb === "get" && handler.get !== undefined) {
    const output = negotiate(ctx, forms);
    const answer = await handler.get(subresourceCall(call, undefined, emptyOptions));
    return output.as === "Table" ? writeEntry(call, 200, entryOf(answer), output) : writeAnswer(call, 200, answer, output);
  }
  if (verb === "list" && handler.list !== undefined) {
    const { definition } = call.served;
    const output = negotiate(ctx, forms);
    const { watch, labels, fields } = listOptions(ctx.query);
    checkFieldSelector(definition, fields);
    if (watch) throw methodNotSupported(definition, "watch");
    const items = (await handler.list(subresourceCall(call, undefined, emptyOptions))).filter(
      ({ metadata: { name = "", namespace = "", labels: own = {} } }) =>
        labels.matches(own) && fields.matches({ "metadata.name": name, "metadata.namespace": namespace }),
    );
    if (output.as !== undefined) return writeList(call, { entries: items.map(entryOf), revision: 0 }, output);
    const { entries, selfLink } = linkedList(call, items.map(entryOf));
    const list = {
      kind: definition.listKind,
      apiVersion: formatGroupVersion(kind),
      metadata: selfLink === undefined ? {} : { selfLink },
      items: entries.map((entry) => {
        const { kind: _kind, apiVersion: _version, ...item } = entry.object();
        return item;
      }),
    };
    return writeObject(ctx, 200, list, output);
  }
  const output = negotiate(ctx, asMetadata);
  if (verb === "create" && handler.create !== undefined) {
    const { turns } = call.env.services;
    const { options, object } = await readObject(call, kind, subresource.otherVersions);
    await turns.next();
    await trackCreated(call, options.fieldManager, kind, object);
    await turns.next();
    const answer = await handler.create(subresourceCall(call, object, options));
    await turns.next();
    return writeAnswer(call, 201, withCode(answer, 201), output);
  }
  throw methodNotSupported(call.served.definition, verb);
}

/** An object that is not stored, as an entry for tables and lists. */
function entryOf(object: KubeObject): Entry {
  const { name = "", namespace = "" } = object.metadata;
  return newUnstoredEntry(asJson, toKey(namespace, name), object);
}

/** Objects that are not stored have no stored form but their JSON. */
const asJson: EntryCodec = {
  toJson: (object) => encodeJsonText(object),
  toJsonInSteps: (object) => encodeJsonTextInSteps(object),
  fromJson: (bytes) => JSON.parse(bytes.toString()),
  fromStored: (bytes) => JSON.parse(bytes.toString()),
  fieldsOf: () => ({}),
};

const emptyOptions: WriteRequestOptions = { dryRun: false, fieldManager: "", fieldValidation: "Ignore", force: undefined };

async function readObject(
  call: Call,
  kind: GroupVersionKind,
  otherVersions: readonly string[] = [],
): Promise<{ options: WriteRequestOptions; object: KubeObject }> {
  const mediaType = inputMediaType(call);
  const body = await readBody(call);
  const options = writeOptions(call.ctx.query, "CreateOptions");
  const object = await decodeBody(call, body, mediaType, kind, options.fieldValidation, otherVersions);
  matchNamespace(object, call.namespace);
  return { options, object };
}

/** Sets the HTTP code in a Status that has none. */
function withCode(answer: KubeObject, code: number): KubeObject {
  if (answer.kind !== "Status" || ("code" in answer && answer.code !== undefined)) return answer;
  const status: KubeObject & { code: number } = { ...answer, code };
  return status;
}
