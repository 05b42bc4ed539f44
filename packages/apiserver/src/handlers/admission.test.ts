import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import type { AdmissionAttributes, WebhookChange } from "../admission/plugin.ts";
import { writeAdmission } from "./admission.ts";
import type { Call } from "./env.ts";

const change: WebhookChange = { configuration: "sidecars", webhook: "inject.example.com", paths: ["/data/a"] };
const options = { dryRun: false, fieldManager: "", fieldValidation: "Ignore", force: undefined } as const;

/** @param rounds what webhooks change in each mutation */
function aCall(verb: string, rounds: readonly WebhookChange[][]) {
  const [validated, asked]: [AdmissionAttributes[], string[]] = [[], []];
  const questions: object[] = [];
  const warnings: string[] = [];
  let round = 0;
  const call = {
    env: {
      services: {
        turns: new Turns(),
        async authorize(question: { verb: string }) {
          asked.push(question.verb);
          questions.push(question);
          return { decision: "allow" };
        },
      },
      admission: {
        async mutate(attributes: AdmissionAttributes) {
          const changes = rounds[round++] ?? [];
          if (changes.length > 0) attributes.changes = changes;
        },
        async validate(attributes: AdmissionAttributes) {
          validated.push(attributes);
        },
      },
    },
    ctx: {
      info: {
        verb,
        namespace: "web",
        group: "x.io",
        version: "v1",
        resource: "things",
        subresource: "status",
        name: "a",
        path: "/p",
      },
      user: { name: "ann", groups: [] },
      warn: (text: string) => void warnings.push(text),
    },
    served: {
      definition: { group: "", resource: "configmaps" },
      version: { version: "v1" },
      kind: { group: "", version: "v1", kind: "ConfigMap" },
    },
    ...{ namespace: "default", name: "", subresource: "" },
  } as unknown as Call;
  return { call, validated, asked, questions, warnings };
}

const aMap = (name: string) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });

for (const { name, rounds, want } of [
  { name: "the changes of webhooks", rounds: [[change]], want: [change] },
  { name: "no changes when webhooks made none", rounds: [[]], want: undefined },
  { name: "no changes of an attempt that was not written", rounds: [[change], []], want: undefined },
]) {
  test(`validating admission is given ${name}`, async () => {
    const { call, validated } = aCall("update", rounds);
    const admission = writeAdmission(call, options);
    const object = aMap("a");
    for (const _round of rounds) await admission.mutateAdmission(object, object);
    await admission.validateAdmission(object, object);
    assert.deepEqual(validated[0]?.changes, want);
  });
}

test("validating admission is given the name that was generated after mutating admission", async () => {
  const { call, validated } = aCall("create", [[change]]);
  const admission = writeAdmission(call, options);
  const object = aMap("");
  await admission.mutateAdmission(object, undefined);
  object.metadata.name = "a-x7k2p";
  await admission.validateAdmission(object);
  hasFields(validated[0], { operation: "CREATE", name: "a-x7k2p", changes: [change] });
});

for (const { verb, current, want } of [
  { verb: "create", current: undefined, want: [] },
  { verb: "update", current: undefined, want: ["create"] },
  { verb: "patch", current: undefined, want: ["create"] },
  { verb: "update", current: aMap("a"), want: [] },
]) {
  test(`${verb} of ${current ? "an existing" : "a new"} object needs ${want.length > 0 ? "the right to create, too" : "no other right"}`, async () => {
    const { call, asked } = aCall(verb, []);
    await writeAdmission(call, options).validateAdmission(aMap("a"), current);
    assert.deepEqual(asked, want);
  });
}

test("the right to create is asked for what the request names, its subresource included", async () => {
  const { call, questions } = aCall("update", []);
  await writeAdmission(call, options).validateAdmission(aMap("a"), undefined);
  const { info, user } = call.ctx;
  assert.deepEqual(questions, [{ ...info, user, verb: "create", isResourceRequest: true }]);
});

test("owners that mutating admission repeats are stored once, and the client is warned", async () => {
  const { call, warnings } = aCall("create", []);
  const owner = { apiVersion: "v1", kind: "Node", name: "n", uid: "1" };
  const controller = { ...owner, controller: true };
  const blocking = { ...controller, blockOwnerDeletion: true };
  const object = {
    ...aMap("a"),
    metadata: { name: "a", ownerReferences: [owner, controller, blocking, { ...owner }, { ...owner }] },
  };
  await writeAdmission(call, options).mutateAdmission(object, undefined);
  assert.deepEqual(object.metadata.ownerReferences, [owner, controller, blocking]);
  assert.match(warnings.join(), /duplicate entries after mutating admission happens; .*duplicate UID\(s\) observed: 1$/);
});

for (const stage of ["mutateAdmission", "validateAdmission"] as const) {
  test(`others have their turns before and after ${stage}`, async () => {
    const { call } = aCall("create", []);
    const order: string[] = [];
    const turns = {
      async next() {
        order.push("wait");
        await new Promise(setImmediate);
        order.push("turn");
      },
    };
    const run = async (): Promise<void> => void order.push("run");
    Object.assign(call.env, { services: { ...call.env.services, turns }, admission: { mutate: run, validate: run } });
    await writeAdmission(call, options)[stage](aMap("a"), undefined);
    assert.deepEqual(order, ["wait", "turn", "run", "wait", "turn"]);
  });
}

for (const { resource, group, want } of [
  { resource: "namespaces", group: "", want: "a" },
  { resource: "namespaces", group: "x.io", want: "" },
  { resource: "nodes", group: "", want: "" },
]) {
  test(`for admission an object of ${resource}${group && `.${group}`} is in ${want === "" ? "no namespace" : "the namespace of its own name"}`, async () => {
    const { call, validated } = aCall("create", []);
    Object.assign(call.served, { definition: { group, resource } });
    const clusterCall = { ...call, namespace: "" };
    await writeAdmission(clusterCall, options).validateAdmission(aMap("a"));
    assert.equal(validated[0]?.namespace, want);
  });
}
