import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { condition, conditionOfType, later, ownedBy, stored, testExplanations } from "../testing.ts";

const recent = "2026-03-01T11:59:55Z";

const aService = (spec: object, status: object = {}): Unstructured =>
  stored("v1", "Service", "web", { spec: { ports: [{ port: 80 }], ...spec }, status });
const webPod = (name: string, labels: object, isReady = true, spec: object = {}): Unstructured =>
  stored("v1", "Pod", name, {
    metadata: { labels },
    spec: { nodeName: "n1", containers: [{ name: "c", ports: [{ name: "http", containerPort: 1 }] }], ...spec },
    status: { phase: "Running", ...conditionOfType("Ready", isReady ? "True" : "False", "X") },
  });
const endpoints = (...addresses: string[]): Unstructured =>
  stored("v1", "Endpoints", "web", {
    subsets: [{ notReadyAddresses: [{ ip: "9" }] }, { addresses: addresses.map((ip) => ({ ip })) }],
  });
const web = { app: "web" };
const selecting = { selector: web };
const service = ["service/web"];
const node = stored("v1", "Node", "n1", { spec: {}, status: conditionOfType("Ready", "True", "X") });

testExplanations([
  { name: "a service with an endpoint is healthy", objects: [aService(selecting), webPod("p", web), endpoints("1")], chain: [] },
  {
    name: "a service without a selector and endpoints",
    objects: [aService({}), endpoints()],
    chain: service,
    reason: "NoSelector",
  },
  { name: "a service of another name needs no selector", objects: [aService({ type: "ExternalName" })], chain: [] },
  {
    name: "a service without a selector whose endpoints may not be read is healthy",
    objects: [aService({})],
    hidden: ["endpoints"],
    chain: [],
  },
  {
    name: "a service whose selector matches none names the pod with another value of one label",
    objects: [aService({ selector: { ...web, tier: "a" } }), webPod("p", { tier: "b" }), webPod("q", { ...web, tier: "b" })],
    chain: service,
    reason: "SelectorMatchesNone",
    says: /app=web,tier=a matches no pod of the namespace; pod q has tier=b$/,
  },
  {
    name: "a service whose selector matches none names the pod that lacks one label",
    objects: [aService({ selector: { ...web, tier: "a" } }), webPod("q", web)],
    chain: service,
    says: /; pod q has no label tier$/,
  },
  {
    name: "a service whose only label no pod has names none",
    objects: [aService(selecting), webPod("q", {})],
    chain: service,
    says: /matches no pod of the namespace$/,
  },
  {
    name: "the second port's name that no pod has",
    objects: [
      aService({
        ...selecting,
        ports: [
          { port: 80, targetPort: "http" },
          { name: "m", port: 81, targetPort: "metrics" },
        ],
      }),
      webPod("p", web),
      endpoints("1"),
    ],
    chain: service,
    reason: "TargetPortMissing",
    says: /target port metrics of port m .* \(they have http\)$/,
  },
  {
    name: "a port's name where the pods have none",
    objects: [
      aService({ ...selecting, ports: [{ port: 80, targetPort: "http" }] }),
      webPod("p", web, true, { containers: [{ name: "c" }, { name: "d", ports: [{ containerPort: 1 }] }] }),
      endpoints("1"),
    ],
    chain: service,
    says: /^target port http of port 80 is a name that no container of its pods has$/,
  },
  { name: "a slice of no service is healthy", objects: [stored("discovery.k8s.io/v1", "EndpointSlice", "x")], chain: [] },
  {
    name: "pods that are not ready are followed, those that are done are not",
    objects: [
      aService(selecting),
      { ...webPod("p", web, false), status: { phase: "Succeeded" } } as never,
      webPod("q", web, false),
      node,
    ],
    chain: ["service/web", "pod/q"],
  },
  {
    name: "a service that publishes pods that are not ready is healthy",
    objects: [aService({ ...selecting, publishNotReadyAddresses: true }), webPod("q", web, false)],
    chain: [],
  },
  {
    name: "one ready pod of two is enough",
    objects: [aService(selecting), webPod("p", web, false), webPod("q", web), endpoints("1")],
    chain: [],
  },
  {
    name: "a service whose only pod is being deleted has none",
    objects: [
      aService(selecting),
      stored("v1", "Pod", "p", {
        ...webPod("p", web),
        metadata: { labels: web, deletionTimestamp: later },
      }),
    ],
    chain: service,
    reason: "SelectorMatchesNone",
  },
  {
    name: "ready pods that are no endpoints yet",
    objects: [aService(selecting), webPod("p", web), endpoints()],
    chain: service,
    reason: "EndpointsMissing",
  },
  {
    name: "a load balancer of a class that nothing serves",
    objects: [aService({ ...selecting, type: "LoadBalancer", loadBalancerClass: "x/y" }), webPod("p", web), endpoints("1")],
    chain: service,
    reason: "NoLoadBalancer",
    says: /load balancer class x\/y$/,
  },
  {
    name: "a load balancer with an address is healthy",
    objects: [
      aService({ ...selecting, type: "LoadBalancer" }, { loadBalancer: { ingress: [{ ip: "1" }] } }),
      webPod("p", web),
      endpoints("1"),
    ],
    chain: [],
  },
  { name: "endpoints lead to their service", objects: [endpoints(), aService({})], chain: ["endpoints/web", "service/web"] },
  { name: "endpoints without a service are healthy", objects: [endpoints()], chain: [] },
  {
    name: "a slice leads to the service that its label names",
    objects: [
      stored("discovery.k8s.io/v1", "EndpointSlice", "web-x", { metadata: { labels: { "kubernetes.io/service-name": "web" } } }),
      aService({}),
      endpoints(),
    ],
    chain: ["endpointslice/web-x", "service/web"],
  },
]);

