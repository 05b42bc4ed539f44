import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeJson } from "@coxswain/apimachinery/objects/codec/json";
import { encodeAny } from "@coxswain/apimachinery/objects/codec/json-encode";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { formatGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { TypeDescriptor } from "@coxswain/apimachinery/objects/schema/descriptor";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { arbitraryObject } from "@coxswain/apimachinery/testing/arbitrary-object";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { randomOf } from "@coxswain/apimachinery/testing/random";
import { contextOf, resourcesForTests } from "../testing/kind-rules.ts";
import { beforeCreate } from "./generic/before-create.ts";
import { beforeUpdate } from "./generic/before-update.ts";
import type { ResourceDefinition, ResourceVersionDefinition } from "./generic/resource.ts";
import type { Strategy } from "./generic/strategy.ts";

/**
 * Fuzz test: defaulting, conversion and validation accept or reject random objects of every kind, with nulls in any place, and
 * never throw anything but a StatusError.
 */
const runs = process.env["COX_TEST_LONG"] ? 600 : 40;
const seed = Number(process.env["COX_TEST_SEED"] ?? 20211207);

for (const definition of resourcesForTests) {
  const { group, kind, resource, strategy, statusStrategy } = definition;
  if (!strategy) continue;
  for (const version of definition.versions) {
    const gvk = { group, version: version.version, kind };
    const type = scheme.kind(gvk);
    if (!type) continue;
    test(`any ${kind} of ${formatGroupVersion(gvk)} is taken or refused in words`, () => {
      const objects = objectsOf(type, resource.length);
      for (const [i, object] of objects.entries()) {
        const older = objects[(i + 1) % objects.length] as KubeObject;
        for (const each of [strategy, statusStrategy]) if (each) writes(definition, version, each, object, older);
      }
    });
  }
}

function objectsOf(type: TypeDescriptor, salt: number): KubeObject[] {
  return fc.sample(arbitraryObject(type), { numRuns: runs, seed: seed + salt }).map((object, i) => {
    const json = encodeAny(withNulls(object, randomOf(seed + i)));
    return decodeJson(json, type).object;
  });
}

/** Replaces one value in thirty by null. */
function withNulls(value: unknown, random: () => number): unknown {
  if (Array.isArray(value)) return value.map((item) => (random() < 1 / 30 ? null : withNulls(item, random)));
  if (typeof value !== "object" || value === null) return value;
  const all = Object.entries(value).map(([key, item]) => {
    const keep = key === "apiVersion" || key === "kind" || random() >= 1 / 30;
    return [key, keep ? withNulls(item, random) : null] as const;
  });
  return Object.fromEntries(all);
}

/** Runs beforeCreate and beforeUpdate. @throws AssertionError when they throw anything but a StatusError */
function writes(
  definition: ResourceDefinition,
  version: ResourceVersionDefinition,
  strategy: Strategy,
  sent: KubeObject,
  stored: KubeObject,
): void {
  const inHub = (object: KubeObject): KubeObject => {
    const own = structuredClone(object);
    own.metadata ??= {};
    version.defaults?.(own);
    return version.toHub?.(own) ?? own;
  };
  const ctx = contextOf(definition, version.version);
  const current = inHub(stored);
  delete current.metadata.generation; // generations are set by the server, not by clients
  const attempts = [
    () => atOnce(beforeCreate(definition, strategy, { ...ctx, namespace: inHub(sent).metadata.namespace ?? "" }, inHub(sent))),
    () => {
      const next = inHub(sent);
      next.metadata.namespace = current.metadata.namespace as string;
      atOnce(
        beforeUpdate(
          definition,
          strategy,
          { ...ctx, namespace: current.metadata.namespace ?? "" },
          next,
          structuredClone(current),
        ),
      );
    },
  ];
  for (const attempt of attempts) {
    try {
      attempt();
    } catch (err) {
      assert.ok(err instanceof StatusError, `${(err as Error).stack}\n${encodeAny(sent)}\n${encodeAny(stored)}`);
    }
  }
}
