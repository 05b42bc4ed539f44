import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { coxswain, MachineCluster, minutes } from "./cluster.ts";
import { kubeadmPki } from "./kubeadm-pki.ts";
import { importImages, whyNoMachine } from "./machine.ts";

const skip = whyNoMachine() ?? (process.env["COX_TEST_LONG"] === undefined ? "a long form: COX_TEST_LONG" : undefined);
/** Upstream's kubelet 1.20 or later, of the same architecture. */
const upstream = process.env["COX_UPSTREAM_KUBELET"];

describe("a machine that was set up by kubeadm with upstream's kubelet", { skip }, () => {
  let cluster: MachineCluster;
  const kubectl = (...args: string[]) => cluster.kubectl("cp1", ...args);
  const run = (name: string, script: string) => cluster.machine(name).shell(script);

  before(async () => {
    cluster = await MachineCluster.start();
    await cluster.boot("cp1");
    await cluster.boot("u1");
  });
  after(() => cluster?.remove());

  test("kubeadm's certificates, keys and kubeconfigs are used as they are", async () => {
    await cluster.machine("cp1").write("/root/pki.sh", kubeadmPki("cp1", cluster.address("cp1")));
    await run("cp1", "sh -e /root/pki.sh 2>&1");
    const sums = (): Promise<string> => run("cp1", "cd /etc/kubernetes; sha256sum -c /root/sums --quiet");
    await run("cp1", "cd /etc/kubernetes; find . -type f | xargs sha256sum >/root/sums; [ $(wc -l </root/sums) = 26 ]");
    const made = await cluster.init("cp1");
    assert.deepEqual([...made.matchAll(/^\[certs\] make .*\/([^/\n]+)$/gm)].map(([, name]) => name).toSorted(), [
      "kubelet.crt",
      "kubelet.key",
      "services.conf",
    ]);
    assert.equal(await sums(), "");
    await cluster.whenReady("cp1", "cp1");
    assert.doesNotMatch(await run("cp1", "coxswain certs check"), /cannot be read|not of this folder/);
    await run("cp1", "coxswain certs renew");
    await waitFor(() => kubectl("get", "--raw", "/readyz"), {
      retry: hasExitCode,
      timeoutMs: minutes(1),
      what: "the API server",
    });
  });

  test("upstream's kubelet joins with a bootstrap token as kubeadm sets it up, and gets a serving certificate that is approved", {
    skip: upstream === undefined ? "COX_UPSTREAM_KUBELET names no kubelet" : false,
  }, async () => {
    cpSync(upstream as string, cluster.machine("u1").path("/usr/bin/upstream-kubelet"));
    const token = (await run("cp1", "coxswain token create")).trim();
    const address = cluster.address("cp1");
    // Upstream's kubelet does not start without the kernel's log.
    await run("u1", "mkdir -p /etc/kubernetes/pki /var/lib/kubelet; mknod /dev/kmsg c 1 11");
    cluster.copy("/etc/kubernetes/pki/ca.crt", "cp1", "u1");
    // As kubeadm join writes them.
    await cluster.machine("u1").write(
      "/etc/kubernetes/bootstrap-kubelet.conf",
      `apiVersion: v1
clusters: [{name: kubernetes, cluster: {certificate-authority: /etc/kubernetes/pki/ca.crt, server: "https://${address}:6443"}}]
contexts: [{name: tls-bootstrap-token-user@kubernetes, context: {cluster: kubernetes, user: tls-bootstrap-token-user}}]
current-context: tls-bootstrap-token-user@kubernetes
kind: Config
users: [{name: tls-bootstrap-token-user, user: {token: ${token}}}]
`,
    );
    const configuration = await kubectl(
      "get",
      "configmap",
      "--namespace=kube-system",
      "kubelet-config-1.23",
      "--output=jsonpath={.data.kubelet}",
    );
    await cluster.machine("u1").write("/var/lib/kubelet/config.yaml", `${configuration}\nserverTLSBootstrap: true\n`);
    await cluster.machine("u1").write(
      "/etc/cni/net.d/10-machine.conflist",
      `{"cniVersion":"0.4.0","name":"machine","plugins":[{"type":"bridge","bridge":"cni0","isGateway":true,
"ipam":{"type":"host-local","ranges":[[{"subnet":"10.244.77.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}`,
    );
    await importImages(cluster.machine("u1"));
    await run(
      "u1",
      `systemd-run --unit=upstream-kubelet /usr/bin/upstream-kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \\
        --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml --cgroup-driver=cgroupfs --hostname-override=u1 \\
        --container-runtime=remote --container-runtime-endpoint=unix:///run/containerd/containerd.sock --node-ip=${cluster.address("u1")} --fail-swap-on=false`,
    );
    await cluster.whenReady("cp1", "u1").catch(async (err: Error) => {
      throw new Error(
        `${err.message}\n${await run("u1", "journalctl --unit upstream-kubelet --output=cat | grep -E '^[EF][0-9]|fatal|panic' | tail -12")}`,
      );
    });
    assert.match(await kubectl("get", "nodes"), /^u1 +Ready .* v1\.2\d\./m);
    assert.match(
      await kubectl("get", "csr"),
      /kubernetes\.io\/kube-apiserver-client-kubelet +system:bootstrap:\w+ .*Approved,Issued/,
    );
    const serving = await waitFor(
      async (seen) =>
        /^(\S+) .*kubernetes\.io\/kubelet-serving +system:node:u1 .*Pending/m.exec(seen(await kubectl("get", "csr")))?.[1],
      { timeoutMs: minutes(1), what: "a request for a serving certificate" },
    );
    await kubectl("certificate", "approve", serving);
    await waitFor(
      async (seen) =>
        seen(
          await run("u1", "echo | openssl s_client -connect 127.0.0.1:10250 2>/dev/null | openssl x509 -noout -issuer"),
        ).includes("CN = kubernetes\n"),
      { timeoutMs: minutes(2), retry: hasExitCode, what: "the certificate to be served" },
    );
    await kubectl(
      "run",
      "one",
      "--image=busybox:1.35",
      "--overrides",
      '{"spec":{"nodeName":"u1"}}',
      "--",
      "sh",
      "-c",
      "echo hello; sleep 3600",
    );
    await kubectl("wait", "--for=condition=Ready", "--timeout=180s", "pod/one");
    assert.equal(await kubectl("logs", "one"), "hello\n");
    assert.equal(await kubectl("exec", "one", "--", "echo", "hello"), "hello\n");
    await kubectl("delete", "pod", "one", "--now");
  });

  test("afterwards the same machine joins by coxswain join, with a kubeadm token", async () => {
    await run(
      "u1",
      "systemctl stop upstream-kubelet 2>/dev/null || true; rm -rf /etc/kubernetes/* /var/lib/kubelet/* /etc/cni/net.d/10-machine.conflist",
    );
    const line = (await run("cp1", "coxswain token create --print-join-command")).trim().split(" ").slice(1);
    await cluster.machine("u1").run(coxswain, ...line);
    await cluster.whenReady("cp1", "u1");
  });
});
