import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { appendFileSync, existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { installFlexDriver, success } from "@coxswain/apimachinery/testing/flex-driver";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { Client, credentials } from "@grpc/grpc-js";
import { type RunningAgent, startAgent } from "./agent.ts";
import { newAgentConfig } from "./config.ts";
import { kubelet } from "./flags.ts";
import { formatCpus, parseCpus, without } from "./resources/cpu/cpu-set.ts";
import { busyboxImage, canRunContainerd, ctr, type RunningContainerd, startContainerd } from "./testing/containerd.ts";
import { aDevice, startPlugin } from "./testing/device-plugin.ts";

/** Real containers: starting and stopping them takes far longer on a loaded machine. */
const patiently = { timeoutMs: 120_000 };

if (await canRunContainerd()) {
  const cgroupRoot = `/coxagent${process.pid}`;
  let containerd: RunningContainerd | undefined;
  after(async () => {
    await containerd?.stop();
    await removeCgroups(cgroupRoot);
  });

  test("a kubelet without an API server runs static pods, keeps them across its restart, and stops them", async () => {
    containerd = await startContainerd();
    const { dir, socket } = containerd;
    const manifests = join(dir, "manifests");
    await mkdir(manifests);
    await writeFile(join(manifests, ".hidden.json"), "not read");
    await writeFile(join(manifests, "broken.json"), "{");
    await writeFile(
      join(manifests, "web.json"),
      JSON.stringify({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "web" },
        spec: {
          terminationGracePeriodSeconds: 1,
          volumes: [
            { name: "shared", emptyDir: {} },
            { name: "flex", flexVolume: { driver: "example.com/disk" } },
            { name: "lun", flexVolume: { driver: "example.com/lun" } },
          ],
          initContainers: [
            {
              name: "init",
              image: busyboxImage,
              command: ["sh", "-c", "echo made > /shared/file"],
              volumeMounts: [{ name: "shared", mountPath: "/shared" }],
            },
          ],
          containers: [
            {
              name: "main",
              image: busyboxImage,
              command: ["sh", "-c", "echo $(WHO) saw $(cat /sub), $(cat /flex/file) and $(cat /lun/file); exec sleep 1000"],
              env: [{ name: "WHO", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
              volumeMounts: [
                { name: "shared", mountPath: "/sub", subPath: "file" },
                { name: "flex", mountPath: "/flex" },
                { name: "lun", mountPath: "/lun" },
              ],
              resources: { limits: { memory: "32Mi" } },
              readinessProbe: { exec: { command: ["true"] }, periodSeconds: 1 },
            },
          ],
        },
      }),
    );

    const allowed = "--allow-metric-labels=kubelet_runtime_operations_total,operation_type=version";
    await installFlexDriver(join(dir, "exec/example.com~disk"), "disk", mountingDriver);
    await installFlexDriver(join(dir, "exec/example.com~lun"), "lun", attachingDriver);
    const pluginDir = `--volume-plugin-dir=${join(dir, "exec")}`;
    let agent = await start(dir, socket, manifests, cgroupRoot, allowed, pluginDir);
    assert.equal(agent.healthzPort, 0, "--healthz-port=0: no health server");
    const ready = async (): Promise<Pod | undefined> => (await podsOf(agent)).find(isReady);
    const pod = await waitFor(ready, { ...patiently, what: "the pod to be ready" });
    assert.equal(pod.metadata.name, "web-node1");
    assert.equal(await get(agent, "/containerLogs/default/web-node1/main"), "web-node1 saw made, mounted and attached\n");
    const id = pod.status?.containerStatuses?.[0]?.containerID;
    const cgroup = await readFile(`/proc/${await pidOf(socket, id)}/cgroup`, "utf8");
    assert.match(cgroup, new RegExp(`memory:${cgroupRoot}/kubepods/burstable/pod${pod.metadata.uid}/`));

    const reported = [
      ...(await get(agent, "/metrics")).matchAll(/^kubelet_runtime_operations_total\{operation_type="(\w+)"\}/gm),
    ];
    assert.deepEqual(new Set(reported.map(([, operation]) => operation)), new Set(["version", "unexpected"]));

    await agent.stop();
    const resolvConf = join(dir, "resolv.conf");
    await writeFile(resolvConf, "search a.test b.test c.test d.test\n");
    agent = await start(dir, socket, manifests, cgroupRoot, pluginDir, `--resolv-conf=${resolvConf}`, "--cluster-domain=k");
    const reportedOnce = (await readFile(join(dir, "agent.log"), "utf8")).split("CheckLimitsForResolvConf").length - 1;
    assert.equal(reportedOnce, 1, "resolver configurations are checked at the start: the second has too many domains");
    const again = await waitFor(ready, { ...patiently, what: "the pod to be ready again" });
    assert.deepEqual(
      [again.status?.containerStatuses?.[0]?.containerID, again.status?.containerStatuses?.[0]?.restartCount],
      [id, 0],
    );

    await rm(join(manifests, "web.json"));
    await waitFor(async () => (await ctr(socket, "containers", "ls", "-q")).stdout.trim() === "", {
      ...patiently,
      what: "all containers to be gone",
    });
    await waitFor(async () => (await readdir(join(dir, "kubelet/pods"))).length === 0, {
      ...patiently,
      what: "the pod's folder to be gone",
    });
    assert.deepEqual(await readdir(join(dir, "logs")), []);
    const disks = join(dir, "kubelet/plugins/kubernetes.io/flexvolume/example.com/lun/mounts");
    await waitFor(async () => (await readdir(disks)).length === 0, { ...patiently, what: "the disk to be unmounted" });
    const commands = async () => (await readFile(join(dir, "exec/example.com~lun/requested"), "utf8")).split("\n");
    await waitFor(async () => (await commands()).includes("detach"), { ...patiently, what: "the disk to be detached" });
    assert.equal((await commands()).filter((command) => command === "attach").length, 1, "not again after the restart");
    await agent.stop();
  });

  test("a container gets an exclusive CPU and a plugin's devices; the others share the rest", {
    skip: cpus().length < 2 && "needs two CPUs",
  }, async () => {
    containerd ??= await startContainerd();
    const { socket } = containerd;
    const dir = await mkdtemp(join(tmpdir(), "cox-pinned-"));
    after(() => rm(dir, { recursive: true, force: true }));
    const manifests = join(dir, "manifests");
    await mkdir(manifests);
    const agent = await start(
      dir,
      socket,
      manifests,
      cgroupRoot,
      "--cpu-manager-policy=static",
      "--cpu-manager-reconcile-period=200ms",
      `--system-reserved=cpu=${cpus().length - 1}`,
      "--file-check-frequency=200ms",
    );
    const plugins = join(dir, "kubelet/device-plugins");
    const access = (ids: readonly string[]) => ({
      envs: { LIGHTS: ids.join() },
      devices: ids.map((id) => ({ hostPath: "/dev/null", containerPath: `/dev/light-${id}`, permissions: "rw" })),
    });
    const plugin = await startPlugin(plugins, "example.com/light", { devices: [aDevice("red"), aDevice("green")], access });
    try {
      await plugin.register();
      const pod = (name: string, limits: Record<string, string>): Promise<void> =>
        writeFile(
          join(manifests, `${name}.json`),
          JSON.stringify({
            apiVersion: "v1",
            kind: "Pod",
            metadata: { name },
            spec: {
              terminationGracePeriodSeconds: 1,
              containers: [
                {
                  name: "main",
                  image: busyboxImage,
                  command: ["sh", "-c", "echo lights $LIGHTS $(ls /dev | grep light); exec sleep 1000"],
                  resources: { limits },
                },
              ],
            },
          }),
        );
      await pod("shared", { memory: "32Mi" });
      /** The CPUs that the Pod's first process is allowed to run on; undefined until the Pod is ready. */
      const cpusOf = async (name: string): Promise<string | undefined> => {
        const found = (await podsOf(agent)).find((one) => one.metadata.name === `${name}-node1` && isReady(one));
        const pid = await pidOf(socket, found?.status?.containerStatuses?.[0]?.containerID);
        return found && /^Cpus_allowed_list:\s*(.*)$/m.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1];
      };
      const all = await waitFor(() => cpusOf("shared"), { ...patiently, what: "the first pod" });
      await pod("pinned", { cpu: "1", memory: "32Mi", "example.com/light": "2" });
      const own = await waitFor(() => cpusOf("pinned"), { ...patiently, what: "the second pod" });
      assert.equal(parseCpus(own).length, 1);
      assert.match(await get(agent, "/containerLogs/default/pinned-node1/main"), /^lights green,red light-green light-red\n$/);
      const rest = formatCpus(without(parseCpus(all), parseCpus(own)));
      await waitFor(async () => (await cpusOf("shared")) === rest, { ...patiently, what: "the first pod to leave that CPU" });
      assert.match(await readFile(join(dir, "kubelet/cpu_manager_state"), "utf8"), new RegExp(`"main":"${own}"`));
      await listPodResources(join(dir, "kubelet/pod-resources/kubelet.sock"));
      const page = await get(agent, "/metrics");
      for (const series of [
        'kubelet_device_plugin_registration_total{resource_name="example.com/light"} 1',
        'kubelet_device_plugin_alloc_duration_seconds_count{resource_name="example.com/light"} 1',
        'kubelet_pod_resources_endpoint_requests_total{server_api_version="v1"} 1',
      ])
        assert.ok(page.includes(`\n${series}\n`), series);

      await pod("more", { cpu: "1", memory: "32Mi" });
      const refused = await waitFor(async () => (await podsOf(agent)).find((one) => one.metadata.name === "more-node1"), {
        ...patiently,
        what: "the third pod",
      });
      assert.deepEqual([refused.status?.phase, refused.status?.reason], ["Failed", "UnexpectedAdmissionError"]);
      for (const name of ["shared", "pinned", "more"]) await rm(join(manifests, `${name}.json`));
      await waitFor(async () => (await readdir(join(dir, "kubelet/pods"))).length === 0, {
        ...patiently,
        what: "the pods to go",
      });
    } finally {
      plugin.stop();
      await agent.stop();
    }
  });

  test("with --runonce the program ends when its pods run, and leaves them running", async () => {
    containerd ??= await startContainerd();
    const { socket } = containerd;
    const dir = await mkdtemp(join(tmpdir(), "cox-once-"));
    after(() => rm(dir, { recursive: true, force: true }));
    await mkdir(join(dir, "manifests"));
    const containers = [{ name: "main", image: busyboxImage, command: ["sleep", "1000"] }];
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "once" }, spec: { hostNetwork: true, containers } };
    await writeFile(join(dir, "manifests/once.json"), JSON.stringify(pod));
    const main = join(import.meta.dirname, "main.ts");
    await promisify(execFile)(process.execPath, [
      "-C",
      "cox-source",
      main,
      "--runonce",
      ...agentFlags(dir, socket, join(dir, "manifests"), cgroupRoot),
      "--make-iptables-util-chains=false",
      `--oom-score-adj=${(await readFile("/proc/self/oom_score_adj", "utf8")).trim()}`,
    ]);
    const { stdout } = await ctr(socket, "tasks", "ls");
    assert.equal(stdout.split("\n").filter((line) => line.includes("RUNNING")).length, 2, "its sandbox and its container");
  });
}

