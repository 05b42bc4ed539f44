import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { coxswainVersion } from "@coxswain/apimachinery/process/release";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { checkServices } from "./cluster-services.ts";
import { bootComposeMachine, type ComposeMachine, whyNoCompose } from "./compose-machine.ts";
import type { Machine } from "./machine.ts";

const services = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "coxswain-services"];

const why = process.env["COX_TEST_LONG"] === undefined ? "long: only with ./cox test --long" : whyNoCompose();

describe("the compose file with a real Docker", { skip: why }, () => {
  let machine: Machine;
  let docker: ComposeMachine["docker"];
  let compose: ComposeMachine["compose"];
  let kubectl: ComposeMachine["kubectl"];
  const inspect = async (service: string, format: string) =>
    (await docker("inspect", "--format", format, `cox_${service}_1`)).trim();
  const areHealthy = async (): Promise<boolean> => {
    const states = await Promise.all(services.map((service) => inspect(service, "{{.State.Health.Status}}")));
    return states.every((state) => state === "healthy");
  };
  const nodeIsReady = async (): Promise<boolean> => /^coxswain +Ready /m.test(await kubectl("get", "nodes"));

  before(async () => {
    ({ machine, docker, compose, kubectl } = await bootComposeMachine());
  });
  after(() => machine?.kill());

  test("up brings a ready node, and a pod runs on it", async () => {
    await compose(["up", "--detach"]);
    await waitFor(areHealthy, { timeoutMs: 180_000, retry: hasExitCode, what: "healthy services" });
    await waitFor(nodeIsReady, { timeoutMs: 180_000, retry: hasExitCode, what: "a ready node" });
    await waitFor(() => kubectl("get", "serviceaccount", "default"), {
      timeoutMs: 180_000,
      retry: hasExitCode,
      what: "the default service account",
    });
    await kubectl("run", "one", "--image=busybox:1.35", "--restart=Never", "--", "sleep", "3600");
    await kubectl("wait", "--for=condition=Ready", "--timeout=180s", "pod/one");
    assert.equal(await kubectl("exec", "one", "--", "echo", "hello"), "hello\n");
  });

  test("a Service answers, a name resolves, a claim gets a volume, and kubectl top knows the node", () =>
    checkServices(kubectl, machine, "coxswain"));

  test("only this machine reaches the API server, and the control plane has no rights", async () => {
    assert.equal(await inspect("kube-apiserver", '{{(index (index .NetworkSettings.Ports "6443/tcp") 0).HostIp}}'), "127.0.0.1");
    for (const service of services.slice(0, -2)) {
      assert.equal(await inspect(service, "{{.HostConfig.CapDrop}} {{.HostConfig.ReadonlyRootfs}}"), "[ALL] true");
    }
  });

  test("a service that crashes comes back by itself, and nothing is lost", async () => {
    for (const service of services) {
      const pid = Number(await inspect(service, "{{.State.Pid}}"));
      assert.ok(pid > 1, `${service} does not run`); // kill(0) would signal this test's own process group
      await machine.run("kill", "-KILL", String(pid));
    }
    for (const service of services) {
      await waitFor(async () => (await inspect(service, "{{.RestartCount}}")) === "1", {
        timeoutMs: 180_000,
        retry: hasExitCode,
        what: `${service} again`,
      });
    }
    await waitFor(areHealthy, { timeoutMs: 180_000, retry: hasExitCode, what: "healthy services" });
    await waitFor(nodeIsReady, { timeoutMs: 180_000, retry: hasExitCode, what: "a ready node" });
    assert.match(await kubectl("get", "pod", "one"), /^one +1\/1 +Running +0 /m);
  });

  test("containers ended by docker kill start again with up, and nothing is lost", async () => {
    await docker("kill", "--signal=KILL", ...services.map((service) => `cox_${service}_1`));
    await compose(["up", "--detach"]);
    await waitFor(areHealthy, { timeoutMs: 180_000, retry: hasExitCode, what: "healthy services" });
    await waitFor(nodeIsReady, { timeoutMs: 180_000, retry: hasExitCode, what: "a ready node" });
    assert.match(await kubectl("get", "pod", "one"), /^one +1\/1 +Running +0 /m);
  });

  test("the image runs a test cluster, and ends it when it is stopped", async () => {
    const limits = ["--cap-drop=ALL", "--read-only", "--tmpfs=/tmp", "--publish=127.0.0.1:7443:7443"];
    const program = ["coxswain", "testing", "--host=0.0.0.0", "--port=7443", "--nodes=2"];
    await docker("run", "--detach", "--name=testing", ...limits, `coxswain:${coxswainVersion}`, ...program);
    // Docker's client writes the program's stderr to its own: what is left is the kubeconfig.
    const kubeconfig = await waitFor(() => docker("logs", "testing"), { timeoutMs: 180_000, what: "a kubeconfig" });
    await machine.write("/tmp/testing.conf", kubeconfig);
    const inside = (...args: string[]) => machine.kubectl("/tmp/testing.conf", ...args);
    assert.equal(await inside("get", "nodes", "-o=name"), "node/node-1\nnode/node-2\n");
    await inside("create", "deployment", "web", "--image=nginx", "--replicas=3");
    await inside("rollout", "status", "deployment/web", "--timeout=120s");
    assert.equal((await inside("get", "pods", "-o=name")).trim().split("\n").length, 3);
    // 137 if it has to be killed.
    await docker("stop", "--time=60", "testing");
    assert.equal((await docker("inspect", "--format={{.State.ExitCode}}", "testing")).trim(), "143");
    await docker("rm", "testing");
  });
});
