/**
 * From one version of a custom resource to another: the apiVersion changes alone, or a webhook is asked.
 * Source: apiextensions-apiserver pkg/apiserver/conversion/converter.go
 */
import { deepClone, deepEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { formatGroupVersion, parseGroupVersion } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { applySchemaToStored, fillDefaults, type SchemaApplication } from "./schema-application.ts";
import type { Translation } from "./version-storage.ts";

/** Brings copies that it may take over to another version; those that are in it already stay. */
export type Convert = (objects: readonly KubeObject[], apiVersion: string) => KubeObject[] | Promise<KubeObject[]>;

/** The strategy None. */
export const renameOnly: Convert = (objects, apiVersion) => {
  for (const object of objects) object.apiVersion = apiVersion;
  return [...objects];
};

export interface TranslationOptions {
  readonly group: string;
  /** By version. */
  readonly schemas: ReadonlyMap<string, SchemaApplication>;
  readonly version: string;
  readonly storageVersion: string;
  readonly convert: Convert;
}

export function newTranslation({ group, schemas, version, storageVersion, convert }: TranslationOptions): Translation {
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
    store(object) {
      const converted = convert([deepClone(object)], stored);
      return converted instanceof Promise
        ? converted.then(([one]) => settle(one as KubeObject))
        : settle(converted[0] as KubeObject);
    },
  };
}

const anything: SchemaApplication = { schema: undefined, prunes: false };