const agentFlags = (dir: string, socket: string, manifests: string, cgroupRoot: string): string[] => [
  "--container-runtime=remote",
  `--container-runtime-endpoint=unix://${socket}`,
  `--root-dir=${join(dir, "kubelet")}`,
  `--cert-dir=${join(dir, "pki")}`,
  `--pod-manifest-path=${manifests}`,
  `--cgroup-root=${cgroupRoot}`,
  "--hostname-override=node1",
  "--healthz-port=0",
  "--read-only-port=0",
  "--address=127.0.0.1",
];

/** A FlexVolume driver that mounts a file system with one file. */
const mountingDriver = {
  init: `echo '{"status":"Success","capabilities":{"attach":false}}'`,
  mount: `mount -t tmpfs tmpfs "$2" && echo mounted > "$2/file" && ${success}`,
  unmount: `umount "$2" && ${success}`,
};

/** An attachable FlexVolume driver: attaches such a file system as a disk and leaves mounting to the agent. */
const attachingDriver = {
  init: success,
  attach: `echo '{"status":"Success","device":"/dev/lun"}'`,
  mountdevice: `mount -t tmpfs tmpfs "$2" && echo attached > "$2/file" && ${success}`,
};

async function start(
  dir: string,
  socket: string,
  manifests: string,
  cgroupRoot: string,
  ...more: string[]
): Promise<RunningAgent> {
  const { values, set } = parseFlags(kubelet.flags, [...agentFlags(dir, socket, manifests, cgroupRoot), ...more]);
  const config = { ...newAgentConfig(values, set), port: 0 };
  return startAgent({
    config,
    api: undefined,
    featureGates: newFeatureGates("kubelet", {}),
    clock: realClock,
    log: newLogger({ verbosity: 3, write: (line) => appendFileSync(join(dir, "agent.log"), line) }),
    podLogsDir: join(dir, "logs"),
    containerLogsDir: join(dir, "log-links"),
  });
}

