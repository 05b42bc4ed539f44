/**
 * PATCH with `application/apply-patch+yaml`: server-side apply. Merges what the client wants into the object, or makes
 * the object; a write that lost a race applies it to the fresh object again.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/patch.go (applyPatcher)
 */

import { coerce } from "@coxswain/apimachinery/codec/json";
import { parseYamlAside } from "@coxswain/apimachinery/codec/yaml-aside";
import { badRequest, conflict, plainError, StatusError } from "@coxswain/apimachinery/errors/status-error";
import type { Steps } from "@coxswain/apimachinery/event-loop/steps";
import { deepClone } from "@coxswain/apimachinery/meta/deep-equal";
import type { GroupVersionKind } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject, Unstructured } from "@coxswain/apimachinery/meta/types";
import { describeObject, type FieldManager } from "@coxswain/apimachinery/patch/apply/field-manager";
import { scheme } from "@coxswain/apimachinery/schema/scheme";
import type { RegistryStore } from "../registry/generic/store.ts";
import { checkName, readBody } from "./body.ts";
import { fromHub, toHub } from "./convert.ts";
import { type Call, strategyContext } from "./env.ts";
import { withEntries, withFieldManager } from "./managed-fields.ts";
import { type FieldValidation, type WriteRequestOptions, writeOptions } from "./options.ts";
import { negotiateFor, writeEntry } from "./response.ts";
import { writeAdmission } from "./update.ts";

export async function apply(call: Call, store: RegistryStore): Promise<void> {
  const { ctx, served } = call;
  const output = negotiateFor(call);
  const { options, applied } = await readApply(call, served.kind);
  const { entry, created } = await store.update(
    strategyContext(call, options.dryRun),
    call.name,
    async (current) => {
      const live = current === undefined ? undefined : fromHub(served, current);
      const object = await withFieldManager(call, (manager) => applied(manager, live));
      if (live === undefined && object.metadata.uid) {
        throw conflict(
          served.definition,
          call.name,
          `uid mismatch: the provided object specified uid ${object.metadata.uid}, and no existing object was found`,
        );
      }
      checkName(object, call.name, call.namespace);
      return toHub(served, object);
    },
    { ...writeAdmission(call, options), forceAllowCreate: call.subresource === "", signal: ctx },
  );
  await writeEntry(call, created ? 201 : 200, entry, output);
}

export interface AppliedConfig {
  readonly options: WriteRequestOptions;
  /**
   * @param live in the request's version; undefined when there is none
   * @returns the merged object in the same version, without defaults, which the caller owns
   * @throws Conflict, BadRequest, 500 for what does not fit the schema
   */
  applied(manager: FieldManager, live: KubeObject | undefined): Steps<KubeObject>;
}

/** Reads the configuration once; it may be applied to any number of objects. */
export async function readApply(call: Call, kind: GroupVersionKind): Promise<AppliedConfig> {
  const bytes = await readBody(call);
  const options = writeOptions(call.ctx.query, "PatchOptions", true);
  const complain = complaintsOf(call, options.fieldValidation);
  const config = await parseConfig(bytes, complain?.repeated);
  const descriptor = scheme.kind(kind);
  return {
    options,
    *applied(manager, live) {
      checkKind(config, kind);
      const now = call.env.services.now();
      const { metadata, ...rest } = yield* manager.apply(live, config, options.fieldManager, options.force === true, now);
      yield;
      const { managedFields, ...bare } = metadata; // shared
      const merged = deepClone<KubeObject>({ ...rest, metadata: bare });
      complain?.tell();
      yield;
      try {
        const object = descriptor === undefined ? merged : coerce(merged, descriptor);
        object.metadata ??= {};
        return withEntries(object, managedFields);
      } catch (err) {
        throw plainError(`failed to convert new object to proper version: ${(err as Error).message}`);
      }
    },
  };
}

interface Complaints {
  /** `line 3: key "a" already set in map`, once for each. */
  readonly repeated: string[];
  /** Warns of them once. @throws BadRequest instead when the client is strict */
  tell(): void;
}

/** Keys that a configuration repeats, as `?fieldValidation=` wants them; undefined when nobody asked. */
function complaintsOf({ ctx, env }: Call, validation: FieldValidation): Complaints | undefined {
  if (validation === "Ignore" || !env.services.featureEnabled("ServerSideFieldValidation")) return undefined;
  const repeated: string[] = [];
  let warned = false;
  return {
    repeated,
    tell() {
      if (repeated.length > 0 && validation === "Strict") {
        const all = `yaml: unmarshal errors:\n  ${repeated.join("\n  ")}`;
        throw badRequest(`error strict decoding YAML: error converting YAML to JSON: ${all}`);
      }
      if (!warned) for (const complaint of repeated) ctx.warn(complaint);
      warned = true; // a write that lost a race applies the configuration again
    },
  };
}

/** kubectl sends JSON, which is YAML too. */
async function parseConfig(bytes: Buffer, repeated: string[] | undefined): Promise<Unstructured> {
  let config: unknown;
  try {
    config = await parseYamlAside(bytes.toString(), repeated);
  } catch (err) {
    if (err instanceof StatusError && err.code !== 400) throw err; // too large for us, not wrong
    throw badRequest(`error decoding YAML: ${(err as Error).message}`);
  }
  if (config === null || config === undefined) return {} as Unstructured;
  if (typeof config !== "object" || Array.isArray(config)) {
    throw badRequest(
      "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal " +
        `${Array.isArray(config) ? "array" : typeof config} into Go value of type map[string]interface {}`,
    );
  }
  return config as Unstructured;
}

/** @throws 500 as upstream does for a kind that this version does not have, or not at this path. */
function checkKind(config: Unstructured, kind: GroupVersionKind): void {
  if (config.apiVersion !== undefined && config.kind !== undefined && config.kind !== kind.kind) {
    throw plainError(
      `failed to create typed patch object (${describeObject(config)}): no corresponding type for ${kind.group}/${kind.version}, Kind=${config.kind}`,
    );
  }
}