const anIngress = (spec: object, metadata: object = {}): Unstructured =>
  stored("networking.k8s.io/v1", "Ingress", "i", { metadata, spec });
const ingressClass = (name: string, annotations: object = {}): Unstructured =>
  stored("networking.k8s.io/v1", "IngressClass", name, { metadata: { annotations }, spec: {} });
const rule = (name: string, port: object): object => ({ http: { paths: [{ backend: { service: { name, port } } }] } });
const ingress = ["ingress/i"];

testExplanations([
  {
    name: "an ingress without a class where none is the default",
    objects: [anIngress({}), ingressClass("a")],
    chain: ingress,
    reason: "IngressClassNotSet",
    says: /\(it has a\)/,
  },
  {
    name: "an ingress without a class where there is none at all",
    objects: [anIngress({})],
    chain: ingress,
    says: /^names no ingress class, and the cluster has no default one$/,
  },
  {
    name: "an ingress of the default class is healthy",
    objects: [anIngress({}), ingressClass("a"), ingressClass("b", { "ingressclass.kubernetes.io/is-default-class": "true" })],
    chain: [],
  },
  {
    name: "an ingress of a class by annotation, which needs no object, is healthy",
    objects: [anIngress({}, { annotations: { "kubernetes.io/ingress.class": "old" } })],
    chain: [],
  },
  {
    name: "the second rule's service that is missing",
    objects: [
      anIngress({ ingressClassName: "a", rules: [rule("web", { number: 80 }), rule("gone", { number: 1 })] }),
      ingressClass("a"),
      aService(selecting),
      webPod("p", web),
      endpoints("1"),
    ],
    chain: ingress,
    reason: "BackendMissing",
    says: /service gone /,
  },
  {
    name: "a port that the service does not have",
    objects: [
      anIngress({ ingressClassName: "a", rules: [rule("web", { name: "x" })] }),
      ingressClass("a"),
      aService(selecting),
      webPod("p", web),
      endpoints("1"),
    ],
    chain: ingress,
    reason: "BackendPortMissing",
    says: /no port x \(it has 80\)/,
  },
  {
    name: "an ingress to any port of another name is healthy",
    objects: [
      anIngress({ ingressClassName: "a", rules: [rule("web", { number: 443 })] }),
      ingressClass("a"),
      stored("v1", "Service", "web", { spec: { type: "ExternalName", externalName: "example.com" } }),
    ],
    chain: [],
  },
  {
    name: "the second TLS secret that is missing",
    objects: [
      anIngress({ ingressClassName: "a", tls: [{ secretName: "s" }, {}, { secretName: "t" }] }),
      ingressClass("a"),
      stored("v1", "Secret", "s"),
    ],
    chain: ingress,
    reason: "TlsSecretMissing",
    says: /secret t /,
  },
  {
    name: "a TLS secret that may not be read is no cause",
    objects: [anIngress({ ingressClassName: "a", tls: [{ secretName: "s" }] }), ingressClass("a")],
    hidden: ["secrets"],
    chain: [],
  },
  {
    name: "an ingress leads to its default backend",
    objects: [
      anIngress({ ingressClassName: "a", defaultBackend: { service: { name: "web", port: { number: 80 } } } }),
      ingressClass("a"),
      aService({}),
      endpoints(),
    ],
    chain: ["ingress/i", "service/web"],
  },
]);

