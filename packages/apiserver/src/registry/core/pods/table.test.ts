import assert from "node:assert/strict";
import { test } from "node:test";
import { agesAt } from "../../generic/ages.ts";
import { podTable } from "./table.ts";

const now = Date.parse("2022-01-01T00:10:00Z");

function row(pod: object): unknown[] {
  const object = { metadata: { name: "p", creationTimestamp: "2022-01-01T00:00:00Z" }, spec: { containers: [{}, {}] }, ...pod };
  return [...podTable.cells(object, agesAt(now))].slice(0, 5);
}

const running = { ready: true, restartCount: 0, state: { running: {} } };

for (const { name, pod, want } of [
  { name: "is Pending", pod: { status: { phase: "Pending" } }, want: ["0/2", "Pending", "0"] },
  { name: "runs", pod: { status: { phase: "Running", containerStatuses: [running, running] } }, want: ["2/2", "Running", "0"] },
  {
    name: "restarted twice",
    pod: {
      status: {
        phase: "Running",
        containerStatuses: [
          running,
          { ...running, restartCount: 2, lastState: { terminated: { finishedAt: "2022-01-01T00:07:00Z" } } },
        ],
      },
    },
    want: ["2/2", "Running", "2 (3m ago)"],
  },
  {
    name: "waits in back-off",
    pod: {
      status: {
        phase: "Running",
        containerStatuses: [{ ready: false, restartCount: 3, state: { waiting: { reason: "CrashLoopBackOff" } } }, running],
      },
    },
    want: ["1/2", "CrashLoopBackOff", "3"],
  },
  {
    name: "is done",
    pod: {
      status: {
        phase: "Succeeded",
        containerStatuses: [{ ready: false, restartCount: 0, state: { terminated: { exitCode: 0, reason: "Completed" } } }],
      },
    },
    want: ["0/2", "Completed", "0"],
  },
  {
    name: "is half done and ready",
    pod: {
      status: {
        phase: "Running",
        conditions: [{ type: "Ready", status: "True" }],
        containerStatuses: [{ ready: false, restartCount: 0, state: { terminated: { reason: "Completed" } } }, running],
      },
    },
    want: ["1/2", "Running", "0"],
  },
  {
    name: "died of a signal",
    pod: {
      status: {
        phase: "Failed",
        containerStatuses: [{ ready: false, restartCount: 0, state: { terminated: { exitCode: 137, signal: 9 } } }],
      },
    },
    want: ["0/2", "Signal:9", "0"],
  },
  {
    name: "initializes",
    pod: {
      spec: { containers: [{}], initContainers: [{}, {}, {}] },
      status: {
        phase: "Pending",
        initContainerStatuses: [
          { restartCount: 0, state: { terminated: { exitCode: 0 } } },
          { restartCount: 1, state: { running: {} } },
        ],
      },
    },
    want: ["0/1", "Init:1/3", "1"],
  },
  {
    name: "initializes, and says nothing of restarts",
    pod: { spec: { containers: [{}] }, status: { phase: "Pending", initContainerStatuses: [{ state: { running: {} } }] } },
    want: ["0/1", "Init:0/0", "0"],
  },
  {
    name: "runs, and says nothing of restarts",
    pod: { status: { phase: "Running", containerStatuses: [{ ready: true, state: { running: {} } }, running] } },
    want: ["2/2", "Running", "0"],
  },
  {
    name: "restarted while it initialized",
    pod: {
      spec: { containers: [{}], initContainers: [{}] },
      status: {
        phase: "Running",
        initContainerStatuses: [
          {
            restartCount: 2,
            state: { terminated: { exitCode: 0 } },
            lastState: { terminated: { finishedAt: "2022-01-01T00:07:00Z" } },
          },
        ],
        containerStatuses: [running],
      },
    },
    want: ["1/1", "Running", "0 (3m ago)"],
  },
  {
    name: "failed to initialize without a reason",
    pod: {
      spec: { containers: [{}], initContainers: [{}, {}] },
      status: { phase: "Pending", initContainerStatuses: [{ restartCount: 0, state: { terminated: { exitCode: 2 } } }] },
    },
    want: ["0/1", "Init:ExitCode:2", "0"],
  },
  {
    name: "cannot pull the image of an init container",
    pod: {
      spec: { containers: [{}], initContainers: [{}] },
      status: {
        phase: "Pending",
        initContainerStatuses: [{ restartCount: 0, state: { waiting: { reason: "ErrImagePull" } } }],
        containerStatuses: [{ restartCount: 0, state: { waiting: { reason: "PodInitializing" } } }],
      },
    },
    want: ["0/1", "Init:ErrImagePull", "0"],
  },
  {
    name: "is half done and not ready",
    pod: {
      status: {
        phase: "Running",
        containerStatuses: [{ ready: false, restartCount: 0, state: { terminated: { reason: "Completed" } } }, running],
      },
    },
    want: ["1/2", "NotReady", "0"],
  },
  {
    name: "fails to initialize",
    pod: {
      spec: { containers: [{}], initContainers: [{}] },
      status: {
        phase: "Pending",
        initContainerStatuses: [{ restartCount: 0, state: { terminated: { exitCode: 2, reason: "Error" } } }],
      },
    },
    want: ["0/1", "Init:Error", "0"],
  },
  {
    name: "is being deleted",
    pod: {
      metadata: { name: "p", creationTimestamp: "2022-01-01T00:00:00Z", deletionTimestamp: "2022-01-01T00:09:00Z" },
      status: { phase: "Running", containerStatuses: [running, running] },
    },
    want: ["2/2", "Terminating", "0"],
  },
  {
    name: "was on a lost node",
    pod: {
      metadata: { name: "p", creationTimestamp: "2022-01-01T00:00:00Z", deletionTimestamp: "2022-01-01T00:09:00Z" },
      status: { phase: "Running", reason: "NodeLost" },
    },
    want: ["0/2", "Unknown", "0"],
  },
  ...[0, 1].map((first) => ({
    name: `restarted in two containers, last in number ${first}`,
    pod: {
      status: {
        phase: "Running",
        containerStatuses: ["00:09", "00:04"].map((_, i, times) => ({
          ...running,
          restartCount: 1,
          lastState: { terminated: { finishedAt: `2022-01-01T${times[i === first ? 0 : 1]}:00Z` } },
        })),
      },
    },
    want: ["2/2", "Running", "2 (60s ago)"],
  })),
  {
    name: "waits in its first container for one thing, in its second for another",
    pod: {
      status: {
        phase: "Pending",
        containerStatuses: ["ErrImagePull", "ContainerCreating"].map((reason) => ({
          restartCount: 0,
          state: { waiting: { reason } },
        })),
      },
    },
    want: ["0/2", "ErrImagePull", "0"],
  },
  {
    name: "is ready in a container that does not run yet",
    pod: { status: { phase: "Running", containerStatuses: [{ ...running, state: {} }, running] } },
    want: ["1/2", "Running", "0"],
  },
  {
    name: "runs in a container that is not ready",
    pod: { status: { phase: "Running", containerStatuses: [{ ...running, ready: false }, running] } },
    want: ["1/2", "Running", "0"],
  },
  {
    name: "exits without a reason",
    pod: { status: { phase: "Failed", containerStatuses: [{ restartCount: 0, state: { terminated: { exitCode: 3 } } }] } },
    want: ["0/2", "ExitCode:3", "0"],
  },
  {
    name: "waits for an init container that is being prepared",
    pod: {
      spec: { containers: [{}], initContainers: [{}, {}] },
      status: {
        phase: "Pending",
        initContainerStatuses: [{ restartCount: 0, state: { waiting: { reason: "PodInitializing" } } }],
      },
    },
    want: ["0/1", "Init:0/2", "0"],
  },
  {
    name: "was killed while it initialized",
    pod: {
      spec: { containers: [{}], initContainers: [{}] },
      status: {
        phase: "Pending",
        initContainerStatuses: [{ restartCount: 0, state: { terminated: { exitCode: 137, signal: 9 } } }],
      },
    },
    want: ["0/1", "Init:Signal:9", "0"],
  },
  { name: "has an empty reason", pod: { status: { phase: "Running", reason: "" } }, want: ["0/2", "Running", "0"] },
  { name: "was evicted", pod: { status: { phase: "Failed", reason: "Evicted" } }, want: ["0/2", "Evicted", "0"] },
]) {
  test(`a pod that ${name} shows ${want.join(" ")}`, () => assert.deepEqual(row(pod), ["p", ...want, "10m"]));
}

