/** What an explanation contains depends on what the user may read: for each right, which names of other objects occur. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newClient } from "@coxswain/apimachinery/client/client";
import { answerQuestions } from "@coxswain/apimachinery/decisions/answer-questions";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const rbac = "/apis/rbac.authorization.k8s.io/v1";
type Headers = NonNullable<Parameters<TestServer["request"]>[3]>;
const core = "/api/v1/namespaces/a";
const apps = "/apis/apps/v1/namespaces/a";

async function send(server: TestServer, method: string, path: string, body: object, code = 201): Promise<Body> {
  const answer = await server.request(method, path, body);
  assert.equal(answer.code, code, answer.text);
  return answer.body as Body;
}

interface Body {
  readonly metadata: { readonly uid: string; readonly resourceVersion: string };
}

const make = (server: TestServer, path: string, body: object): Promise<Body> => send(server, "POST", path, body);

/** A question, and the names that its answer may contain depending on rights besides those on the object's own kind. */
interface Row {
  readonly question: string;
  /** The kind of the explained object: `deployments.apps`. */
  readonly own: string;
  /** Names by which further rights, all of which are needed to show the name. */
  readonly names: Readonly<Record<string, readonly string[]>>;
  /** Names that these rights permit to read, but that must not be shown, because the objects are unrelated. */
  readonly never?: readonly string[];
}

const ofScheduler = "namespaces/a/pods/large";

const rows: readonly Row[] = [
  // A claim names its class and its volume; a volume its claim.
  {
    question: "namespaces/a/pods/claims",
    own: "pods",
    names: { "volume-of-a": ["persistentvolumeclaims", "persistentvolumes"] },
    never: ["claim-of-b", "tenant-b"],
  },
  {
    question: "namespaces/a/pods/provisions",
    own: "pods",
    names: { "class-of-a": ["persistentvolumeclaims", "storageclasses.storage.k8s.io"] },
  },
  { question: "namespaces/a/persistentvolumeclaims/unbound", own: "persistentvolumeclaims", names: {}, never: ["volume-of-a"] },
  { question: "persistentvolumes/volume-of-a", own: "persistentvolumes", names: {}, never: ["data-of-a", "class-b"] },
  { question: "namespaces/a/pods/waits?about=node/node-x", own: "pods", names: { "taint-of-node": ["nodes"] } },
  // From a controller to the objects it owns.
  {
    question: "namespaces/a/deployments.apps/web",
    own: "deployments.apps",
    names: {
      "set-of-a": ["replicasets.apps"],
      "pod-of-a": ["replicasets.apps", "pods"],
      "image-of-a": ["replicasets.apps", "pods"],
    },
  },
  { question: "namespaces/a/replicasets.apps/set-of-a", own: "replicasets.apps", names: { "pod-of-a": ["pods"] } },
  // From an object to its owners: a pod names its ReplicaSet, which names its Deployment.
  { question: "namespaces/a/pods/pod-of-a", own: "pods", names: { "deployment/web": ["replicasets.apps", "deployments.apps"] } },
  // A rejection names the object that rejected.
  {
    question: "namespaces/a/replicasets.apps/starved",
    own: "replicasets.apps",
    names: { "quota-of-a": ["events", "resourcequotas"] },
  },
  {
    question: "namespaces/a/replicasets.apps/hooked",
    own: "replicasets.apps",
    names: {
      "hook-of-cluster.example.com": ["events", "validatingwebhookconfigurations.admissionregistration.k8s.io"],
      "path-of-hook": ["events", "validatingwebhookconfigurations.admissionregistration.k8s.io"],
    },
  },
  // Budgets, services and namespaces lead to pods.
  {
    question: "namespaces/a/poddisruptionbudgets.policy/budget",
    own: "poddisruptionbudgets.policy",
    names: { "pod-of-a": ["pods"] },
  },
  { question: "namespaces/a/services/front", own: "services", names: { "pod-of-a": ["pods"] } },
  {
    question: "namespaces/a/ingresses.networking.k8s.io/door",
    own: "ingresses.networking.k8s.io",
    names: { "pod-of-a": ["services", "pods"] },
  },
  {
    question: "namespaces/a",
    own: "namespaces",
    names: { "pod-of-a": ["deployments.apps", "replicasets.apps", "pods"] },
    never: ["neighbour"],
  },
  // The scheduler names a pod of another namespace, and a node.
  {
    question: ofScheduler,
    own: "pods",
    names: { "neighbour-of-b": ["events", "nodes", "pods in tenant-b"], "needs 300m": ["events"] },
  },
];

