import assert from "node:assert/strict";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { Machine } from "./machine.ts";

type Kubectl = (...args: string[]) => Promise<string>;

const manifests = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: web
    image: busybox:1.35
    command: [sh, -c, "hostname >/data/index.html && exec httpd -f -p 8080 -h /data"]
    volumeMounts: [{name: data, mountPath: /data}]
    readinessProbe: {httpGet: {port: 8080, path: /}, periodSeconds: 1}
  volumes:
  - name: data
    persistentVolumeClaim: {claimName: data}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`;

/** The first things that a user tries with a new cluster; there is a running pod `one`. */
export async function checkServices(kubectl: Kubectl, machine: Machine, node: string): Promise<void> {
  await waitFor(() => kubectl("get", "storageclass", "local"), {
    timeoutMs: 180_000,
    retry: hasExitCode,
    what: "the StorageClass",
  });
  await machine.write("/opt/coxswain/web.yaml", manifests);
  await kubectl("apply", "-f", machine.path("/opt/coxswain/web.yaml"));
  await kubectl("wait", "--for=condition=Ready", "--timeout=180s", "pod/web");
  assert.equal(await kubectl("get", "pvc", "data", "-o", "jsonpath={.status.phase}"), "Bound");
  // By name, and from the node by address. wget asks once for an address.
  const fromPod = () => kubectl("exec", "one", "--", "wget", "-q", "-T", "5", "-O", "-", "http://web.default.svc.cluster.local/");
  assert.equal(await waitFor(fromPod, { timeoutMs: 60_000, retry: hasExitCode, what: "the Service by name" }), "web\n");
  const address = await kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}");
  const fetched = `process.stdout.write(await (await fetch("http://${address}/")).text())`;
  assert.equal(await machine.run("/opt/coxswain/libexec/node", "--input-type=module", "-e", fetched), "web\n");
  const top = await waitFor(() => kubectl("top", "nodes"), { timeoutMs: 120_000, retry: hasExitCode, what: "kubectl top nodes" });
  assert.match(top, new RegExp(`^${node} +\\d+m +\\d+% +\\d+Mi `, "m"));
}