test("the wide columns have address, node, nomination and gates", () => {
  const cells = podTable.cells(
    {
      metadata: { name: "p" },
      spec: { containers: [{}], nodeName: "n", readinessGates: [{ conditionType: "a" }, { conditionType: "b" }] },
      status: { podIPs: [{ ip: "10.0.0.1" }], conditions: [{ type: "a", status: "True" }] },
    },
    agesAt(now),
  );
  assert.deepEqual([...cells].slice(4), ["<unknown>", "10.0.0.1", "n", "<none>", "1/2"]);
});

test("the wide columns of a pod with one address and a nomination, whose gate is not met", () => {
  const cells = podTable.cells(
    {
      metadata: { name: "p" },
      spec: { containers: [{}], readinessGates: [{ conditionType: "a" }] },
      status: { podIP: "10.0.0.1", nominatedNodeName: "m", conditions: [{ type: "a", status: "False" }] },
    },
    agesAt(now),
  );
  assert.deepEqual([...cells].slice(5), ["10.0.0.1", "<none>", "m", "0/1"]);
  const bare = podTable.cells({ metadata: { name: "p" }, spec: {}, status: {} }, agesAt(now));
  assert.deepEqual([...bare].slice(5), ["<none>", "<none>", "<none>", "<none>"]);
});
