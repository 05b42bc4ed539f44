import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { writeImage } from "@coxswain/deploy/image";
import { settings } from "../framework/kubectl.ts";
import { coxswain, MachineCluster, minutes } from "./cluster.ts";
import { components } from "./kubeadm-manifests.ts";
import { importImages, unpackRelease, whyNoMachine } from "./machine.ts";

const skip = whyNoMachine() ?? (process.env["COX_TEST_LONG"] === undefined ? "a long form: COX_TEST_LONG" : undefined);
const config = `apiVersion: kubeadm.k8s.io/v1beta3
kind: ClusterConfiguration
apiServer: {timeoutForControlPlane: 20s}
`;

describe("coxswain init --static-pods", { skip }, () => {
  let cluster: MachineCluster;
  const folder = mkdtempSync(join(tmpdir(), "cox-static-pods-"));
  const run = (script: string) => cluster.machine("m1").shell(script);
  const init = (timeout = "20s") =>
    cluster
      .machine("m1")
      .write("/root/init.yaml", config.replace("20s", timeout))
      .then(() => run(`${coxswain} init --static-pods --config=/root/init.yaml`));

  before(async () => {
    cluster = await MachineCluster.start();
    await cluster.boot("m1");
    await unpackRelease(folder);
    await writeImage(
      settings.root,
      folder,
      Object.values(components).map(({ image }) => image),
    );
    cpSync(join(folder, "coxswain-image.tar"), cluster.machine("m1").path("/root/coxswain-image.tar"));
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await cluster?.remove();
  });

  test("without images it fails midway with the remedy; with them the same command continues, and the next has nothing to do", async () => {
    await assert.rejects(init(), /control-plane: waited 20s for the API server to be ready.*images are imported manually/s);
    await importImages(cluster.machine("m1"));
    await run("ctr -n k8s.io images import /root/coxswain-image.tar");
    const done = await init("3m");
    assert.match(done, /^\[certs\] nothing to do$/m);
    await cluster.whenReady("m1", "m1");
    const again = await init("3m");
    assert.deepEqual(
      again.split("\n").filter((line) => line.startsWith("[") && !line.endsWith("nothing to do")).length,
      1,
      again,
    );
    const pods = (): Promise<string> => cluster.kubectl("m1", "get", "pods", "--namespace=kube-system");
    for (const name of Object.keys(components))
      await waitFor(async (seen) => new RegExp(`^${name}-m1 +1/1 +Running`, "m").test(seen(await pods())), {
        timeoutMs: minutes(2),
        retry: hasExitCode,
        what: `${name} to be ready`,
      });
  });

  test("reset undoes it, and units can take its place", async () => {
    await run("coxswain reset --force");
    assert.equal(
      await run("ctr -n k8s.io containers list --quiet; ls -A /etc/kubernetes/manifests /var/lib/etcd /var/lib/kubelet"),
      "/etc/kubernetes/manifests:\n\n/var/lib/etcd:\n\n/var/lib/kubelet:\n",
    );
    assert.equal(await run(`${coxswain} reset --dry-run`), "");
    await cluster.init("m1");
    await cluster.whenReady("m1", "m1");
  });
});
