import assert from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { Client, credentials } from "@grpc/grpc-js";
import type { OpenedManagers } from "../resources/open-resource-managers.ts";
import type { MessagesOf } from "../runtime/messages.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { aDevice } from "../testing/device-plugin.ts";
import { podResourcesMessages, servePodResources } from "./pod-resources.ts";

const gpu = "example.com/gpu";
const managers = {
  cpu: { exclusiveCpusOf: () => [1, 3], allocatable: () => [1, 2, 3] },
  memory: {
    blocksOf: () => [{ nodes: [0, 1], type: "memory", sizeBytes: 1024 }],
    allocatable: () => [{ nodes: [0], type: "memory", sizeBytes: 2048 }],
  },
  devices: {
    givenTo: (_: string, container: string) =>
      container === "main"
        ? [
            {
              podUid: "uid-1",
              container,
              resource: gpu,
              byNode: new Map([
                [-1, ["a"]],
                [0, ["b", "c"]],
              ]),
              answer: Buffer.alloc(0),
            },
          ]
        : [],
    healthy: () => new Map([[gpu, [aDevice("a"), aDevice("b", 1)]]]),
  },
} as unknown as OpenedManagers;

/** API versions of the requests. */
const requested: string[] = [];

type MessageName = keyof MessagesOf<typeof podResourcesMessages>;

async function call(t: TestContext, path: string, response: MessageName, allocatable = true): Promise<unknown> {
  const dir = await mkdtemp(join(tmpdir(), "cox-podres-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const pod = aNodePod({ containers: [aContainer(), aContainer({ name: "other" })] });
  await writeFile(join(dir, "kubelet.sock"), "left by an agent that was killed");
  const onRequest = (version: string) => void requested.push(version);
  const server = await servePodResources({ dir, managers, pods: () => [pod], allocatable, onRequest, log: discardLogger });
  t.after(() => server.close());
  const client = new Client(`unix://${join(dir, "kubelet.sock")}`, credentials.createInsecure());
  t.after(() => client.close());
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      path,
      (message: object) => podResourcesMessages.encode("Empty", message),
      (bytes: Buffer) => podResourcesMessages.decode(response, bytes),
      {},
      (err, answer) => (err === null ? resolve(answer) : reject(new Error(err.details))),
    );
  });
}

test("only owner and group reach the folder of the socket", async (t) => {
  const parent = await mkdtemp(join(tmpdir(), "cox-podres-"));
  t.after(() => rm(parent, { recursive: true, force: true }));
  const dir = join(parent, "pod-resources");
  const server = await servePodResources({ dir, managers, pods: () => [], allocatable: true, log: discardLogger });
  server.close();
  assert.equal((await stat(dir)).mode & 0o777, 0o750);
});

const at = (...nodes: number[]) => ({ nodes: nodes.map((ID) => ({ ID })) });

test("List reports the exclusive CPUs, memory and devices of containers", async (t) => {
  const memory = [{ memoryType: "memory", size: 1024, topology: at(0, 1) }];
  const devices = [
    { resourceName: gpu, deviceIds: ["a"], topology: null },
    { resourceName: gpu, deviceIds: ["b", "c"], topology: at(0) },
  ];
  assert.deepEqual(await call(t, "/v1.PodResourcesLister/List", "ListPodResourcesResponse"), {
    podResources: [
      {
        name: "web",
        namespace: "default",
        containers: [
          { name: "main", devices, cpuIds: [1, 3], memory },
          { name: "other", devices: [], cpuIds: [1, 3], memory },
        ],
      },
    ],
  });
});

test("v1alpha1 reports only devices", async (t) => {
  const answer = await call(t, "/v1alpha1.PodResourcesLister/List", "ListPodResourcesResponse");
  const [pod] = (answer as { podResources: { containers: unknown[] }[] }).podResources;
  assert.deepEqual(pod?.containers[0], {
    name: "main",
    devices: [
      { resourceName: gpu, deviceIds: ["a"], topology: null },
      { resourceName: gpu, deviceIds: ["b", "c"], topology: null },
    ],
    cpuIds: [],
    memory: [],
  });
});

test("GetAllocatableResources reports assignable resources when its gate is on", async (t) => {
  const path = "/v1.PodResourcesLister/GetAllocatableResources";
  assert.deepEqual(await call(t, path, "AllocatableResourcesResponse"), {
    devices: [
      { resourceName: gpu, deviceIds: ["a"], topology: null },
      { resourceName: gpu, deviceIds: ["b"], topology: at(1) },
    ],
    cpuIds: [1, 2, 3],
    memory: [{ memoryType: "memory", size: 2048, topology: at(0) }],
  });
  await assert.rejects(call(t, path, "AllocatableResourcesResponse", false), {
    message: "Pod Resources API GetAllocatableResources disabled",
  });
});

test("requests are reported by their version", async (t) => {
  requested.length = 0;
  for (const version of ["v1", "v1alpha1"]) await call(t, `/${version}.PodResourcesLister/List`, "ListPodResourcesResponse");
  await call(t, "/v1.PodResourcesLister/GetAllocatableResources", "AllocatableResourcesResponse");
  assert.deepEqual(requested, ["v1", "v1alpha1", "v1"]);
});