const aNamespace = (
  conditions: object[] = [],
  finalizers = ["kubernetes"],
  metadata: object = { deletionTimestamp: later },
): Unstructured => stored("v1", "Namespace", "default", { metadata, spec: { finalizers }, status: { conditions } });
const anApi = (status: string): Unstructured =>
  stored("apiregistration.k8s.io/v1", "APIService", `v1.${status.toLowerCase()}`, {
    spec: { service: { namespace: "default", name: "web" } },
    status: conditionOfType("Available", status, "MissingEndpoints"),
  });
const aMap = (name: string, finalizers: string[] = []): Unstructured =>
  stored("v1", "ConfigMap", name, { metadata: { finalizers, ...(finalizers.length > 0 && { deletionTimestamp: later }) } });

testExplanations([
  {
    name: "a namespace whose APIs cannot be discovered leads to the service that is away",
    objects: [
      aNamespace([condition("NamespaceDeletionDiscoveryFailure", "True")]),
      anApi("True"),
      anApi("False"),
      aService(selecting),
      webPod("p", web),
      endpoints("1"),
    ],
    chain: ["namespace/default", "apiservice/v1.false"],
    reason: "MissingEndpoints",
  },
  {
    name: "a namespace keeps objects with finalizers, those with more first",
    objects: [aNamespace(), aMap("a", ["x/y"]), aMap("b", ["x/y", "x/z"]), aMap("c")],
    chain: ["namespace/default", "configmap/b"],
    says: /finalizer x\/y, x\/z/,
  },
  {
    name: "a namespace keeps pods, which end by themselves",
    objects: [aNamespace(), webPod("p", web), node, aMap("c")],
    chain: ["namespace/default"],
    reason: "ContentRemaining",
    says: /still contains 1 object that is kept \(pods\)$/,
  },
  {
    name: "a namespace whose content cannot be deleted says why",
    objects: [aNamespace([condition("NamespaceDeletionContentFailure", "True")]), aMap("c")],
    chain: ["namespace/default"],
    reason: "R",
    says: /cannot be deleted: m$/,
  },
  {
    name: "a finalizer of the namespace itself",
    objects: [aNamespace([], ["kubernetes", "own/x"])],
    chain: ["namespace/default"],
    reason: "NamespaceFinalizer",
    says: /finalizer own\/x in/,
  },
  {
    name: "a namespace that is being emptied counts what is left",
    objects: [aNamespace(), aMap("a"), aMap("b")],
    chain: ["namespace/default"],
    reason: "NamespaceTerminating",
    says: /objects left$/,
  },
  {
    name: "an object of a namespace that a controller has is left to the controller",
    objects: [aNamespace([], [], {}), stored("v1", "Service", "web", { metadata: ownedBy("Deployment", "d"), spec: {} })],
    chain: [],
  },
  {
    name: "an object of a namespace whose owner is no controller is explained",
    objects: [
      aNamespace([], [], {}),
      stored("v1", "Service", "web", {
        ...aService(selecting),
        metadata: { ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "o", uid: "u", controller: false }] },
      }),
    ],
    chain: ["namespace/default", "service/web"],
  },
]);

