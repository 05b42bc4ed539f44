/**
 * PATCH with `application/apply-patch+yaml`: server-side apply. Merges the applied configuration into the object, or creates
 * it. After a conflict it is applied again to the current object.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/patch.go (applyPatcher)
 */

import { coerce } from "@coxswain/apimachinery/objects/codec/json";
import { parseYamlAside } from "@coxswain/apimachinery/objects/codec/yaml-aside";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { badRequest, conflict, plainError, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import { jsonWord } from "@coxswain/apimachinery/objects/meta/json-value";
import type { KubeObject, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { describeObject, type FieldManager } from "@coxswain/apimachinery/objects/patch/apply/field-manager";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { RegistryStore } from "../registry/generic/resource.ts";
import { strategyContext, writeAdmission } from "./admission.ts";
import { readBody } from "./body.ts";
import { fromHubInSteps } from "./convert.ts";
import { checkName, toHubInTurns } from "./decode.ts";
import type { Call } from "./env.ts";
import { withEntries, withFieldManager } from "./managed-fields.ts";
import { negotiateFor } from "./negotiation.ts";
import { type FieldValidation, type WriteRequestOptions, writeOptions } from "./options.ts";
import { writeEntry } from "./response.ts";

/** Applies the configuration in the request's body through `store`. @throws Conflict with the fields owned by other managers */
export async function apply(call: Call, store: RegistryStore): Promise<void> {
  const { ctx, served } = call;
  const { turns } = call.env.services;
  const output = negotiateFor(call);
  const { options, applied } = await readApply(call, served.kind);
  const { entry, created } = await store.update(
    strategyContext(call, options.dryRun),
    call.name,
    async (current) => {
      const live = current === undefined ? undefined : await turns.run(fromHubInSteps(served, current));
      await turns.next();
      const object = await withFieldManager(call, (manager) => applied(manager, live));
      if (live === undefined && object.metadata.uid) {
        throw conflict(
          served.definition,
          call.name,
          `uid mismatch: the provided object specified uid ${object.metadata.uid}, and no existing object was found`,
        );
      }
      checkName(object, call.name, call.namespace);
      return toHubInTurns(turns, served, object);
    },
    { ...writeAdmission(call, options), forceAllowCreate: call.subresource === "", signal: ctx },
  );
  await writeEntry(call, created ? 201 : 200, entry, output);
}

interface AppliedConfig {
  readonly options: WriteRequestOptions;
  /**
   * @param live in the request's version; undefined when the object does not exist
   * @returns the merged object in the same version, without defaults, owned by the caller
   * @throws Conflict, BadRequest; 500 for what does not match the schema
   */
  applied(manager: FieldManager, live: KubeObject | undefined): Steps<KubeObject>;
}

/** Reads the configuration; `applied` may be called for any number of objects. */
export async function readApply(call: Call, kind: GroupVersionKind): Promise<AppliedConfig> {
  const bytes = await readBody(call);
  const options = writeOptions(call.ctx.query, "PatchOptions", true);
  const complain = complaintsOf(call, options.fieldValidation);
  const config = await parseConfig(bytes, complain?.repeated, call.env.services.turns);
  await call.env.services.turns.next(bytes.length);
  const descriptor = scheme.kind(kind);
  return {
    options,
    *applied(manager, live) {
      checkKind(config, kind);
      const now = call.env.services.now();
      const { metadata, ...rest } = yield* manager.apply(live, config, options.fieldManager, options.force === true, now);
      yield;
      const { managedFields, ...bare } = metadata; // shared with the result, not copied
      const merged = deepClone<KubeObject>({ ...rest, metadata: bare });
      complain?.report();
      yield;
      try {
        const object = descriptor === undefined ? merged : coerce(merged, descriptor);
        object.metadata ??= {};
        return withEntries(object, managedFields);
      } catch (err) {
        throw plainError(`failed to convert new object to proper version: ${messageOf(err)}`);
      }
    },
  };
}

interface Complaints {
  /** Duplicate keys, each once: `line 3: key "a" already set in map`. */
  readonly repeated: string[];
  /** Warns the client. @throws BadRequest instead with strict validation */
  report(): void;
}

/** Handles duplicate keys of a configuration by `?fieldValidation=`; undefined when they are ignored. */
function complaintsOf({ ctx, env }: Call, validation: FieldValidation): Complaints | undefined {
  if (validation === "Ignore" || !env.gates.validatesFields) return undefined;
  const repeated: string[] = [];
  return {
    repeated,
    report() {
      if (repeated.length > 0 && validation === "Strict") {
        const all = `yaml: unmarshal errors:\n  ${repeated.join("\n  ")}`;
        throw badRequest(`error strict decoding YAML: error converting YAML to JSON: ${all}`);
      }
      // Again for each retry after a conflict: the response has each text once.
      for (const complaint of repeated) ctx.warn(complaint);
    },
  };
}

/** Configurations are YAML, of which JSON is a subset. */
async function parseConfig(bytes: Buffer, repeated: string[] | undefined, turns: Turns): Promise<Unstructured> {
  let config: unknown;
  try {
    config = await parseYamlAside(bytes.toString(), repeated, turns);
  } catch (err) {
    if (err instanceof StatusError && err.code !== 400) throw err; // too large, as opposed to malformed
    throw badRequest(`error decoding YAML: ${messageOf(err)}`);
  }
  if (config === null || config === undefined) return {} as Unstructured; // cast: field management reports the missing fields
  if (typeof config !== "object" || Array.isArray(config)) {
    throw badRequest(
      "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal " +
        `${jsonWord(config)} into Go value of type map[string]interface {}`,
    );
  }
  return config as Unstructured; // cast: an object; field management checks its fields
}

/** @throws 500, as upstream, when the kind differs from the one of the path */
function checkKind(config: Unstructured, kind: GroupVersionKind): void {
  if (config.apiVersion !== undefined && config.kind !== undefined && config.kind !== kind.kind) {
    throw plainError(
      `failed to create typed patch object (${describeObject(config)}): no corresponding type for ${kind.group}/${kind.version}, Kind=${config.kind}`,
    );
  }
}
