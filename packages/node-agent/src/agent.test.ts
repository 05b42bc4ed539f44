import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { realClock } from "@coxswain/apimachinery/clock/clock";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { newLogger } from "@coxswain/apimachinery/logging/logger";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type RunningAgent, startAgent } from "./agent.ts";
import { newAgentConfig } from "./config.ts";
import { kubelet } from "./flags.ts";
import { busyboxImage, canRunContainerd, ctr, type RunningContainerd, startContainerd } from "./testing/containerd.ts";

if (await canRunContainerd()) {
  const cgroupRoot = `/coxagent${process.pid}`;
  let containerd: RunningContainerd | undefined;
  after(async () => {
    await containerd?.stop();
    await removeCgroups(cgroupRoot);
  });

  test("an agent without an API server runs pods from files, keeps them over its own restart, and ends them", async () => {
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
          volumes: [{ name: "shared", emptyDir: {} }],
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
              command: ["sh", "-c", "echo $(WHO) saw $(cat /sub); exec sleep 1000"],
              env: [{ name: "WHO", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
              volumeMounts: [{ name: "shared", mountPath: "/sub", subPath: "file" }],
              resources: { limits: { memory: "32Mi" } },
              readinessProbe: { exec: { command: ["true"] }, periodSeconds: 1 },
            },
          ],
        },
      }),
    );

    let agent = await start(dir, socket, manifests, cgroupRoot);
    assert.equal(agent.healthzPort, 0, "--healthz-port=0: nobody listens for health");
    const ready = async (): Promise<Pod | undefined> => (await podsOf(agent)).find(isReady);
    const pod = await waitFor(ready, { timeoutMs: 30_000, what: "the pod to be ready" });
    assert.equal(pod.metadata.name, "web-node1");
    assert.equal(await get(agent, "/containerLogs/default/web-node1/main"), "web-node1 saw made\n");
    const id = pod.status?.containerStatuses?.[0]?.containerID;
    const cgroup = await readFile(`/proc/${await pidOf(socket, id)}/cgroup`, "utf8");
    assert.match(cgroup, new RegExp(`memory:${cgroupRoot}/kubepods/burstable/pod${pod.metadata.uid}/`));

    await agent.stop();
    agent = await start(dir, socket, manifests, cgroupRoot);
    const again = await waitFor(ready, { timeoutMs: 30_000, what: "the pod to be ready again" });
    assert.deepEqual(
      [again.status?.containerStatuses?.[0]?.containerID, again.status?.containerStatuses?.[0]?.restartCount],
      [id, 0],
    );

    await rm(join(manifests, "web.json"));
    await waitFor(async () => (await ctr(socket, "containers", "ls", "-q")).stdout.trim() === "", {
      timeoutMs: 30_000,
      what: "all containers to be gone",
    });
    await waitFor(async () => (await readdir(join(dir, "kubelet/pods"))).length === 0, { what: "the pod's folder to be gone" });
    assert.deepEqual(await readdir(join(dir, "logs")), []);
    await agent.stop();
  });
}

async function start(dir: string, socket: string, manifests: string, cgroupRoot: string): Promise<RunningAgent> {
  const { values, set } = parseFlags(kubelet.flags, [
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
  ]);
  const config = { ...newAgentConfig(values, set), port: 0 };
  return startAgent({
    config,
    api: undefined,
    featureGates: newFeatureGates("kubelet", {}),
    clock: realClock,
    log: newLogger({ write: () => undefined }),
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

async function removeCgroups(root: string): Promise<void> {
  const run = promisify(execFile);
  for (const controller of await readdir("/sys/fs/cgroup")) {
    await run("find", [`/sys/fs/cgroup/${controller}${root}`, "-depth", "-type", "d", "-delete"]).catch(() => undefined);
  }
}
