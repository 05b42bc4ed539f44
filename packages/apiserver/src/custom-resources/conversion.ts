/**
 * Conversion between versions of a custom resource, by changing the apiVersion or by a webhook.
 * Source: apiextensions-apiserver pkg/apiserver/conversion/converter.go
 */

import { deepCloneInSteps, deepEqualInSteps } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { formatGroupVersion, parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { applySchemaToStoredInSteps, type SchemaApplication } from "../structural-schema/apply.ts";
import { fillDefaults } from "../structural-schema/defaults.ts";
import { andThen, type Translation } from "./version-storage.ts";

/** Converts objects to a version; objects already in it are returned as they are. Takes ownership of the objects. */
export type Convert = (objects: readonly KubeObject[], apiVersion: string) => KubeObject[] | Promise<KubeObject[]>;

/** Conversion strategy None. */
export const renameOnly: Convert = (objects, apiVersion) => {
  for (const object of objects) object.apiVersion = apiVersion;
  return [...objects];
};

interface TranslationOptions {
  readonly group: string;
  /** Schemas by version name. */
  readonly schemas: ReadonlyMap<string, SchemaApplication>;
  readonly version: string;
  readonly storageVersion: string;
  readonly convert: Convert;
  readonly turns: Turns;
}

/** Translation between `version` and the stored objects: default, convert, then prune by the target schema. */
export function newTranslation({ group, schemas, version, storageVersion, convert, turns }: TranslationOptions): Translation {
  const own = formatGroupVersion({ group, version });
  const stored = formatGroupVersion({ group, version: storageVersion });
  const schemaOf = (apiVersion: string | undefined): SchemaApplication =>
    schemas.get(parseGroupVersion(apiVersion ?? "")?.version ?? "") ?? anything;
  function* copiesOf(objects: readonly KubeObject[]): Steps<KubeObject[]> {
    const copies: KubeObject[] = [];
    for (const object of objects) {
      const copy = yield* deepCloneInSteps(object);
      yield;
      fillDefaults(copy, schemaOf(copy.apiVersion).schema, "stop");
      copies.push(copy);
      yield;
    }
    return copies;
  }
  function* settled(converted: readonly KubeObject[], objects: readonly KubeObject[]): Steps<KubeObject[]> {
    const shown: KubeObject[] = [];
    for (const [i, object] of converted.entries()) {
      yield* applySchemaToStoredInSteps(object, schemaOf(object.apiVersion));
      yield;
      shown.push((yield* deepEqualInSteps(object, objects[i])) ? objects[i]! : object);
      yield;
    }
    return shown;
  }
  return {
    show(objects, request) {
      return andThen(turns.run(copiesOf(objects), 0, request), (copies) =>
        andThen(convert(copies, own), (converted) => turns.run(settled(converted, objects), 0, request)),
      );
    },
    async store(object, request) {
      const copy = await turns.run(deepCloneInSteps(object), 0, request);
      await turns.next();
      const [converted] = await convert([copy], stored);
      const one = converted!;
      await turns.run(applySchemaToStoredInSteps(one, schemaOf(one.apiVersion)), 0, request);
      await turns.next();
      return one;
    },
  };
}

const anything: SchemaApplication = { schema: undefined, prunes: false };
