/** One object with its field managers, for tests of updates and applies. */
import assert from "node:assert/strict";
import { atOnce } from "../../../process/event-loop/steps.ts";
import { coerce, decodeJson } from "../../codec/json.ts";
import { deepClone } from "../../meta/deep-equal.ts";
import type { KubeObject, ManagedFieldsEntry, Unstructured } from "../../meta/types.ts";
import type { TypeDescriptor } from "../../schema/descriptor.ts";
import { scheme } from "../../schema/scheme.ts";
import { applyTypeOf } from "./apply-type.ts";
import { FieldManager } from "./field-manager.ts";
import { paths, readFieldsV1 } from "./field-set.ts";
import { displayPath } from "./path-element.ts";

const kind = { group: "apps", version: "v1", kind: "Deployment" };
const descriptor = scheme.kind(kind) as TypeDescriptor;
const type = applyTypeOf(descriptor);

export const managerOf = (
  subresource: string,
  resetFields: string[],
  apiVersion = "apps/v1",
  known = ["apps/v1", "apps/v1beta1"],
): FieldManager =>
  new FieldManager({
    apiVersion,
    kind: "Deployment",
    type,
    subresource,
    resetFields,
    convert: (object, _from, to) => (known.includes(to) ? { object: { ...object, apiVersion: to }, type } : undefined),
  });

export const main = managerOf("", ["status"]);
export const status = managerOf("status", ["spec", "metadata.labels"]);

/** Storage for one object with a field manager, without the rest of the server. */
export class Stored {
  object: KubeObject | undefined;
  seconds = 1_000_000_000;

  get live(): Unstructured {
    return this.object as Unstructured;
  }

  update(manager: string, change: (next: Unstructured) => void, through = main): this {
    const next = this.object === undefined ? deployment({}) : deepClone(this.live);
    change(next);
    const entries = atOnce(through.update(this.object, next, manager, ++this.seconds * 1000));
    if (entries === undefined) delete next.metadata.managedFields;
    else next.metadata.managedFields = entries;
    return this.#store(next);
  }

  apply(manager: string, config: object, options: { force?: boolean; through?: FieldManager } = {}): this {
    const whole = { apiVersion: "apps/v1", kind: "Deployment", ...config } as Unstructured;
    const before = JSON.stringify([this.object, whole]);
    const through = options.through ?? main;
    const applied = atOnce(through.apply(this.object, whole, manager, options.force ?? false, ++this.seconds * 1000));
    assert.equal(JSON.stringify([this.object, whole]), before, "apply changed its arguments");
    return this.#store(coerce(deepClone(applied), descriptor));
  }

  #store(next: KubeObject): this {
    this.object = decodeJson(JSON.stringify(next), kind).object;
    return this;
  }

  entries(): Record<string, string[]> {
    return Object.fromEntries((this.live.metadata.managedFields ?? []).map((entry) => [nameOf(entry), pathsOf(entry)]));
  }

  entry(name: string): ManagedFieldsEntry {
    const found = this.live.metadata.managedFields?.find((entry) => nameOf(entry) === name);
    assert.ok(found, `no entry ${name}`);
    return found;
  }
}

export const nameOf = ({ manager, operation, subresource }: ManagedFieldsEntry): string =>
  `${manager} ${operation}${subresource === undefined ? "" : ` ${subresource}`}`;
export const pathsOf = (entry: ManagedFieldsEntry): string[] => paths(readFieldsV1(entry.fieldsV1)).map(displayPath);

// biome-ignore lint/suspicious/noExplicitAny: tests write into objects of any shape.
export type Loose = any;
export const deployment = (spec: object): Loose =>
  decodeJson(JSON.stringify({ metadata: { name: "web", namespace: "default" }, spec }), kind).object;

export const template = (image: string, more: object = {}) => ({
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: "web", image, ...more }] },
});
