/** What writes may change, by the strategies that kinds share and those that do more than these. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { CustomResourceDefinition } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import type { Pod, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { strategiesOf } from "../testing/kind-rules.ts";
import { errorsOf, prepareUpdate } from "../testing/run-strategy.ts";
import { customResourceDefinitionStrategy } from "./apiextensions/customresourcedefinitions/strategy.ts";
import {
  certificateApprovalStrategy,
  certificateSigningRequestStatusStrategy,
} from "./certificates/certificatesigningrequests/strategy.ts";
import { newPodStatusStrategy, newPodStrategy } from "./core/pods/strategy.ts";
import { dropForeignFields, normalizeClusterIps } from "./core/services/fields.ts";
import type { StrategyContext } from "./generic/strategy.ts";
import { specTemplate, statusStrategyOf, strategyOf } from "./strategies.ts";

const { strategy: certificateSigningRequestStrategy } = strategiesOf<CertificateSigningRequest>(
  "certificatesigningrequests.certificates.k8s.io",
);

const nowText = "2026-01-02T03:04:05Z";
const contextWith = (...gates: string[]): StrategyContext =>
  ({
    user: { name: "ann", uid: "7", groups: ["a", "b"], extra: { k: ["v", "w"] } },
    now: () => Date.parse(nowText),
    featureEnabled: (gate: string) => gates.includes(gate),
  }) as unknown as StrategyContext;
const ctx = contextWith();
const anObject = (fields: object, metadata: object = {}): Unstructured => ({ metadata: { name: "a", ...metadata }, ...fields });

describe("the strategy that most kinds share", () => {
  const options = { namespaced: true, status: true, generation: true, template: specTemplate };
  const strategy = strategyOf<Unstructured>(options as never);

  test("begins with generation 1 and an empty status, which a kind without a subresource keeps", () => {
    for (const [kind, want] of [
      [strategy, {}],
      [strategyOf<Unstructured>({ namespaced: true, generation: true }), { n: 1 }],
    ] as const) {
      const next = anObject({ status: { n: 1 } }, { generation: 9 });
      kind.prepareForCreate?.(next, ctx);
      assert.deepEqual([next["status"], next.metadata.generation], [want, 1]);
    }
  });

  for (const { name, current, next, want } of [
    { name: "of the spec raises the generation", current: { spec: { a: 1 } }, next: { spec: { a: 2 } }, want: 5 },
    { name: "of an absent list to an empty one keeps the generation", current: { spec: {} }, next: { spec: { a: [] } }, want: 4 },
    {
      name: "of the status keeps status and generation",
      current: { spec: {}, status: { n: 1 } },
      next: { spec: {}, status: { n: 2 } },
      want: 4,
    },
  ]) {
    test(`a change ${name}`, () => {
      const changed = anObject(next, { generation: 77 });
      const stored = anObject(current, { generation: 4 });
      prepareUpdate(strategy, changed, stored, ctx);
      assert.equal(changed.metadata.generation, want);
      assert.deepEqual(changed["status"], stored["status"]);
    });
  }

  for (const [how, prepareForUpdate] of [
    ["at once", (next: Unstructured) => void Object.assign(next, { spec: { a: 2 } })],
    [
      "in steps",
      function* (next: Unstructured) {
        yield;
        Object.assign(next, { spec: { a: 2 } });
      },
    ],
  ] as const) {
    test(`what a kind prepares itself ${how} counts as a change of the spec`, () => {
      const own = strategyOf<Unstructured>({ namespaced: true, generation: true, prepareForUpdate });
      const next = anObject({ spec: { a: 1 } });
      prepareUpdate(own, next, anObject({ spec: { a: 1 } }, { generation: 4 }), ctx);
      assert.equal(next.metadata.generation, 5);
    });
  }

  test("an update is validated as a create, with the stored object, and then as an update", () => {
    const seen: unknown[] = [];
    const errors = errorsOf(
      strategyOf<Unstructured>({
        namespaced: true,
        validate(_next, _ctx, current) {
          seen.push(current);
          return [{ field: "first" }] as never;
        },
        validateUpdate: () => [{ field: "second" }] as never,
      }),
      anObject({}),
      anObject({ old: 1 }),
      ctx,
    );
    assert.deepEqual([errors.map(({ field }) => field), seen], [["first", "second"], [anObject({ old: 1 })]]);
  });

  test("a template is warned about when it is created and when its generation changes", () => {
    const old = { "kubernetes.io/arch": "a", "beta.kubernetes.io/arch": "a" };
    const made = (generation: number) =>
      anObject({ spec: { template: { spec: { containers: [], nodeSelector: old } } } }, { generation });
    const warned = (warnings: string[] | undefined): number => warnings?.length ?? 0;
    assert.equal(warned(strategy.warningsOnCreate?.(made(1), ctx)), 1);
    assert.equal(warned(strategy.warningsOnUpdate?.(made(2), made(1), ctx)), 1);
    assert.equal(warned(strategy.warningsOnUpdate?.(made(1), made(1), ctx)), 0);
  });
});

describe("the strategy of a status", () => {
  for (const { name, keepLabels, want } of [
    { name: "takes status and labels", keepLabels: false, want: { c: "d" } },
    { name: "of a workload keeps the labels", keepLabels: true, want: { a: "b" } },
  ]) {
    test(`${name}, and nothing else`, () => {
      const strategy = statusStrategyOf<Unstructured>({ namespaced: true, keepLabels });
      const stored = anObject(
        { apiVersion: "v1", kind: "A", spec: { a: 1 }, data: 1, status: { n: 1 } },
        { generation: 4, labels: { a: "b" } },
      );
      const next = anObject(
        { apiVersion: "v2", kind: "A", spec: { a: 2 }, more: 1, status: { n: 2 } },
        { generation: 5, labels: { c: "d" } },
      );
      prepareUpdate(strategy, next, stored, ctx);
      assert.deepEqual(
        next,
        anObject({ apiVersion: "v2", kind: "A", spec: { a: 1 }, status: { n: 2 }, data: 1 }, { generation: 4, labels: want }),
      );
    });
  }

  test("adds no labels and no generation to an object without them", () => {
    const next = anObject({ status: {} }, { generation: 5, labels: { c: "d" } });
    prepareUpdate(statusStrategyOf<Unstructured>({ namespaced: true, keepLabels: true }), next, anObject({}), ctx);
    assert.deepEqual(next, anObject({ status: {} }));
  });
});

describe("pods", () => {
  const config = { allowPrivileged: false };
  const aPod = (spec: object, status: object = {}, metadata: object = {}): Pod =>
    ({ metadata: { name: "p", ...metadata }, spec: { containers: [], ...spec }, status }) as Pod;
  const running = { nodeName: "n" };

  for (const { name, pod, requested, want } of [
    { name: "as long as the request says", pod: aPod({ ...running, terminationGracePeriodSeconds: 30 }), requested: 5, want: 5 },
    {
      name: "not at all when the request says 0",
      pod: aPod({ ...running, terminationGracePeriodSeconds: 30 }),
      requested: 0,
      want: 0,
    },
    {
      name: "as long as its spec says",
      pod: aPod({ ...running, terminationGracePeriodSeconds: 30 }),
      requested: undefined,
      want: 30,
    },
    {
      name: "one second instead of a negative time",
      pod: aPod({ ...running, terminationGracePeriodSeconds: -1 }),
      requested: undefined,
      want: 1,
    },
    { name: "not at all before it has a node", pod: aPod({ terminationGracePeriodSeconds: 30 }), requested: 5, want: 0 },
    { name: "not at all when it has succeeded", pod: aPod(running, { phase: "Succeeded" }), requested: 5, want: 0 },
    { name: "not at all when it has failed", pod: aPod(running, { phase: "Failed" }), requested: 5, want: 0 },
  ]) {
    test(`a deleted pod may run on ${name}`, () => {
      assert.equal(newPodStrategy(config).gracePeriod?.(pod, requested), want);
    });
  }

  test("a new pod is pending and has the class of its requests, whatever its status says", () => {
    const pod = aPod(
      { containers: [{ name: "c", resources: { requests: { cpu: "1" } } }] },
      { phase: "Running", qosClass: "Guaranteed" },
    );
    newPodStrategy(config).prepareForCreate?.(pod, ctx);
    assert.deepEqual(pod.status, { phase: "Pending", qosClass: "Burstable" });
  });

  for (const { name, stored, sent, want } of [
    {
      name: "takes no owner, deletion or spec",
      stored: {},
      sent: { ownerReferences: [{}], deletionTimestamp: nowText },
      want: { name: "p" },
    },
    {
      name: "removes no owner or deletion",
      stored: { ownerReferences: [{ uid: "u" }], deletionTimestamp: nowText },
      sent: { labels: { a: "b" } },
      want: { name: "p", ownerReferences: [{ uid: "u" }], deletionTimestamp: nowText, labels: { a: "b" } },
    },
  ]) {
    test(`a kubelet's status ${name}`, () => {
      const next = aPod({ nodeName: "other" }, { phase: "Running" }, sent);
      prepareUpdate(newPodStatusStrategy(config), next, aPod(running, { qosClass: "Burstable" }, stored), ctx);
      assert.deepEqual(
        [next.metadata, next.spec.nodeName, next.status],
        [want, "n", { phase: "Running", qosClass: "Burstable" }],
      );
    });
  }

  test("an applied status owns neither spec nor the owners and the deletion of a pod", () => {
    assert.deepEqual(newPodStatusStrategy(config).resetFields, [
      "spec",
      "metadata.deletionTimestamp",
      "metadata.ownerReferences",
    ]);
  });

  test("a kubelet may say the class of a pod", () => {
    const next = aPod({}, { phase: "Running", qosClass: "Guaranteed" });
    prepareUpdate(newPodStatusStrategy(config), next, aPod(running, { qosClass: "Burstable" }), ctx);
    assert.deepEqual(next.status, { phase: "Running", qosClass: "Guaranteed" });
  });

  test("an update of a pod leaves its status", () => {
    const next = aPod(running, { phase: "Failed", podIP: "10.0.0.1" });
    prepareUpdate(newPodStrategy(config), next, aPod(running, { phase: "Running" }), ctx);
    assert.deepEqual(next.status, { phase: "Running" });
  });

  test("a new pod's profile of seccomp is said in both ways", () => {
    const pod = aPod({ securityContext: { seccompProfile: { type: "RuntimeDefault" } } });
    newPodStrategy(config).prepareForCreate?.(pod, ctx);
    assert.deepEqual(pod.metadata.annotations, { "seccomp.security.alpha.kubernetes.io/pod": "runtime/default" });
  });

  test("the class of a pod that was stored without one is that of its requests", () => {
    const next = aPod({}, undefined);
    prepareUpdate(newPodStatusStrategy(config), next, aPod(running, undefined), ctx);
    assert.equal(next.status?.qosClass, "BestEffort");
  });
});

describe("certificate signing requests", () => {
  const aRequest = (spec: object, status: object = {}): CertificateSigningRequest =>
    ({ metadata: { name: "r" }, spec, status }) as CertificateSigningRequest;
  const approved = { type: "Approved", status: "True", reason: "a", lastUpdateTime: "1", lastTransitionTime: "2" };

  test("a new one names its author, whatever it says, and has no status", () => {
    for (const gates of [[], ["CSRDuration"]]) {
      const next = aRequest(
        { username: "eve", uid: "8", groups: ["system:masters"], extra: { x: ["y"] }, expirationSeconds: 600 },
        { certificate: "c" },
      );
      certificateSigningRequestStrategy.prepareForCreate?.(next, contextWith(...gates));
      const author = { username: "ann", uid: "7", groups: ["a", "b"], extra: { k: ["v", "w"] } };
      assert.deepEqual(next, aRequest({ ...author, ...(gates.length > 0 && { expirationSeconds: 600 }) }));
    }
  });

  test("an anonymous author leaves none of what the request claims", () => {
    const next = aRequest({ username: "eve", uid: "8", groups: ["system:masters"], extra: { x: ["y"] } });
    const nobody = { ...contextWith(), user: { name: "anonymous", groups: [] } } as unknown as StrategyContext;
    certificateSigningRequestStrategy.prepareForCreate?.(next, nobody);
    assert.deepEqual(next.spec, { username: "anonymous" });
  });

  test("an update changes neither spec nor status, an approval the conditions alone", () => {
    const stored = aRequest({ signerName: "s" }, { certificate: "c", conditions: [approved] });
    const sent = () =>
      aRequest({ signerName: "t" }, { certificate: "d", conditions: [approved, { type: "Denied", status: "True" }] });
    const [updated, decided, emptied] = [sent(), sent(), aRequest({}, {})];
    prepareUpdate(certificateSigningRequestStrategy, updated, stored, ctx);
    assert.deepEqual(updated, stored);
    prepareUpdate(certificateApprovalStrategy, decided, stored, ctx);
    const denied = { type: "Denied", status: "True", lastUpdateTime: nowText, lastTransitionTime: nowText };
    assert.deepEqual(decided, aRequest({ signerName: "s" }, { certificate: "c", conditions: [approved, denied] }));
    prepareUpdate(certificateApprovalStrategy, emptied, stored, ctx);
    assert.deepEqual(emptied.status, { certificate: "c" });
  });

  test("a signer's status keeps the decisions as they were stored, in its own order, and the time of a condition that did not change", () => {
    const failed = { type: "Failed", status: "True", lastUpdateTime: "3", lastTransitionTime: "4" };
    const stored = aRequest({ signerName: "s" }, { conditions: [approved, failed] });
    const next = aRequest(
      {},
      {
        certificate: "c",
        conditions: [
          { type: "Failed", status: "True" },
          { type: "Approved", status: "True", reason: "b" },
        ],
      },
    );
    prepareUpdate(certificateSigningRequestStatusStrategy, next, stored, ctx);
    const again = { type: "Failed", status: "True", lastUpdateTime: nowText, lastTransitionTime: "4" };
    assert.deepEqual(next, aRequest({ signerName: "s" }, { certificate: "c", conditions: [again, approved] }));
  });
});

describe("custom resource definitions", () => {
  const rules = { "x-kubernetes-validations": [{ rule: "true" }] };
  const version = (name: string, storage: boolean, schema: object = {}): object => ({
    name,
    storage,
    schema: { openAPIV3Schema: schema },
  });
  const aDefinition = (versions: object[], status: object = {}, metadata: object = {}): CustomResourceDefinition =>
    ({ metadata: { name: "d", ...metadata }, spec: { versions }, status }) as unknown as CustomResourceDefinition;
  const strategy = customResourceDefinitionStrategy;

  test("versions that objects were stored in are remembered in the order in which they became that", () => {
    const next = aDefinition([version("v1", false), version("v2", true)], { storedVersions: ["v9"] });
    strategy.prepareForCreate?.(next, ctx);
    assert.deepEqual(next.status?.storedVersions, ["v2"]);
    const back = aDefinition([version("v1", true), version("v2", false)]);
    prepareUpdate(strategy, back, next, ctx);
    assert.deepEqual(back.status?.storedVersions, ["v2", "v1"]);
    const again = aDefinition([version("v1", false), version("v2", true)]);
    prepareUpdate(strategy, again, back, ctx);
    assert.deepEqual(again.status?.storedVersions, ["v2", "v1"]);
  });

  for (const { name, gates = [], stored, want } of [
    { name: "are dropped without the gate, wherever they stand", want: false },
    { name: "stay with the gate", gates: ["CustomResourceValidationExpressions"], want: true },
    { name: "are dropped when the stored definition has none", stored: aDefinition([version("v1", true)]), want: false },
    {
      name: "stay when the stored definition has some in a second version",
      stored: aDefinition([version("v1", true), version("v2", false, { items: rules })]),
      want: true,
    },
  ]) {
    test(`validation rules ${name}`, () => {
      const schema = { ...rules, properties: { a: { items: { ...rules } }, b: { additionalProperties: { ...rules } } } };
      const next = aDefinition([version("v0", false), version("v1", true, structuredClone(schema))]);
      if (stored === undefined) strategy.prepareForCreate?.(next, contextWith(...gates));
      else prepareUpdate(strategy, next, stored, contextWith(...gates));
      assert.equal(JSON.stringify(next.spec).split("x-kubernetes-validations").length - 1, want ? 3 : 0);
    });
  }

  test("a deletion marks a definition once, keeps its finalizers and says that it is pending", () => {
    const stored = aDefinition(
      [],
      { storedVersions: ["v1"], conditions: [{ type: "Established", status: "True" }] },
      { finalizers: ["own/x"] },
    );
    const marked = strategy.beginDeletion?.(stored, ctx) as CustomResourceDefinition;
    assert.deepEqual(marked.metadata.finalizers, ["own/x", "customresourcecleanup.apiextensions.k8s.io"]);
    assert.equal(marked.metadata.deletionTimestamp, nowText);
    assert.deepEqual(
      [marked.status?.storedVersions, marked.status?.conditions?.map(({ type, status }) => [type, status])],
      [
        ["v1"],
        [
          ["Established", "True"],
          ["Terminating", "True"],
        ],
      ],
    );
    assert.equal(strategy.beginDeletion?.(marked, ctx), undefined);
    assert.deepEqual(stored.metadata.finalizers, ["own/x"]);
  });
});

describe("templates, controllers, namespaces and quotas", () => {
  const prepared = (resource: string, next: object, current: object): Unstructured => {
    const object = anObject(next, { generation: 77 });
    prepareUpdate(strategiesOf<Unstructured>(resource).strategy, object, anObject(current, { generation: 4 }), ctx);
    return object;
  };

  test("a template counts its changes", () => {
    const made = anObject({ template: {} }, { generation: 9 });
    strategiesOf<Unstructured>("podtemplates").strategy.prepareForCreate?.(made, ctx);
    assert.equal(made.metadata.generation, 1);
    const of = (image: string) => ({ template: { spec: { containers: [{ name: "c", image }] } } });
    assert.equal(prepared("podtemplates", of("i"), of("i")).metadata.generation, 4);
    assert.equal(prepared("podtemplates", of("j"), of("i")).metadata.generation, 5);
    const labelled = { template: { ...of("i").template, metadata: { labels: { a: "b" } } } };
    assert.equal(prepared("podtemplates", labelled, of("i")).metadata.generation, 5);
  });

  test("a CSI driver counts the changes of what may change of it", () => {
    const tokens = [{ audience: "a" }];
    for (const [next, current, want] of [
      [{ tokenRequests: tokens }, { tokenRequests: tokens }, 4],
      [{ tokenRequests: tokens }, {}, 5],
      [{ requiresRepublish: true }, { requiresRepublish: false }, 5],
      [{ podInfoOnMount: true }, { podInfoOnMount: false }, 4],
    ] as const)
      assert.equal(prepared("csidrivers.storage.k8s.io", { spec: next }, { spec: current }).metadata.generation, want);
  });

  test("a new attachment is not attached, whatever its status says", () => {
    const made = anObject({ spec: {}, status: { attached: true } });
    strategiesOf<Unstructured>("volumeattachments.storage.k8s.io").strategy.prepareForCreate?.(made, ctx);
    assert.deepEqual(made["status"], { attached: false });
  });

  test("a new controller has no pods, whatever its status says, and is deleted without its pods by default", () => {
    const made = anObject({ spec: {}, status: { replicas: 3, readyReplicas: 3 } });
    const { strategy } = strategiesOf<Unstructured>("replicationcontrollers");
    strategy.prepareForCreate?.(made, ctx);
    assert.deepEqual([made["status"], made.metadata.generation], [{ replicas: 0 }, 1]);
    const collected = ["replicationcontrollers", "pods", "namespaces", "events"].map(
      (resource) => strategiesOf<Unstructured>(resource).strategy.defaultGarbageCollection,
    );
    assert.deepEqual(collected, ["Orphan", "Background", "Background", "Unsupported"]);
  });

  for (const { given, want } of [
    { given: undefined, want: ["kubernetes"] },
    { given: ["kubernetes"], want: ["kubernetes"] },
    { given: ["example.com/own", "kubernetes"], want: ["example.com/own", "kubernetes"] },
    { given: ["example.com/own"], want: ["example.com/own", "kubernetes"] },
  ]) {
    test(`a new namespace with the finalizers ${given} has ${want}, and is active`, () => {
      const made = anObject({ spec: { ...(given && { finalizers: given }) }, status: { phase: "Terminating" } });
      strategiesOf<Unstructured>("namespaces").strategy.prepareForCreate?.(made, ctx);
      assert.deepEqual([made["spec"], made["status"]], [{ finalizers: want }, { phase: "Active" }]);
      assert.deepEqual(made.metadata.labels, { "kubernetes.io/metadata.name": "a" });
    });
  }

  test("a new limit range without a name gets one, and keeps the name that it has", () => {
    const { strategy } = strategiesOf<Unstructured>("limitranges");
    const names = [undefined, "", "own"].map((name) => {
      const made = { metadata: { ...(name !== undefined && { name }) } } as Unstructured;
      strategy.prepareForCreate?.(made, ctx);
      return made.metadata.name ?? "";
    });
    assert.match(names[0] ?? "", /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.notEqual(names[0], names[1]);
    assert.deepEqual([names[1]?.length, names[2]], [36, "own"]);
  });

  test("a namespace keeps the label of its name, among others, whatever a client writes", () => {
    const { strategy } = strategiesOf<Unstructured>("namespaces");
    for (const labels of [undefined, {}, { b: "c" }, { "kubernetes.io/metadata.name": "other", b: "c" }]) {
      const next = anObject({}, labels && { labels });
      strategy.canonicalize?.(next);
      assert.deepEqual(next.metadata.labels, { ...labels, "kubernetes.io/metadata.name": "a" });
    }
  });

  for (const resource of ["resourcequotas", "persistentvolumes", "persistentvolumeclaims", "services"]) {
    test(`${resource}: a create and an update leave the status to the server, an update of the status the spec`, () => {
      const service = resource === "services" ? { type: "ExternalName" } : {};
      const { strategy, statusStrategy } = strategiesOf<Unstructured>(resource);
      const made = anObject({ spec: { ...service }, status: { own: 1 } });
      strategy.prepareForCreate?.(made, ctx);
      const fresh = { resourcequotas: {}, services: { loadBalancer: {} } }[resource] ?? { phase: "Pending" };
      assert.deepEqual(made["status"], fresh);
      const stored = anObject({ spec: { ...service, a: 1 }, status: { own: 2 } });
      const next = anObject({ spec: { ...service, a: 3 }, status: { own: 3 } });
      prepareUpdate(strategy, next, stored, ctx);
      assert.deepEqual([next["spec"], next["status"]], [{ ...service, a: 3 }, { own: 2 }]);
      const reported = anObject({ spec: { ...service, a: 3 }, status: { own: 3 } });
      prepareUpdate(statusStrategy, reported, stored, ctx);
      assert.deepEqual([reported["spec"], reported["status"]], [{ ...service, a: 1 }, { own: 3 }]);
    });
  }
});

describe("services", () => {
  const aService = (spec: object): Service => ({ metadata: { name: "s" }, spec }) as Service;

  for (const { name, next, current, want } of [
    { name: "a new service of an older client", next: { clusterIP: "1" }, current: undefined, want: ["1"] },
    { name: "a new service with both", next: { clusterIP: "1", clusterIPs: ["2"] }, current: undefined, want: ["2"] },
    {
      name: "a service whose older client clears the address",
      next: { clusterIPs: ["1"] },
      current: { clusterIP: "1", clusterIPs: ["1"] },
      want: undefined,
    },
    {
      name: "a service whose older client changes the address",
      next: { clusterIP: "2", clusterIPs: ["1"] },
      current: { clusterIP: "1", clusterIPs: ["1"] },
      want: ["2"],
    },
    {
      name: "a service whose client changes both",
      next: { clusterIP: "2", clusterIPs: ["2", "3"] },
      current: { clusterIP: "1", clusterIPs: ["1"] },
      want: ["2", "3"],
    },
    {
      name: "a service whose client changes neither",
      next: { clusterIP: "1", clusterIPs: ["1", "3"] },
      current: { clusterIP: "1", clusterIPs: ["1", "3"] },
      want: ["1", "3"],
    },
  ]) {
    test(`the addresses of ${name} are ${want?.join() ?? "removed"}`, () => {
      const service = aService(next);
      normalizeClusterIps(service, current && aService(current));
      assert.deepEqual(service.spec.clusterIPs, want);
    });
  }

  test("an update keeps what is allocated, drops what its type has not, and derives the list of addresses", () => {
    const { strategy } = strategiesOf<Service>("services");
    const addresses = { clusterIP: "10.96.0.1", clusterIPs: ["10.96.0.1"], ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" };
    const port = { port: 80, protocol: "TCP" };
    const stored = aService({ type: "NodePort", ...addresses, ports: [{ ...port, nodePort: 30_000 }] });
    const kept = aService({ type: "NodePort", ports: [{ ...port }] });
    prepareUpdate(strategy, kept, stored, ctx);
    assert.deepEqual(kept.spec, { type: "NodePort", ...addresses, ports: [{ ...port, nodePort: 30_000 }] });
    const internal = aService({ type: "ClusterIP", ...addresses, ports: [{ ...port, nodePort: 30_000 }] });
    prepareUpdate(strategy, internal, stored, ctx);
    assert.deepEqual(internal.spec, { type: "ClusterIP", ...addresses, ports: [port] });
    const moved = aService({ ...stored.spec, clusterIP: "10.96.0.2" });
    prepareUpdate(strategy, moved, stored, ctx);
    assert.deepEqual(moved.spec.clusterIPs, ["10.96.0.2"]);
  });

  const balancer = {
    ...{ type: "LoadBalancer", clusterIP: "1", clusterIPs: ["1"], ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" },
    ...{ externalTrafficPolicy: "Local", healthCheckNodePort: 9, allocateLoadBalancerNodePorts: true, loadBalancerClass: "a/b" },
    ports: [
      { port: 80, nodePort: 7 },
      { port: 81, nodePort: 8 },
    ],
  };
  const addresses = { clusterIP: "1", clusterIPs: ["1"], ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" };
  const ports = [{ port: 80 }, { port: 81 }];

  for (const { name, change, want } of [
    {
      name: "to ClusterIP loses all that is a load balancer's",
      change: { type: "ClusterIP" },
      want: { type: "ClusterIP", ...addresses, ports },
    },
    {
      name: "to NodePort keeps the ports",
      change: { type: "NodePort" },
      want: { type: "NodePort", ...addresses, externalTrafficPolicy: "Local", ports: balancer.ports },
    },
    { name: "to ExternalName loses the addresses", change: { type: "ExternalName" }, want: { type: "ExternalName", ports } },
    {
      name: "to ExternalName keeps what is changed with it",
      change: { type: "ExternalName", clusterIP: "2", ipFamilies: ["IPv6"], ipFamilyPolicy: "PreferDualStack" },
      want: {
        type: "ExternalName",
        clusterIP: "2",
        clusterIPs: ["1"],
        ipFamilies: ["IPv6"],
        ipFamilyPolicy: "PreferDualStack",
        ports,
      },
    },
    {
      name: "to ClusterIP keeps all node ports when one of them is new, and what else is changed with it",
      change: {
        type: "ClusterIP",
        ports: [
          { port: 80, nodePort: 7 },
          { port: 81, nodePort: 6 },
        ],
        externalTrafficPolicy: "Cluster",
        healthCheckNodePort: 5,
        loadBalancerClass: "c/d",
      },
      want: {
        type: "ClusterIP",
        ...addresses,
        ports: [
          { port: 80, nodePort: 7 },
          { port: 81, nodePort: 6 },
        ],
        externalTrafficPolicy: "Cluster",
        healthCheckNodePort: 5,
        loadBalancerClass: "c/d",
      },
    },
    { name: "to no other type keeps all", change: {}, want: balancer },
    {
      name: "of the policy loses the port for health checks",
      change: { externalTrafficPolicy: "Cluster" },
      want: { ...balancer, externalTrafficPolicy: "Cluster", healthCheckNodePort: undefined },
    },
  ]) {
    test(`a change of a load balancer ${name}`, () => {
      const next = aService(structuredClone({ ...balancer, ...change }));
      dropForeignFields(next, aService(structuredClone(balancer)));
      assert.deepEqual(JSON.parse(JSON.stringify(next.spec)), JSON.parse(JSON.stringify(want)));
    });
  }
});