const definition = (status: object, metadata: object = {}): Unstructured =>
  stored("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.x.example", {
    metadata,
    spec: { group: "x.example", names: { plural: "things", kind: "Thing" } },
    status,
  });
const crd = ["customresourcedefinition/things.x.example"];
const established = conditionOfType("Established", "True", "");
const webhooks = (failurePolicy: string, name: string): Unstructured =>
  stored("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "w", {
    webhooks: [
      { name: "url", clientConfig: { url: "https://x" } },
      { name: "second", failurePolicy, clientConfig: { service: { namespace: "default", name } } },
    ],
  });
const request = (status: object): Unstructured =>
  stored("certificates.k8s.io/v1", "CertificateSigningRequest", "r", { spec: { signerName: "s/t" }, status });
const r = ["certificatesigningrequest/r"];

testExplanations([
  { name: "an established definition is healthy", objects: [definition(established)], chain: [] },
  {
    name: "a definition whose names are taken",
    objects: [definition(conditionOfType("NamesAccepted", "False", "PluralConflict"))],
    chain: crd,
    reason: "PluralConflict",
  },
  {
    name: "a definition without structure",
    objects: [definition(conditionOfType("NonStructuralSchema", "True", "Violations"))],
    chain: crd,
    reason: "NonStructuralSchema",
  },
  { name: "a definition that is not served after 10 seconds", objects: [definition({})], chain: crd, reason: "NotEstablished" },
  { name: "a new definition is healthy", objects: [definition({}, { creationTimestamp: recent })], chain: [] },
  {
    name: "a definition that is being deleted leads to an object with a finalizer",
    objects: [
      definition(established, { deletionTimestamp: later }),
      stored("x.example/v1", "Thing", "a"),
      stored("x.example/v1", "Thing", "b", { metadata: { deletionTimestamp: later, finalizers: ["x/y"] } }),
    ],
    chain: [...crd, "thing/b"],
  },
  {
    name: "a definition that is being deleted counts the one object that remains",
    objects: [definition(established, { deletionTimestamp: later }), stored("x.example/v1", "Thing", "a")],
    chain: crd,
    reason: "InstancesRemaining",
    says: /; 1 object of kind Thing remains$/,
  },
  {
    name: "a definition that is being deleted counts the objects that remain",
    objects: [
      definition(established, { deletionTimestamp: later }),
      stored("x.example/v1", "Thing", "a"),
      stored("x.example/v1", "Thing", "b"),
    ],
    chain: crd,
    says: /; 2 objects of kind Thing remain$/,
  },
  {
    name: "an API service without its service",
    objects: [anApi("False")],
    chain: ["apiservice/v1.false"],
    reason: "ServiceMissing",
  },
  {
    name: "a second webhook without its service refuses all",
    objects: [webhooks("Fail", "gone")],
    chain: ["mutatingwebhookconfiguration/w"],
    reason: "ServiceMissing",
    says: /webhook second: .* every request that it matches is refused/,
  },
  {
    name: "a webhook without its service is ignored where it may be",
    objects: [webhooks("Ignore", "gone")],
    chain: ["mutatingwebhookconfiguration/w"],
    says: /requests pass without it/,
  },
  {
    name: "a webhook leads to its service",
    objects: [webhooks("Fail", "web"), aService({}), endpoints()],
    chain: ["mutatingwebhookconfiguration/w", "service/web"],
  },
  {
    name: "a request that was denied, whatever else",
    objects: [request({ conditions: [condition("Approved", "True"), condition("Denied", "True")] })],
    chain: r,
    reason: "RequestDenied",
  },
  {
    name: "a request that could not be signed",
    objects: [request({ conditions: [condition("Approved", "True"), condition("Failed", "True")] })],
    chain: r,
    reason: "R",
    says: /could not be signed: m/,
  },
  {
    name: "an approved request without a certificate",
    objects: [request({ conditions: [condition("Approved", "True")] })],
    chain: r,
    reason: "SignerSilent",
    says: /signer s\/t/,
    since: later,
  },
  {
    name: "an approved request with a certificate is healthy",
    objects: [request({ certificate: "x", conditions: [condition("Approved", "True")] })],
    chain: [],
  },
]);

