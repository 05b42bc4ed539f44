import assert from "node:assert/strict";
import { PassThrough, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { kubeconfigFile } from "@coxswain/dev-cluster/pki";
import * as k8s from "@kubernetes/client-node";
import { kubectl, settings } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { busybox, createPod, isReady, waitForPod } from "../framework/pods.ts";
import { waitFor } from "../framework/wait-for.ts";

const config = new k8s.KubeConfig();
config.loadFromFile(kubeconfigFile(settings, "admin"));
const core = config.makeApiClient(k8s.CoreV1Api);

const configMap = (name: string, data: Record<string, string>, labels: Record<string, string> = {}): k8s.V1ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, labels },
  data,
});

test("client-node: an informer follows a selector through adds, changes, deletions and the end of its watch", async (t) => {
  const namespace = await newNamespace(t, "informer");
  const selector = "tier=front";
  const list = () => core.listNamespacedConfigMap({ namespace, labelSelector: selector });
  const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, list, selector);
  const seen: string[] = [];
  for (const verb of ["add", "update", "delete"] as const)
    informer.on(verb, (object: k8s.V1ConfigMap) => {
      seen.push(`${verb} ${object.metadata?.name} ${object.data?.n}`);
    });
  const errors: unknown[] = [];
  informer.on("error", (err: unknown) => errors.push(err));
  const body = (name: string, n: string, tier = "front"): k8s.V1ConfigMap => configMap(name, { n }, { tier });

  await core.createNamespacedConfigMap({ namespace, body: body("old", "1") });
  await informer.start();
  t.after(() => informer.stop());
  await core.createNamespacedConfigMap({ namespace, body: body("new", "1") });
  await core.createNamespacedConfigMap({ namespace, body: body("other", "1", "back") });
  await core.replaceNamespacedConfigMap({ namespace, name: "new", body: body("new", "2") });
  await core.replaceNamespacedConfigMap({ namespace, name: "old", body: body("old", "2", "back") });
  await core.deleteNamespacedConfigMap({ namespace, name: "new" });
  await waitFor("the informer saw the deletion", async () => seen.includes("delete new 2"));
  // An object that stops matching is DELETED with its last matching state.
  assert.deepEqual(seen, ["add old 1", "add new 1", "update new 2", "delete old 1", "delete new 2"]);
  assert.deepEqual(informer.list(namespace), []);
  assert.deepEqual(errors, []);
});

test("client-node: each kind of patch, apply, and an error as a typed answer", async (t) => {
  const namespace = await newNamespace(t, "patch");
  await core.createNamespacedConfigMap({ namespace, body: configMap("settings", { a: "1" }) });
  const objects = k8s.KubernetesObjectApi.makeApiClient(config);
  const patch = async (body: object, strategy: k8s.PatchStrategy): Promise<Record<string, string> | undefined> =>
    (
      await core.patchNamespacedConfigMap(
        { namespace, name: "settings", body, ...(strategy === k8s.PatchStrategy.ServerSideApply && { fieldManager: "me" }) },
        k8s.setHeaderOptions("Content-Type", strategy),
      )
    ).data;
  assert.deepEqual(await patch([{ op: "add", path: "/data/b", value: "2" }], k8s.PatchStrategy.JsonPatch), { a: "1", b: "2" });
  assert.deepEqual(await patch({ data: { a: null } }, k8s.PatchStrategy.MergePatch), { b: "2" });
  assert.deepEqual(await patch({ data: { c: "3" } }, k8s.PatchStrategy.StrategicMergePatch), { b: "2", c: "3" });
  assert.deepEqual(await patch(configMap("settings", { d: "4" }), k8s.PatchStrategy.ServerSideApply), { b: "2", c: "3", d: "4" });
  const body = { ...configMap("settings", { e: "5" }), metadata: { name: "settings", namespace } };
  assert.deepEqual((await objects.patch(body)).data, { b: "2", c: "3", d: "4", e: "5" });
  await assert.rejects(core.readNamespacedConfigMap({ namespace, name: "absent" }), (err: k8s.ApiException<string>) => {
    assert.equal(err.code, 404);
    assert.equal(JSON.parse(err.body).message, 'configmaps "absent" not found');
    return true;
  });
});

test("client-node: logs, exec and port-forward over WebSocket", async (t) => {
  const namespace = await newNamespace(t, "websocket");
  const script = "mkdir -p /www; echo hello > /www/index.html; echo started; httpd -p 8080 -h /www; cat";
  await createPod(namespace, "web", {
    terminationGracePeriodSeconds: 0,
    containers: [busybox("main", script, { stdin: true })],
  });
  await waitForPod(namespace, "web", "is ready", isReady);

  const log = new PassThrough();
  const logged = text(log);
  // The container may be ready before it has written its first line.
  await waitFor("its log", async () => (await kubectl("logs", "web", "-n", namespace)) !== "");
  await new k8s.Log(config).log(namespace, "web", "main", log, { tailLines: 1 });
  assert.equal(await logged, "started\n");

  const exec = new k8s.Exec(config);
  const run = async (command: string[], input: string | null): Promise<{ out: string; err: string; status: k8s.V1Status }> => {
    const [out, err] = [new Collected(), new Collected()];
    const status = await new Promise<k8s.V1Status>((resolve, reject) => {
      // Before v5 of the protocol the end of input cannot be signalled: this client closes the connection instead.
      const stdin = input === null ? null : new PassThrough();
      stdin?.write(input);
      exec.exec(namespace, "web", "main", command, out, err, stdin, false, resolve).catch(reject);
    });
    return { out: out.text, err: err.text, status };
  };
  const failed = await run(["sh", "-c", "echo good; echo bad >&2; exit 7"], null);
  assert.equal(`${failed.out}${failed.err}`, "good\nbad\n");
  assert.equal(failed.status.details?.causes?.[0]?.message, "7", JSON.stringify(failed.status));
  const read = await run(["head", "-c", "5"], "first and more");
  assert.equal(read.out, "first");
  assert.equal(read.status.status, "Success");

  const forward = new k8s.PortForward(config);
  const answer = new Collected();
  const request = new PassThrough();
  request.write("GET / HTTP/1.0\r\n\r\n");
  const socket = await forward.portForward(namespace, "web", [8080], answer, null, request);
  t.after(() => "close" in socket && socket.close());
  await waitFor("the page came through the tunnel", async () => /hello/.test(answer.text));
  assert.match(answer.text, /^HTTP\/1\.[01] 200 OK[\s\S]*hello\n$/);
});

class Collected extends Writable {
  text = "";
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk;
    done();
  }
}