const clusterWide = /^(?:nodes|namespaces|persistentvolumes|storageclasses\..*|validatingwebhookconfigurations\..*)$/;

async function prepared(t: Parameters<typeof startTestServer>[0]): Promise<TestServer> {
  const server = await startTestServer(t, ["--disable-admission-plugins=ServiceAccount"]);
  for (const name of ["a", "tenant-b"]) await make(server, "/api/v1/namespaces", { metadata: { name } });
  const containers = [{ name: "main", image: "x" }];
  await make(server, "/api/v1/nodes", {
    metadata: { name: "node-x" },
    spec: { taints: [{ key: "taint-of-node", effect: "NoSchedule" }] },
  });
  const claim = {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
    storageClassName: "class-of-a",
  };
  await make(server, `${core}/persistentvolumeclaims`, {
    metadata: { name: "data" },
    spec: { ...claim, volumeName: "volume-of-a" },
  });
  await make(server, "/api/v1/persistentvolumes", {
    metadata: { name: "volume-of-a" },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      storageClassName: "class-of-a",
      hostPath: { path: "/x" },
      claimRef: { namespace: "tenant-b", name: "claim-of-b", uid: "other" },
    },
  });
  await make(server, `${core}/persistentvolumeclaims`, { metadata: { name: "unbound" }, spec: claim });
  const withClaim = (claimName: string) => ({ containers, volumes: [{ name: "data", persistentVolumeClaim: { claimName } }] });
  await make(server, `${core}/pods`, { metadata: { name: "provisions" }, spec: withClaim("unbound") });
  await make(server, `${core}/pods`, { metadata: { name: "claims" }, spec: withClaim("data") });
  await make(server, `${core}/pods`, { metadata: { name: "waits" }, spec: { containers } });
  await makeWorkload(server);
  await makeRefusals(server);
  return server;
}

const labels = { app: "web" };
const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "image-of-a" }] } };