function isReady(pod: Pod): boolean {
  return (pod.status?.conditions ?? []).some(({ type, status }) => type === "Ready" && status === "True");
}

async function podsOf(agent: RunningAgent): Promise<Pod[]> {
  return JSON.parse(await get(agent, "/pods")).items;
}

function listPodResources(socket: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const client = new Client(`unix://${socket}`, credentials.createInsecure());
  const bytes = (message: Buffer): Buffer => message;
  client.makeUnaryRequest("/v1.PodResourcesLister/List", bytes, bytes, Buffer.alloc(0), (err) => (err ? reject(err) : resolve()));
  return promise.finally(() => client.close());
}

function get(agent: RunningAgent, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port: agent.port, path, rejectUnauthorized: false, agent: false }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("end", () => resolve(Buffer.concat(pieces).toString("utf8")));
    });
    sent.on("error", reject);
    sent.end();
  });
}

async function pidOf(socket: string, containerId: string | undefined): Promise<string> {
  const { stdout } = await ctr(socket, "tasks", "ls");
  const line = stdout.split("\n").find((candidate) => candidate.startsWith(containerId?.replace("containerd://", "") ?? "?"));
  return line?.split(/\s+/)[1] ?? "";
}

/** Retries: a cgroup cannot be removed until its killed processes have exited. */
async function removeCgroups(root: string): Promise<void> {
  const run = promisify(execFile);
  for (const controller of await readdir("/sys/fs/cgroup")) {
    const path = `/sys/fs/cgroup/${controller}${root}`;
    await waitFor(
      async () => {
        await run("find", [path, "-depth", "-type", "d", "-delete"]).catch(() => undefined);
        return !existsSync(path);
      },
      { ...patiently, what: `${path} to be gone` },
    );
  }
}