const blockers = ["a", "b", "c", "d"].map((name) =>
  stored("v1", "ConfigMap", name, {
    metadata: {
      ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "o", uid: "uid-o", blockOwnerDeletion: name !== "d" }],
    },
  }),
);
const inForeground = stored("v1", "ConfigMap", "o", {
  metadata: { deletionTimestamp: later, finalizers: ["foregroundDeletion"] },
});

testExplanations([
  {
    name: "a foreground deletion waits for its dependents that block it",
    objects: [inForeground, ...blockers],
    chain: ["configmap/o"],
    reason: "DependentsRemaining",
    says: /after configmap\/a, configmap\/b, configmap\/c$/,
  },
  {
    name: "a foreground deletion counts the dependents beyond the third",
    objects: [
      inForeground,
      ...["a", "b", "c", "d", "e"].map((name) =>
        stored("v1", "ConfigMap", name, {
          metadata: {
            ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "o", uid: "uid-o", blockOwnerDeletion: true }],
          },
        }),
      ),
    ],
    chain: ["configmap/o"],
    says: /after configmap\/a, configmap\/b, configmap\/c and 2 more$/,
  },
  {
    name: "an object whose dependents are still to be orphaned waits for the garbage collector",
    objects: [stored("v1", "ConfigMap", "o", { metadata: { deletionTimestamp: later, finalizers: ["orphan"] } })],
    chain: ["configmap/o"],
    reason: "FinalizerPending",
  },
  {
    name: "an object with another finalizer beside that of orphans waits for more than the garbage collector",
    objects: [stored("v1", "Node", "o", { metadata: { deletionTimestamp: later, finalizers: ["orphan", "x/y"] } })],
    chain: ["node/o"],
    reason: "FinalizerPending",
  },
  {
    name: "a foreground deletion without dependents goes on",
    objects: [inForeground],
    chain: ["configmap/o"],
    reason: "ForegroundDeletion",
  },
  {
    name: "an object with one owner of two is healthy",
    objects: [
      stored("v1", "ConfigMap", "c", {
        metadata: {
          ownerReferences: [
            { apiVersion: "v1", kind: "ConfigMap", name: "gone", uid: "u" },
            { apiVersion: "v1", kind: "ConfigMap", name: "o", uid: "uid-o" },
          ],
        },
      }),
      inForeground,
    ],
    chain: [],
  },
  {
    name: "an owner of the same name and another uid is gone",
    objects: [
      stored("v1", "ConfigMap", "c", {
        metadata: { ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "o", uid: "old" }] },
      }),
      inForeground,
    ],
    chain: ["configmap/c"],
    reason: "OwnerGone",
    says: /configmap\/o/,
  },
  {
    name: "an object whose owner is of a kind that is not served is healthy",
    objects: [
      stored("v1", "ConfigMap", "c", {
        metadata: { ownerReferences: [{ apiVersion: "x/v1", kind: "X", name: "o", uid: "old" }] },
      }),
    ],
    chain: [],
  },
]);
