import assert from "node:assert/strict";
import { test } from "node:test";
import { staticPod } from "./static-pod.ts";

const manifest = (change: object = {}, container: object = {}): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web" },
    spec: { containers: [{ name: "main", image: "i:1", ...container }] },
    ...change,
  });
const read = (text: string) => staticPod(text, "file", "/etc/kubernetes/manifests/web.yaml", "Node1", 0);

test("a file's pod has a name of its node, and the same uid for the same contents", () => {
  const [first, again, other] = [manifest(), manifest(), manifest({}, { image: "i:2" })].map(read);
  assert.deepEqual([first?.metadata.name, first?.metadata.namespace], ["web-node1", "default"]);
  assert.equal(first?.metadata.uid, again?.metadata.uid);
  assert.notEqual(first?.metadata.uid, other?.metadata.uid);
});

const spec = (more: object) => ({ spec: { containers: [{ name: "main", image: "i:1" }], ...more } });
for (const { name, text, want } of [
  { name: "another kind", text: manifest({ kind: "Job" }), want: /v1 Job is not a v1 Pod/ },
  {
    name: "a name that is a path",
    text: manifest({ metadata: { name: "../x" } }),
    want: /metadata\.name: Invalid value: "\.\.\/x"/,
  },
  {
    name: "a namespace that is a path",
    text: manifest({ metadata: { name: "w", namespace: ".." } }),
    want: /metadata\.namespace: Invalid value/,
  },
  {
    name: "a uid that is a path",
    text: manifest({ metadata: { name: "w", uid: "../../etc" } }),
    want: /metadata\.uid: Invalid value/,
  },
  {
    name: "a container that is a path",
    text: manifest({}, { name: "a/../../b" }),
    want: /spec\.containers\[0\]\.name: Invalid value/,
  },
  { name: "no container", text: manifest({ spec: {} }), want: /spec\.containers: Required value/ },
  { name: "no image", text: manifest({}, { image: "" }), want: /spec\.containers\[0\]\.image: Required value/ },
  {
    name: "two containers of one name",
    text: manifest(spec({ initContainers: [{ name: "main", image: "i:1" }] })),
    want: /spec\.containers\[0\]\.name: Duplicate value: "main"/,
  },
  {
    name: "a volume that is a path",
    text: manifest(spec({ volumes: [{ name: "../v", emptyDir: {} }] })),
    want: /spec\.volumes\[0\]\.name: Invalid value/,
  },
  {
    name: "a mount of no volume",
    text: manifest({}, { volumeMounts: [{ name: "v", mountPath: "/v" }] }),
    want: /spec\.containers\[0\]\.volumeMounts\[0\]\.name: Not found: "v"/,
  },
  {
    name: "ephemeral containers",
    text: manifest(spec({ ephemeralContainers: [{ name: "debug", image: "i:1" }] })),
    want: /spec\.ephemeralContainers: Forbidden: cannot be set on create/,
  },
]) {
  test(`a manifest with ${name} is refused`, () => assert.throws(() => read(text), want));
}