/** Creates what controllers and a kubelet would create for a Deployment whose image does not exist. */
async function makeWorkload(server: TestServer): Promise<void> {
  const spec = { replicas: 1, selector: { matchLabels: labels }, template };
  const ownedBy = (kind: string, name: string, { metadata: { uid } }: Body) => ({
    labels,
    ownerReferences: [{ apiVersion: "apps/v1", kind, name, uid, controller: true }],
  });
  const status = { observedGeneration: 1, replicas: 1, updatedReplicas: 1 };
  const web = await make(server, `${apps}/deployments`, { metadata: { name: "web" }, spec });
  const set = await make(server, `${apps}/replicasets`, {
    metadata: { name: "set-of-a", ...ownedBy("Deployment", "web", web) },
    spec,
  });
  const pod = await make(server, `${core}/pods`, {
    metadata: { name: "pod-of-a", ...ownedBy("ReplicaSet", "set-of-a", set) },
    spec: { ...template.spec, nodeName: "node-y" },
  });
  await send(server, "PUT", `${apps}/deployments/web/status`, { ...web, status }, 200);
  await send(
    server,
    "PUT",
    `${apps}/replicasets/set-of-a/status`,
    { ...set, status: { observedGeneration: 1, replicas: 1 } },
    200,
  );
  const waiting = { reason: "ImagePullBackOff", message: 'Back-off pulling image "image-of-a"' };
  const container = { name: "main", image: "image-of-a", imageID: "", ready: false, restartCount: 0, state: { waiting } };
  const podStatus = { phase: "Pending", containerStatuses: [container], conditions: [{ type: "Ready", status: "False" }] };
  await send(server, "PUT", `${core}/pods/pod-of-a/status`, { ...pod, status: podStatus }, 200);
  const budget = await make(server, "/apis/policy/v1/namespaces/a/poddisruptionbudgets", {
    metadata: { name: "budget" },
    spec: { minAvailable: 1, selector: { matchLabels: labels } },
  });
  const none = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 1, expectedPods: 1, observedGeneration: 1 };
  await send(server, "PUT", "/apis/policy/v1/namespaces/a/poddisruptionbudgets/budget/status", { ...budget, status: none }, 200);
  await make(server, `${core}/services`, { metadata: { name: "front" }, spec: { selector: labels, ports: [{ port: 80 }] } });
  await make(server, "/apis/networking.k8s.io/v1/ingressclasses", {
    metadata: { name: "outside" },
    spec: { controller: "example.com/door" },
  });
  await make(server, "/apis/networking.k8s.io/v1/namespaces/a/ingresses", {
    metadata: { name: "door" },
    spec: { ingressClassName: "outside", defaultBackend: { service: { name: "front", port: { number: 80 } } } },
  });
  await make(server, `${core}/pods`, { metadata: { name: "large" }, spec: { containers: [{ name: "main", image: "x" }] } });
  await make(server, "/api/v1/namespaces/tenant-b/pods", {
    metadata: { name: "neighbour-of-b" },
    spec: { containers: [{ name: "main", image: "x" }] },
  });
}

/** Creates two ReplicaSets whose pods a quota and a webhook reject. */
async function makeRefusals(server: TestServer): Promise<void> {
  const refused = async (name: string, message: RegExp): Promise<void> => {
    const set = await make(server, `${apps}/replicasets`, {
      metadata: { name },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: name } },
        template: { metadata: { labels: { app: name } }, spec: template.spec },
      },
    });
    const metadata = {
      generateName: `${name}-`,
      labels: { app: name },
      ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name, uid: set.metadata.uid, controller: true }],
    };
    // The server's plugins see the quota and the webhook a little later.
    const isRefused = async (): Promise<boolean> =>
      message.test((await server.request("POST", `${core}/pods`, { metadata, spec: template.spec })).text);
    await waitFor(isRefused, { what: `the pods of ${name} to be refused` });
  };
  await make(server, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {
    metadata: { name: "hooks" },
    webhooks: [
      {
        name: "hook-of-cluster.example.com",
        clientConfig: { url: "https://127.0.0.1:9/path-of-hook" },
        rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
        objectSelector: { matchLabels: { app: "hooked" } },
        ...{ sideEffects: "None", admissionReviewVersions: ["v1"], failurePolicy: "Fail" },
      },
    ],
  });
  await refused("hooked", /hook-of-cluster/);
  const hard = { "count/pods": "0" };
  const quota = await make(server, `${core}/resourcequotas`, { metadata: { name: "quota-of-a" }, spec: { hard } });
  const status = { hard, used: { "count/pods": "0" } };
  await send(server, "PUT", `${core}/resourcequotas/quota-of-a/status`, { ...quota, status }, 200);
  await refused("starved", /exceeded quota: quota-of-a/);
}

