import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startLocalVolumes } from "@coxswain/cluster-services/local-volumes/part";
import { startDaemon } from "../framework/daemon-process.ts";
import { startAddOns } from "./add-ons.ts";

test("a claim gets a folder of the node that was chosen for it, and the folder is removed with the claim", async (t) => {
  const addOns = await startAddOns(t);
  const { server, client, clock, log, kubectl, create } = addOns;
  const root = mkdtempSync(join(tmpdir(), "cox-local-volumes-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  await startDaemon(t, server, {
    packageName: "controller-manager",
    user: "system:kube-controller-manager",
    flags: (kubeconfig) => [
      `--kubeconfig=${kubeconfig}`,
      "--controllers=persistentvolume-binder,pvc-protection,pv-protection",
      "--use-service-account-credentials=true",
      "--leader-elect=false",
      "--secure-port=0",
    ],
  });
  await create(nodes, { apiVersion: "v1", kind: "Node", metadata: { name: "n1", labels: { "kubernetes.io/hostname": "n1" } } });
  const part = await startLocalVolumes({
    ...addOns,
    nodeName: "n1",
    turns: new Turns(),
    flags: { "local-volumes-dir": root } as never,
    recorder: newEventRecorder({ client, component: "local-volumes", log, clock }),
    fail(err) {
      throw err;
    },
  });
  t.after(() => part.stop?.());
  await waitFor(() => client.list(storageClasses).then(({ items }) => items.length === 1));
  assert.match(
    await kubectl("get", "storageclass"),
    /local \(default\) +services.coxswain\/local +Delete +WaitForFirstConsumer +false/,
  );

  const where = { namespace: "default", name: "data" };
  const claimOf = (name: string, accessMode: string) => ({
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { namespace: "default", name },
    spec: { storageClassName: "local", accessModes: [accessMode], resources: { requests: { storage: "1Mi" } } },
  });
  await create(persistentVolumeClaims, claimOf("data", "ReadWriteOnce"), claimOf("shared", "ReadWriteMany"));
  // As the scheduler does for the first pod.
  for (const name of ["data", "shared"]) await kubectl("annotate", "pvc", name, "volume.kubernetes.io/selected-node=n1");
  const claim = await waitFor(async (seen) => {
    const one = seen(await server.client.get<PersistentVolumeClaim>(persistentVolumeClaims, where));
    return one.status?.phase === "Bound" && one;
  });
  const folder = join(root, claim.spec?.volumeName ?? "");
  assert.equal(claim.spec?.volumeName, `pvc-${claim.metadata.uid}`);
  writeFileSync(join(folder, "file"), "data");
  await waitFor(async () => {
    const events = await kubectl(
      "get",
      "events",
      "-o",
      "jsonpath={range .items[*]}{.involvedObject.name} {.reason}: {.message}\n{end}",
    );
    return (
      events.includes("data ProvisioningSucceeded: Successfully provisioned volume pvc-") &&
      events.includes(
        'shared ProvisioningFailed: failed to provision volume with StorageClass "local": access mode ReadWriteMany',
      )
    );
  });
  const larger = JSON.stringify({ spec: { resources: { requests: { storage: "2Mi" } } } });
  await assert.rejects(
    kubectl("patch", "pvc", "data", "-p", larger),
    /the storageclass that provisions the pvc must support resize/,
  );

  await kubectl("delete", "pvc", "data", "shared");
  await waitFor(async () => (await server.client.list<PersistentVolume>(persistentVolumes)).items.length === 0);
  assert.equal(existsSync(folder), false);
});
