/**
 * Descriptions of types and fields for `kubectl explain`, from tables by topic: Go name of the type → field → text. In a
 * type's row, `""` describes the type itself and `"="` names another type with the same fields. The row `"*"` has fields
 * common to all types of the table, `common.json` those common to all types. Loaded only to create OpenAPI documents.
 */
import type { FieldDescriptor, TypeDescriptor } from "../descriptor.ts";
import access from "./descriptions/access.json" with { type: "json" };
import autoscaling from "./descriptions/autoscaling.json" with { type: "json" };
import common from "./descriptions/common.json" with { type: "json" };
import containers from "./descriptions/containers.json" with { type: "json" };
import core from "./descriptions/core.json" with { type: "json" };
import events from "./descriptions/events.json" with { type: "json" };
import extension from "./descriptions/extension.json" with { type: "json" };
import meta from "./descriptions/meta.json" with { type: "json" };
import networking from "./descriptions/networking.json" with { type: "json" };
import pods from "./descriptions/pods.json" with { type: "json" };
import storage from "./descriptions/storage.json" with { type: "json" };
import volumes from "./descriptions/volumes.json" with { type: "json" };
import workloads from "./descriptions/workloads.json" with { type: "json" };

type Texts = Readonly<Record<string, string>>;
type Table = Readonly<Record<string, Texts>>;

const tables: readonly Table[] = [
  pods,
  containers,
  volumes,
  core,
  workloads,
  autoscaling,
  networking,
  access,
  storage,
  extension,
  meta,
];
/** Table order for groups with types whose names occur in other groups, too. */
const preferred: Readonly<Record<string, readonly Table[]>> = {
  "events.k8s.io": [events, ...tables],
  "storage.k8s.io": [storage, ...tables],
};

/** @returns `""` when there is none. */
export function typeDescription(type: TypeDescriptor): string {
  const text = find(type.group, type.goName, "");
  if (text !== undefined) return text;
  return type.goName.endsWith("List") ? `A list of ${type.goName.slice(0, -"List".length)} objects.` : "";
}

/** @returns `""` when there is none. */
export function fieldDescription(type: TypeDescriptor, field: FieldDescriptor): string {
  return (
    find(type.group, type.goName, field.name) ??
    find(type.group, field.declaredBy, field.name) ??
    own<string>(common["*"], field.name) ??
    ""
  );
}

function find(group: string, goName: string, field: string): string | undefined {
  for (const table of own(preferred, group) ?? tables) {
    const texts = own(table, goName);
    if (texts === undefined) continue;
    const like = field === "" ? undefined : texts["="];
    const text = own(texts, field) ?? (like && find(group, like, field)) ?? own(table["*"] ?? {}, field);
    if (text !== undefined) return text;
  }
  return undefined;
}

function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