/** A scheduler that has decided about the pod `large` and answers questions. */
async function startScheduler(t: { after(fn: () => unknown): void }, server: TestServer): Promise<void> {
  const { cert, key } = await server.clientCertificate("system:kube-scheduler", []);
  const client = newClient({ host: server.url, ca: server.ca, cert, key, qps: -1 });
  const decisions = new DecisionLog({ component: "kube-scheduler", clock: realClock });
  const ref = (resource: string, kind: string, namespace: string, name: string) => ({
    group: "",
    resource,
    kind,
    namespace,
    name,
    uid: "",
  });
  decisions.record(ref("pods", "Pod", "a", "large"), "scheduler", {
    ...{ verdict: "refused", reason: "InsufficientResources" },
    description: {
      summary: "needs 300m more CPU; would fit if pod neighbour-of-b of namespace tenant-b were gone",
      plain: "needs 300m more CPU; would fit if one other pod were gone",
      related: [ref("pods", "Pod", "tenant-b", "neighbour-of-b"), ref("nodes", "Node", "", "node-x")],
      details: { refused: [{ node: "node-x" }] },
    },
  });
  const stopping = new AbortController();
  const turns = new Turns();
  const options = { client, recipient: "kube-scheduler", decisions, clock: realClock, turns, log: discardLogger };
  const ended = answerQuestions({ ...options, signal: stopping.signal });
  t.after(async () => {
    stopping.abort();
    await ended;
    client.close();
  });
}

/** For each right, creates a group `may read <right>` that has it. */
async function grant(server: TestServer, rights: ReadonlySet<string>): Promise<void> {
  for (const right of rights) {
    const [what = "", namespace = "a"] = right.split(" in ");
    const [resource = "", ...group] = what.split(".");
    const isWide = clusterWide.test(what);
    const base = isWide ? rbac : `${rbac}/namespaces/${namespace}`;
    const kind = isWide ? "ClusterRole" : "Role";
    const metadata = { name: what };
    const rules = [{ apiGroups: [group.join(".")], resources: [resource], verbs: ["get", "list"] }];
    await make(server, `${base}/${kind.toLowerCase()}s`, { metadata, rules });
    const apiGroup = "rbac.authorization.k8s.io";
    const subjects = [{ kind: "Group", name: groupOf(right), apiGroup }];
    const roleRef = { apiGroup, kind, name: what };
    await make(server, `${base}/${kind.toLowerCase()}bindings`, { metadata, roleRef, subjects });
  }
}

const groupOf = (right: string): string => `may read ${right}`;

/** Request headers of a user with these rights. */
const as = (rights: readonly string[]): Headers => ({ "impersonate-user": "jane", "impersonate-group": rights.map(groupOf) });

const subsetsWithoutOne = (rights: readonly string[]): string[][] => rights.map((_, i) => rights.filter((__, j) => i !== j));

test("an explanation names what the user may read, and nothing of other namespaces or of the cluster beside it", {
  concurrency: 5,
}, async (t) => {
  const server = await prepared(t);
  await startScheduler(t, server);
  await grant(server, new Set(rows.flatMap(({ own, names }) => [own, ...Object.values(names).flat()])));
  const requestOnce = async (question: string, headers?: Headers): Promise<{ code: number; text: string }> => {
    const [json, text] = await Promise.all(
      ["json", "text"].map((output) => {
        const path = `/debug/explain/${question}${question.includes("?") ? "&" : "?"}output=${output}`;
        return server.request("GET", path, undefined, headers);
      }),
    );
    return { code: json?.code ?? 0, text: `${json?.text}\n${text?.text}` };
  };
  /** Repeated until the scheduler has answered, which may take too long on a busy machine. */
  const explain = (question: string, headers?: Headers) =>
    waitFor(async () => {
      const answer = await requestOnce(question, headers);
      const isWhole = answer.text.includes('"component":"kube-scheduler"') && answer.text.includes("kube-scheduler scheduler: ");
      return (answer.code !== 200 || isWhole || question !== ofScheduler) && answer;
    });
  const askedFor = rows.map(({ question, own, names, never = [] }) =>
    t.test(question, async () => {
      const all = Object.keys(names);
      const administrator = await explain(question);
      for (const name of all)
        assert.ok(administrator.text.includes(name), `an administrator is told ${name}: ${administrator.text}`);

      const attempt = (rights: readonly string[]) => explain(question, as(rights));
      const bare = await attempt([own]);
      // The question repeats the name of the node that it is about.
      if (!question.includes("about=")) assert.equal(bare.code, 200, bare.text);
      for (const [name, needed] of Object.entries(names)) {
        const told = await attempt([own, ...needed]);
        assert.equal(told.code, 200, told.text);
        assert.ok(told.text.includes(name), `${name} with ${needed.join(", ")}: ${told.text}`);
        for (const rights of subsetsWithoutOne(needed)) {
          const { text } = await attempt([own, ...rights]);
          assert.ok(!text.includes(name), `${name} with ${[own, ...rights].join(", ")}: ${text}`);
        }
        for (const other of never) assert.ok(!told.text.includes(other), `${other}: ${told.text}`);
      }
      for (const other of [...all, ...never]) assert.ok(!bare.text.includes(other), `${other} with ${own} alone: ${bare.text}`);

      // Without any right the response is 403, whether or not the object exists.
      assert.equal((await explain(question, as([]))).code, 403);
      assert.equal((await explain(question.replace(/[\w-]+(?=\?|$)/, "none-such"), as([]))).code, 403);
    }),
  );
  await Promise.all(askedFor);
});

