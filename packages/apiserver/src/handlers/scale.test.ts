/** `/scale` of one object, with a store that keeps what is written. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { badRequest } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject, ManagedFieldsEntry } from "@coxswain/apimachinery/objects/meta/types";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import type { AdmissionAttributes } from "../admission/plugin.ts";
import { LoopbackExchange } from "../loopback/exchange.ts";
import type { ScalePaths } from "../registry/generic/resource.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import type { UpdateOptions } from "../storage/storage.ts";
import { type Call, handlerGates } from "./env.ts";
import { findSubresource } from "./subresource.ts";

const path = "/apis/x.io/v1/namespaces/web/things/a/scale";
const kind = { group: "x.io", version: "v1", kind: "Thing" };
const paths: ScalePaths = {
  ...{ version: "autoscaling/v1", specReplicas: ".spec.replicas", statusReplicas: ".status.replicas", selector: () => "" },
};
/** Of the replicas, as a write without the subresource leaves it. */
const owner = {
  ...{ manager: "maker", operation: "Update", apiVersion: "x.io/v1", time: "2022-01-01T00:00:00Z", fieldsType: "FieldsV1" },
  fieldsV1: { "f:spec": { "f:replicas": {}, "f:size": {} } },
} as ManagedFieldsEntry;
const stored = (managedFields = [owner]): KubeObject =>
  ({
    apiVersion: "x.io/v1",
    kind: "Thing",
    metadata: { name: "a", namespace: "web", uid: "u", resourceVersion: "7", managedFields },
    spec: { replicas: 2 },
  }) as KubeObject;

const bodyOf = (name: string, uid: string | undefined) => ({
  ...{ apiVersion: "autoscaling/v1", kind: "Scale", metadata: { name, namespace: "web", uid }, spec: { replicas: 5 } },
});

/** @param attempts how often the update is begun, all but the last one end with a conflict */
async function scaled(
  method: "GET" | "PUT" | "PATCH",
  {
    scale = paths,
    mutate,
    validate,
    name = "a",
    uid,
    query = "",
    attempts = 1,
    managedFields = [owner],
    tracksFields = true,
  }: {
    scale?: ScalePaths;
    mutate?: (scale: KubeObject) => void;
    validate?: (attributes: AdmissionAttributes) => void;
    name?: string;
    uid?: string;
    query?: string;
    attempts?: number;
    managedFields?: ManagedFieldsEntry[];
    tracksFields?: boolean;
  } = {},
) {
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const exchange = new LoopbackExchange({
    ...{ method, path: `${path}?fieldManager=me${query}`, headers: { "content-type": type } },
    ...(method !== "GET" && { body: JSON.stringify(bodyOf(name, uid)) }),
  });
  const warnings: string[] = [];
  const info = parseRequestInfo(method, `${path}?fieldManager=me${query}`);
  const ctx = Object.assign(new ServerRequest(exchange, info, 0, false), {
    warn: (text: string) => void warnings.push(text),
  });
  let written: KubeObject | undefined;
  let demanded: UpdateOptions["preconditions"];
  const current = stored(managedFields);
  const store = {
    storage: {},
    get: async () => ({ object: () => current }),
    async update(
      _ctx: unknown,
      _name: string,
      change: (current: KubeObject) => Promise<KubeObject>,
      { preconditions }: UpdateOptions,
    ) {
      demanded = preconditions;
      for (let attempt = 0; attempt < attempts; attempt++) written = await change(current);
      return { entry: { object: () => written }, created: false };
    },
  };
  const call = {
    env: {
      services: { turns: new Turns(), now: () => 0, featureEnabled: () => true },
      gates: { ...handlerGates(() => true), tracksFields },
      admission: {
        mutate: async ({ object }: { object: KubeObject }) => mutate?.(object),
        validate: async (attributes: AdmissionAttributes) => validate?.(attributes),
      },
    },
    ctx,
    served: {
      definition: { group: "x.io", resource: "things", scale },
      version: { version: "v1" },
      ...{ kind, hubKind: kind, store, subresourceStores: new Map() },
    },
    ...{ namespace: "web", name: "a", subresource: "scale" },
  } as unknown as Call;
  const verb = method === "GET" ? "get" : method === "PUT" ? "update" : "patch";
  await findSubresource(call.served, "scale")?.run(call, verb, "");
  return { written, warnings, current, demanded };
}

