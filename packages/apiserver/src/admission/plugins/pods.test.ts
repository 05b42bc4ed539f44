/** Pod plugins on a real server, for every request that can add containers. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newHttp, startTestServer, type TestServer } from "../../testing/start-test-server.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer(undefined, [
    "--enable-admission-plugins=AlwaysAdmit,AlwaysPullImages,SecurityContextDeny,NodeRestriction,NamespaceAutoProvision,NamespaceExists",
    "--feature-gates=EphemeralContainers=true",
  ]);
  const enforce = { "kubernetes.io/enforce-mountable-secrets": "true" };
  for (const metadata of [{ name: "default" }, { name: "careful", annotations: enforce }])
    await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata });
});
after(() => server.stop());

const pods = "/api/v1/namespaces/default/pods";
const aPod = (name: string, spec: object = {}, container: object = {}): object => ({
  metadata: { name },
  spec: { containers: [{ name: "c", image: "busybox:1", ...container }], ...spec },
});
const strategic = { "content-type": "application/strategic-merge-patch+json" };
const debug = (pod: string, container: object) =>
  server.request(
    "PATCH",
    `${pods}/${pod}/ephemeralcontainers`,
    { spec: { ephemeralContainers: [{ name: "debug", image: "busybox:1", ...container }] } },
    strategic,
  );

test("every image is pulled, of containers of each kind, and an update without a new image passes", async () => {
  const spec = { initContainers: [{ name: "i", image: "busybox:1", imagePullPolicy: "Never" }] };
  const { code, body, text } = await server.request("POST", pods, aPod("pulled", spec, { imagePullPolicy: "IfNotPresent" }));
  assert.equal(code, 201, text);
  assert.equal(body.spec.containers[0].imagePullPolicy, "Always");
  assert.equal(body.spec.initContainers[0].imagePullPolicy, "Always");
  const label = await server.request("PATCH", `${pods}/pulled`, { metadata: { labels: { a: "b" } } }, strategic);
  assert.equal(label.code, 200, label.text);
  const added = await debug("pulled", { image: "busybox:2", imagePullPolicy: "Never" });
  assert.equal(added.code, 200, added.text);
  assert.equal(added.body.spec.ephemeralContainers[0].imagePullPolicy, "Always");
});

test("supplemental groups are refused; an empty list of them is the same as none", async () => {
  const create = (name: string, supplementalGroups: readonly number[] | null) =>
    server.request("POST", pods, aPod(name, { securityContext: { supplementalGroups } }));
  const one = await create("one", [1]);
  assert.equal(one.code, 403);
  assert.equal(one.body.message, 'pods "one" is forbidden: pod.Spec.SecurityContext.SupplementalGroups is forbidden');
  assert.deepEqual([(await create("empty", [])).code, (await create("null", null)).code], [201, 201]);
});

test("a security context is refused in each kind of container", async () => {
  const context = { securityContext: { runAsUser: 1 } };
  const init = await server.request("POST", pods, aPod("a", { initContainers: [{ name: "i", image: "x", ...context }] }));
  assert.equal(init.body.message, 'pods "a" is forbidden: SecurityContext.RunAsUser is forbidden');
  await server.request("POST", pods, aPod("plain"));
  const ephemeral = await debug("plain", context);
  assert.equal(ephemeral.code, 403, ephemeral.text);
  assert.match(ephemeral.body.message, /SecurityContext.RunAsUser is forbidden$/);
});

const secretRef = { secretRef: { name: "hidden" } };
const why =
  'referencing secret.secretName="hidden" is not allowed because service account careful does not reference that secret';
for (const { name, spec = {}, container = {}, want } of [
  {
    name: "a volume",
    spec: { volumes: [{ name: "v", secret: { secretName: "hidden" } }] },
    want: 'volume with secret.secretName="hidden" is not allowed because service account careful does not reference that secret',
  },
  {
    name: "a volume, without an error",
    spec: { volumes: [{ name: "v", secret: { secretName: "hidden" } }], restartPolicy: "Sometimes" },
    want: 'volume with secret.secretName="hidden" is not allowed because service account careful does not reference that secret',
  },
  {
    name: "a variable",
    container: { env: [{ name: "A", valueFrom: { secretKeyRef: { name: "hidden", key: "k" } } }] },
    want: `container c with envVar A ${why}`,
  },
  { name: "envFrom", container: { envFrom: [secretRef] }, want: `container c with envFrom ${why}` },
  {
    name: "an init container's envFrom",
    spec: { initContainers: [{ name: "i", image: "x", envFrom: [secretRef] }] },
    want: `init container i with envFrom ${why}`,
  },
]) {
  test(`an account that limits its secrets limits ${name}`, async () => {
    const { code, body } = await server.request("POST", pods, aPod("s", { serviceAccountName: "careful", ...spec }, container));
    assert.equal(code, 403);
    assert.equal(body.message, `pods "s" is forbidden: ${want}`);
  });
}

test("an account that limits its secrets limits ephemeral containers", async () => {
  assert.equal((await server.request("POST", pods, aPod("careful", { serviceAccountName: "careful" }))).code, 201);
  const variable = { name: "A", valueFrom: { secretKeyRef: { name: "hidden", key: "k" } } };
  for (const [container, what] of [
    [{ envFrom: [secretRef] }, "envFrom"],
    [{ env: [variable] }, "envVar A"],
  ] as const) {
    const { code, body, text } = await debug("careful", container);
    assert.equal(code, 403, text);
    assert.equal(body.message, `pods "careful" is forbidden: ephemeral container debug with ${what} ${why}`);
  }
  assert.equal((await debug("careful", {})).code, 200);
});

test("a runtime class gives its overhead and its nodes", async () => {
  const path = "/apis/node.k8s.io/v1/runtimeclasses";
  const toleration = { key: "vm", operator: "Exists", effect: "NoSchedule" };
  const scheduling = { nodeSelector: { vm: "yes" }, tolerations: [toleration] };
  const vm = { metadata: { name: "vm" }, handler: "vm", overhead: { podFixed: { cpu: "250m" } }, scheduling };
  assert.equal((await server.request("POST", path, vm)).code, 201);
  const dry = (spec: object) => server.request("POST", `${pods}?dryRun=All`, aPod("r", spec));
  const { code, body, text } = await dry({ runtimeClassName: "vm" });
  assert.equal(code, 201, text);
  assert.deepEqual(body.spec.overhead, { cpu: "250m" });
  assert.deepEqual(body.spec.nodeSelector, { vm: "yes" });
  assert.ok(body.spec.tolerations.some(({ key }: { key: string }) => key === "vm"));
  for (const [spec, want] of [
    [{ runtimeClassName: "none" }, 'pod rejected: RuntimeClass "none" not found'],
    [
      { runtimeClassName: "vm", overhead: { cpu: "1" } },
      "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    ],
    [{ overhead: { cpu: "1" } }, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"],
    [
      { runtimeClassName: "vm", nodeSelector: { vm: "no" } },
      "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no",
    ],
  ] as const) {
    assert.equal((await dry(spec)).body.message, `pods "r" is forbidden: ${want}`);
  }
});

test("a node agent evicts its own pods only, and labels itself with what is its own", async (t) => {
  const http = newHttp(server.url, server.ca, await server.clientCertificate("system:node:n1", ["system:nodes"]));
  t.after(() => http.close());
  const labels = { "kubernetes.io/hostname": "n1", "other.k8s.io/x": "y" };
  const refused = await http.request("POST", "/api/v1/nodes", { metadata: { name: "n1", labels } });
  assert.match(refused.body.message, /node "n1" is not allowed to set the following labels: other.k8s.io\/x$/);
  assert.equal((await http.request("POST", "/api/v1/nodes", { metadata: { name: "n1" } })).code, 201);
  for (const [name, nodeName] of [
    ["mine", "n1"],
    ["theirs", "n2"],
  ]) {
    const { code, text } = await server.request("POST", pods, aPod(name as string, { nodeName }));
    assert.equal(code, 201, text);
  }
  const evict = (name: string) =>
    http.request("POST", `${pods}/${name}/eviction`, { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } });
  const mine = await waitFor(async () => {
    const answer = await evict("mine");
    return answer.code === 201 ? answer : undefined;
  });
  assert.equal(mine.body.status, "Success");
  const theirs = await evict("theirs");
  assert.equal(theirs.code, 403, theirs.text);
});

test("a missing namespace is made by the first object in it, and not by a dry run", async () => {
  const path = "/api/v1/namespaces/made-up/configmaps";
  const dry = await server.request("POST", `${path}?dryRun=All`, { metadata: { name: "a" } });
  assert.equal(dry.code, 404);
  assert.equal(dry.body.message, 'namespaces "made-up" not found');
  assert.equal((await server.request("POST", path, { metadata: { name: "a" } })).code, 201);
  assert.equal((await server.request("GET", "/api/v1/namespaces/made-up")).code, 200);
});

test("without NamespaceLifecycle, NamespaceExists still requires the namespace", async (t) => {
  const bare = await startTestServer(t, [
    "--enable-admission-plugins=NamespaceExists",
    "--disable-admission-plugins=NamespaceLifecycle",
  ]);
  const { code, body } = await bare.request("POST", "/api/v1/namespaces/nowhere/configmaps", { metadata: { name: "a" } });
  assert.equal(code, 404);
  assert.equal(body.message, 'namespaces "nowhere" not found');
});

test("a pod's second pull secret is looked at as the first, and its init containers get the account's token too", async () => {
  const metadata = { name: "pulling", annotations: { "kubernetes.io/enforce-mountable-secrets": "true" } };
  const account = { metadata, imagePullSecrets: [{ name: "mine" }] };
  await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", account);
  const asking = (name: string, ...secrets: string[]) =>
    server.request(
      "POST",
      pods,
      aPod(name, {
        serviceAccountName: "pulling",
        imagePullSecrets: secrets.map((secret) => ({ name: secret })),
        initContainers: [{ name: "i", image: "busybox:1" }],
      }),
    );
  const refused = await asking("two", "mine", "other");
  assert.match(refused.body.message, /imagePullSecrets\[1\]\.name="other" is not allowed/);
  const { code, body, text } = await asking("one", "mine");
  assert.equal(code, 201, text);
  for (const { volumeMounts } of [...body.spec.initContainers, ...body.spec.containers])
    assert.deepEqual(
      volumeMounts?.map(({ mountPath }: { mountPath: string }) => mountPath),
      ["/var/run/secrets/kubernetes.io/serviceaccount"],
    );
});

test("a token is mounted once, by the volume that is there, and only where it is needed; the pod's own word comes first", async () => {
  const path = "/var/run/secrets/kubernetes.io/serviceaccount";
  const account = { metadata: { name: "quiet" }, automountServiceAccountToken: false, imagePullSecrets: [{ name: "mine" }] };
  await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", account);
  const made = async (name: string, spec: object, container: object = {}) => {
    const { code, body, text } = await server.request("POST", pods, aPod(name, spec, container));
    assert.equal(code, 201, text);
    const mounts: { name: string; mountPath: string }[] = body.spec.containers[0].volumeMounts ?? [];
    return {
      volumes: ((body.spec.volumes ?? []) as { name: string }[]).map((volume) => volume.name.replace(/-[a-z0-9]{5}$/, "")),
      mounts: mounts.map((mount) => `${mount.name.replace(/-[a-z0-9]{5}$/, "")} ${mount.mountPath}`),
    };
  };
  const volume = (name: string) => ({ volumes: [{ name, emptyDir: {} }] });
  assert.deepEqual(await made("there", volume("kube-api-access-mine")), {
    volumes: ["kube-api-access-mine"],
    mounts: [`kube-api-access-mine ${path}`],
  });
  assert.deepEqual(await made("own", volume("own"), { volumeMounts: [{ name: "own", mountPath: path }] }), {
    volumes: ["own"],
    mounts: [`own ${path}`],
  });
  assert.deepEqual(await made("quiet", { serviceAccountName: "quiet" }), { volumes: [], mounts: [] });
  assert.deepEqual(await made("loud", { serviceAccountName: "quiet", automountServiceAccountToken: true }), {
    volumes: ["kube-api-access"],
    mounts: [`kube-api-access ${path}`],
  });
});

test("a second class may not become the default by an update; a pod keeps its preemption policy when a client drops it", async () => {
  const classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
  for (const [name, globalDefault] of [
    ["first", true],
    ["second", false],
  ] as const)
    assert.equal((await server.request("POST", classes, { metadata: { name }, value: 7, globalDefault })).code, 201);
  const merge = { "content-type": "application/merge-patch+json" };
  const update = () => server.request("PATCH", `${classes}/second`, { globalDefault: true }, merge);
  await waitFor(async () => (await update()).code === 403, { what: "the second default to be refused" });
  const { body: stored } = await server.request("POST", pods, aPod("prior"));
  assert.equal(stored.spec.preemptionPolicy, "PreemptLowerPriority");
  const { preemptionPolicy: _, priority: __, ...spec } = stored.spec;
  const { code, body, text } = await server.request("PUT", `${pods}/prior`, { ...stored, spec });
  assert.equal(code, 200, text);
  assert.equal(body.spec.preemptionPolicy, "PreemptLowerPriority");
  for (const name of ["first", "second"]) await server.request("DELETE", `${classes}/${name}`);
});