test("whether an object exists that the user may not read makes no difference to the answer", async (t) => {
  const server = await startTestServer(t, ["--disable-admission-plugins=ServiceAccount"]);
  await make(server, "/api/v1/namespaces", { metadata: { name: "a" } });
  const env = [{ name: "X", valueFrom: { secretKeyRef: { name: "secret", key: "k" } } }];
  await make(server, `${core}/pods`, {
    metadata: { name: "web" },
    spec: {
      nodeName: "node-z",
      containers: [{ name: "main", image: "x", env, envFrom: [{ configMapRef: { name: "settings" } }] }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
    },
  });
  const spec = {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
    storageClassName: "fast",
    volumeName: "v",
  };
  await make(server, `${core}/persistentvolumeclaims`, { metadata: { name: "data" }, spec });
  const scaleTargetRef = { apiVersion: "apps/v1", kind: "Deployment", name: "web" };
  const scaler = { metadata: { name: "web" }, spec: { maxReplicas: 3, scaleTargetRef } };
  await make(server, "/apis/autoscaling/v2/namespaces/a/horizontalpodautoscalers", scaler);
  const rights = ["pods", "persistentvolumeclaims", "horizontalpodautoscalers.autoscaling"];
  await grant(server, new Set(rights));
  const answers = async (): Promise<string[]> =>
    Promise.all(
      ["pods/web", "persistentvolumeclaims/data", "horizontalpodautoscalers.autoscaling/web"].map(async (name) => {
        const { code, body } = await server.request("GET", `/debug/explain/namespaces/a/${name}`, undefined, as(rights));
        assert.equal(code, 200);
        return JSON.stringify(body);
      }),
    );
  const before = await answers();
  await make(server, "/apis/storage.k8s.io/v1/storageclasses", { metadata: { name: "fast" }, provisioner: "example.com/disk" });
  await make(server, "/api/v1/nodes", { metadata: { name: "node-z" } });
  await make(server, `${core}/secrets`, { metadata: { name: "secret" } });
  await make(server, `${core}/configmaps`, { metadata: { name: "settings" } });
  const { accessModes } = spec;
  await make(server, "/api/v1/persistentvolumes", {
    metadata: { name: "v" },
    spec: { capacity: { storage: "1Gi" }, accessModes, storageClassName: "fast", hostPath: { path: "/x" } },
  });
  const selector = { matchLabels: labels };
  await make(server, `${apps}/deployments`, { metadata: { name: "web" }, spec: { selector, template } });
  assert.deepEqual(await answers(), before);
});