test("a scale that cannot be read from its object is not shown", async () => {
  const checkRead = (): never => {
    throw badRequest("the spec replicas are no number");
  };
  await assert.rejects(scaled("GET", { scale: { ...paths, checkRead } }), /the spec replicas are no number/);
});

test("an update of the scale writes the replicas and who set them", async () => {
  const { written, warnings } = await scaled("PUT");
  assert.partialDeepStrictEqual(written, { spec: { replicas: 5 } });
  hasFields(written?.metadata.managedFields, [
    { manager: "me", operation: "Update", subresource: "scale", fieldsV1: { "f:spec": { "f:replicas": {} } } },
    { manager: "maker", fieldsV1: { "f:spec": { "f:size": {} } } },
  ]);
  assert.deepEqual(warnings, []);
});

test("an update of a scale with a uid is one of that object alone", async () => {
  assert.deepEqual((await scaled("PUT", { uid: "other" })).demanded, { uid: "other" });
  assert.equal((await scaled("PUT")).demanded, undefined);
});

test("managed fields of a scale that admission broke are not stored, and the client is warned", async () => {
  const good = (await scaled("PUT")).written?.metadata.managedFields;
  const broken = [{ manager: "hook", operation: "Bogus", fieldsV1: { "f:spec": 1 } }] as unknown as ManagedFieldsEntry[];
  const { written, warnings } = await scaled("PUT", {
    mutate: ({ metadata }) => {
      metadata.managedFields = broken;
    },
  });
  assert.deepEqual(written?.metadata.managedFields, good);
  assert.match(warnings.join(), /^\.metadata\.managedFields was in an invalid state after admission/);
});

for (const method of ["PUT", "PATCH"] as const) {
  test(`${method} of a scale: validating admission sees what mutating admission made of it, and the scale before`, async () => {
    const seen: AdmissionAttributes[] = [];
    const { written } = await scaled(method, {
      query: "&dryRun=All",
      mutate: (scale) => void Object.assign(scale, { spec: { replicas: 6 } }),
      validate: (attributes) => void seen.push(attributes),
    });
    assert.partialDeepStrictEqual(written, { spec: { replicas: 6 } });
    hasFields(seen, [
      {
        ...{ operation: "UPDATE", subresource: "scale", name: "a", namespace: "web", dryRun: true },
        kind: { group: "autoscaling", version: "v1", kind: "Scale" },
        object: { kind: "Scale", spec: { replicas: 6 } },
        oldObject: { kind: "Scale", spec: { replicas: 2 } },
      },
    ]);
  });

  test(`${method} of a scale that validating admission refuses is refused`, async () => {
    const validate = (): never => {
      throw badRequest("not so many");
    };
    await assert.rejects(scaled(method, { validate }), /not so many/);
  });

  test(`${method} of a scale that is applied again after a conflict is the one that was sent, and leaves the stored object alone`, async () => {
    let attempt = 0;
    const { written, current } = await scaled(method, {
      attempts: 2,
      mutate(scale) {
        if (attempt++ === 0) Object.assign(scale, { spec: { replicas: 9 } });
      },
    });
    assert.partialDeepStrictEqual(written, { spec: { replicas: 5 } });
    assert.deepEqual(current, stored());
  });

  test(`${method} of a scale with another object's name is refused`, async () => {
    await assert.rejects(scaled(method, { name: "b" }), { code: 400 });
  });
}

for (const method of ["PUT", "PATCH"] as const) {
  test(`${method} of a scale whose object has managed fields that cannot be decoded is written, and leaves it none`, async () => {
    const broken = { ...owner, fieldsV1: { "f:spec": 1 } } as unknown as ManagedFieldsEntry;
    const { written } = await scaled(method, { managedFields: [broken] });
    assert.deepEqual(
      [written?.metadata.managedFields, Object.hasOwn(written?.metadata ?? {}, "managedFields")],
      [undefined, false],
    );
    assert.partialDeepStrictEqual(written, { spec: { replicas: 5 } });
  });

  test(`${method} of a scale of a server that tracks no fields leaves the object none`, async () => {
    const { written } = await scaled(method, { tracksFields: false });
    assert.deepEqual(
      [written?.metadata.managedFields, Object.hasOwn(written?.metadata ?? {}, "managedFields")],
      [undefined, false],
    );
    assert.partialDeepStrictEqual(written, { spec: { replicas: 5 } });
  });
}
