import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { diagnose } from "./diagnose.ts";
import { importImages, type Machine, whyNoMachine } from "./machine.ts";
import { type Network, newNetwork } from "./network.ts";

/** The archive's program, before the links to it are made. */
const coxswain = "/opt/coxswain/bin/coxswain";
const isLong = process.env["COX_TEST_LONG"] !== undefined;
/** Of a command that is repeated: no step has anything to do. */
const allDone = /^(?!.*would).*$/s;
const minutes = (n: number): number => n * 60_000;
/** Each machine of the control plane has etcd's data in another folder than is usual, and a further name. */
const config = `apiVersion: kubeadm.k8s.io/v1beta3
kind: ClusterConfiguration
etcd: {local: {dataDir: /srv/etcd}}
apiServer: {certSANs: [api.example]}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 77
`;

describe("three machines with the archive and nothing else", { skip: whyNoMachine() }, () => {
  let network: Network;
  let first: Machine;
  let second: Machine;
  let third: Machine;
  let lines: { readonly controlPlane: string[]; readonly node: string[] };
  const kubectl = (...args: string[]) => first.kubectl("/etc/kubernetes/admin.conf", ...args);
  const isReady = async (name: string): Promise<boolean> =>
    new RegExp(`^${name} +Ready `, "m").test(await kubectl("get", "nodes"));
  const whenReady = (name: string) =>
    waitFor(() => isReady(name), { timeoutMs: minutes(3), retry: hasExitCode, what: `${name} to be ready` });
  const members = async (): Promise<string> =>
    first.run(
      "sh",
      "-c",
      'cd /etc/kubernetes/pki/etcd && curl -sf --cacert ca.crt --cert healthcheck-client.crt --key healthcheck-client.key -d "{}" https://127.0.0.1:2379/v3/cluster/member/list',
    );

  before(async () => {
    network = await newNetwork();
    [first, second, third] = await Promise.all([network.boot("m1", 11), network.boot("m2", 12), network.boot("m3", 13)]);
  });
  after(() => network?.remove());

  test("init says what it would do and changes nothing, then does it, also after a failure half way; again, without its configuration, there is nothing to do", async () => {
    await first.write("/root/init.yaml", config);
    const flags = ["init", "--config=/root/init.yaml"];
    const plan = await first.run(coxswain, ...flags, "--dry-run");
    assert.match(plan, /^\[etcd\] would start etcd$/m);
    await assert.rejects(first.run("ls", "/etc/kubernetes/pki", "/usr/bin/kubelet"), /No such file/);
    // A failure half way; it is continued without the configuration, too.
    await first.run("touch", "/srv/etcd");
    await assert.rejects(first.run(coxswain, ...flags), /^error: etcd: .*\/srv\/etcd/m);
    await first.run("rm", "/srv/etcd");
    const done = await first.run(coxswain, "init", "--upload-certs");
    await assert.rejects(first.run("ls", "/var/lib/coxswain/init.yaml"), /No such file/);
    lines = linesIn(done);
    // init waits for the API server only.
    await waitFor(() => first.run("systemctl", "is-active", "kube-controller-manager", "kube-scheduler", "coxswain-services"), {
      ...{ timeoutMs: minutes(1), retry: hasExitCode, what: "the daemons to be started" },
    });
    const again = await first.run("coxswain", "init");
    // But for the token, which is another one each time.
    assert.deepEqual(
      again.split("\n").filter((line) => line.startsWith("[") && !line.endsWith("nothing to do")).length,
      1,
      again,
    );
    await whenReady("m1");
    assert.match(await kubectl("get", "nodes"), /^m1 +Ready +control-plane,master /m);
    assert.deepEqual(await diagnose(first), { code: 0, findings: [] });
  });

  const skip = isLong ? false : "a long form: COX_TEST_LONG";
  const expectRefusal = async (flags: readonly string[], pattern: RegExp): Promise<void> =>
    assert.rejects(first.run("coxswain", "init", ...flags), (err: { stdout: string; stderr: string }) => {
      assert.match(err.stderr, pattern);
      assert.match(err.stderr, /^error: this machine has a control plane.*or give --config as when it was made\n$/);
      assert.equal(err.stdout, "");
      return true;
    });
  const sums = (): Promise<string> => {
    const files = "/etc/systemd/system /etc/kubernetes /var/lib/kubelet/config.yaml /var/lib/kubelet/kubeadm-flags.env";
    return first.shell(`find ${files} -type f | sort | xargs sha256sum`);
  };

  test("init without its configuration is refused while no API server answers, and changes nothing; so is its dry run", async () => {
    const before = await sums();
    await first.run("systemctl", "stop", "kube-apiserver");
    for (const flags of [["--upload-certs"], ["--dry-run"]])
      await expectRefusal(flags, /cannot read configmaps kube-system\/kubeadm-config of the cluster: .*ECONNREFUSED/);
    await first.run("systemctl", "start", "kube-apiserver");
    await waitFor(() => kubectl("get", "--raw", "/readyz"), { timeoutMs: minutes(1), retry: hasExitCode, what: "readyz" });
    assert.equal(await sums(), before);
  });

  test("so is it while the cluster has no configuration, or none that can be read; with it, the cluster gets it again", {
    skip,
  }, async () => {
    const before = await sums();
    const patch = (name: string, data: Readonly<Record<string, string | null>>) =>
      kubectl("patch", "configmap", "--namespace=kube-system", name, "--type=merge", `--patch=${JSON.stringify({ data })}`);
    await patch("kubelet-config-1.23", { kubelet: "a: [" });
    await expectRefusal([], /ConfigMap kube-system\/kubelet-config-1\.23: error converting YAML/);
    await patch("kubeadm-config", { ClusterConfiguration: null });
    await expectRefusal([], /ConfigMap kube-system\/kubeadm-config has no ClusterConfiguration/);
    await kubectl("delete", "configmap", "--namespace=kube-system", "kubeadm-config");
    await expectRefusal([], /ConfigMap kubeadm-config or kubelet-config-1\.23 of kube-system is missing, or forbidden/);
    await first.run("coxswain", "init", "--config=/root/init.yaml");
    assert.match(await first.run("coxswain", "init", "--dry-run"), /^\[upload-config\] nothing to do$/m);
    assert.equal(await sums(), before);
  });

  test("a machine with a wrong hash, token or certificate key is refused at once, and nothing is written", async () => {
    const wrong = lines.node.map((word) => word.replace(/^sha256:..../, "sha256:0000"));
    await assert.rejects(second.run(coxswain, ...wrong), /this is another cluster, or someone intercepts the connection/);
    const forged = lines.node.map((word) => word.replace(/^([a-z0-9]{6})\..*/, "$1.0123456789abcdef"));
    await assert.rejects(second.run(coxswain, ...forged), /is not signed with the secret of token/);
    const locked = lines.controlPlane.map((word) => word.replace(/^[0-9a-f]{64}$/, "0".repeat(64)));
    await assert.rejects(second.run(coxswain, ...locked), /does not decrypt the Secret kubeadm-certs/);
    await assert.rejects(second.run("ls", "/etc/kubernetes/pki"), /No such file/);
  });

  test("a machine that has the data of another etcd where the cluster has its own is refused, and nothing is written", async () => {
    await second.run("mkdir", "-p", "/srv/etcd/member");
    const error = /\[DirAvailable--srv-etcd\] \/srv\/etcd\/member has the data of an etcd/;
    await assert.rejects(second.run(coxswain, ...lines.controlPlane), error);
    await assert.rejects(second.run("ls", "/etc/kubernetes/pki"), /No such file/);
    await second.run("rm", "-r", "/srv/etcd");
  });

  test("join --control-plane gives etcd a second voting member", async () => {
    assert.match(await second.run(coxswain, ...lines.controlPlane), /the learner has caught up/);
    const shown = await second.run("openssl", "x509", "-noout", "-text", "-in", "/etc/kubernetes/pki/apiserver.crt");
    assert.match(shown, /DNS:api\.example/);
    await whenReady("m2");
    const both = JSON.parse(await members()).members as { name: string; isLearner?: boolean }[];
    assert.deepEqual(both.map(({ name, isLearner = false }) => [name, isLearner]).toSorted(), [
      ["m1", false],
      ["m2", false],
    ]);
    // Through the other API server, too.
    assert.match(await second.kubectl("/etc/kubernetes/admin.conf", "get", "nodes"), /^m2 +Ready +control-plane,master /m);
  });

  test("a third machine joins as a node, by a token that is made for it, and runs pods", async () => {
    const line = (await first.run("coxswain", "token", "create", "--ttl=1h", "--print-join-command")).trim().split(" ");
    await third.run(coxswain, ...line.slice(1));
    await whenReady("m3");
    await importImages(third);
    await kubectl("run", "one", "--image=busybox:1.35", "--restart=Never", "--", "sleep", "3600");
    await kubectl("wait", "--for=condition=Ready", "--timeout=180s", "pod/one");
    assert.equal(await kubectl("exec", "one", "--", "echo", "hello"), "hello\n");
    // Its certificate is of the cluster's making, and the token is gone from the machine.
    await assert.rejects(third.run("ls", "/etc/kubernetes/bootstrap-kubelet.conf"), /No such file/);
    assert.match(await kubectl("get", "csr"), /system:bootstrap:.*Approved,Issued/);
    const services = await third.run("systemctl", "is-active", "kubelet", "coxswain-services");
    assert.equal(services, "active\nactive\n");
    assert.match(await third.run(coxswain, ...line.slice(1), "--dry-run", "--ignore-preflight-errors=all"), allDone);
  });

  test("a node uses the other API server when one stands still or is killed, and after a restart finds the remaining one", {
    skip,
  }, async (t) => {
    const addresses = `${network.address(11)}:6443\n${network.address(12)}:6443\n`;
    await waitFor(async () => (await third.run("cat", "/var/lib/coxswain/api-servers")) === addresses, {
      what: "the node to know both API servers",
    });
    // Through 127.0.0.1, as the kubelet.
    const ask = () =>
      third.kubectl(
        "/etc/kubernetes/services.conf",
        "get",
        "services",
        "--namespace=default",
        "--output=name",
        "--request-timeout=5s",
      );
    const untilAnswered = async (): Promise<number> => {
      const begin = performance.now();
      await waitFor(async () => (await ask()).includes("service/kubernetes\n"), { retry: hasExitCode, timeoutMs: minutes(1) });
      return Math.round(performance.now() - begin);
    };
    await ask();
    const signal = (machine: Machine, name: string) => machine.run("systemctl", "kill", `--signal=${name}`, "kube-apiserver");
    await signal(first, "SIGSTOP");
    t.diagnostic(`first stopped: ${await untilAnswered()} ms`);
    await signal(first, "SIGCONT");
    await signal(second, "SIGKILL");
    t.diagnostic(`second killed: ${await untilAnswered()} ms`);
    await second.run("systemctl", "stop", "kube-apiserver");
    await third.run("systemctl", "restart", "coxswain-services", "kubelet");
    await untilAnswered();
  });

  test("reset of a machine of the control plane takes its member out of etcd", async () => {
    await second.run("coxswain", "reset", "--force");
    assert.equal((JSON.parse(await members()).members as unknown[]).length, 1);
    assert.equal(await second.run("ls", "-A", "/srv/etcd"), "");
    assert.equal(await kubectl("get", "--raw", "/readyz"), "ok");
    await kubectl("delete", "node", "m2");
  });

  test("tokens are listed and deleted, and a deleted one cannot be used to join", async () => {
    const [, id = ""] = /--token (\w{6})\./.exec(lines.node.join(" ")) ?? [];
    assert.match(await first.run("coxswain", "token", "list"), new RegExp(`^${id}\\.\\w{16} +23h`, "m"));
    await first.run("coxswain", "token", "delete", id);
    assert.doesNotMatch(await first.run("coxswain", "token", "list"), new RegExp(`^${id}`, "m"));
    await assert.rejects(first.run("coxswain", "token", "delete", id), new RegExp(`there is no token ${id}`));
  });

  test("reset removes the pods of a node, and its kubelet", async () => {
    await third.run("coxswain", "reset", "--force");
    assert.equal((await third.run("ctr", "-n", "k8s.io", "containers", "list", "--quiet")).trim(), "");
    assert.equal(
      await third.run("sh", "-c", "ls -A /etc/kubernetes /var/lib/kubelet"),
      "/etc/kubernetes:\n\n/var/lib/kubelet:\n",
    );
    assert.match(await third.run(coxswain, "reset", "--dry-run"), /^$/);
  });
});

/** The join lines that `init` prints, as words after `coxswain`. */
function linesIn(output: string): { controlPlane: string[]; node: string[] } {
  const found = output
    .split("\n")
    .filter((line) => line.startsWith("  coxswain join "))
    .map((line) => line.trim().split(" ").slice(1));
  assert.equal(found.length, 2, output);
  return { controlPlane: found[0] as string[], node: found[1] as string[] };
}
