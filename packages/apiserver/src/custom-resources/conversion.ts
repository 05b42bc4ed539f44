/**
 * Conversion between versions of a custom resource, by changing the apiVersion or by a webhook.
 * Source: apiextensions-apiserver pkg/apiserver/conversion/converter.go
 */
import type { Turns } from "@coxswain/apimachinery/event-loop/turns";
import { deepClone, deepEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { formatGroupVersion, parseGroupVersion } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { applySchemaToStored, applySchemaToStoredInSteps, type SchemaApplication } from "../structural-schema/apply.ts";
import { fillDefaults } from "../structural-schema/defaults.ts";
import type { Translation } from "./version-storage.ts";

/** Converts objects to a version; objects already in it are returned as they are. Takes ownership of the objects. */
export type Convert = (objects: readonly KubeObject[], apiVersion: string) => KubeObject[] | Promise<KubeObject[]>;

/** Conversion strategy None. */
export const renameOnly: Convert = (objects, apiVersion) => {
  for (const object of objects) object.apiVersion = apiVersion;
  return [...objects];
};

export interface TranslationOptions {
  readonly group: string;
  /** By version name. */
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
  const settle = (object: KubeObject): KubeObject => {
    applySchemaToStored(object, schemaOf(object.apiVersion));
    return object;
  };
  return {
    show(objects) {
      const copies = objects.map((object) => {
        const copy = deepClone(object);
        fillDefaults(copy, schemaOf(copy.apiVersion).schema, "stop");
        return copy;
      });
      const settled = (converted: readonly KubeObject[]): KubeObject[] =>
        converted.map((object, i) => {
          const shown = settle(object);
          return deepEqual(shown, objects[i]) ? (objects[i] as KubeObject) : shown;
        });
      const converted = convert(copies, own);
      return converted instanceof Promise ? converted.then(settled) : settled(converted);
    },
    async store(object) {
      const copy = deepClone(object);
      await turns.next();
      const [converted] = await convert([copy], stored);
      const one = converted as KubeObject;
      await turns.run(applySchemaToStoredInSteps(one, schemaOf(one.apiVersion)));
      await turns.next();
      return one;
    },
  };
}

const anything: SchemaApplication = { schema: undefined, prunes: false };
