import assert from "node:assert/strict";
import { test } from "node:test";
import type { ManagedFieldsEntry, ObjectMeta } from "@coxswain/apimachinery/objects/meta/types";
import { kubectl, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";

const manifest = (namespace: string, replicas: number, image = "busybox:1.35"): string => `
apiVersion: apps/v1
kind: Deployment
metadata:
  creationTimestamp: null
  name: web
  namespace: ${namespace}
  labels: {app: web}
spec:
  replicas: ${replicas}
  selector: {matchLabels: {app: web}}
  strategy: {}
  template:
    metadata:
      creationTimestamp: null
      labels: {app: web}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: ${image}
        command: [sleep, "3600"]
        ports: [{containerPort: 80}]
        resources: {limits: {cpu: 1, memory: 64Mi}}
status: {}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: ${namespace}}
data: {color: red}
`;

const apply = (input: string, ...flags: string[]): Promise<string> =>
  kubectl("apply", "--server-side", "-f", "-", ...flags, { input });

async function metadataOf(namespace: string): Promise<ObjectMeta> {
  const text = await kubectl("get", "deployment", "web", "-n", namespace, "-o", "json", "--show-managed-fields");
  return JSON.parse(text).metadata;
}

const specEntry = (metadata: ObjectMeta, manager: string, subresource?: string): ManagedFieldsEntry | undefined =>
  metadata.managedFields?.find((entry) => entry.manager === manager && entry.subresource === subresource);

test("apply --server-side creates, and applied again it changes nothing", async (t) => {
  const namespace = await newNamespace(t, "ssa");
  // After applying an empty strategy, kubectl also owns its defaults once the deployment controller has written.
  const input = manifest(namespace, 0).replace("  strategy: {}\n", "");
  assert.match(await apply(input), /web serverside-applied[\s\S]*settings serverside-applied/);
  const before = specEntry(await metadataOf(namespace), "kubectl");
  assert.equal(before?.operation, "Apply");
  await apply(input);
  assert.deepEqual(specEntry(await metadataOf(namespace), "kubectl"), before);
  const shown = await kubectl("get", "deployment", "web", "-n", namespace, "-o", "yaml");
  assert.doesNotMatch(shown, /managedFields/, "kubectl hides them unless requested");
});

test("another manager is refused with the fields in conflict, until it forces them", async (t) => {
  const namespace = await newNamespace(t, "ssa-conflict");
  await apply(manifest(namespace, 0));
  const input = manifest(namespace, 1, "busybox:1.36").split("---")[0] as string;
  const refused = await tryKubectl(["apply", "--server-side", "--field-manager=other", "-f", "-"], { input });
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /Apply failed with 2 conflicts: conflicts with "kubectl":\n- \.spec\.replicas\n- \.spec\.template\.spec\.containers\[name="main"\]\.image\n/,
  );
  await apply(input, "--field-manager=other", "--force-conflicts");
  const metadata = await metadataOf(namespace);
  const spec = specEntry(metadata, "kubectl")?.fieldsV1?.["f:spec"] as Record<string, unknown>;
  assert.equal(spec["f:replicas"], undefined, "the field has another owner now");
  assert.ok(specEntry(metadata, "other"));
});

test("diff --server-side shows what would change and changes nothing", async (t) => {
  const namespace = await newNamespace(t, "ssa-diff");
  await apply(manifest(namespace, 0));
  // Checks the config map only: the deployment's version changes with its controller's status updates.
  const settings = (path: string): Promise<string> =>
    kubectl("get", "configmap", "settings", "-n", namespace, "-o", `jsonpath={${path}}`);
  const resourceVersion = await settings(".metadata.resourceVersion");
  const input = manifest(namespace, 0).replace("color: red", "color: blue");
  const diff = await tryKubectl(["diff", "--server-side", "-f", "-"], { input });
  assert.equal(diff.code, 1, diff.stderr);
  assert.match(diff.stdout, /^- +color: red\n\+ +color: blue$/m);
  assert.equal(await settings(".data.color"), "red");
  assert.equal(await settings(".metadata.resourceVersion"), resourceVersion);
});

test("client-side apply becomes server-side apply and back without conflict", async (t) => {
  const namespace = await newNamespace(t, "ssa-upgrade");
  await kubectl("apply", "-f", "-", { input: manifest(namespace, 0) });
  await apply(manifest(namespace, 0, "busybox:1.36"));
  assert.match(
    await kubectl("apply", "view-last-applied", "deployment/web", "-n", namespace, "-o", "yaml"),
    /image: busybox:1\.36/,
    "the annotation follows",
  );
  await kubectl("apply", "-f", "-", { input: manifest(namespace, 0) });
  assert.match(await kubectl("get", "deployment", "web", "-n", namespace, "-o", "jsonpath={..image}"), /^busybox:1\.35$/);
});

test("scale, label and patch have separate field managers", async (t) => {
  const namespace = await newNamespace(t, "ssa-owners");
  await apply(manifest(namespace, 0));
  await kubectl("scale", "deployment/web", "-n", namespace, "--replicas=1");
  await kubectl("label", "deployment/web", "-n", namespace, "color=red");
  const refused = await tryKubectl(["apply", "--server-side", "-f", "-"], { input: manifest(namespace, 0) });
  assert.match(
    refused.stderr,
    /Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using apps\/v1: \.spec\.replicas/,
  );
  const metadata = await metadataOf(namespace);
  assert.deepEqual(specEntry(metadata, "kubectl", "scale")?.fieldsV1, { "f:spec": { "f:replicas": {} } });
  assert.deepEqual(specEntry(metadata, "kubectl-label")?.fieldsV1, { "f:metadata": { "f:labels": { "f:color": {} } } });

  await kubectl("patch", "configmap", "settings", "-n", namespace, "--field-manager=mine", "-p", '{"data":{"color":"blue"}}');
  const settings = await kubectl("get", "configmap", "settings", "-n", namespace, "-o", "json", "--show-managed-fields");
  assert.deepEqual(specEntry(JSON.parse(settings).metadata, "mine")?.fieldsV1, { "f:data": { "f:color": {} } });
});
